package signer

import (
	"context"

	"github.com/nbd-wtf/go-nostr"
)

// Signer acts for one account. It satisfies relay.Account and is safe for
// concurrent use. Every call ends with its context; public keys of peers are 64
// lower-case hex digits.
type Signer interface {
	// PublicKey returns the account as 64 lower-case hex digits; "" for a remote
	// signer that has not been asked yet.
	PublicKey() string
	// SignEvent sets pubkey, id and sig and changes nothing else. It refuses an event
	// of another author. What it has signed is checked before it returns.
	SignEvent(ctx context.Context, event *nostr.Event) error
	// NIP44Encrypt encrypts 1 to 65535 bytes for the peer (NIP-44 version 2).
	NIP44Encrypt(ctx context.Context, peer, plaintext string) (string, error)
	NIP44Decrypt(ctx context.Context, peer, payload string) (string, error)
	NIP04Encrypt(ctx context.Context, peer, plaintext string) (string, error)
	NIP04Decrypt(ctx context.Context, peer, payload string) (string, error)
	// IsRemote reports whether another device signs, perhaps after asking a person.
	IsRemote() bool
	// Close ends the signer: requests under way fail at once with ErrClosed, and it
	// returns when the signer's goroutines are gone.
	Close()
}
