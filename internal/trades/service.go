// Package trades is one account's public orders: which trades are its, what the Hostr
// relay has of them, which key of the account signs and reads in each, and what may be
// believed (spec 50 §9, §12-§17; spec 60 §8).
//
// It knows orders, transitions, proofs and trade keys. It must never know how an action
// looks, nor trust an order for its trade id: whoever has seen one can publish another.
package trades

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/nbd-wtf/go-nostr"
	"github.com/rs/zerolog"

	"hostr-daemon/internal/derivation"
	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/market"
	"hostr-daemon/internal/relay"
	"hostr-daemon/internal/turns"
)

// Relays is what the service needs of a session's relay client.
type Relays interface {
	Query(ctx context.Context, filter nostr.Filter, options relay.QueryOptions) (relay.Answer, error)
	Publish(ctx context.Context, event nostr.Event, options relay.PublishOptions) ([]relay.Receipt, error)
	Subscribe(ctx context.Context, filter nostr.Filter, options relay.SubscribeOptions) (*relay.Subscription, error)
}

// Signer signs and reads for one public key: the account's own, or that of a trade.
type Signer interface {
	// PublicKey returns 64 lower-case hex digits.
	PublicKey() string
	SignEvent(ctx context.Context, event *nostr.Event) error
	NIP44Encrypt(ctx context.Context, peer, plaintext string) (string, error)
	NIP44Decrypt(ctx context.Context, peer, payload string) (string, error)
	// IsRemote reports whether another device signs.
	IsRemote() bool
}

// Inbox is the account's private messages.
type Inbox interface {
	// OnRumor and OnLive are called before Start; see the inbox for what observers may do.
	OnRumor(observer func(market.Rumor))
	OnLive(observer func())
	Start()
	Await(ctx context.Context, limit time.Duration) error
	Live() bool
	Read(read func(*market.Threads))
	// Reassess judges orders anew, after Controls has come to know other keys.
	Reassess()
}

// Keys gives the keys derived from the account seed.
type Keys interface {
	// Keys makes a seed where there is none, and publishes its backup.
	Keys(ctx context.Context) (*derivation.Keys, error)
	// Stored reports whether the seed is here, so that nobody is asked for it.
	Stored(ctx context.Context) (bool, error)
}

// Indexes is where the highest trade account index ever reserved rests.
type Indexes interface {
	// MaxAccountIndex returns -1 when none was reserved.
	MaxAccountIndex(ctx context.Context) (int, error)
	// RaiseMaxAccountIndex returns the highest one, which never falls.
	RaiseMaxAccountIndex(ctx context.Context, index int) (highest int, err error)
}

// Chains knows what EVM accounts have done.
type Chains interface {
	// Used reports whether the account of an address was ever used on any chain. An
	// error means that it is not known.
	Used(ctx context.Context, address string) (bool, error)
}

// ChainVerifier looks at the payment of an order on the chain.
type ChainVerifier interface {
	VerifyPayment(ctx context.Context, order market.Order) market.ChainVerdict
}

// Config is what a service is made of.
type Config struct {
	Relays  Relays
	Account Signer
	Inbox   Inbox
	Keys    Keys
	Indexes Indexes
	// Chains is nil where the environment has none.
	Chains Chains
	// Verifier is nil where no chain can be asked about payments.
	Verifier ChainVerifier
	// IsEscrow tells that the account is an escrow of the environment: trades that name
	// it are listed (market.OrderGroup.ListsTrip).
	IsEscrow bool
	// Turns are shared by all services of the process; nil means this one's own.
	Turns *turns.Keyed
	// Now is the machine's clock when nil.
	Now    func() time.Time
	Logger zerolog.Logger
}

