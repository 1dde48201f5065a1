package signer

import (
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"io"
	"slices"
	"strings"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/redact"
)

// App is how the product introduces itself to a signer. Empty fields are left out.
type App struct{ Name, URL, Image string }

// permissions are what a signer is asked to allow.
const permissions = "sign_event,nip44_encrypt,nip44_decrypt,nip04_encrypt,nip04_decrypt"

// secretLength is the length of an invitation's secret, in bytes.
const secretLength = 16

// Invitation asks whoever scans its URI to act as remote signer (Nostr Connect,
// NIP-46, spec 20 §4.1). Whoever knows the URI can answer, so nothing prints it.
type Invitation struct {
	client PrivateKey
	secret *string
	relays []string
	app    App
}

// NewInvitation draws a fresh client key and secret. Without a usable relay it
// fails with relay_required.
func NewInvitation(relays []string, app App, random io.Reader) (Invitation, error) {
	clean := cleanRelays(relays)
	if len(clean) == 0 {
		return Invitation{}, fault.New(fault.RelayRequired,
			"Signing in with a Nostr app needs a relay, and this environment has none.")
	}
	client, err := NewPrivateKey(random)
	if err != nil {
		return Invitation{}, err
	}
	raw := make([]byte, secretLength)
	if _, err := io.ReadFull(random, raw); err != nil {
		return Invitation{}, fmt.Errorf("drawing a secret: %w", err)
	}
	secret := base64.URLEncoding.EncodeToString(raw)
	return Invitation{client: client, secret: &secret, relays: clean, app: app}, nil
}

// URI returns the nostrconnect:// address, for the person's eyes only.
func (i Invitation) URI() string {
	if i.secret == nil {
		return ""
	}
	var parameters []string
	for _, relay := range i.relays {
		parameters = append(parameters, "relay="+encodeURIComponent(relay))
	}
	parameters = append(parameters, "secret="+*i.secret, "perms="+permissions)
	for _, text := range [][2]string{{"name", i.app.Name}, {"url", i.app.URL}, {"image", i.app.Image}} {
		if text[1] != "" {
			parameters = append(parameters, text[0]+"="+encodeURIComponent(text[1]))
		}
	}
	return "nostrconnect://" + i.client.PublicKey() + "?" + strings.Join(parameters, "&")
}

// ClientPubkey returns the public key the signer answers to.
func (i Invitation) ClientPubkey() string { return i.client.PublicKey() }

// Relays returns where the signer answers.
func (i Invitation) Relays() []string { return slices.Clone(i.relays) }

// Format implements fmt.Formatter for every verb.
func (i Invitation) Format(state fmt.State, _ rune) {
	_, _ = fmt.Fprintf(state, "sign-in request of client %s at %q %s", i.ClientPubkey(), i.relays, redact.Redacted)
}

// MarshalText implements encoding.TextMarshaler, and with it JSON.
func (i Invitation) MarshalText() ([]byte, error) { return fmt.Append(nil, i), nil }

func (i Invitation) isSecret(text string) bool {
	return subtle.ConstantTimeCompare([]byte(text), []byte(*i.secret)) == 1
}

// encodeURIComponent writes text as the function of that name in ECMAScript does,
// which leaves more characters as they are than net/url.
func encodeURIComponent(text string) string {
	const unreserved = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.!~*'()"
	var out strings.Builder
	for _, b := range []byte(text) {
		if strings.IndexByte(unreserved, b) >= 0 {
			out.WriteByte(b)
		} else {
			fmt.Fprintf(&out, "%%%02X", b)
		}
	}
	return out.String()
}
