package signer

import (
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/nbd-wtf/go-nostr/nip04"
	"github.com/nbd-wtf/go-nostr/nip44"

	"hostr-daemon/internal/nip44guard"
)

const (
	maxPlaintext = nip44.MaxPlaintextSize
	// maxNIP04 bounds NIP-04 payloads, which know no limit of their own.
	maxNIP04 = 1 << 20
	ivMark   = "?iv="
	ivLength = 16
)

// conversation is what two keys derive for NIP-44, 32 bytes, behind a pointer for the
// sake of fmt, as in PrivateKey.
type conversation struct{ key *string }

// converse derives the conversation key of a private key and a peer.
func converse(key PrivateKey, peer string) (conversation, error) {
	if err := checkPeer(peer); err != nil {
		return conversation{}, err
	}
	derived, err := nip44.GenerateConversationKey(peer, key.Hex())
	if err != nil { // Its text may hold the key.
		return conversation{}, fmt.Errorf("no conversation key can be derived with peer %s", peer)
	}
	text := string(derived[:])
	return conversation{&text}, nil
}

func (c conversation) bytes() [32]byte { return [32]byte([]byte(*c.key)) }

func checkPeer(peer string) error {
	if !isPublicKey(peer) {
		return fmt.Errorf("the peer %q is no public key; it has 64 lower-case hex digits", foreignText(peer))
	}
	return nil
}

func (c conversation) encrypt(plaintext string) (string, error) {
	if err := checkPlaintext(plaintext); err != nil {
		return "", err
	}
	return nip44.Encrypt(plaintext, c.bytes())
}

func checkPlaintext(plaintext string) error {
	if len(plaintext) == 0 || len(plaintext) > maxPlaintext {
		return fmt.Errorf("a text of %d bytes cannot be encrypted with NIP-44; it takes 1 to %d", len(plaintext), maxPlaintext)
	}
	return nil
}

func (c conversation) decrypt(payload string) (string, error) {
	return nip44guard.Decrypt(payload, c.bytes())
}

func isNIP44(payload string) bool { return nip44guard.IsPayload(payload) }

func encryptNIP04(key PrivateKey, peer, plaintext string) (string, error) {
	shared, err := shareNIP04(key, peer)
	if err != nil {
		return "", err
	}
	defer clear(shared)
	return nip04.Encrypt(plaintext, shared)
}

// decryptNIP04 is the one door to nip04.Decrypt, which panics on parts of a wrong
// length (spec 82 §10.5).
func decryptNIP04(key PrivateKey, peer, payload string) (string, error) {
	if !isNIP04(payload) {
		return "", fmt.Errorf("the payload of %d bytes is not NIP-04 and %w", len(payload), ErrUndecryptable)
	}
	shared, err := shareNIP04(key, peer)
	if err != nil {
		return "", err
	}
	defer clear(shared)
	plaintext, err := nip04.Decrypt(payload, shared)
	if err != nil {
		return "", fmt.Errorf("the NIP-04 payload %w: %w", ErrUndecryptable, err)
	}
	return plaintext, nil
}

func shareNIP04(key PrivateKey, peer string) ([]byte, error) {
	if err := checkPeer(peer); err != nil {
		return nil, err
	}
	shared, err := nip04.ComputeSharedSecret(peer, key.Hex())
	if err != nil {
		return nil, fmt.Errorf("no shared secret can be derived with peer %s", peer)
	}
	return shared, nil
}

func isNIP04(payload string) bool {
	ciphertext, iv, found := strings.Cut(payload, ivMark)
	if !found || len(payload) > maxNIP04 || !nip44guard.IsBase64(ciphertext) || !nip44guard.IsBase64(iv) {
		return false
	}
	blocks, err := base64.StdEncoding.DecodeString(ciphertext)
	vector, ivErr := base64.StdEncoding.DecodeString(iv)
	return err == nil && ivErr == nil && len(vector) == ivLength && len(blocks) > 0 && len(blocks)%ivLength == 0
}
