package main

import (
	"context"
	"sync"

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
	dir, err := p.runtime.StateDir()
	if err != nil {
		return nil
	}
	options.StateDir, options.Environment = dir, p.runtime.EnvironmentName()
	chosen, err := secrets.Open(options)
	if err != nil {
		return nil
	}
	// One that is in use spares a keyring, and a person, the question.
	if keys, err := secrets.SessionKeys(ctx, chosen); err != nil || len(keys) > 0 {
		return nil
	}
	unseen, err := secrets.Elsewhere(ctx, options)
	if err != nil {
		return nil
	}
	return unseen
}
