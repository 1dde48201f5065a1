package derivation

import (
	"encoding/hex"
	"errors"
	"strconv"
	"strings"

	"github.com/decred/dcrd/dcrec/secp256k1/v4/ecdsa"
)

// signatureSize is r, s and v.
const signatureSize = 65

var errBadSignature = errors.New("not an EIP-191 signature of this message: 65 bytes in hex with v 27 or 28")

// PersonalSign signs a message as EIP-191 personal_sign does and returns 0x and 130
// lower-case hex digits: r, s and v, which is 27 or 28. It is deterministic (RFC
// 6979) with low s.
func (k PrivateKey) PersonalSign(message []byte) (string, error) {
	if k.IsZero() {
		return "", errNoPrivateKey
	}
	const uncompressed = false // v is then 27 or 28 as it comes
	compact := ecdsa.SignCompact(k.secp256k1(), personalHash(message), uncompressed)
	v, rs := compact[0], compact[1:]
	return "0x" + hex.EncodeToString(append(rs, v)), nil
}

// PersonalSigner returns the EIP-55 address whose key has signed the message with
// personal_sign. The signature is hex with or without 0x; high s counts (spec 70
// §10.1 step 6).
func PersonalSigner(message []byte, signature string) (string, error) {
	signature = strings.TrimPrefix(signature, "0x")
	raw, err := hex.DecodeString(signature)
	if err != nil || len(raw) != signatureSize {
		return "", errBadSignature
	}
	rs, v := raw[:signatureSize-1], raw[signatureSize-1]
	if v != 27 && v != 28 {
		return "", errBadSignature
	}
	key, _, err := ecdsa.RecoverCompact(append([]byte{v}, rs...), personalHash(message))
	if err != nil {
		return "", errBadSignature
	}
	return addressOf(key), nil
}

func personalHash(message []byte) []byte {
	prefix := "\x19Ethereum Signed Message:\n" + strconv.Itoa(len(message))
	return keccak256(append([]byte(prefix), message...))
}
