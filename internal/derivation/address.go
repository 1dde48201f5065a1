package derivation

import (
	"encoding/hex"

	"github.com/decred/dcrd/dcrec/secp256k1/v4"
	"golang.org/x/crypto/sha3"
)

const addressSize = 20

// addressOf returns the EVM address of a public key (spec 20 §12.2).
func addressOf(key *secp256k1.PublicKey) string {
	const formatByte = 1
	hash := keccak256(key.SerializeUncompressed()[formatByte:])
	return checksummed(hex.EncodeToString(hash[len(hash)-addressSize:]))
}

// checksummed writes the lower-case digits of an address in the mixed case of
// EIP-55, with 0x before them.
func checksummed(digits string) string {
	hash := hex.EncodeToString(keccak256([]byte(digits)))
	mixed := []byte(digits)
	for i, digit := range mixed {
		if digit >= 'a' && hash[i] >= '8' {
			mixed[i] = digit - 'a' + 'A'
		}
	}
	return "0x" + string(mixed)
}

func keccak256(data []byte) []byte {
	hash := sha3.NewLegacyKeccak256()
	_, _ = hash.Write(data) // never fails
	return hash.Sum(nil)
}
