package signer

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/nbd-wtf/go-nostr"
)

// Holder is an account's place for its signer, which comes and goes while the
// account stays: a session's relay client is made with the Holder as its account,
// and a Remote that talks through that very client is put in afterwards. Restoring a
// connection replaces the signer. It is a Signer itself.
//
// A call that ends because its signer was replaced is repeated at the new one.
type Holder struct {
	public string
	remote bool

	mu      sync.Mutex
	current Signer
	closed  bool
}

// NewHolder returns the empty place of an account, 64 lower-case hex digits. remote
// tells which sort of signer it is for.
func NewHolder(account string, remote bool) (*Holder, error) {
	if !isPublicKey(account) {
		return nil, fmt.Errorf("the account %q is no public key; it has 64 lower-case hex digits", foreignText(account))
	}
	return &Holder{public: account, remote: remote}, nil
}

// Set puts a signer in, or none, and closes the one before. It refuses, and closes,
// a signer of another account, and any once the Holder is closed.
func (h *Holder) Set(next Signer) error {
	h.mu.Lock()
	var refused error
	previous := h.current
	switch {
	case next != nil && h.closed:
		previous, refused = next, ErrClosed
	case next != nil && next.PublicKey() != h.public:
		previous, refused = next, &WrongAccount{Want: h.public, Got: next.PublicKey()}
	case next == previous:
		previous = nil
	default:
		h.current = next
	}
	h.mu.Unlock()
	if previous != nil {
		previous.Close()
	}
	return refused
}

// Signer returns the signer that is in, or nil.
func (h *Holder) Signer() Signer {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.current
}

// PublicKey implements Signer: it is known without a signer, too.
func (h *Holder) PublicKey() string { return h.public }

// IsRemote implements Signer.
func (h *Holder) IsRemote() bool { return h.remote }

// SignEvent implements Signer.
func (h *Holder) SignEvent(ctx context.Context, event *nostr.Event) error {
	_, err := h.ask(ctx, func(s Signer) (string, error) { return "", s.SignEvent(ctx, event) })
	return err
}

// NIP44Encrypt implements Signer.
func (h *Holder) NIP44Encrypt(ctx context.Context, peer, plaintext string) (string, error) {
	return h.ask(ctx, func(s Signer) (string, error) { return s.NIP44Encrypt(ctx, peer, plaintext) })
}

// NIP44Decrypt implements Signer.
func (h *Holder) NIP44Decrypt(ctx context.Context, peer, payload string) (string, error) {
	return h.ask(ctx, func(s Signer) (string, error) { return s.NIP44Decrypt(ctx, peer, payload) })
}

// NIP04Encrypt implements Signer.
func (h *Holder) NIP04Encrypt(ctx context.Context, peer, plaintext string) (string, error) {
	return h.ask(ctx, func(s Signer) (string, error) { return s.NIP04Encrypt(ctx, peer, plaintext) })
}

// NIP04Decrypt implements Signer.
func (h *Holder) NIP04Decrypt(ctx context.Context, peer, payload string) (string, error) {
	return h.ask(ctx, func(s Signer) (string, error) { return s.NIP04Decrypt(ctx, peer, payload) })
}

// Close takes the signer out for good and closes it.
func (h *Holder) Close() {
	h.mu.Lock()
	previous := h.current
	h.current, h.closed = nil, true
	h.mu.Unlock()
	if previous != nil {
		previous.Close()
	}
}

// Format implements fmt.Formatter for every verb.
func (h *Holder) Format(state fmt.State, _ rune) {
	_, _ = fmt.Fprintf(state, "holder of the signer of %s", h.public)
}

// MarshalText implements encoding.TextMarshaler, and with it JSON.
func (h *Holder) MarshalText() ([]byte, error) { return fmt.Append(nil, h), nil }

// ask calls the signer that is in, and the next one when that was taken out under
// way.
func (h *Holder) ask(ctx context.Context, call func(Signer) (string, error)) (string, error) {
	for {
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		h.mu.Lock()
		asked, closed := h.current, h.closed
		h.mu.Unlock()
		switch {
		case closed:
			return "", ErrClosed
		case asked == nil:
			return "", ErrNoSigner
		}
		answer, err := call(asked)
		if !errors.Is(err, ErrClosed) || h.Signer() == asked {
			return answer, err
		}
	}
}
