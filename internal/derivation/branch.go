package derivation

import (
	"errors"
	"fmt"

	"github.com/decred/dcrd/hdkeychain/v3"
)

// branch returns the child keys of one BIP-32 parent, those that are not hardened.
// It may be called concurrently.
type branch func(index uint32) (PrivateKey, error)

// hardened is added to an index for a hardened child of BIP-32.
const hardened = hdkeychain.HardenedKeyStart

var errIndex = errors.New("an account index lies between 0 and 2147483647")

// master is the root of a BIP-32 tree. It is short-lived and never shown.
type master struct{ key *hdkeychain.ExtendedKey }

func newMaster(seed []byte) (master, error) {
	key, err := hdkeychain.NewMaster(seed, unserialized{})
	if err != nil {
		return master{}, fmt.Errorf("BIP-32 master key: %w", err)
	}
	return master{key}, nil
}

// branch returns the branch at the end of a path.
func (m master) branch(path ...uint32) (branch, error) {
	parent := m.key
	for _, index := range path {
		child, err := parent.ChildBIP32Std(index)
		if err != nil {
			return nil, fmt.Errorf("BIP-32 child key: %w", err)
		}
		parent = child
	}
	// The library computes the public key at its first use and keeps it, without a
	// lock: this is the first use.
	parent.SerializedPubKey()
	return func(index uint32) (PrivateKey, error) { return childKey(parent, index) }, nil
}

func childKey(parent *hdkeychain.ExtendedKey, index uint32) (PrivateKey, error) {
	if index >= hardened {
		return PrivateKey{}, errIndex
	}
	child, err := parent.ChildBIP32Std(index)
	if err != nil {
		return PrivateKey{}, fmt.Errorf("BIP-32 child key %d: %w", index, err)
	}
	defer child.Zero()
	raw, err := child.SerializedPrivKey()
	if err != nil {
		return PrivateKey{}, fmt.Errorf("BIP-32 child key %d: %w", index, err)
	}
	return newPrivateKey(raw)
}

// unserialized stands for a network: only the text form of extended keys, which is
// not used here, depends on it.
type unserialized struct{}

func (unserialized) HDPrivKeyVersion() [4]byte { return [4]byte{} }
func (unserialized) HDPubKeyVersion() [4]byte  { return [4]byte{} }
