package signer

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/decred/dcrd/dcrec/secp256k1/v4"

	"hostr-daemon/internal/redact"
)

const keyLength = 32

// PrivateKey is a secp256k1 private key that nothing prints: every verb of fmt,
// JSON and loggers show it as [redacted], also inside other values. The zero value
// holds no key.
type PrivateKey struct {
	// digits are behind a pointer because fmt prints the unexported fields of other
	// structs without asking their methods, and a pointer to a text, unlike one to a
	// struct or an array, as an address whatever the verb.
	digits *string
	public string
}

// ParsePrivateKey reads 64 hex digits of a key k with 1 <= k < n. The libraries
// beneath take others without complaint (spec 82 §10.5). The error does not repeat
// the text.
func ParsePrivateKey(text string) (PrivateKey, error) {
	raw, err := hex.DecodeString(text)
	if err != nil || len(raw) != keyLength {
		return PrivateKey{}, errors.New("a private key has 64 hex digits")
	}
	defer clear(raw)
	return newPrivateKey(raw)
}

// NewPrivateKey draws a fresh key.
func NewPrivateKey(random io.Reader) (PrivateKey, error) {
	raw := make([]byte, keyLength)
	defer clear(raw)
	for {
		if _, err := io.ReadFull(random, raw); err != nil {
			return PrivateKey{}, fmt.Errorf("drawing a private key: %w", err)
		}
		if key, err := newPrivateKey(raw); err == nil {
			return key, nil
		}
	}
}

func newPrivateKey(raw []byte) (PrivateKey, error) {
	var scalar secp256k1.ModNScalar
	defer scalar.Zero()
	if overflow := scalar.SetByteSlice(raw); overflow || scalar.IsZero() {
		return PrivateKey{}, errors.New("outside the range of private keys")
	}
	compressed := secp256k1.NewPrivateKey(&scalar).PubKey().SerializeCompressed()
	digits := hex.EncodeToString(raw)
	return PrivateKey{digits: &digits, public: hex.EncodeToString(compressed[1:])}, nil
}

// Hex returns the key as 64 lower-case hex digits, "" without one. What is done with
// it is the caller's responsibility.
func (k PrivateKey) Hex() string {
	if k.digits == nil {
		return ""
	}
	return *k.digits
}

// PublicKey returns the x-only public key as 64 lower-case hex digits, "" without a
// key.
func (k PrivateKey) PublicKey() string { return k.public }

func (k PrivateKey) isEmpty() bool { return k.digits == nil }

// Format implements fmt.Formatter for every verb.
func (k PrivateKey) Format(state fmt.State, _ rune) { _, _ = io.WriteString(state, redact.Redacted) }

// String implements fmt.Stringer.
func (k PrivateKey) String() string { return redact.Redacted }

// MarshalText implements encoding.TextMarshaler, and with it JSON.
func (k PrivateKey) MarshalText() ([]byte, error) { return []byte(redact.Redacted), nil }

// LogValue implements slog.LogValuer.
func (k PrivateKey) LogValue() slog.Value { return slog.StringValue(redact.Redacted) }

// isPublicKey reports whether text is 64 lower-case hex digits of a point.
func isPublicKey(text string) bool {
	if !isLowerHex(text, 2*keyLength) {
		return false
	}
	raw, err := hex.DecodeString("02" + text)
	if err != nil {
		return false
	}
	_, err = secp256k1.ParsePubKey(raw)
	return err == nil
}

func isLowerHex(text string, length int) bool {
	return len(text) == length && strings.Trim(text, "0123456789abcdef") == ""
}
