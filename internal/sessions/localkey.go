package sessions

import (
	"context"
	"fmt"
	"math"

	"hostr-daemon/internal/derivation"
	"hostr-daemon/internal/secrets"
)

// localKey returns the private key of an identity whose key is at hand; that of a
// mnemonic may never have been worked out (spec 20 §3.2).
func localKey(identity secrets.Identity) (derivation.PrivateKey, error) {
	if identity.CredentialType != secrets.MnemonicCredential || identity.KeyPair != nil {
		if identity.KeyPair == nil {
			return derivation.ParsePrivateKey(identity.Secret.Reveal())
		}
		return derivation.ParsePrivateKey(identity.KeyPair.PrivateKey.Reveal())
	}
	mnemonic, err := derivation.ParseMnemonic(identity.Secret.Reveal())
	if err != nil {
		return derivation.PrivateKey{}, err
	}
	if identity.NostrAccountIndex < 0 || identity.NostrAccountIndex > math.MaxInt32 {
		return derivation.PrivateKey{}, fmt.Errorf("the account index %d of the stored mnemonic is out of range", identity.NostrAccountIndex)
	}
	return mnemonic.NostrKey(uint32(identity.NostrAccountIndex))
}

// seedRecord is an account's place for its seed in the secret store.
type seedRecord struct {
	records *secrets.Records
	pubkey  string
}

func (r seedRecord) Seed(ctx context.Context) (derivation.Seed, bool, error) {
	stored, ok, err := r.records.Seed(ctx, r.pubkey)
	if err != nil || !ok {
		return derivation.Seed{}, false, err
	}
	seed, err := derivation.ParseSeed(stored.Reveal())
	if err != nil {
		return derivation.Seed{}, false, fmt.Errorf("the stored account seed: %w", err)
	}
	return seed, true, nil
}

func (r seedRecord) SetSeed(ctx context.Context, seed derivation.Seed) error {
	return r.records.SetSeed(ctx, r.pubkey, secrets.NewSecret(seed.Hex()))
}
