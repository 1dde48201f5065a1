package secrets

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/rs/zerolog"
)

// holder keeps a secret where fmt cannot ask its methods.
type holder struct{ hidden Secret }

func TestSecretsDoNotPrint(t *testing.T) {
	t.Parallel()
	secret := NewSecret("canary")
	account := testAccount(t, 1)
	bunker, err := NewBunkerIdentity(account.pubkey, BunkerConnection{PrivateKey: NewSecret(account.key), RemotePubkey: account.pubkey})
	if err != nil {
		t.Fatal(err)
	}
	values := []any{
		secret, &secret, holder{secret}, &holder{secret}, []Secret{secret}, map[string]Secret{"k": secret},
		struct{ S any }{secret}, account.identity, &account.identity, bunker, *bunker.Bunker, *account.identity.KeyPair,
		NewSecret(account.key),
	}
	var printed strings.Builder
	for _, value := range values {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d", "%t", "%p", "%08.3f"} {
			fmt.Fprintf(&printed, verb+"\n", value)
		}
		fmt.Fprintln(&printed, value)
		text, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		printed.Write(text)
		var lines bytes.Buffer
		slog.New(slog.NewJSONHandler(&lines, nil)).Info("x", "value", value)
		slog.New(slog.NewTextHandler(&lines, nil)).Info("x", "value", value)
		logger := zerolog.New(&lines)
		logger.Info().Interface("value", value).Any("again", value).Msg("x")
		printed.Write(lines.Bytes())
	}
	for _, canary := range []string{"canary", account.key, fmt.Sprintf("%x", "canary")} {
		if strings.Contains(printed.String(), canary) {
			t.Errorf("%s was printed", canary[:6])
		}
	}
	if text, err := json.Marshal(secret); err != nil || string(text) != `"[redacted]"` {
		t.Errorf("JSON %s, %v", text, err)
	}
	if got := fmt.Sprint(secret); got != "[redacted]" {
		t.Errorf("printed as %s", got)
	}
}

func TestSecretValue(t *testing.T) {
	t.Parallel()
	var zero Secret
	if !zero.IsEmpty() || zero.Reveal() != "" || !zero.Equal(NewSecret("")) || fmt.Sprint(zero) != "[redacted]" {
		t.Error("the zero secret is not the empty one")
	}
	if one := NewSecret("one"); one.IsEmpty() || one.Reveal() != "one" || !one.Equal(NewSecret("one")) || one.Equal(NewSecret("two")) {
		t.Error("a secret does not equal its text")
	}
}