// Service keeps the trades of one account's session. It is safe for concurrent use.
type Service struct {
	relays   Relays
	account  Signer
	me       string
	inbox    Inbox
	chains   Chains
	verifier ChainVerifier
	isEscrow bool
	now      func() time.Time
	log      zerolog.Logger
	limits   limits

	ring     *keyring
	proofs   *proofMemory
	listings *listingMemory
	feed     *feed
	// reserving and publishing keep one caller at a time to an account's indexes, and to
	// what an author publishes in a trade.
	reserving  *turns.Keyed
	publishing turns.Keyed
	// released are indexes that were reserved and not used.
	released releasedIndexes

	ctx    context.Context
	cancel context.CancelFunc
	// wake gets a signal when there is something to verify, openProofs when there are
	// proofs for the remote signer, strayed when keys of ours are not found.
	wake, openProofs, strayed chan struct{}

	mu     sync.Mutex
	trades map[string]*trade
	// claims are those of them that are nothing else.
	claims claims
	// listed are the trades with public orders, in order of their first one.
	listed []*trade
	// own are orders and transitions that this process has published, by trade id.
	own map[string]*ownEvents
	// queue are the groups to verify, unverified counts those of them, and of those under
	// way, that lists wait for.
	queue      []*tradeGroup
	unverified int
	// proofQueue are proofs that only the remote signer can open, unopened counts those
	// of them, and of those under way, that lists wait for.
	proofQueue []proofJob
	unopened   int
	inboxLive  bool
	// full is true once a trade was not followed because there are too many.
	full    bool
	started bool
	closed  bool
	// changed is closed, and replaced, whenever something of the above has changed.
	changed chan struct{}
	tasks   sync.WaitGroup
	// publications are those of the tasks that publish.
	publications sync.WaitGroup
}

// limits are bounds that tests narrow.
type limits struct {
	// inbox is how long a reservation waits for the messages (spec 50 §9.3).
	inbox time.Duration
	// stored is how long the relay may take for what it has.
	stored time.Duration
	// debounce is how long the feed waits for further trades, debounceLongest at most.
	debounce, debounceLongest time.Duration
	// signer bounds one decryption in the background.
	signer time.Duration
	// retryFirst and retryLongest pace what could not be found out.
	retryFirst, retryLongest time.Duration
	// closing is how long Close waits for publications.
	closing time.Duration
	// trades is how many are followed, claims how many of them one sender may claim.
	trades, claims int
}

func usualLimits() limits {
	return limits{
		inbox: 20 * time.Second, stored: 10 * time.Second,
		debounce: 500 * time.Millisecond, debounceLongest: 5 * time.Second,
		signer: 30 * time.Second, retryFirst: 5 * time.Second, retryLongest: 5 * time.Minute,
		closing: 5 * time.Second, trades: maxTrades, claims: maxClaims,
	}
}

// New returns the service of an account and has it observe the inbox, which must not
// be started yet. It does nothing else before Start.
func New(config Config) *Service {
	if config.Now == nil {
		config.Now = time.Now
	}
	if config.Turns == nil {
		config.Turns = &turns.Keyed{}
	}
	s := &Service{
		relays: config.Relays, account: config.Account, me: config.Account.PublicKey(), inbox: config.Inbox,
		chains: config.Chains, verifier: config.Verifier, isEscrow: config.IsEscrow, now: config.Now, log: config.Logger, limits: usualLimits(),
		ring:   newKeyring(config.Account.PublicKey(), config.Keys, config.Indexes),
		proofs: newProofMemory(), listings: newListingMemory(config.Relays), reserving: config.Turns,
		wake: make(chan struct{}, 1), openProofs: make(chan struct{}, 1), strayed: make(chan struct{}, 1), changed: make(chan struct{}),
		trades: map[string]*trade{}, own: map[string]*ownEvents{},
	}
	s.feed = newFeed(s)
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.inbox.OnRumor(s.observe)
	s.inbox.OnLive(s.inboxIsLive)
	return s
}

// Start begins to follow the account's trades, starts the inbox, and goes on until
// Close. Further calls do nothing. A seed that is not here yet is not asked for: to make
// one is up to those who need it (spec 20 §8.2).
func (s *Service) Start() {
	s.mu.Lock()
	first := !s.started
	s.started = true
	s.mu.Unlock()
	if !first {
		return
	}
	s.background("following trades", s.feed.run)
	s.background("verifying orders", s.verify)
	s.background("opening proofs", s.open)
	s.background("storing trade indexes", s.storeIndexes)
	s.background("looking for trade keys", s.followStrayed)
	s.learnStoredKeys()
	s.inbox.Start()
}

// Close ends everything and waits for it. What is being published has a few seconds to
// come to its end, lest an order be public without the record of it; after that it may
// or may not have reached the relay.
func (s *Service) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	published := make(chan struct{})
	go func() {
		defer close(published)
		s.publications.Wait()
	}()
	timer := time.NewTimer(s.limits.closing)
	defer timer.Stop()
	select {
	case <-published:
	case <-timer.C:
	}
	s.cancel()
	s.tasks.Wait()
	s.ring.close()
}

// Resume tries at once what a missing or unwilling signer has delayed: the account's
// signer was restored.
func (s *Service) Resume() {
	s.proofs.forgetFailures()
	s.learnStoredKeys()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, trade := range s.listed {
		for _, group := range trade.groups {
			group.signerFailed = false
			if group.unopened || group.unsure {
				s.enqueue(group)
			}
		}
	}
}

