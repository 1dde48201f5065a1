// Package orders is what an account does in its trades: it offers, answers, accepts,
// cancels and reviews, and shows what there is (spec 51). It is built for one session.
//
// It knows in what order a step comes to be: what has to be known before, who signs,
// what is sent to whom and what is published. It must never publish an order that is
// still being negotiated. What an order is stands in package market; how a result
// looks stands in package actions.
package orders

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/nbd-wtf/go-nostr"
	"github.com/rs/zerolog"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/market"
	"hostr-daemon/internal/relay"
	"hostr-daemon/internal/turns"
)

// Relays is what the service needs of a session's relay client.
type Relays interface {
	Query(ctx context.Context, filter nostr.Filter, options relay.QueryOptions) (relay.Answer, error)
	Publish(ctx context.Context, event nostr.Event, options relay.PublishOptions) ([]relay.Receipt, error)
	// HostrRelay returns "" when there is none.
	HostrRelay() string
}

// Signer signs and reads for one public key: the account's own, or that of a trade.
type Signer interface {
	// PublicKey returns 64 lower-case hex digits.
	PublicKey() string
	// SignEvent sets id and sig. It may take as long as a person with a phone takes.
	SignEvent(ctx context.Context, event *nostr.Event) error
	NIP44Encrypt(ctx context.Context, peer, plaintext string) (string, error)
	NIP44Decrypt(ctx context.Context, peer, payload string) (string, error)
	// IsRemote reports whether another device signs.
	IsRemote() bool
}

// Inbox is the account's private messages.
type Inbox interface {
	// Await starts them and waits until the history is there, for the limit at most.
	Await(ctx context.Context, limit time.Duration) error
	// Live reports whether the history is there.
	Live() bool
	// Read shows the threads for a short moment.
	Read(read func(*market.Threads))
	// Send has succeeded when the relay took each copy; the message is among the threads
	// then. Copies that are being published are, also after ctx has ended. An error with a
	// method NothingLeft says by it whether it is certain that no copy has.
	Send(ctx context.Context, draft market.MessageDraft) (receipts []relay.Receipt, err error)
}

// TradeKey is what belongs to one trade that we begin as guest.
type TradeKey struct {
	TradeID string
	Key     Signer
}

// PublicWait says how long to wait for the public orders of a trade.
type PublicWait struct {
	// Done ends the wait. It is not called while strangers alone may have made the orders.
	Done func(orders []market.Order) bool
	// Limit is the longest wait. With 0 only what is known counts.
	Limit time.Duration
	// UntilAnswered asks the relay whatever is known, and also ends the wait once it has
	// said that there is no more and the account's messages are read.
	UntilAnswered bool
}

// PublicOrders are the public orders of one trade that belong to it as far as that can
// be told, the newest of each author, oldest first (spec 50 §17.2).
type PublicOrders struct {
	Orders []market.Order
	// Complete is true when the relay has said that it sent all it has, and the account
	// seed is there, whose keys tell what of it is ours. Without it, and without an order,
	// it is not known whether there is one.
	Complete bool
}

// Publication is a public order to be published with the transition that records it.
type Publication struct {
	// Order is the unsigned order by the key.
	Order *nostr.Event
	Key   Signer
	// Role is the author's part in the trade.
	Role market.Role
	// Type and From are the transition's; it leads to the order's stage.
	Type market.TransitionType
	From market.Stage
}

// TradeList is the trades on one side of the account.
type TradeList struct {
	// Items are in order of their first public order.
	Items []market.TradeItem
	// Warning is nil when the list is whole.
	Warning *fault.Error
}

// Trades is the account's public trades, and the keys it has in them.
type Trades interface {
	// Start begins to follow the trades; further calls do nothing.
	Start()
	// Reserve picks the next free trade account, and keeps it if persist is set (spec 50
	// §9.3).
	Reserve(ctx context.Context, persist bool) (TradeKey, error)
	// Release gives a reserved trade account back of which nothing has left.
	Release(key TradeKey)
	// OwnKey returns the key that signs our part: an error when we take none.
	OwnKey(ctx context.Context, listing market.Anchor, tradeID string) (Signer, error)
	// WaitPublic starts the trades; running into the limit is no error.
	WaitPublic(ctx context.Context, tradeID string, wait PublicWait) (PublicOrders, error)
	// TrustedAuthors returns whose public orders belong to a trade (spec 50 §17).
	TrustedAuthors(tradeID string) []string
	// Publish refuses orders of a negotiation. It goes on when ctx ends once the order is
	// signed.
	Publish(ctx context.Context, publication Publication) (order *nostr.Event, err error)
	// Trips and Hostings return what there is once all is verified, or after the limit.
	Trips(ctx context.Context, limit time.Duration) (TradeList, error)
	Hostings(ctx context.Context, limit time.Duration) (TradeList, error)
}

