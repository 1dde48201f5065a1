package giftwrap

import (
	"context"
	"errors"

	"github.com/nbd-wtf/go-nostr"
)

// Account is the identity that messages are written by or addressed to; a signer is
// one. A payload that it can never decrypt has to be a nip44guard.ErrUndecryptable;
// its other failures count as passing.
type Account interface {
	// PublicKey returns 64 lower-case hex digits.
	PublicKey() string
	SignEvent(ctx context.Context, event *nostr.Event) error
	NIP44Encrypt(ctx context.Context, peer, plaintext string) (string, error)
	NIP44Decrypt(ctx context.Context, peer, payload string) (string, error)
}

// ErrRejected is in the error of a wrap that can never be opened or must not be: it
// cannot be decrypted, or a rule of NIP-59 is broken. Every other error of Unwrap is
// the account's, and the wrap may be tried again.
var ErrRejected = errors.New("the gift wrap is rejected")

// MaxRumor is how many bytes of JSON a message may have, so that the two encryptions
// around it stay within NIP-44 as others read it (spec 60 §3.6).
const MaxRumor = 40960

// ErrTooLarge is in the error of a message longer than MaxRumor.
var ErrTooLarge = errors.New("the message is too long to be sent")