// storeIndexes stores higher indexes as they are met, once the messages are read: a
// stored one says that no other device has used more (Reserve). What cannot be stored
// now is met again after the next start.
func (s *Service) storeIndexes(ctx context.Context) {
	for {
		select {
		case <-s.ring.higher:
		case <-ctx.Done():
			return
		}
		s.mu.Lock()
		live := s.inboxLive
		s.mu.Unlock()
		highest := s.ring.highestMet()
		if !live || highest == noIndex {
			continue
		}
		if err := s.ring.raise(ctx, highest); err != nil && ctx.Err() == nil {
			s.log.Warn().Str("event", "trades.index_not_stored").Err(err).Send()
		}
	}
}

// SeedIsReady has the keys found: the account seed is there, or may be made.
func (s *Service) SeedIsReady() { s.learnKeysSoon() }

// learnKeysSoon has the keys found in the background, once; whoever needs them asks
// again.
func (s *Service) learnKeysSoon() { s.learnInBackground(s.learnKeys) }

// learnStoredKeys is learnKeysSoon where the seed is here.
func (s *Service) learnStoredKeys() {
	s.learnInBackground(func(ctx context.Context) error {
		if stored, err := s.ring.source.Stored(ctx); err != nil || !stored {
			return err
		}
		return s.learnKeys(ctx)
	})
}

func (s *Service) learnInBackground(learn func(ctx context.Context) error) {
	if s.ring.known() {
		return
	}
	s.background("finding the trade keys", func(ctx context.Context) {
		if err := learn(ctx); err != nil && ctx.Err() == nil {
			s.log.Warn().Str("event", "trades.keys_unknown").Err(err).Send()
		}
	})
}

// learnKeys waits for the account seed, and has everything judged anew that could not
// be without its keys.
func (s *Service) learnKeys(ctx context.Context) error {
	fresh, err := s.ring.learn(ctx)
	if err != nil || !fresh {
		return err
	}
	s.judgeAnew(func(_ *trade, group *tradeGroup) bool { return group.needsKeys })
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hasStrayed() {
		signal(s.strayed)
	}
	return nil
}

// notify wakes whoever waits for a change. The lock is held.
func (s *Service) notify() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// settled reports whether all is known of the trades so far, or was tried to be: what
// is tried again nobody waits for. The lock is held.
func (s *Service) settled() bool {
	return s.inboxLive && s.feed.settled() && s.unverified == 0 && s.unopened == 0
}

// awaitSettled returns once settled, or after the limit, which is no error; it reports
// which.
func (s *Service) awaitSettled(ctx context.Context, limit time.Duration) (bool, error) {
	s.Start()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		s.mu.Lock()
		settled, changed := s.settled(), s.changed
		s.mu.Unlock()
		if settled {
			return true, nil
		}
		select {
		case <-changed:
		case <-timer.C:
			return false, nil
		case <-ctx.Done():
			return false, context.Cause(ctx)
		case <-s.ctx.Done():
			return false, errClosed()
		}
	}
}

// background runs work until it is done, and until Close; it reports whether it was
// started. The lock is not held.
func (s *Service) background(what string, work func(ctx context.Context)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.start(what, work)
}

// publishInBackground is background for what Close gives some time.
func (s *Service) publishInBackground(what string, work func(ctx context.Context)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.publications.Add(1) // Not after Close has begun to wait.
	return s.start(what, func(ctx context.Context) {
		defer s.publications.Done()
		work(ctx)
	})
}

// start is background with the lock held.
func (s *Service) start(what string, work func(ctx context.Context)) bool {
	if s.closed {
		return false
	}
	s.tasks.Go(func() { s.contain(what, func() { work(s.ctx) }) })
	return true
}

// contain runs work; a panic costs that work only. The text of a panic may hold what
// was worked on, so the log gets its type and the stack alone.
func (s *Service) contain(what string, work func()) {
	defer func() {
		if problem := recover(); problem != nil {
			s.log.Error().Str("event", "trades.panic").Str("during", what).
				Str("panic", fmt.Sprintf("%T", problem)).Bytes("stack", debug.Stack()).Send()
		}
	}()
	work()
}

func (s *Service) timestamp() nostr.Timestamp { return nostr.Timestamp(s.now().Unix()) }

func errClosed() error {
	return fault.New(fault.UnexpectedError, "The trades are not there because the session was closed: ask again.").Transient()
}

// signal leaves a signal in a channel of one place.
func signal(to chan struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}

// pause returns after d, or false when the context ends.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
