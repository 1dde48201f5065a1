package signer

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/relay"
)

var (
	_ Signer        = (*Local)(nil)
	_ Signer        = (*Remote)(nil)
	_ Signer        = (*Holder)(nil)
	_ relay.Account = Signer(nil)
)

func TestLocalSignsTheVectors(t *testing.T) {
	t.Parallel()
	for name, vector := range map[string]struct {
		key   string
		event nostr.Event
		id    string
	}{
		"profile (spec 20 §10.5)": {
			"000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f",
			nostr.Event{CreatedAt: 1780000000,
				Content: `{"name":"Casa Azul","picture":"","about":"Quiet rooms","nip05":"","lud16":"casa@example.com"}`},
			"abf94ac1a618919578cc307afb22cb6537b9c7866fe5f3194a964065d9c02d8d",
		},
		"AUTH (spec 82 §8.1)": {
			accountKey,
			nostr.Event{Kind: 22242, CreatedAt: 1767225600, Tags: nostr.Tags{{"relay", "wss://relay.example.org"}, {"challenge", "abc123"}}},
			"a8db9423e62d874b09643c18eef79b18c0d271f3125e4192dcf2671fc1d44ab7",
		},
		"escapes (spec 82 §10.4)": {
			accountKey, nostr.Event{Kind: 1, CreatedAt: 1767225600, Content: "a\x01b"},
			"3af05f670829a93ecacd6b346897aa71166193f2c94d9fa91d41c48fe2b60476",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			local := newLocal(t, vector.key)
			want, event := vector.event, vector.event
			if err := local.SignEvent(context.Background(), &event); err != nil {
				t.Fatal(err)
			}
			if err := verify(&event); err != nil || event.ID != vector.id {
				t.Errorf("id %s, want %s; %v", event.ID, vector.id, err)
			}
			want.PubKey, want.ID, want.Sig = local.PublicKey(), event.ID, event.Sig
			if diff := cmp.Diff(want, event); diff != "" {
				t.Errorf("signing changed more than it should:\n%s", diff)
			}
		})
	}
}

func TestLocalRefuses(t *testing.T) {
	t.Parallel()
	local := newLocal(t, accountKey)
	ctx := context.Background()
	for name, event := range map[string]nostr.Event{
		"another author":            {PubKey: publicKey(t, strangerKey)},
		"an unreadable author":      {PubKey: "me"},
		"content that is not UTF-8": {Content: "\xff"},
		"a tag that is not UTF-8":   {Tags: nostr.Tags{{"t", "\xff"}}},
	} {
		before := event
		if err := local.SignEvent(ctx, &event); err == nil || cmp.Diff(before, event) != "" {
			t.Errorf("%s: error %v, event %v", name, err, event)
		}
	}
	for _, peer := range []string{"", "x", strings.Repeat("f", 64), strings.ToUpper(publicKey(t, strangerKey)), publicKey(t, strangerKey)[1:]} {
		if _, err := local.NIP44Encrypt(ctx, peer, "x"); err == nil {
			t.Errorf("encrypted for the peer %q", peer)
		}
		if _, err := local.NIP04Encrypt(ctx, peer, "x"); err == nil {
			t.Errorf("encrypted for the peer %q", peer)
		}
	}
	for _, length := range []int{0, 65536} {
		if _, err := local.NIP44Encrypt(ctx, publicKey(t, strangerKey), strings.Repeat("x", length)); err == nil {
			t.Errorf("encrypted %d bytes", length)
		}
	}
	own := local.PublicKey()
	if _, err := local.NIP44Encrypt(ctx, own, strings.Repeat("x", 65535)); err != nil {
		t.Errorf("the longest text for oneself: %v", err)
	}
}

