package derivation

import (
	"errors"
	"strings"

	"github.com/cosmos/go-bip39"
)

// Mnemonic is a sentence of BIP-39 English words with a right checksum. Nothing
// prints it. The zero value is no mnemonic.
type Mnemonic struct {
	hidden
	words *string
}

var errNoMnemonic = errors.New("a mnemonic is 12 or 24 words of the BIP-39 English list, with a right checksum")

// ParseMnemonic reads 12 or 24 words with any white space between and around them
// (spec 20 §3.2). The error does not repeat them.
func ParseMnemonic(text string) (Mnemonic, error) {
	fields := strings.Fields(text)
	if len(fields) != 12 && len(fields) != 24 {
		return Mnemonic{}, errNoMnemonic
	}
	words := strings.Join(fields, " ")
	if _, err := bip39.MnemonicToByteArray(words); err != nil { // its text may hold a word
		return Mnemonic{}, errNoMnemonic
	}
	return Mnemonic{words: &words}, nil
}

// Mnemonic returns the 24 words whose entropy is the seed (spec 20 §12.2).
func (s Seed) Mnemonic() (Mnemonic, error) {
	if s.IsZero() {
		return Mnemonic{}, errNoSeed
	}
	words, err := bip39.NewMnemonic(s.bytes())
	if err != nil {
		return Mnemonic{}, errNoSeed
	}
	return Mnemonic{words: &words}, nil
}

// IsZero reports whether this is no mnemonic.
func (m Mnemonic) IsZero() bool { return m.words == nil }

// Words returns the words with single spaces between them, "" for no mnemonic. What
// is done with them is the caller's responsibility.
func (m Mnemonic) Words() string {
	if m.words == nil {
		return ""
	}
	return *m.words
}

// NostrKey returns the private key of a Nostr account, m/44'/1237'/account'/0/0
// (NIP-06). It takes milliseconds.
func (m Mnemonic) NostrKey(account uint32) (PrivateKey, error) {
	if account >= hardened {
		return PrivateKey{}, errIndex
	}
	master, err := m.master()
	if err != nil {
		return PrivateKey{}, err
	}
	key, err := master.branch(44+hardened, 1237+hardened, account+hardened, 0)
	if err != nil {
		return PrivateKey{}, err
	}
	return key(0)
}

// master returns the BIP-32 master of the words, without a passphrase.
func (m Mnemonic) master() (master, error) {
	if m.IsZero() {
		return master{}, errNoMnemonic
	}
	const passphrase = ""
	seed := bip39.NewSeed(*m.words, passphrase)
	defer clear(seed)
	return newMaster(seed)
}
