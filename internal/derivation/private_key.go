package derivation

import (
	"encoding/hex"
	"errors"

	"github.com/decred/dcrd/dcrec/secp256k1/v4"
)

// PrivateKey is a secp256k1 private key k with 1 <= k < n, 32 bytes with leading
// zeros kept. Nothing prints it. The zero value is no key, and nothing can be
// derived from it or signed with it.
type PrivateKey struct {
	hidden
	// raw holds the bytes.
	raw *string
}

var errNoPrivateKey = errors.New("a private key has 64 hex digits and lies between 1 and the order of secp256k1")

// ParsePrivateKey reads 64 hex digits in any case. The error does not repeat them.
func ParsePrivateKey(digits string) (PrivateKey, error) {
	raw, err := hex.DecodeString(digits)
	if err != nil {
		return PrivateKey{}, errNoPrivateKey
	}
	return newPrivateKey(raw)
}

// newPrivateKey copies the bytes.
func newPrivateKey(raw []byte) (PrivateKey, error) {
	var scalar secp256k1.ModNScalar
	defer scalar.Zero()
	if len(raw) != secp256k1.PrivKeyBytesLen || scalar.SetByteSlice(raw) || scalar.IsZero() {
		return PrivateKey{}, errNoPrivateKey
	}
	text := string(raw)
	return PrivateKey{raw: &text}, nil
}

// IsZero reports whether this is no key.
func (k PrivateKey) IsZero() bool { return k.raw == nil }

// Hex returns 64 lower-case hex digits, "" for no key. What is done with them is the
// caller's responsibility.
func (k PrivateKey) Hex() string {
	return hex.EncodeToString(k.bytes())
}

// PublicKey returns the x-only public key of Nostr (BIP-340), 64 lower-case hex
// digits; "" for no key.
func (k PrivateKey) PublicKey() string {
	if k.IsZero() {
		return ""
	}
	return hex.EncodeToString(k.secp256k1().PubKey().SerializeCompressed()[1:])
}

// Address returns the EVM address of the key in the mixed case of EIP-55; "" for no
// key.
func (k PrivateKey) Address() string {
	if k.IsZero() {
		return ""
	}
	return addressOf(k.secp256k1().PubKey())
}

func (k PrivateKey) bytes() []byte {
	if k.raw == nil {
		return nil
	}
	return []byte(*k.raw)
}

func (k PrivateKey) secp256k1() *secp256k1.PrivateKey { return secp256k1.PrivKeyFromBytes(k.bytes()) }