func TestLocalCryptography(t *testing.T) {
	t.Parallel()
	checkCryptography(t, newLocal(t, accountKey), newLocal(t, strangerKey))
	// The first vector of NIP-44: keys 1 and 2, nonce 1, plaintext "a".
	const payload = "AgAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAABee0G5VSK0/9YypIObAtDKfYEAjD35uVkHyB0F4DwrcNaCXlCWZKaArsGrY6M9wnuTMxWfp1RTN9Xga8no+kF5Vsb"
	text, err := newLocal(t, accountKey).NIP44Decrypt(context.Background(), publicKey(t, transportKey), payload)
	if err != nil || text != "a" {
		t.Errorf("%q, %v", text, err)
	}
}

func TestLocalGuardsDecryption(t *testing.T) {
	t.Parallel()
	local, ctx := newLocal(t, accountKey), context.Background()
	peer := publicKey(t, strangerKey)
	good44, err := local.NIP44Encrypt(ctx, peer, "x")
	if err != nil {
		t.Fatal(err)
	}
	good04, err := local.NIP04Encrypt(ctx, peer, "x")
	if err != nil {
		t.Fatal(err)
	}
	ciphertext, iv, _ := strings.Cut(good04, ivMark)
	for _, payload := range []string{
		"", "#", strings.Repeat("\n", 132), strings.Repeat("\r\n", 100), strings.Repeat("=", 132), strings.Repeat("A", 132),
		good44[:131], good44 + "\n", "\n" + good44[1:], good44[:len(good44)-5] + "AAAA=", strings.Repeat("A", 87473), good04,
	} {
		if text, err := local.NIP44Decrypt(ctx, peer, payload); !errors.Is(err, ErrUndecryptable) {
			t.Errorf("NIP-44 %.40q: %q, %v", payload, text, err)
		}
	}
	for _, payload := range []string{
		"", ivMark, ciphertext, ciphertext + ivMark, ciphertext + ivMark + "AA==", ciphertext + ivMark + iv + "AAAA", ivMark + iv,
		"AAAA" + ivMark + iv, ciphertext[1:] + ivMark + iv, ciphertext + ivMark + "\n" + iv, ciphertext + ivMark + iv + ivMark + iv,
		strings.Repeat("A", maxNIP04) + ivMark + iv, good44,
	} {
		if text, err := local.NIP04Decrypt(ctx, peer, payload); !errors.Is(err, ErrUndecryptable) {
			t.Errorf("NIP-04 %.40q: %q, %v", payload, text, err)
		}
	}
}

func TestLocalEnds(t *testing.T) {
	t.Parallel()
	local := newLocal(t, accountKey)
	cancelled, cancel := context.WithCancelCause(context.Background())
	reason := errors.New("enough")
	cancel(reason)
	peer := publicKey(t, strangerKey)
	if err := local.SignEvent(cancelled, note("x")); !errors.Is(err, reason) {
		t.Errorf("a cancelled call: %v", err)
	}
	if _, err := local.NIP44Encrypt(context.Background(), peer, "x"); err != nil {
		t.Fatal(err)
	}
	local.Close()
	local.Close()
	if _, err := local.NIP44Encrypt(context.Background(), peer, "x"); !errors.Is(err, ErrClosed) {
		t.Errorf("encrypting with a closed signer: %v", err)
	}
	if err := local.SignEvent(context.Background(), note("x")); !errors.Is(err, ErrClosed) {
		t.Errorf("signing with a closed signer: %v", err)
	}
	if local.PublicKey() != publicKey(t, accountKey) {
		t.Error("the account is forgotten")
	}
}

func TestLocalBoundsItsMemory(t *testing.T) {
	t.Parallel()
	local := newLocal(t, accountKey)
	for i := range maxConversations + 10 {
		peer := publicKey(t, keyOf(i+1))
		if _, err := local.NIP44Encrypt(context.Background(), peer, "x"); err != nil {
			t.Fatal(err)
		}
	}
	if kept := local.conversations.Len(); kept != maxConversations {
		t.Errorf("%d conversation keys are kept", kept)
	}
}
