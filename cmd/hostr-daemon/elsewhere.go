package main

import (
	"context"
	"sync"

	"github.com/nbd-wtf/go-nostr"
	"github.com/nbd-wtf/go-nostr/nip19"

	"hostr-daemon/internal/secrets"
)

// tellElsewhere looks, once and in the background, whether private keys rest in a place
// that was not chosen while the chosen one is empty, and logs it: whoever switched
// finds nobody signed in. The returned function ends that.
func (p *program) tellElsewhere(ctx context.Context, options secrets.Options) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	var looking sync.WaitGroup
	looking.Go(func() {
		if unseen := p.elsewhere(ctx, options); unseen != nil {
			p.journal.Warn().Str("event", "secrets.elsewhere").Int("accounts", unseen.Accounts).Msg(unseen.String())
		}
	})
	return func() {
		cancel()
		looking.Wait()
	}
}

// elsewhere finds nothing where something is wrong: whoever needs the private keys is
// told about that.
func (p *program) elsewhere(ctx context.Context, options secrets.Options) *secrets.Unseen {
	// A place that is in use spares a keyring, and a person, the question.
	if keys, err := p.sessionKeys(ctx, options); err != nil || len(keys) > 0 {
		return nil
	}
	dir, err := p.runtime.StateDir()
	if err != nil {
		return nil
	}
	options.StateDir, options.Environment = dir, p.runtime.EnvironmentName()
	unseen, err := secrets.Elsewhere(ctx, options)
	if err != nil {
		return nil
	}
	return unseen
}

// sessionKeys are those of the sign-ins in the chosen place.
func (p *program) sessionKeys(ctx context.Context, options secrets.Options) ([]string, error) {
	dir, err := p.runtime.StateDir()
	if err != nil {
		return nil, err
	}
	options.StateDir, options.Environment = dir, p.runtime.EnvironmentName()
	chosen, err := secrets.Open(options)
	if err != nil {
		return nil, err
	}
	return secrets.SessionKeys(ctx, chosen)
}

// accounts are those signed in here, as npub; nil where they cannot be listed.
func (p *program) accounts(ctx context.Context, options secrets.Options) []string {
	keys, err := p.sessionKeys(ctx, options)
	if err != nil {
		return nil
	}
	accounts := []string{}
	for _, key := range keys {
		if npub, err := nip19.EncodePublicKey(key); err == nil && nostr.IsValidPublicKey(key) {
			accounts = append(accounts, npub)
		}
	}
	return accounts
}
