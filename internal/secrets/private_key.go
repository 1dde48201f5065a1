package secrets

import (
	"encoding/hex"
	"errors"
	"strings"

	"github.com/decred/dcrd/dcrec/secp256k1/v4"
	"github.com/nbd-wtf/go-nostr/nip19"
)

const keyLength = 32

var errNoPrivateKey = errors.New("not a private key of 64 hex digits or an nsec")

// ParsePrivateKey reads a private key, 64 hex digits in any case or an nsec (spec
// 20 §3.2, without mnemonics), and returns it as 64 lowercase hex digits with its
// x-only public key. The key is checked to lie in 1 … n−1. The error does not
// repeat the text.
func ParsePrivateKey(text string) (key Secret, publicKey string, err error) {
	text = strings.TrimSpace(text)
	if strings.HasPrefix(text, "nsec1") {
		_, decoded, err := nip19.Decode(text)
		digits, ok := decoded.(string)
		if err != nil || !ok {
			return Secret{}, "", errNoPrivateKey
		}
		text = digits
	}
	raw, err := hex.DecodeString(text)
	if err != nil || len(raw) != keyLength {
		return Secret{}, "", errNoPrivateKey
	}
	var scalar secp256k1.ModNScalar
	defer scalar.Zero()
	if overflow := scalar.SetByteSlice(raw); overflow || scalar.IsZero() {
		return Secret{}, "", errors.New("outside the range of private keys")
	}
	compressed := secp256k1.NewPrivateKey(&scalar).PubKey().SerializeCompressed()
	return NewSecret(strings.ToLower(text)), hex.EncodeToString(compressed[1:]), nil
}

// isHexKey reports whether a text is 64 lowercase hex digits.
func isHexKey(text string) bool {
	raw, err := hex.DecodeString(text)
	return err == nil && len(raw) == keyLength && text == strings.ToLower(text)
}
