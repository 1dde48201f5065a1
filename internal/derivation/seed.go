package derivation

import (
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
)

// SeedSize is the size of an account seed in bytes.
const SeedSize = 32

const (
	seedSalt = "hostr/root/v1"
	seedInfo = "deterministic-app-entropy"
)

// Seed is an account seed (spec 20 §12.1). Nothing prints it. The zero value is no
// seed.
type Seed struct {
	hidden
	// raw holds the bytes.
	raw *string
}

var errNoSeed = errors.New("an account seed has 64 hex digits")

// ParseSeed reads 64 hex digits in any case, blanks around them ignored. The error
// does not repeat the text.
func ParseSeed(text string) (Seed, error) {
	raw, err := hex.DecodeString(strings.TrimSpace(text))
	if err != nil || len(raw) != SeedSize {
		return Seed{}, errNoSeed
	}
	return newSeed(raw), nil
}

// NewSeed draws a seed from random, which should be crypto/rand.Reader.
func NewSeed(random io.Reader) (Seed, error) {
	raw := make([]byte, SeedSize)
	if _, err := io.ReadFull(random, raw); err != nil {
		return Seed{}, fmt.Errorf("drawing an account seed: %w", err)
	}
	return newSeed(raw), nil
}

// SeedFromPrivateKey returns the seed of an account whose private key is held here,
// the same on every device (spec 20 §12.2).
func SeedFromPrivateKey(key PrivateKey) (Seed, error) {
	if key.IsZero() {
		return Seed{}, errNoPrivateKey
	}
	raw, err := hkdf.Key(sha256.New, key.bytes(), []byte(seedSalt), seedInfo, SeedSize)
	if err != nil {
		return Seed{}, fmt.Errorf("deriving the account seed: %w", err)
	}
	return newSeed(raw), nil
}

// IsZero reports whether this is no seed.
func (s Seed) IsZero() bool { return s.raw == nil }

// Hex returns 64 lower-case hex digits, "" for no seed. What is done with them is
// the caller's responsibility.
func (s Seed) Hex() string {
	return hex.EncodeToString(s.bytes())
}

// Equal compares two seeds in a time that does not depend on them. No seed equals
// no other, nor itself.
func (s Seed) Equal(other Seed) bool {
	return !s.IsZero() && !other.IsZero() && subtle.ConstantTimeCompare(s.bytes(), other.bytes()) == 1
}

func newSeed(raw []byte) Seed {
	text := string(raw)
	return Seed{raw: &text}
}

func (s Seed) bytes() []byte {
	if s.raw == nil {
		return nil
	}
	return []byte(*s.raw)
}