// PaymentVerifier looks at the payment of an order on the chain.
type PaymentVerifier interface {
	VerifyPayment(ctx context.Context, order market.Order) market.ChainVerdict
}

// Listings finds places to stay.
type Listings interface {
	// Find returns nil when the relay has no such listing; a warning then tells that it
	// did not answer in full.
	Find(ctx context.Context, anchor market.Anchor) (listing *market.Listing, warning *fault.Error, err error)
	// Available is Find, and tells whether the dates are free; with a warning that is not
	// known.
	Available(ctx context.Context, anchor market.Anchor, stay market.DateRange) (listing *market.Listing, available bool, warning *fault.Error, err error)
}

// People knows what is public about people.
type People interface {
	// Profile returns nil for somebody without one.
	Profile(ctx context.Context, pubkey string) (*market.Profile, error)
	// RelayHint returns a relay that a pubkey publishes to, or "".
	RelayHint(ctx context.Context, pubkey string) string
	// WriteRelays returns the relays a pubkey publishes to as far as they are known,
	// without asking anybody.
	WriteRelays(pubkey string) []string
}

// Records keeps what must outlive the process.
type Records interface {
	// PutTrade keeps the state of a trade, a JSON object (spec 50 §19).
	PutTrade(ctx context.Context, tradeID string, state json.RawMessage) error
}

// Config is what a service is made of.
type Config struct {
	Relays   Relays
	Account  Signer
	Inbox    Inbox
	Trades   Trades
	Listings Listings
	People   People
	Records  Records
	// Payments is nil where no chain can be asked.
	Payments PaymentVerifier
	// SeedReady returns once the account seed is there (spec 20 §12.1).
	SeedReady func(ctx context.Context) error
	// Now is the machine's clock when nil.
	Now    func() time.Time
	Logger zerolog.Logger
}

// Service acts in the trades of one account's session. It is safe for concurrent use.
type Service struct {
	config Config
	me     string
	limits limits
	// acting has one step at a time made in a trade: the next one must see it.
	acting turns.Keyed

	ctx    context.Context
	cancel context.CancelFunc
	mu     sync.Mutex
	closed bool
	tasks  sync.WaitGroup
}

// limits are bounds that tests narrow.
type limits struct {
	// commit is how long a cancellation looks for a public commit (spec 51 §5).
	commit time.Duration
	// hint bounds the search for the relays of participants (spec 50 §3.1).
	hint time.Duration
}

// New returns the service of an account; it asks nobody anything yet.
func New(config Config) *Service {
	if config.Now == nil {
		config.Now = time.Now
	}
	s := &Service{config: config, me: config.Account.PublicKey()}
	s.limits = limits{commit: 15 * time.Second, hint: 2 * time.Second}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Close ends what is under way and waits for it. What was being published may or may
// not have reached the relay.
func (s *Service) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancel()
	s.tasks.Wait()
}

// writeLimit bounds a write that nobody may be waiting for any more.
const writeLimit = 3 * time.Minute

// finish runs a write to its end, also when ctx ends (spec 10 §4.3): then the caller
// gets the cause of ctx, or learns that the outcome is unknown.
func finish[T any](ctx context.Context, s *Service, what string, write func(ctx context.Context) (T, error)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	done := make(chan outcome, 1)
	started := s.background(func() {
		result := outcome{err: fmt.Errorf("%s failed unexpectedly", what)}
		defer func() { done <- result }()
		s.contain(what, func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeLimit)
			defer cancel()
			defer context.AfterFunc(s.ctx, cancel)()
			result.value, result.err = write(ctx)
		})
	})
	var none T
	if !started {
		return none, errClosed()
	}
	select {
	case result := <-done:
		return result.value, result.err
	case <-ctx.Done():
	}
	if ctx.Err() == context.DeadlineExceeded {
		return none, fault.New(fault.UnexpectedError, "The time ran out during %s: whether it was done is unknown, it may still be.", what).
			WithHint("Look at the trade before you try again.")
	}
	return none, context.Cause(ctx)
}

// background runs work that Close waits for; it reports whether it was started.
func (s *Service) background(work func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.tasks.Go(work)
	return true
}

// contain runs work; a panic costs that work only. The text of a panic may hold what
// was worked on, so the log gets its type and the stack alone.
func (s *Service) contain(what string, work func()) {
	defer func() {
		if problem := recover(); problem != nil {
			s.config.Logger.Error().Str("event", "orders.panic").Str("during", what).
				Str("panic", fmt.Sprintf("%T", problem)).Bytes("stack", debug.Stack()).Send()
		}
	}()
	work()
}

func (s *Service) timestamp() nostr.Timestamp { return nostr.Timestamp(s.config.Now().Unix()) }

func errClosed() error {
	return fault.New(fault.UnexpectedError, "Nothing was done because the session was closed: call again.").Transient()
}
