// Package seeds finds an account's seed, the one secret all its trades and EVM keys
// come from: in the secret store, else in the encrypted backup on the Hostr relay
// (kind 17389), else it makes one and backs it up (spec 20 §12.1).
//
// It knows that a seed must never be lost and never be two: silence is not absence,
// and what it cannot read it leaves alone. It must never know what is derived from a
// seed or where secrets rest, and never put one into an error or a log.
package seeds

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/nbd-wtf/go-nostr"
	"github.com/rs/zerolog"

	"hostr-daemon/internal/derivation"
	"hostr-daemon/internal/flight"
	"hostr-daemon/internal/relay"
)

// Relays is what the service needs of a session's relay client.
type Relays interface {
	Query(ctx context.Context, filter nostr.Filter, options relay.QueryOptions) (relay.Answer, error)
	Publish(ctx context.Context, event nostr.Event, options relay.PublishOptions) ([]relay.Receipt, error)
}

// Account is what the service needs of an account's signer.
type Account interface {
	// PublicKey returns 64 lower-case hex digits.
	PublicKey() string
	SignEvent(ctx context.Context, event *nostr.Event) error
	NIP44Encrypt(ctx context.Context, peer, plaintext string) (string, error)
	NIP44Decrypt(ctx context.Context, peer, payload string) (string, error)
	// IsRemote reports whether another device signs.
	IsRemote() bool
}

// Local is the account's place in the secret store.
type Local interface {
	// Seed returns the stored seed; ok is false when there is none.
	Seed(ctx context.Context) (seed derivation.Seed, ok bool, err error)
	// SetSeed stores the seed in place of an earlier one.
	SetSeed(ctx context.Context, seed derivation.Seed) error
}

// Memory is where the account's mark rests: 64 hex digits that name the backup which
// was last found to hold the local seed. They give nothing of the seed away. They
// spare a remote signer a decryption at every start.
type Memory interface {
	// Mark returns what SetMark stored last, "" when there is nothing.
	Mark(ctx context.Context) (string, error)
	SetMark(ctx context.Context, mark string) error
}

// Service is the seed store of one account's session. It is safe for concurrent use.
type Service struct {
	relays  Relays
	account Account
	public  string
	local   Local
	memory  Memory
	derived derivation.Seed
	random  io.Reader
	clock   Clock
	log     zerolog.Logger
	limits  limits

	runs       flight.Group[*held]
	reconciles flight.Group[struct{}]

	mu sync.Mutex
	// held is the outcome of the run that succeeded, nil before.
	held *held
	// compared is true once local and remote seed have been compared, or need not be.
	compared bool
	// compareAt is when the comparison may be tried again.
	compareAt time.Time
}

// held is a seed with the keys derived from it.
type held struct {
	seed derivation.Seed
	keys *derivation.Keys
}

// Config is what a service is made of.
type Config struct {
	Relays  Relays
	Account Account
	Local   Local
	// Memory may be nil: a remote signer then decrypts the backup once per session.
	Memory Memory
	// Derived is the seed of an account whose private key is held here
	// (derivation.SeedFromPrivateKey), no seed for a remote signer's account.
	Derived derivation.Seed
	// Random gives new seeds; nil means crypto/rand.
	Random io.Reader
	// Clock is the machine's when nil.
	Clock  Clock
	Logger zerolog.Logger
}

// limits are bounds that tests narrow.
type limits struct {
	// signer bounds one request to the signer (spec 20 §8.1).
	signer time.Duration
}

const signerTimeout = 120 * time.Second

// New checks the configuration; it asks nobody anything yet.
func New(config Config) (*Service, error) {
	s := &Service{
		relays: config.Relays, account: config.Account, local: config.Local, memory: config.Memory,
		derived: config.Derived, random: config.Random, clock: config.Clock, log: config.Logger,
		limits: limits{signer: signerTimeout},
	}
	s.public = s.account.PublicKey()
	if !nostr.IsValidPublicKey(s.public) {
		return nil, errors.New("the account of a seed has no public key")
	}
	if s.account.IsRemote() != s.derived.IsZero() {
		return nil, errors.New("an account has a derived seed exactly when its private key is held here")
	}
	if s.random == nil {
		s.random = rand.Reader
	}
	if s.clock == nil {
		s.clock = systemClock{}
	}
	return s, nil
}

// Close ends what is under way and waits for it; later calls fail.
func (s *Service) Close() {
	s.runs.Close()
	s.reconciles.Close()
}

// Seed returns the account seed. The first call finds or makes it, which may take
// minutes when a person has to approve; callers at the same time share that run, and
// it goes on when they give up. A failure is not remembered.
//
// Errors say in words for people what to do (fault.From), and most are retryable; or
// they are the cause of ctx.
func (s *Service) Seed(ctx context.Context) (derivation.Seed, error) {
	held, err := s.resolved(ctx)
	if err != nil {
		return derivation.Seed{}, err
	}
	return held.seed, nil
}

// Keys returns the keys derived from the account seed; see Seed.
func (s *Service) Keys(ctx context.Context) (*derivation.Keys, error) {
	held, err := s.resolved(ctx)
	if err != nil {
		return nil, err
	}
	return held.keys, nil
}

func (s *Service) resolved(ctx context.Context) (*held, error) {
	s.mu.Lock()
	known := s.held
	s.mu.Unlock()
	if known == nil {
		var err error
		known, err = s.runs.Do(ctx, s.public, s.resolve)
		if errors.Is(err, flight.ErrClosed) {
			return nil, closed()
		}
		if err != nil {
			return nil, err
		}
	}
	s.compareSoon(ctx, known.seed)
	return known, nil
}

// resolve is one run: it finds or makes the seed and remembers it.
func (s *Service) resolve(ctx context.Context) (*held, error) {
	found, err := s.find(ctx)
	if err != nil {
		return nil, err
	}
	keys, err := derivation.NewKeys(found.seed)
	if err != nil {
		return nil, fmt.Errorf("deriving keys from the account seed: %w", err)
	}
	resolved := &held{found.seed, keys}
	s.mu.Lock()
	s.held, s.compared = resolved, found.compared
	s.mu.Unlock()
	s.log.Info().Str("origin", string(found.origin)).Msg("seed.ready")
	return resolved, nil
}
