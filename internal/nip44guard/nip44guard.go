// Package nip44guard is the one door to the NIP-44 decryption of the library, which
// panics on a payload of line breaks. Anybody can send such a payload as a gift wrap,
// a signer's answer or a proof (spec 82 §10.5).
//
// It knows no keys of its own and never logs.
package nip44guard

import (
	"errors"
	"fmt"
	"strings"

	"github.com/nbd-wtf/go-nostr/nip44"
)

// minPayload and maxPayload are the lengths a payload of version 2 can have, in
// characters.
const minPayload, maxPayload = 132, 87472

// ErrUndecryptable is in the error of a payload that can never be decrypted with the
// keys at hand.
var ErrUndecryptable = errors.New("cannot be decrypted")

// IsPayload reports whether text can be a NIP-44 payload, so that the library or
// another signer may be asked to decrypt it.
func IsPayload(text string) bool {
	return len(text) >= minPayload && len(text) <= maxPayload && IsBase64(text)
}

// IsBase64 reports whether text has only the 64 base64 characters and the padding.
func IsBase64(text string) bool {
	return strings.Trim(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=") == ""
}

// Decrypt opens a payload with the conversation key of two keys (NIP-44 version 2).
// Every error is an ErrUndecryptable.
func Decrypt(payload string, conversationKey [32]byte) (string, error) {
	if !IsPayload(payload) {
		return "", fmt.Errorf("the payload of %d bytes is not NIP-44 and %w", len(payload), ErrUndecryptable)
	}
	plaintext, err := nip44.Decrypt(payload, conversationKey)
	if err != nil {
		return "", fmt.Errorf("the NIP-44 payload %w: %w", ErrUndecryptable, err)
	}
	return plaintext, nil
}
