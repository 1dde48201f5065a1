package runtime

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/store"
)

// StateOptions say where the state of one environment lies.
type StateOptions struct {
	// Dir is the state directory as given; empty means the default.
	Dir string
	// Environment is the canonical name, which names the files in it.
	Environment string
	// Logger receives what an operator should know.
	Logger zerolog.Logger
	// Getenv reads the process environment; nil means os.Getenv.
	Getenv func(string) string
	// LockGrace is how long a request waits while another process holds the
	// directory; 0 means 2 seconds.
	LockGrace time.Duration
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

const defaultLockGrace = 2 * time.Second

// State is the state directory of one environment: the directory, the lock that
// keeps a second daemon off it, and the database in it (spec 11 §5).
//
// It opens in the background. What went wrong is answered to the requests that need
// the state and is tried again by the next one, so that mending the cause is all it
// takes (spec 10 §1.3). A lock of another process is waited for as long as it lasts.
type State struct {
	options    StateOptions
	life       context.Context
	end        context.CancelFunc
	background sync.WaitGroup
	warned     atomic.Bool // of a directory others can look into

	mu     sync.Mutex
	latest *attempt
	closed bool
}

// OpenState begins to open the state directory and returns at once. Nothing new is
// opened once ctx has ended; Close must be called in any case.
func OpenState(ctx context.Context, o StateOptions) *State {
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	if o.LockGrace == 0 {
		o.LockGrace = defaultLockGrace
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &State{options: o}
	s.life, s.end = context.WithCancel(ctx)
	s.begin()
	return s
}

// Store returns the open database. It waits for the attempt under way, and begins
// another one if the last has failed. While another process holds the directory it
// waits for LockGrace, then fails with a retryable error that names the process.
func (s *State) Store(ctx context.Context) (*store.Store, error) {
	a, err := s.current()
	if err != nil {
		return nil, err
	}
	grace := time.NewTimer(s.options.LockGrace)
	defer grace.Stop()
	graceOver := false
	for {
		phase, changed := a.watch()
		switch {
		case phase == ended:
			return a.store, a.err
		case phase == waitingForLock && graceOver:
			return nil, a.lock.held()
		}
		select {
		case <-changed:
		case <-grace.C:
			graceOver = true
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// checkPatience leaves the bridge's readiness probe, which waits 2.5 s, time to hear
// the reason.
const checkPatience = 2 * time.Second

// Check tells whether the state is usable, for requests that need no state but must
// report a broken one. A lock of another process does not concern them.
func (s *State) Check(ctx context.Context) error {
	a, err := s.current()
	if err != nil {
		return err
	}
	late := time.NewTimer(checkPatience)
	defer late.Stop()
	for {
		phase, changed := a.watch()
		switch phase {
		case ended:
			return a.err
		case waitingForLock:
			return nil
		}
		select {
		case <-changed:
		case <-late.C:
			return fault.New(fault.UnexpectedError, "The state directory is still being opened: another program may hold its database. Ask again in a moment.").Transient()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Close ends an attempt under way, closes the database and releases the lock, in
// this order. Further calls do nothing.
func (s *State) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	last := s.latest
	s.mu.Unlock()

	s.end()
	s.background.Wait()
	if last.store == nil {
		return nil
	}
	return errors.Join(last.store.Close(), last.lock.release())
}

var errStateClosed = fault.New(fault.UnexpectedError, "hostr-daemon is ending: start it again to go on.").Transient()

// current returns the attempt under way, the successful one, or a new one.
func (s *State) current() (*attempt, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	phase, _ := s.latest.watch()
	switch {
	case s.closed:
		return nil, errStateClosed
	case phase != ended || s.latest.err == nil:
		return s.latest, nil
	case s.life.Err() != nil:
		return nil, errStateClosed
	}
	s.begin()
	return s.latest, nil
}

// begin starts an attempt; no other one may be under way.
func (s *State) begin() {
	a := &attempt{changed: make(chan struct{})}
	s.latest = a
	s.background.Go(func() {
		opened, err := s.open(a)
		a.finish(opened, err)
	})
}

// open takes the steps in order: directory, lock, database. After a failure nothing
// is held and the next attempt takes all of them again, because the directory may be
// another one by then.
func (s *State) open(a *attempt) (*store.Store, error) {
	dir, err := ResolveStateDir(s.options.Dir, s.options.Getenv)
	if err != nil {
		return nil, err
	}
	if err := s.prepareDirectory(dir); err != nil {
		return nil, err
	}
	a.lock = newStateLock(dir, s.options.Environment)
	err = a.lock.acquire(s.life, s.options.Now(), func() {
		a.enter(waitingForLock)
		s.options.Logger.Warn().Str("stateDir", dir).Str("environment", s.options.Environment).
			Int("holder", a.lock.holder().PID).Msg("another process holds the state directory; waiting for it")
	})
	if err != nil {
		return nil, s.orClosed(err)
	}
	a.enter(openingStore)
	opened, err := store.Open(s.life, filepath.Join(dir, s.options.Environment+".sqlite3"))
	if err != nil {
		return nil, errors.Join(s.orClosed(err), a.lock.release())
	}
	return opened, nil
}

// orClosed says that the state ended rather than that its context did.
func (s *State) orClosed(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return errStateClosed
	}
	return err
}

type phase int

const (
	preparing phase = iota
	waitingForLock
	openingStore
	ended
)

// attempt is one try at opening the state. lock may be read while it waits for the
// lock and once it has ended, store and err once it has ended.
type attempt struct {
	lock  *stateLock
	store *store.Store
	err   error

	mu      sync.Mutex
	phase   phase
	changed chan struct{}
}

// watch returns the phase and a channel that is closed when it changes.
func (a *attempt) watch() (phase, <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.phase, a.changed
}

func (a *attempt) enter(next phase) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.phase = next
	close(a.changed)
	a.changed = make(chan struct{})
}

func (a *attempt) finish(opened *store.Store, err error) {
	a.store, a.err = opened, err
	a.enter(ended)
}
