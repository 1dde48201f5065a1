// Package sellers keeps an account's seller configuration published: the event of
// kind 17388 that tells guests which escrows, contracts and tokens the seller accepts
// and which EVM address is the seller's (spec 20 §9).
//
// It knows what the account offers now and what the published event says, and that
// the event replaces the one before: nothing of other clients may get lost. It must
// never know when it is called for, or who buys.
package sellers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nbd-wtf/go-nostr"
	"github.com/rs/zerolog"

	"hostr-daemon/internal/boltz"
	"hostr-daemon/internal/derivation"
	"hostr-daemon/internal/environment"
	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/flight"
	"hostr-daemon/internal/market"
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
}

// Keys gives the keys derived from the account seed.
type Keys interface {
	Keys(ctx context.Context) (*derivation.Keys, error)
}

// Contracts reads contracts on the configured chains.
type Contracts interface {
	// Code returns the runtime code at an address, empty where there is none.
	Code(ctx context.Context, chainID int64, address string) ([]byte, error)
}

// Swaps knows where the swap provider offers swaps.
type Swaps interface {
	Chains(ctx context.Context) ([]boltz.Chain, error)
}

// Service keeps the seller configuration of one account's session. It is safe for
// concurrent use.
type Service struct {
	relays    Relays
	account   Account
	public    string
	keys      Keys
	chains    []environment.Chain
	escrows   []string
	contracts Contracts
	swaps     Swaps
	now       func() time.Time
	log       zerolog.Logger
	limits    limits

	runs flight.Group[Outcome]
}

// Config is what a service is made of.
type Config struct {
	Relays  Relays
	Account Account
	Keys    Keys
	// Chains are the environment's, in order of preference.
	Chains []environment.Chain
	// Escrows are the trusted operators' public keys (spec 11 §2).
	Escrows   []string
	Contracts Contracts
	// Swaps is nil where the environment has no swap provider.
	Swaps Swaps
	// Now is the clock; nil means time.Now.
	Now    func() time.Time
	Logger zerolog.Logger
}

// limits are bounds that tests narrow.
type limits struct {
	// signer bounds one request to the signer (spec 20 §8.1).
	signer time.Duration
}

const (
	kindEscrowMethod = 17388
	signerTimeout    = 120 * time.Second
	// codeTimeout bounds the reading of all contracts.
	codeTimeout = 60 * time.Second
)

// New returns the service of one account; it asks nobody anything yet.
func New(config Config) *Service {
	s := &Service{
		relays: config.Relays, account: config.Account, public: config.Account.PublicKey(), keys: config.Keys,
		chains: config.Chains, escrows: config.Escrows, contracts: config.Contracts, swaps: config.Swaps,
		now: config.Now, log: config.Logger, limits: limits{signer: signerTimeout},
	}
	if s.now == nil {
		s.now = time.Now
	}
	return s
}

// Close ends what is under way and waits for it; later calls fail.
func (s *Service) Close() { s.runs.Close() }

// Outcome tells what Ensure did.
type Outcome struct {
	// Published is true when a new configuration went to the Hostr relay.
	Published bool
	// EventID is the id of the configuration in force.
	EventID string
}

// Ensure publishes the seller configuration if it lacks something or would change.
// Callers at the same time share one run, which goes on when they give up.
//
// Errors say in words for people what went wrong (fault.From), or are the cause of
// ctx. Nothing was published then, unless the relay took the event without saying so.
func (s *Service) Ensure(ctx context.Context) (Outcome, error) {
	outcome, err := s.runs.Do(ctx, s.public, s.ensure)
	if errors.Is(err, flight.ErrClosed) {
		return Outcome{}, fault.New(fault.UnexpectedError,
			"The seller configuration was not published because the session was closed: try again.").Transient()
	}
	return outcome, err
}

// Sells tells whether the account has a listing on the Hostr relay: only then does
// start-up see to the seller configuration (spec 20 §8.2 step 3). It fails when the
// relay shows none but did not answer in full.
func (s *Service) Sells(ctx context.Context) (bool, error) {
	answer, err := s.relays.Query(ctx, market.ListFilter(s.public, 1), relay.QueryOptions{})
	if err != nil {
		return false, fmt.Errorf("looking for a listing of the account: %w", err)
	}
	if len(answer.Events) == 0 && !answer.Complete {
		return false, unknown("It is not known whether the account has listings.", answer)
	}
	return len(answer.Events) > 0, nil
}

