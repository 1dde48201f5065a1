package sessions

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"hostr-daemon/internal/derivation"
	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/secrets"
	"hostr-daemon/internal/signer"
)

const (
	// openTimeout bounds reading what is stored.
	openTimeout = 20 * time.Second
	// restoreTimeout bounds the question to a stored remote signer (spec 20 §2).
	restoreTimeout = 5 * time.Second
	// authenticateTimeout bounds NIP-42 after a sign-in (spec 20 §3.3).
	authenticateTimeout = 30 * time.Second
)

// Session is the working state of one session key. Many requests use it at once.
type Session struct {
	registry *Registry
	key      string
	records  *secrets.Records
	// usedAt is when the session was last looked up; the registry's lock guards it.
	usedAt time.Time

	mu       sync.Mutex
	opening  *shared
	opened   bool
	closed   bool
	account  *Account
	services *Services
	restore  *shared
	hydrate  *hydration
	// unreadable is why the stored sign-in could not be read, nil when it could, or
	// there is none. It is looked at again with each use.
	unreadable error
	// change serialises signing in and out.
	change sync.Mutex
}

// shared is one run that several callers wait for.
type shared struct {
	done chan struct{}
	err  error
}

func newSession(registry *Registry, key string) *Session {
	return &Session{registry: registry, key: key, records: secrets.ForSession(registry.config.Secrets, key)}
}

// Key is the session key, empty for the foreground session.
func (s *Session) Key() string { return s.key }

// Account returns who is signed in, or nil.
func (s *Session) Account() *Account {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.account
}

// signedIn is Account for those who say why nobody is: an error where a sign-in is
// stored that cannot be read.
func (s *Session) signedIn() (*Account, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.account, s.unreadable
}

// Services returns the services of whoever is signed in now; while that is nobody,
// those of the foreground session, so that strangers' keys cost no connections. After
// a sign-in or sign-out they are others; those held before fail.
func (s *Session) Services(ctx context.Context) (*Services, error) {
	s.mu.Lock()
	services, closed := s.services, s.closed
	s.mu.Unlock()
	switch {
	case services != nil:
		return services, nil
	case closed || s.key == "":
		return nil, ErrClosed
	}
	foreground, err := s.registry.Foreground(ctx)
	if err != nil {
		return nil, err
	}
	return foreground.Services(ctx)
}

// open makes the session usable; concurrent callers share one run.
func (s *Session) open(ctx context.Context) error {
	s.mu.Lock()
	if s.opened {
		s.mu.Unlock()
		return s.followRemoval(ctx)
	}
	run := s.opening
	if run == nil {
		run = &shared{done: make(chan struct{}), err: ErrClosed}
		s.opening = run
		if !s.registry.goBackground("opening a session", func(ctx context.Context) { s.runOpening(ctx, run) }) {
			s.opening = nil
			close(run.done)
		}
	}
	s.mu.Unlock()
	return run.wait(ctx)
}

func (r *shared) wait(ctx context.Context) error {
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *Session) runOpening(ctx context.Context, run *shared) {
	defer close(run.done)
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	run.err = s.registry.contain("opening a session", func() error { return s.load(ctx) })
	s.mu.Lock()
	s.opening = nil
	s.opened = s.opened || run.err == nil && s.unreadable == nil
	s.mu.Unlock()
	if run.err == nil {
		// A signer that does not answer is no failure to open: the account stays signed
		// in, and what needs the signer waits for this attempt and says so.
		s.startRestore()
	}
}

// load reads the stored sign-in (spec 20 §2), unless somebody has signed in before it
// came to that. One that cannot be read stays as it is, and leaves the session signed
// out: a new sign-in replaces it (spec 11 §5.2).
func (s *Session) load(ctx context.Context) error {
	s.change.Lock()
	defer s.change.Unlock()
	if s.isOpened() {
		return nil
	}
	if s.key == "" {
		// The foreground session's record is left alone: the old daemon used it for
		// sign-ins under way, and what lies there may be anybody's.
		return s.become(nil)
	}
	account, err := s.storedAccount(ctx)
	unreadable := errors.Is(err, secrets.ErrUnreadableIdentity)
	if err != nil && !unreadable {
		return err
	}
	if err := s.become(account); err != nil {
		return err
	}
	if unreadable {
		s.mu.Lock()
		s.unreadable = err
		s.mu.Unlock()
	}
	return nil
}

