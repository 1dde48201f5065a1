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
	"hostr-daemon/internal/secrets"
	"hostr-daemon/internal/sessions"
	"hostr-daemon/internal/store"
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
	// Journal takes the lines of the request log that sign-ins write (spec 10 §7.1).
	Journal zerolog.Logger
	// Secrets say where private keys may rest; the place of the state directory and
	// the environment are filled in.
	Secrets secrets.Options
	// Images say where images of listings may be besides the public web.
	Images ImageOptions
	// Notify sends a notification of the line protocol; nil where nobody listens. It
	// must never block.
	Notify func(method string, params any)
	// Version goes into the User-Agent.
	Version string
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// ImageOptions are for the operator to set at start: no request can (spec 40 §9.1).
type ImageOptions struct {
	// AllowFiles lets images be files of this machine.
	AllowFiles bool
	// AllowPrivateHosts lets images be fetched from private networks, as development and
	// test do anyway.
	AllowPrivateHosts bool
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

// Sessions returns the sessions of this daemon, or why there can be none yet. All
// callers get the same ones; they end with the runtime.
func (r *Runtime) Sessions(ctx context.Context) (*sessions.Registry, error) {
	opened, err := r.state.Store(ctx)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, errStateClosed
	}
	if r.shared == nil {
		if r.shared, err = r.share(opened); err != nil {
			return nil, err
		}
	}
	return r.shared.sessions, nil
}

// Foreground returns the services of requests that name no account.
func (r *Runtime) Foreground(ctx context.Context) (*sessions.Services, error) {
	registry, err := r.Sessions(ctx)
	if err != nil {
		return nil, err
	}
	foreground, err := registry.Foreground(ctx)
	if err != nil {
		return nil, err
	}
	return foreground.Services(ctx)
}

func (r *Runtime) share(opened *store.Store) (*shared, error) {
	loaded, err := r.load()
	if err != nil {
		return nil, err
	}
	places := r.options.Secrets
	places.Environment = r.name
	if places.StateDir, err = r.StateDir(); err != nil {
		return nil, err
	}
	kept, err := secrets.Open(places)
	if err != nil {
		return nil, err
	}
	return newShared(loaded, opened, kept, r.options)
}

// Close ends every session, then what they share, then the state directory, whose
// lock goes last so that the next daemon finds everything written. Later calls wait
// for the first and return the same.
func (r *Runtime) Close() error {
	r.closing.Do(func() {
		r.mu.Lock()
		r.closed = true
		shared := r.shared
		r.mu.Unlock()
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
