package sessions

import (
	"context"
	"errors"
	"fmt"

	"hostr-daemon/internal/secrets"
	"hostr-daemon/internal/signer"
)

// ErrNotStored is returned for a session key under which no sign-in is stored.
var ErrNotStored = errors.New("nobody is signed in here")

// StoredAccount is a stored sign-in.
type StoredAccount struct {
	Pubkey     string
	Credential secrets.CredentialType
}

// AskSigner tells whose sign-in is stored under a session key, and asks its remote
// signer once, within five seconds, who it signs for. Nothing else is begun: no
// session is opened, no event signed, no upkeep started. signer is what the signer did
// not answer as it should; err is about what is stored.
func (r *Registry) AskSigner(ctx context.Context, key string) (stored StoredAccount, signer, err error) {
	account, err := newSession(r, key).storedAccount(ctx)
	if err != nil {
		return StoredAccount{}, nil, err
	}
	if account == nil {
		return StoredAccount{}, nil, ErrNotStored
	}
	defer account.holder.Close()
	stored = StoredAccount{Pubkey: account.pubkey, Credential: account.credential}
	if account.connection == nil {
		return stored, nil, nil
	}
	return stored, r.askRemote(ctx, account), nil
}

func (r *Registry) askRemote(ctx context.Context, account *Account) error {
	ctx, cancel := context.WithTimeout(ctx, restoreTimeout)
	defer cancel()
	services, err := r.config.services(nil)
	if err != nil {
		return err
	}
	defer services.close()
	remote, err := signer.NewRemote(ctx, signer.Config{
		Connection: *account.connection, Client: services.relays, Account: account.pubkey, Logger: r.config.RelayLogger,
	})
	if err != nil {
		return fmt.Errorf("connecting the remote signer: %w", err)
	}
	defer remote.Close()
	return confirm(ctx, remote, account.pubkey)
}