// storedAccount is who the stored sign-in is of, nil where there is none.
func (s *Session) storedAccount(ctx context.Context) (*Account, error) {
	identity, stored, err := s.records.Identity(ctx)
	if err != nil || !stored {
		return nil, err
	}
	account, err := accountOf(identity)
	if err != nil {
		return nil, fault.New(fault.UnexpectedError, "The account cannot be used: %w.", fmt.Errorf("%w (%w)", secrets.ErrUnreadableIdentity, err)).
			WithHint("Sign in again to replace it. Until then it is left as it is.")
	}
	return account, nil
}

// followRemoval signs the session out whose sign-in was removed behind the daemon's
// back (spec 20 §2). A keyring is not asked: each look starts a program there, and one
// that is gone is no sign of anything.
func (s *Session) followRemoval(ctx context.Context) error {
	switch s.registry.config.Secrets.Place().Kind {
	case secrets.PlainFile, secrets.EncryptedFile:
	default:
		return nil
	}
	if s.Account() == nil || s.keeps(ctx) {
		return nil
	}
	s.change.Lock()
	defer s.change.Unlock()
	account := s.Account()
	if account == nil || s.keeps(ctx) { // a sign-in is stored before it counts
		return nil
	}
	s.registry.notices.forget(account.pubkey)
	return s.become(nil)
}

// keeps tells that a sign-in is stored, or that nobody can tell.
func (s *Session) keeps(ctx context.Context) bool {
	_, stored, err := s.records.Identity(ctx)
	return stored || err != nil
}

func (s *Session) isOpened() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.opened
}

// accountOf turns a stored sign-in into an account; a remote signer is still to be
// connected.
func accountOf(identity secrets.Identity) (*Account, error) {
	if identity.Bunker != nil {
		return remoteAccount(identity)
	}
	key, err := localKey(identity)
	if err != nil {
		return nil, fmt.Errorf("the stored private key: %w", err)
	}
	derived, err := derivation.SeedFromPrivateKey(key)
	if err != nil {
		return nil, err
	}
	local, err := signer.NewLocal(key.Hex())
	if err != nil {
		return nil, fmt.Errorf("the stored private key: %w", err)
	}
	holder, err := signer.NewHolder(local.PublicKey(), false)
	if err != nil {
		return nil, err
	}
	if err := holder.Set(local); err != nil {
		return nil, err
	}
	return &Account{pubkey: local.PublicKey(), credential: identity.CredentialType, holder: holder, derived: derived}, nil
}

func remoteAccount(identity secrets.Identity) (*Account, error) {
	clientKey, err := signer.ParsePrivateKey(identity.Bunker.PrivateKey.Reveal())
	if err != nil {
		return nil, fmt.Errorf("the stored key of the remote signer connection: %w", err)
	}
	holder, err := signer.NewHolder(identity.PublicKey, true)
	if err != nil {
		return nil, err
	}
	account := &Account{
		pubkey:     identity.PublicKey,
		credential: identity.CredentialType,
		holder:     holder,
		connection: &signer.Connection{PrivateKey: clientKey, RemotePubkey: identity.Bunker.RemotePubkey, Relays: identity.Bunker.Relays},
	}
	account.lost.Store(true)
	return account, nil
}

// become replaces account and services. The caller holds s.change.
func (s *Session) become(account *Account) error {
	var services *Services
	var err error
	switch {
	case account != nil:
		services, err = s.registry.config.accountServices(account, s.records, func(refused error) { _ = s.Stale(refused) })
	case s.key == "":
		services, err = s.registry.config.services(nil)
	}
	if err != nil {
		return err
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		dispose(services, account, nil)
		return ErrClosed
	}
	oldServices, oldAccount, oldHydration := s.services, s.account, s.hydrate
	s.services, s.account, s.hydrate, s.unreadable = services, account, nil, nil
	s.mu.Unlock()
	dispose(oldServices, oldAccount, oldHydration)
	return nil
}

func dispose(services *Services, account *Account, hydrating *hydration) {
	if hydrating != nil {
		hydrating.stop()
	}
	if services != nil {
		services.close()
	}
	if account != nil {
		account.holder.Close()
	}
	if hydrating != nil {
		<-hydrating.done
	}
}

func (s *Session) close() {
	s.mu.Lock()
	s.closed = true
	services, account, hydrating := s.services, s.account, s.hydrate
	s.services, s.account, s.hydrate = nil, nil, nil
	s.mu.Unlock()
	dispose(services, account, hydrating)
}

