// Package derivation turns an account seed into everything that belongs to the
// account on every device: trade ids, trade keys and EVM keys (spec 20 §12), and a
// mnemonic into a Nostr key (NIP-06). It is pure arithmetic on secrets.
//
// It knows HKDF, BIP-39, BIP-32, EIP-55 and EIP-191. It must never know where a
// seed is kept, which index is in use or what a key signs, and never print a secret.
package derivation

import (
	"crypto/sha256"
	"encoding/hex"
)

// Keys derives the keys of one account. Nothing prints them. It may be used
// concurrently.
//
// Index 0 is the account's public EVM address; trades have the indexes from 1 on,
// the same for trade id, trade key and EVM key (spec 50 §9.3). Indexes from 2^31 on
// are errors.
type Keys struct {
	hidden
	evm, tradeIDs, trades branch
}

// NewKeys does the slow part once, a few milliseconds; keys come quickly then.
func NewKeys(seed Seed) (*Keys, error) {
	mnemonic, err := seed.Mnemonic()
	if err != nil {
		return nil, err
	}
	master, err := mnemonic.master()
	if err != nil {
		return nil, err
	}
	var keys Keys
	for _, branch := range []struct {
		into *branch
		path []uint32
	}{
		{&keys.evm, []uint32{44 + hardened, 60 + hardened, 0 + hardened, 0}},
		{&keys.tradeIDs, []uint32{1237 + hardened, 9277 + hardened, 1 + hardened, 0}},
		{&keys.trades, []uint32{1237 + hardened, 9277 + hardened, 3 + hardened, 0}},
	} {
		if *branch.into, err = master.branch(branch.path...); err != nil {
			return nil, err
		}
	}
	return &keys, nil
}

// EVM returns the EVM key of an index, m/44'/60'/0'/0/index.
func (k *Keys) EVM(index uint32) (PrivateKey, error) { return k.evm(index) }

// Trade returns the buyer's one-time Nostr key of an index, m/1237'/9277'/3'/0/index.
func (k *Keys) Trade(index uint32) (PrivateKey, error) { return k.trades(index) }

// TradeID returns the trade id of an index, 64 lower-case hex digits: the SHA-256 of
// the private key at m/1237'/9277'/1'/0/index.
func (k *Keys) TradeID(index uint32) (string, error) {
	key, err := k.tradeIDs(index)
	if err != nil {
		return "", err
	}
	hash := sha256.Sum256(key.bytes())
	return hex.EncodeToString(hash[:]), nil
}