// ensure is one run.
func (s *Service) ensure(ctx context.Context) (Outcome, error) {
	offered, err := s.offer(ctx)
	if err != nil {
		return Outcome{}, err
	}
	current, err := s.current(ctx)
	if err != nil {
		return Outcome{}, err
	}
	tags, changed := offered.compose(current)
	if !changed {
		s.log.Debug().Str("eventId", current.ID).Msg("seller.unchanged")
		return Outcome{EventID: current.ID}, nil
	}
	event := nostr.Event{PubKey: s.public, Kind: kindEscrowMethod, Tags: tags, CreatedAt: nostr.Timestamp(s.now().Unix())}
	if current != nil {
		event.Content = current.Content
		event.CreatedAt = market.NextCreatedAt(current.CreatedAt, event.CreatedAt)
	}
	if err := s.sign(ctx, &event); err != nil {
		return Outcome{}, failure("The seller configuration was not published", err)
	}
	if _, err := s.relays.Publish(ctx, event, relay.PublishOptions{}); err != nil {
		return Outcome{}, failure("The seller configuration was not published", err)
	}
	s.log.Info().Str("eventId", event.ID).Int("forms", len(offered.forms)).Int("hashes", len(offered.hashes)).Msg("seller.published")
	return Outcome{Published: true, EventID: event.ID}, nil
}

func (s *Service) sign(ctx context.Context, event *nostr.Event) error {
	ctx, cancel := context.WithTimeout(ctx, s.limits.signer)
	defer cancel()
	return s.account.SignEvent(ctx, event)
}

// current returns the published configuration, nil when there is none. Only a
// complete answer tells: the next event replaces whatever there is.
func (s *Service) current(ctx context.Context) (*nostr.Event, error) {
	filter := nostr.Filter{Kinds: []int{kindEscrowMethod}, Authors: []string{s.public}}
	answer, err := s.relays.Query(ctx, filter, relay.QueryOptions{})
	if err != nil {
		return nil, fmt.Errorf("looking the seller configuration up: %w", err)
	}
	if !answer.Complete {
		return nil, unknown("The seller configuration was not published, because the one in force is not known.", answer)
	}
	if newest := relay.Newest(answer.Events); len(newest) > 0 {
		return newest[0], nil
	}
	return nil, nil
}

// offer collects what the account offers now, from the chains, the swap provider and
// the seed at the same time.
func (s *Service) offer(ctx context.Context) (offer, error) {
	offered := offer{author: s.public, escrows: s.escrows}
	var asking sync.WaitGroup
	asking.Go(func() { offered.hashes = s.bytecodeHashes(ctx) })
	asking.Go(func() { offered.forms, offered.swapsUnknown = s.paymentForms(ctx) })
	keys, err := s.keys.Keys(ctx)
	asking.Wait()
	if err != nil {
		return offer{}, err
	}
	key, err := keys.EVM(0)
	if err != nil {
		return offer{}, fmt.Errorf("deriving the EVM address: %w", err)
	}
	offered.address = key.Address()
	if offered.proof, err = key.PersonalSign(ownershipMessage(s.public, offered.address)); err != nil {
		return offer{}, fmt.Errorf("signing the proof of the EVM address: %w", err)
	}
	return offered, nil
}

// bytecodeHashes returns the SHA-256 of the escrow contracts' code, in the order of
// the chains. A chain that cannot be read is left out.
func (s *Service) bytecodeHashes(ctx context.Context) []string {
	ctx, cancel := context.WithTimeout(ctx, codeTimeout)
	defer cancel()
	read := make([]string, len(s.chains))
	var reading sync.WaitGroup
	for i, chain := range s.chains {
		if chain.EscrowContractAddress != "" {
			reading.Go(func() { read[i] = s.bytecodeHash(ctx, chain) })
		}
	}
	reading.Wait()
	var hashes []string
	for _, hash := range read {
		if hash != "" {
			hashes = append(hashes, hash)
		}
	}
	return hashes
}

// bytecodeHash returns "" for a contract that cannot be read or is not there.
func (s *Service) bytecodeHash(ctx context.Context, chain environment.Chain) string {
	code, err := s.contracts.Code(ctx, chain.ChainID, chain.EscrowContractAddress)
	if err == nil && len(code) == 0 {
		err = errors.New("there is no contract at its address")
	}
	if err != nil {
		s.log.Warn().Int64("chainId", chain.ChainID).Err(err).Msg("seller.chain_skipped")
		return ""
	}
	sum := sha256.Sum256(code)
	return hex.EncodeToString(sum[:])
}

// paymentForms returns what is accepted now; unknown is true when the swap provider
// could not be asked, so that forms may be missing.
func (s *Service) paymentForms(ctx context.Context) (forms []paymentForm, unknown bool) {
	if s.swaps == nil {
		return paymentForms(s.chains, nil), false
	}
	swaps, err := s.swaps.Chains(ctx)
	if err != nil {
		s.log.Warn().Err(err).Msg("seller.swaps_unknown")
		return paymentForms(s.chains, nil), true
	}
	return paymentForms(s.chains, swaps), false
}
