// Package runtime puts a running daemon together: the environment, the state
// directory, what all sessions share, and the sessions themselves.
//
// It is the composition root: it knows how parts are built and in which order they
// end. It knows neither frames nor actions.
package runtime

import (
	"context"
	"os"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"hostr-daemon/internal/environment"
)

// Options say which daemon to run.
type Options struct {
	// Environment names the environment and what overrides its facts.
	Environment environment.Options
	// StateDir is the directory as given; empty means the default.
	StateDir string
	// Getenv reads the process environment; nil means os.Getenv.
	Getenv func(string) string
	// Logger receives what operators should see always.
	Logger zerolog.Logger
	// RelayLogger receives the relay layer's lines.
	RelayLogger zerolog.Logger
	// Version goes into the User-Agent.
	Version string
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Runtime is one running daemon. Nothing in it touches the network before the
// first request needs it. It is safe for concurrent use.
type Runtime struct {
	options Options
	name    string
	state   *State

	closing    sync.Once
	closeError error

	mu sync.Mutex
	// environment is kept once it could be loaded, so that every request of this
	// process sees the same one.
	environment *environment.Environment
	shared      *shared
	foreground  *Session
	closed      bool
}

// Start begins opening the state directory and returns at once. The only error is
// an *environment.UnknownNameError; every other problem is answered by Environment
// and Foreground, and tried again by the next call, because a child that exits takes
// the bridge with it (spec 10 §1.3). No new state is opened once ctx has ended; Close
// must be called in any case.
func Start(ctx context.Context, options Options) (*Runtime, error) {
	named, err := environment.Resolve(options.Environment.Name)
	if err != nil {
		return nil, err
	}
	if options.Getenv == nil {
		options.Getenv = os.Getenv
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	return &Runtime{options: options, name: named.Name, state: OpenState(ctx, StateOptions{
		Dir:         options.StateDir,
		Environment: named.Name,
		Logger:      options.Logger,
		Getenv:      options.Getenv,
		Now:         options.Now,
	})}, nil
}

// EnvironmentName is the canonical name, as results show it.
func (r *Runtime) EnvironmentName() string { return r.name }

// StateDir is the state directory as it was resolved.
func (r *Runtime) StateDir() (string, error) {
	return ResolveStateDir(r.options.StateDir, r.options.Getenv)
}

// OpenState returns once the state directory is open, or tells why it cannot be
// opened.
func (r *Runtime) OpenState(ctx context.Context) error {
	_, err := r.state.Store(ctx)
	return err
}

// Environment returns the environment with its overrides, or the problem that
// describe and visibleActions must report. A lock held by another daemon is none.
func (r *Runtime) Environment(ctx context.Context) (environment.Environment, error) {
	if err := r.state.Check(ctx); err != nil {
		return environment.Environment{}, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.load()
}

// Foreground returns the session of requests that name no account. All callers get
// the same one; it ends with the runtime.
func (r *Runtime) Foreground(ctx context.Context) (*Session, error) {
	opened, err := r.state.Store(ctx)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, errStateClosed
	}
	if r.foreground != nil {
		return r.foreground, nil
	}
	loaded, err := r.load()
	if err != nil {
		return nil, err
	}
	if r.shared == nil {
		if r.shared, err = newShared(loaded, opened.VerifiedEvents(), r.options); err != nil {
			return nil, err
		}
	}
	r.foreground, err = newSession(loaded, r.shared, r.options.RelayLogger)
	return r.foreground, err
}

// Close ends every session, then what they share, then the state directory, whose
// lock goes last so that the next daemon finds everything written. Later calls wait
// for the first and return the same.
func (r *Runtime) Close() error {
	r.closing.Do(func() {
		r.mu.Lock()
		r.closed = true
		foreground, shared := r.foreground, r.shared
		r.mu.Unlock()
		if foreground != nil {
			foreground.close()
		}
		if shared != nil {
			shared.close()
		}
		r.closeError = r.state.Close()
	})
	return r.closeError
}

// load returns the environment, reading its overrides until they are in order. The
// lock is held.
func (r *Runtime) load() (environment.Environment, error) {
	if r.environment == nil {
		loaded, err := environment.Load(r.options.Environment)
		if err != nil {
			return environment.Environment{}, err
		}
		r.environment = &loaded
	}
	return *r.environment, nil
}
