package signer

import (
	"testing"

	"hostr-daemon/internal/sandbox/signerapp"
)

func TestRemoteDoesAll(t *testing.T) {
	t.Parallel()
	for name, options := range map[string]signerapp.Options{"one key": {}, "two keys": {TransportKey: transportKey}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, options)
			ctx := testContext(t)
			account, err := s.remote.GetPublicKey(ctx)
			if err != nil || account != publicKey(t, accountKey) || s.remote.PublicKey() != account {
				t.Fatalf("account %s, error %v", account, err)
			}
			event := note("hello <b> & \u2028")
			if err := s.remote.SignEvent(ctx, event); err != nil {
				t.Fatal(err)
			}
			if err := verify(event); err != nil || event.PubKey != account {
				t.Errorf("signed %v: %v", event, err)
			}
			checkCryptography(t, s.remote, newLocal(t, strangerKey))
			if err := s.remote.Ping(ctx); err != nil {
				t.Error(err)
			}
			if pending := s.remote.Pending(); len(pending) != 0 {
				t.Errorf("still pending: %+v", pending)
			}
		})
	}
}

func newLocal(t testing.TB, key string) *Local {
	t.Helper()
	local, err := NewLocal(key)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(local.Close)
	return local
}

// checkCryptography sends texts both ways between two signers.
func checkCryptography(t *testing.T, a, b Signer) {
	t.Helper()
	ctx := testContext(t)
	for _, pair := range [][2]Signer{{a, b}, {b, a}} {
		from, to := pair[0], pair[1]
		payload, err := from.NIP44Encrypt(ctx, to.PublicKey(), "over 44 é")
		if err != nil {
			t.Fatal(err)
		}
		if text, err := to.NIP44Decrypt(ctx, from.PublicKey(), payload); err != nil || text != "over 44 é" {
			t.Errorf("NIP-44: %q, %v", text, err)
		}
		if payload, err = from.NIP04Encrypt(ctx, to.PublicKey(), "over 04 é"); err != nil {
			t.Fatal(err)
		}
		if text, err := to.NIP04Decrypt(ctx, from.PublicKey(), payload); err != nil || text != "over 04 é" {
			t.Errorf("NIP-04: %q, %v", text, err)
		}
	}
}
