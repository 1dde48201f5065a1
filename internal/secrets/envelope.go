package secrets

import (
	"bytes"
	"crypto/rand"
	"crypto/subtle"
	"fmt"
	"sync"

	"golang.org/x/crypto/argon2"
	"golang.org/x/crypto/chacha20poly1305"
)

// The encrypted file is
//
//	magic | salt (16) | key check (8) | nonce (24) | XChaCha20-Poly1305 of the document
//
// with everything before the nonce authenticated too. Argon2id of the key and the
// salt gives the encryption key and the key check, which only serves to tell a
// wrong key from a damaged file. The salt stays with the file, so that a process
// derives once; each write has its own random nonce. What the numbers below are is
// part of version 1: a change of one of them is another version.
const (
	magicStart = "hostr-daemon secrets "
	magic      = magicStart + "1\n"

	saltLength     = 16
	keyCheckLength = 8
	headerLength   = len(magic) + saltLength + keyCheckLength
	nonceLength    = chacha20poly1305.NonceSizeX

	// Enough for a key of minKeyLength characters, and quick enough for a start.
	argonPasses  = 1
	argonMemory  = 64 << 10 // KiB
	argonThreads = 4
)

// envelope is the codec of the encrypted file.
type envelope struct {
	key Secret
	// derive stretches a key; tests replace it by something quick.
	derive func(key, salt []byte) []byte

	mu    sync.Mutex
	known derived
}

// derived is what a key and a salt give.
type derived struct {
	header []byte // magic, salt and key check
	key    []byte
}

func newEnvelope(key Secret) *envelope { return &envelope{key: key, derive: stretch} }

func stretch(key, salt []byte) []byte {
	return argon2.IDKey(key, salt, argonPasses, argonMemory, argonThreads, chacha20poly1305.KeySize+keyCheckLength)
}

func (e *envelope) decode(content []byte) (document, error) {
	if !bytes.HasPrefix(content, []byte(magic)) {
		if bytes.HasPrefix(content, []byte(magicStart)) {
			return nil, fmt.Errorf("%w, or was written by a newer hostr-daemon", ErrDamaged)
		}
		return nil, fmt.Errorf("%w: it does not begin like a secrets file", ErrDamaged)
	}
	if len(content) < headerLength+nonceLength+chacha20poly1305.Overhead {
		return nil, fmt.Errorf("%w: it is cut off", ErrDamaged)
	}
	header, body := content[:headerLength], content[headerLength:]
	derived := e.derived(header[len(magic) : len(magic)+saltLength])
	if subtle.ConstantTimeCompare(derived.header, header) != 1 {
		return nil, ErrWrongKey
	}
	cipher, err := chacha20poly1305.NewX(derived.key)
	if err != nil {
		return nil, err
	}
	text, err := cipher.Open(nil, body[:nonceLength], body[nonceLength:], header)
	if err != nil {
		return nil, fmt.Errorf("%w: something in it was changed", ErrDamaged)
	}
	return parseDocument(text)
}

func (e *envelope) encode(entries document) ([]byte, error) {
	text, err := entries.text()
	if err != nil {
		return nil, err
	}
	derived := e.derived(nil)
	cipher, err := chacha20poly1305.NewX(derived.key)
	if err != nil {
		return nil, err
	}
	content := make([]byte, headerLength+nonceLength, headerLength+nonceLength+len(text)+chacha20poly1305.Overhead)
	copy(content, derived.header)
	nonce := content[headerLength:]
	_, _ = rand.Read(nonce) // never fails: it ends the process instead
	return cipher.Seal(content, nonce, text, derived.header), nil
}

// derived returns the keys of a salt; nil means the salt in use, or a new one.
func (e *envelope) derived(salt []byte) derived {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.known.key != nil && (salt == nil || bytes.Equal(e.known.salt(), salt)) {
		return e.known
	}
	if salt == nil {
		salt = make([]byte, saltLength)
		_, _ = rand.Read(salt)
	}
	stretched := e.derive([]byte(e.key.Reveal()), salt)
	key, keyCheck := stretched[:chacha20poly1305.KeySize], stretched[chacha20poly1305.KeySize:]
	e.known = derived{header: bytes.Join([][]byte{[]byte(magic), salt, keyCheck}, nil), key: key}
	return e.known
}

func (d derived) salt() []byte { return d.header[len(magic) : len(magic)+saltLength] }
