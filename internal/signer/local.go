package signer

import (
	"context"
	"fmt"
	"sync"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/redact"
)

// maxConversations is how many NIP-44 conversation keys a Local keeps: deriving one
// takes longer than using it.
const maxConversations = 512

// Local signs with a private key held in this process. It answers at once.
type Local struct {
	public string

	mu            sync.RWMutex
	key           PrivateKey // without a key once closed
	conversations *lru.Cache[string, conversation]
}

// NewLocal returns the signer of a private key, 64 hex digits.
func NewLocal(privateKey string) (*Local, error) {
	key, err := ParsePrivateKey(privateKey)
	if err != nil {
		return nil, err
	}
	conversations, err := lru.New[string, conversation](maxConversations)
	if err != nil {
		return nil, fmt.Errorf("conversation keys: %w", err)
	}
	return &Local{public: key.PublicKey(), key: key, conversations: conversations}, nil
}

// PublicKey implements Signer.
func (l *Local) PublicKey() string { return l.public }

// IsRemote implements Signer.
func (l *Local) IsRemote() bool { return false }

// SignEvent implements Signer.
func (l *Local) SignEvent(ctx context.Context, event *nostr.Event) error {
	key, err := l.open(ctx)
	if err != nil {
		return err
	}
	if err := checkUnsigned(event, l.public); err != nil {
		return err
	}
	signed := *event
	if err := signed.Sign(key.Hex()); err != nil { // Its text may hold the key.
		return fmt.Errorf("an event of kind %d cannot be signed", event.Kind)
	}
	if err := verify(&signed); err != nil {
		return fmt.Errorf("the signature of an event of kind %d came out wrong: %w", event.Kind, err)
	}
	event.PubKey, event.ID, event.Sig = signed.PubKey, signed.ID, signed.Sig
	return nil
}

// NIP44Encrypt implements Signer.
func (l *Local) NIP44Encrypt(ctx context.Context, peer, plaintext string) (string, error) {
	conversation, err := l.converse(ctx, peer)
	if err != nil {
		return "", err
	}
	return conversation.encrypt(plaintext)
}

// NIP44Decrypt implements Signer.
func (l *Local) NIP44Decrypt(ctx context.Context, peer, payload string) (string, error) {
	conversation, err := l.converse(ctx, peer)
	if err != nil {
		return "", err
	}
	return conversation.decrypt(payload)
}

// NIP04Encrypt implements Signer.
func (l *Local) NIP04Encrypt(ctx context.Context, peer, plaintext string) (string, error) {
	key, err := l.open(ctx)
	if err != nil {
		return "", err
	}
	return encryptNIP04(key, peer, plaintext)
}

// NIP04Decrypt implements Signer.
func (l *Local) NIP04Decrypt(ctx context.Context, peer, payload string) (string, error) {
	key, err := l.open(ctx)
	if err != nil {
		return "", err
	}
	return decryptNIP04(key, peer, payload)
}

// Close forgets the key and everything derived from it.
func (l *Local) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.key = PrivateKey{}
	l.conversations.Purge()
}

// Format implements fmt.Formatter for every verb.
func (l *Local) Format(state fmt.State, _ rune) {
	_, _ = fmt.Fprintf(state, "local signer of %s %s", l.public, redact.Redacted)
}

// MarshalText implements encoding.TextMarshaler, and with it JSON.
func (l *Local) MarshalText() ([]byte, error) { return fmt.Append(nil, l), nil }

func (l *Local) open(ctx context.Context) (PrivateKey, error) {
	if ctx.Err() != nil {
		return PrivateKey{}, context.Cause(ctx)
	}
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.key.isEmpty() {
		return PrivateKey{}, ErrClosed
	}
	return l.key, nil
}

func (l *Local) converse(ctx context.Context, peer string) (conversation, error) {
	key, err := l.open(ctx)
	if err != nil {
		return conversation{}, err
	}
	if known, ok := l.conversations.Get(peer); ok {
		return known, nil
	}
	derived, err := converse(key, peer)
	if err != nil {
		return conversation{}, err
	}
	l.mu.RLock()
	defer l.mu.RUnlock()
	if !l.key.isEmpty() { // Not after Close has purged them.
		l.conversations.Add(peer, derived)
	}
	return derived, nil
}
