package nip44guard_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/nbd-wtf/go-nostr/nip44"

	"hostr-daemon/internal/nip44guard"
)

func TestIsPayload(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		text string
		want bool
	}{
		"shortest":           {strings.Repeat("A", 132), true},
		"longest":            {strings.Repeat("A", 87472), true},
		"too short":          {strings.Repeat("A", 131), false},
		"too long":           {strings.Repeat("A", 87473), false},
		"empty":              {"", false},
		"line feeds":         {strings.Repeat("\n", 132), false},
		"carriage returns":   {strings.Repeat("\r", 200), false},
		"one line break":     {strings.Repeat("A", 132) + "\n", false},
		"break in the midst": {strings.Repeat("A", 70) + "\r\n" + strings.Repeat("A", 70), false},
		"URL alphabet":       {strings.Repeat("_", 132), false},
		"every character":    {"+/09azAZ" + strings.Repeat("b", 122) + "==", true},
	} {
		if got := nip44guard.IsPayload(test.text); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestDecrypt opens what the library itself has written.
func TestDecrypt(t *testing.T) {
	t.Parallel()
	key := [32]byte{1, 2, 3}
	for _, plaintext := range []string{"x", strings.Repeat("é", 1000), strings.Repeat("y", nip44.MaxPlaintextSize)} {
		payload, err := nip44.Encrypt(plaintext, key)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := nip44guard.Decrypt(payload, key); err != nil || got != plaintext {
			t.Errorf("%d bytes: got %d, %v", len(plaintext), len(got), err)
		}
		if _, err := nip44guard.Decrypt(payload, [32]byte{9}); !errors.Is(err, nip44guard.ErrUndecryptable) {
			t.Errorf("with another key: %v", err)
		}
	}
}

func FuzzDecrypt(f *testing.F) {
	f.Add("")
	f.Add(strings.Repeat("\n", 132))
	f.Add(strings.Repeat("=", 132))
	f.Add("#" + strings.Repeat("A", 140))
	f.Add("Ag" + strings.Repeat("A", 130))
	f.Fuzz(func(t *testing.T, payload string) {
		if text, err := nip44guard.Decrypt(payload, [32]byte{7}); !errors.Is(err, nip44guard.ErrUndecryptable) {
			t.Fatalf("%q: %q, %v", payload, text, err)
		}
	})
}
