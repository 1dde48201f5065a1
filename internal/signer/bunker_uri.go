package signer

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"

	"hostr-daemon/internal/redact"
)

// BunkerURI is a parsed bunker:// address: an invitation that a remote signer gives
// out (NIP-46). It is used up by Remote.Connect.
type BunkerURI struct {
	// RemotePubkey is the signer's communication key.
	RemotePubkey string
	// Relays are cleaned and each there once.
	Relays []string

	secret *string
}

// ParseBunkerURI reads bunker://<remote pubkey>?relay=…&relay=…&secret=…, with at
// least one usable relay and a secret (spec 20 §4.3). Errors do not repeat the text.
func ParseBunkerURI(text string) (BunkerURI, error) {
	scheme, rest, found := strings.Cut(strings.TrimSpace(text), "://")
	if !found || !strings.EqualFold(scheme, "bunker") {
		return BunkerURI{}, errors.New("not a bunker:// address")
	}
	pubkey, query, _ := strings.Cut(rest, "?")
	uri := BunkerURI{RemotePubkey: strings.ToLower(strings.TrimSuffix(pubkey, "/"))}
	if !isPublicKey(uri.RemotePubkey) {
		return BunkerURI{}, errors.New("the bunker:// address does not begin with the signer's public key of 64 hex digits")
	}
	query, _, _ = strings.Cut(query, "#")
	parameters, err := url.ParseQuery(query)
	if err != nil { // Its text holds a part of the address.
		return BunkerURI{}, errors.New("the parameters of the bunker:// address are not percent-encoded")
	}
	if uri.Relays = cleanRelays(parameters["relay"]); len(uri.Relays) == 0 {
		return BunkerURI{}, errors.New("the bunker:// address names no usable relay; it needs relay=wss://…")
	}
	secret := parameters.Get("secret")
	if secret == "" {
		return BunkerURI{}, errors.New("the bunker:// address has no secret")
	}
	uri.secret = &secret
	return uri, nil
}

// Secret returns what proves to the signer that it gave the address out.
func (u BunkerURI) Secret() string {
	if u.secret == nil {
		return ""
	}
	return *u.secret
}

// Connection returns a connection to the signer with a fresh client key.
func (u BunkerURI) Connection(random io.Reader) (Connection, error) {
	key, err := NewPrivateKey(random)
	if err != nil {
		return Connection{}, err
	}
	return Connection{PrivateKey: key, RemotePubkey: u.RemotePubkey, Relays: u.Relays}, nil
}

// Format implements fmt.Formatter for every verb.
func (u BunkerURI) Format(state fmt.State, _ rune) {
	_, _ = fmt.Fprintf(state, "address of signer %s at %q %s", u.RemotePubkey, u.Relays, redact.Redacted)
}

// MarshalText implements encoding.TextMarshaler, and with it JSON.
func (u BunkerURI) MarshalText() ([]byte, error) { return fmt.Append(nil, u), nil }
