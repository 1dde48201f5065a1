package sessions

import (
	"context"
	"errors"
	"fmt"
	"time"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/redact"
)

// hydration is one run that brings an account's background work up (spec 20 §8). It
// belongs to one sign-in.
type hydration struct {
	done chan struct{}
	stop context.CancelFunc
	err  error
	// ended and again are under the session's lock. again is set when a profile was
	// published under way, which the run may have looked for too early.
	ended, again bool
}

// Hydrate starts the account's background work if it is not up or under way. A run
// that failed is forgotten, so that the next call tries again.
func (s *Session) Hydrate() {
	s.startHydration(false)
}

// AwaitHydration waits until the account's background work is up.
func (s *Session) AwaitHydration(ctx context.Context) error {
	run := s.startHydration(false)
	if run == nil {
		return nil
	}
	select {
	case <-run.done:
		if errors.Is(run.err, errNoProfile) {
			return nil // "ready", with nothing to bring up
		}
		return run.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// sellerTimeout bounds publishing the seller configuration, a person's approval
// included (spec 20 §8.1).
const sellerTimeout = 120 * time.Second

// ProfilePublished follows a profile edit: a first profile is what start-up was
// waiting for, and guests look for the seller configuration beside it (spec 20 §9).
func (s *Session) ProfilePublished() {
	s.startHydration(true)
	s.mu.Lock()
	services := s.services
	s.mu.Unlock()
	if services == nil || services.Sellers == nil {
		return
	}
	s.registry.goBackground("publishing a seller configuration", func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, sellerTimeout)
		defer cancel()
		if _, err := services.Sellers.Ensure(ctx); err != nil && ctx.Err() == nil {
			services.sellerTrouble(err)
		}
	})
}

func (s *Session) startHydration(published bool) *hydration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.account == nil || s.account.NeedsRecovery() {
		return nil
	}
	if run := s.hydrate; run != nil && !(run.ended && run.err != nil) {
		run.again = run.again || published
		return run
	}
	ctx, stop := context.WithCancel(s.registry.lifetime)
	run := &hydration{done: make(chan struct{}), stop: stop}
	account, services := s.account, s.services
	const what = "starting an account's work"
	if !s.registry.goBackground(what, func(context.Context) {
		defer close(run.done)
		defer stop()
		for !s.endHydration(run, s.registry.contain(what, func() error { return services.startUp(ctx, account) })) {
		}
	}) {
		stop()
		return nil
	}
	s.hydrate = run
	return run
}

// endHydration keeps the outcome of a run; false when it has to look once more.
func (s *Session) endHydration(run *hydration, err error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if errors.Is(err, errNoProfile) && run.again {
		run.again = false
		return false
	}
	run.ended, run.err = true, err
	return true
}

// inboxTimeout is how long a start waits for the history of the messages; what is
// still to come then comes while the account is at work (spec 20 §8.2).
const inboxTimeout = 30 * time.Second

// readyTimeout bounds the wait for the Hostr relay (spec 20 §8.2).
const readyTimeout = 30 * time.Second

// startUp brings up what an account needs in the background (spec 20 §8.2): without a
// profile it is nothing but the connection, and the next run looks again.
func (s *Services) startUp(ctx context.Context, account *Account) error {
	ready, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	if err := s.relays.Connect(ready, s.relays.HostrRelay()); err != nil {
		return fmt.Errorf("waiting for the Hostr relay: %w", err)
	}
	if _, _, err := s.RelayLists.Load(ctx, account.pubkey); err != nil {
		return err
	}
	found, err := s.Profiles.Lookup(ctx, account.pubkey)
	if err != nil {
		return err
	}
	if found.Profile == nil {
		if found.Warning != nil {
			return fault.New(fault.UnexpectedError, "The account's profile could not be read; it is looked for again with the next call.").Transient()
		}
		return errNoProfile
	}
	if _, err := s.Seeds.Seed(ctx); err != nil {
		return fmt.Errorf("finding the account seed: %w", err)
	}
	if err := s.relays.Authenticate(ctx); err != nil {
		return err
	}
	s.trades.Start()
	s.trades.SeedIsReady()
	if err := s.keepSelling(ctx); err != nil {
		return err
	}
	return s.inbox.Await(ctx, inboxTimeout)
}

// keepSelling sees to the seller configuration of those who have a listing (spec 20 §9).
// What fails there is logged: it keeps nobody from anything else, and the next start,
// profile edit or listing tries again.
func (s *Services) keepSelling(ctx context.Context) error {
	sells, err := s.Sellers.Sells(ctx)
	if err == nil && sells {
		_, err = s.Sellers.Ensure(ctx)
	}
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		s.sellerTrouble(err)
	}
	return nil
}

func (s *Services) sellerTrouble(err error) {
	s.logger.Warn().Str("event", "seller.configuration.failed").Str("message", redact.Error(err)).Send()
}

// errNoProfile ends a start-up that has to be repeated once there is a profile.
var errNoProfile = errors.New("the account has no profile yet")