// Restore brings a lost remote signer back, within five seconds. Concurrent callers
// share one attempt. It does nothing for an account that can sign.
func (s *Session) Restore(ctx context.Context) error {
	run := s.startRestore()
	if run == nil {
		return nil
	}
	return run.wait(ctx)
}

// settle waits for the attempt under way, whatever comes of it.
func (s *Session) settle(ctx context.Context) error {
	s.mu.Lock()
	run := s.restore
	s.mu.Unlock()
	if run == nil {
		return nil
	}
	select {
	case <-run.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// startRestore joins or begins an attempt; nil where there is nothing to restore.
func (s *Session) startRestore() *shared {
	s.mu.Lock()
	defer s.mu.Unlock()
	account := s.account
	if account == nil || !account.NeedsRecovery() {
		return nil
	}
	if s.restore != nil {
		return s.restore
	}
	run := &shared{done: make(chan struct{}), err: ErrClosed}
	if s.registry.goBackground("restoring a signer", func(ctx context.Context) { s.runRestore(ctx, account, run) }) {
		s.restore = run
	} else {
		close(run.done)
	}
	return run
}

func (s *Session) runRestore(ctx context.Context, account *Account, run *shared) {
	run.err = s.registry.contain("restoring a signer", func() error { return s.restoreOnce(ctx, account) })
	s.mu.Lock()
	s.restore = nil
	s.mu.Unlock()
	close(run.done)
	if run.err == nil {
		s.announce(account)
	}
}

// restoreOnce does nothing where somebody else has signed in or restored the signer
// meanwhile.
func (s *Session) restoreOnce(ctx context.Context, account *Account) error {
	s.change.Lock()
	defer s.change.Unlock()
	if s.Account() != account || !account.NeedsRecovery() {
		return nil
	}
	return s.reconnect(ctx, account)
}

// reconnect builds the remote signer from its stored connection and asks who it
// signs for. The caller holds s.change.
func (s *Session) reconnect(ctx context.Context, account *Account) error {
	ctx, cancel := context.WithTimeout(ctx, restoreTimeout)
	defer cancel()
	remote, err := s.remote(ctx, account)
	if err != nil {
		return err
	}
	connected := false
	defer func() {
		if !connected {
			remote.Close()
		}
	}()
	if err := confirm(ctx, remote, account.pubkey); err != nil {
		return err
	}
	if err := account.holder.Set(remote); err != nil {
		return err
	}
	account.lost.Store(false)
	connected = true
	return nil
}

// confirm asks a stored remote signer who it signs for.
func confirm(ctx context.Context, remote *signer.Remote, want string) error {
	got, err := remote.GetPublicKey(ctx)
	if err == nil && got != want {
		err = fault.New(fault.AuthRequired, "The remote signer now signs for %s, not for %s: sign in again.", got, want)
	}
	if err != nil {
		return fmt.Errorf("restoring the remote signer: %w", err)
	}
	return nil
}

func (s *Session) remote(ctx context.Context, account *Account) (*signer.Remote, error) {
	services, err := s.Services(ctx)
	if err != nil {
		return nil, err
	}
	// The signer outlives the request that brings it up.
	return signer.NewRemote(s.registry.lifetime, signer.Config{
		Connection: *account.connection,
		Client:     services.relays,
		Account:    account.pubkey,
		Logger:     s.registry.config.RelayLogger,
		OnPending: func(request signer.PendingRequest) { // on a goroutine of the signer's
			_ = s.registry.contain("telling of a signer request", func() error {
				s.registry.notices.pending(s.key, account, request)
				return nil
			})
		},
	})
}

// resume has what waited for the account's signer go on.
func (s *Session) resume(account *Account) {
	s.mu.Lock()
	services, current := s.services, s.account
	s.mu.Unlock()
	if services == nil || current != account {
		return
	}
	services.inbox.Resume()
	services.trades.Resume()
}

// announce follows a sign-in or a restored signer: the connection is authenticated
// and the account's background work begins; failures show where they matter.
func (s *Session) announce(account *Account) {
	s.resume(account)
	s.registry.goBackground("authenticating an account", func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, authenticateTimeout)
		defer cancel()
		services, err := s.Services(ctx)
		if err == nil && s.Account() == account {
			err = services.relays.Authenticate(ctx)
		}
		if err != nil {
			s.registry.config.RelayLogger.Debug().Str("event", "relay.auth.failed").Err(err).Send()
		}
	})
	s.Hydrate()
}
