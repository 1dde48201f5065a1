// Package sessions knows who is asking: one session per account and one for those
// who name none, each with its own relay connections, signer and services, opened
// once and used by many requests at a time (spec 20).
//
// It signs accounts in and out, restores them after a restart, and brings their
// background work up. It knows neither frames nor the inputs and results of actions.
package sessions

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"hostr-daemon/internal/environment"
	"hostr-daemon/internal/inbox"
	"hostr-daemon/internal/listings"
	"hostr-daemon/internal/media"
	"hostr-daemon/internal/profiles"
	"hostr-daemon/internal/relay"
	"hostr-daemon/internal/relaylists"
	"hostr-daemon/internal/secrets"
	"hostr-daemon/internal/seeds"
	"hostr-daemon/internal/sellers"
	"hostr-daemon/internal/turns"
)

// Config is what all sessions share.
type Config struct {
	Environment environment.Environment
	Secrets     *secrets.Store
	// Swaps tells what logging out must wait for.
	Swaps UnfinishedSwaps
	// SeedMarks spares a remote signer a decryption at every start; nil for none.
	SeedMarks func(pubkey string) seeds.Memory
	// MessageCache is where an account's private messages rest; nil: nowhere.
	MessageCache func(pubkey string) inbox.Memory
	// Operations keeps what must outlive the process.
	Operations Operations
	// ChainActivity is asked where the environment has chains.
	ChainActivity ChainActivity
	// TradeTurns keep one caller at a time to an account's trade indexes.
	TradeTurns *turns.Keyed
	Verifier   *relay.Verifier
	Cells      *listings.Cells
	Profiles   *profiles.Cache
	RelayLists *relaylists.Cache
	// Media uploads for everybody.
	Media *media.Service
	// Contracts and SwapProvider tell what a seller can be paid with; SwapProvider is
	// nil where the environment has none.
	Contracts    sellers.Contracts
	SwapProvider sellers.Swaps
	// Notify sends a notification of the line protocol; it never blocks.
	Notify func(method string, params any)
	// Journal takes the log lines of spec 10 §7.1, Logger what operators should see,
	// RelayLogger the relay layer's lines.
	Journal, Logger, RelayLogger zerolog.Logger
	Random                       io.Reader
	Now                          func() time.Time

	// sendLimit is the constant, which tests widen.
	sendLimit time.Duration
}

// ErrClosed is returned for calls on a registry that is closing.
var ErrClosed = errors.New("the daemon is shutting down")

// Registry holds the sessions of a running daemon.
type Registry struct {
	config   Config
	lifetime context.Context
	end      context.CancelFunc
	notices  *notices

	// askTimeout is the constant, which tests narrow.
	askTimeout time.Duration
	lines      lines

	mu         sync.Mutex
	background sync.WaitGroup
	foreground *Session
	keyed      map[string]*Session
	sweptAt    time.Time
	// connects and logins are sign-ins by Nostr Connect under way, by session key and
	// by OAuth request id.
	connects map[string]*invitation
	logins   map[string]*invitation
}

// New returns a registry without sessions. Close ends it.
func New(config Config) *Registry {
	lifetime, end := context.WithCancel(context.Background())
	config.sendLimit = sendLimit
	return &Registry{
		config:   config,
		lifetime: lifetime,
		end:      end,
		notices:  newNotices(config.Notify),

		askTimeout: askTimeout,

		keyed:    make(map[string]*Session),
		connects: make(map[string]*invitation),
		logins:   make(map[string]*invitation),
	}
}

// Foreground returns the session of requests that name no account. Nobody is ever
// signed in to it: a sign-in under way has a temporary identity of its own.
func (r *Registry) Foreground(ctx context.Context) (*Session, error) {
	r.mu.Lock()
	if r.foreground == nil {
		r.foreground = newSession(r, "")
	}
	session := r.foreground
	r.mu.Unlock()
	return session, session.open(ctx)
}

// Opened returns the session of a key, an account pubkey or any other text: what is
// stored of it has been read. A remote signer may still be being restored, which
// whoever needs it waits for (Check, Status, Restore). A sign-in that was removed from
// the store since counts as signed out; one that cannot be read too, and Check and
// Status say so. A failure is not remembered; the next call tries again.
func (r *Registry) Opened(ctx context.Context, key string) (*Session, error) {
	session, err := r.session(key)
	if err != nil {
		return nil, err
	}
	return session, session.open(ctx)
}

// Session is Opened for callers who look at the account without asking for anything:
// its signer is restored or found wanting.
func (r *Registry) Session(ctx context.Context, key string) (*Session, error) {
	session, err := r.Opened(ctx, key)
	if err != nil {
		return nil, err
	}
	return session, session.settle(ctx)
}

// Media uploads pictures, for an account or for nobody in particular.
func (r *Registry) Media() *media.Service { return r.config.Media }

// EscrowPubkeys are the accounts with the escrow role.
func (r *Registry) EscrowPubkeys() []string { return r.config.Environment.EscrowPubkeys }

func (r *Registry) session(key string) (*Session, error) {
	now := r.config.Now()
	session, idle, err := r.lookUp(key, now)
	r.drop(idle, now)
	return session, err
}

const (
	// idleFor is how long a session that nobody is signed in to is kept unused: the
	// bridge makes a key for each of its own sessions. It is longer than any request.
	idleFor = 15 * time.Minute
	// sweepEvery is how often idle sessions are looked for.
	sweepEvery = time.Minute
)

// lookUp returns the session of a key, made where there is none, and from time to time
// those that have not been used for long.
func (r *Registry) lookUp(key string, now time.Time) (session *Session, idle []*Session, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lifetime.Err() != nil {
		return nil, nil, ErrClosed
	}
	session, ok := r.keyed[key]
	if !ok {
		session = newSession(r, key)
		r.keyed[key] = session
	}
	session.usedAt = now
	if now.Sub(r.sweptAt) < sweepEvery {
		return session, nil, nil
	}
	r.sweptAt = now
	for _, other := range r.keyed {
		if now.Sub(other.usedAt) > idleFor {
			idle = append(idle, other)
		}
	}
	return session, idle, nil
}

// drop forgets those of the sessions that nobody is signed in to and that are still
// unused. Not under the lock: a session locks itself before the registry elsewhere.
func (r *Registry) drop(idle []*Session, now time.Time) {
	for _, session := range idle {
		if session.Account() != nil {
			continue
		}
		r.mu.Lock()
		unused := now.Sub(session.usedAt) > idleFor && r.keyed[session.key] == session
		if unused {
			delete(r.keyed, session.key)
		}
		r.mu.Unlock()
		if unused {
			session.close()
		}
	}
}

// Close ends background work, then every session's connections and signers.
func (r *Registry) Close() {
	r.mu.Lock()
	r.end()
	sessions := make([]*Session, 0, len(r.keyed)+1)
	for _, session := range r.keyed {
		sessions = append(sessions, session)
	}
	if r.foreground != nil {
		sessions = append(sessions, r.foreground)
	}
	r.mu.Unlock()
	var closing sync.WaitGroup
	for _, session := range sessions {
		closing.Go(func() {
			_ = r.contain("closing a session", func() error { session.close(); return nil })
		})
	}
	closing.Wait()
	r.background.Wait()
}
