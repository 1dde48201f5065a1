package doctor

import (
	"context"
	"errors"

	"github.com/nbd-wtf/go-nostr"
	"github.com/nbd-wtf/go-nostr/nip19"
	"golang.org/x/sync/errgroup"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/secrets"
	"hostr-daemon/internal/sessions"
)

// signersAtOnce is how many accounts' signers are asked side by side: each account has
// relay connections of its own.
const signersAtOnce = 64

// accounts are those kept in the place for private keys, by session key.
type accounts struct {
	registry *sessions.Registry
	keys     []string
}

// examineAccounts returns a finding for each stored account, or one that tells why
// there is none to ask.
func (c Config) examineAccounts(ctx context.Context) []Finding {
	var stored accounts
	listing := examine(ctx, check{subject: "accounts", target: c.Environment.Name, optional: true, run: func(ctx context.Context) (string, error) {
		var detail string
		var err error
		stored, detail, err = c.storedAccounts(ctx)
		return detail, err
	}})
	if len(stored.keys) == 0 {
		return []Finding{listing}
	}
	findings := make([]Finding, len(stored.keys))
	var asking errgroup.Group
	asking.SetLimit(signersAtOnce)
	for i, key := range stored.keys {
		asking.Go(func() error {
			findings[i] = stored.examine(ctx, key)
			return nil
		})
	}
	_ = asking.Wait() // what went wrong is in the findings
	return findings
}

// storedAccounts lists the accounts; where there are none, or they are not to be
// asked from here, the detail says so.
func (c Config) storedAccounts(ctx context.Context) (accounts, string, error) {
	registry, err := c.State.Sessions(ctx)
	if inUse(err) {
		return accounts{}, "", elsewhere("the running daemon uses them: ask it for hostr.session.status, with the account as pubkey")
	}
	if err != nil {
		return accounts{}, "", err
	}
	dir, err := c.State.StateDir()
	if err != nil {
		return accounts{}, "", err
	}
	store, err := c.openSecrets(dir)
	if err != nil {
		return accounts{}, "", err
	}
	keys, err := secrets.SessionKeys(ctx, store)
	switch {
	case store.Place().Kind == secrets.None:
		return accounts{}, "nobody can sign in while there is no place for private keys", nil
	case err == nil && len(keys) == 0:
		return accounts{}, "nobody is signed in", nil
	}
	return accounts{registry, keys}, "", err
}

// examine reads the account of a session key and asks a remote signer once who it
// signs for; that is all that reaches the signer, and a person.
func (a accounts) examine(ctx context.Context, key string) Finding {
	if key == "" {
		return Finding{Subject: "account", Target: "(none)", Optional: true, Detail: "left behind by a sign-in that did not finish; not used"}
	}
	account := check{subject: "account", target: shownAccount(key), optional: true}
	account.run = func(ctx context.Context) (string, error) {
		stored, silence, err := a.registry.AskSigner(ctx, key)
		if errors.Is(err, sessions.ErrNotStored) {
			return "signed out meanwhile", nil
		}
		if err != nil {
			return "", err
		}
		account.target = shownAccount(stored.Pubkey)
		return answers(stored, silence, key)
	}
	finding := examine(ctx, account)
	finding.Target = account.target
	return finding
}

// answers tells what the account signs with, and fails if that did not answer.
func answers(account sessions.StoredAccount, silence error, key string) (string, error) {
	signer := "local key"
	if account.Credential == secrets.BunkerCredential {
		signer = "remote signer"
	}
	if account.Pubkey != key {
		signer += ", left behind by a sign-in that did not finish"
	}
	if silence != nil {
		return "", fault.New(fault.AuthRequired, "%s: it does not answer as it should.", signer).
			WithHint("Open the signer app and look again, or sign in anew with hostr.session.connect.")
	}
	return signer, nil
}

// shownAccount is enough of an account to know it by. Session keys that are no
// accounts may be somebody's tokens and are not shown.
func shownAccount(key string) string {
	if !nostr.IsValidPublicKey(key) {
		return "(unknown)"
	}
	npub, err := nip19.EncodePublicKey(key)
	if err != nil {
		return "(unknown)"
	}
	const first, last = 12, 6
	return npub[:first] + "…" + npub[len(npub)-last:]
}
