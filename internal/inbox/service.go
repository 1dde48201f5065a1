// Package inbox is one account's private messages: it fetches gift wraps from the
// Hostr relay, has the signer open each once, reduces the messages to threads, and
// sends (spec 60).
//
// It knows wraps, copies and what a signer may do wrong. It must never know what a
// trade is, and no plaintext may reach a log, an error or a file: what rests on disk
// is encrypted with a key that rests elsewhere.
package inbox

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"github.com/nbd-wtf/go-nostr"
	"github.com/rs/zerolog"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/giftwrap"
	"hostr-daemon/internal/market"
	"hostr-daemon/internal/relay"
)

// Relays is what the service needs of a session's relay client.
type Relays interface {
	// Authenticate returns nil where the relay knows the account or asks nobody.
	Authenticate(ctx context.Context) error
	Subscribe(ctx context.Context, filter nostr.Filter, options relay.SubscribeOptions) (*relay.Subscription, error)
	Publish(ctx context.Context, event nostr.Event, options relay.PublishOptions) ([]relay.Receipt, error)
	// HostrRelay returns "" when there is none.
	HostrRelay() string
}

// Account is what the service needs of an account's signer.
type Account interface {
	giftwrap.Account
	// IsRemote reports whether another device signs.
	IsRemote() bool
}

const (
	// signerLimit bounds one request in the background (spec 20 §4.3).
	signerLimit = 30 * time.Second
	// remoteSlots is how many wraps a remote signer opens side by side.
	remoteSlots = 8
)

// Config is what a service is made of.
type Config struct {
	Relays  Relays
	Account Account
	// Memory and Keys may be nil: then nothing rests on disk, and each process has all
	// messages decrypted again.
	Memory Memory
	Keys   Keys
	// Controls reports whether a pubkey is one of our keys for a trade (market.Threads).
	// It is called under the service's lock: it must return at once and call nothing of
	// the service.
	Controls func(pubkey, tradeID string) bool
	// NotAuthorized, if not nil, is told in the background that the signer no longer
	// knows this connection (spec 20 §6.3).
	NotAuthorized func(err error)
	// Now is the machine's clock when nil.
	Now func() time.Time
	// Random is crypto/rand when nil. It is used concurrently.
	Random io.Reader
	Logger zerolog.Logger
}

// Service is the inbox of one account's session. It is safe for concurrent use.
type Service struct {
	relays        Relays
	account       Account
	me            string
	notAuthorized func(error)
	now           func() time.Time
	random        io.Reader
	log           zerolog.Logger
	cache         *cache
	unwrapper     *unwrapper
	heartbeat     *heartbeat
	// historyLimit is narrowed by tests.
	historyLimit time.Duration

	ctx     context.Context
	cancel  context.CancelFunc
	resumed chan struct{} // wakes what waits to try again at the relay
	live    chan struct{} // closed once the history is applied

	// delivery keeps messages and what observers hear of them in one order. It is taken
	// before mu.
	delivery sync.Mutex
	onRumor  []func(market.Rumor)
	onLive   []func()

	mu      sync.Mutex
	threads *market.Threads
	// wraps are those that came or were known, and need no second look.
	wraps map[wrapID]struct{}
	// own are wraps that this process has made and the relay has not shown yet.
	own map[wrapID]*ownWrap
	// newest are the times given to messages under way, by thread.
	newest  map[string]nostr.Timestamp
	started bool
	closed  bool
	tasks   sync.WaitGroup
}

// wrapID is an event id in half the space.
type wrapID [32]byte

// New returns the service of an account; it does nothing before Start or Send.
func New(config Config) *Service {
	if config.Controls == nil {
		config.Controls = func(string, string) bool { return false }
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	if config.Random == nil {
		config.Random = rand.Reader
	}
	me := config.Account.PublicKey()
	s := &Service{
		relays: config.Relays, account: patientAccount{config.Account}, me: me, notAuthorized: config.NotAuthorized,
		now: config.Now, random: config.Random, log: config.Logger, cache: newCache(config, me),
		historyLimit: defaultHistoryLimit, resumed: make(chan struct{}, 1), live: make(chan struct{}),
		threads: market.NewThreads(me, config.Controls), wraps: map[wrapID]struct{}{}, own: map[wrapID]*ownWrap{}, newest: map[string]nostr.Timestamp{},
	}
	slots := runtime.GOMAXPROCS(0)
	if s.account.IsRemote() {
		slots = remoteSlots
	}
	s.unwrapper = newUnwrapper(slots, s.open)
	s.heartbeat = newHeartbeat(s.publishHeartbeat)
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// OnRumor registers an observer, before Start. It is told of each message once, in the
// order in which the threads got them, history and own ones included. It must return
// soon and must not call Send.
func (s *Service) OnRumor(observer func(market.Rumor)) { s.onRumor = append(s.onRumor, observer) }

// OnLive registers an observer, before Start, of the moment when the history is
// applied.
func (s *Service) OnLive(observer func()) { s.onLive = append(s.onLive, observer) }

// Start begins to fetch messages, and goes on until Close. Further calls do nothing.
func (s *Service) Start() {
	s.mu.Lock()
	first := !s.started
	s.started = true
	s.mu.Unlock()
	if !first {
		return
	}
	s.background("writing the message cache", s.cache.run)
	s.background("opening messages", s.unwrapper.run)
	s.background("waiting for heartbeats", s.heartbeat.run)
	s.background("fetching messages", s.fetch)
}

// Close ends everything and waits for it. What was being published may or may not
// have reached the relay.
func (s *Service) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancel()
	s.tasks.Wait()
	s.contain("writing the message cache", s.cache.finish)
}

// Await starts the service and waits until the history is applied, for the limit at
// most: both are nil. It returns the cause of ctx when that ends first, and an error
// once the service is closed.
func (s *Service) Await(ctx context.Context, limit time.Duration) error {
	s.Start()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-s.live:
		return nil
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-s.ctx.Done():
		return errClosed()
	}
}

// Live reports whether the history is applied.
func (s *Service) Live() bool {
	select {
	case <-s.live:
		return true
	default:
		return false
	}
}

// Read shows the threads as they are, under the service's lock: read must be short and
// call nothing of the service. What the threads return may be kept.
func (s *Service) Read(read func(*market.Threads)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	read(s.threads)
}

// Reassess judges orders anew, after Controls has come to know other keys.
func (s *Service) Reassess() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.threads.Reassess()
}

// Resume tries at once what a missing or unwilling signer has delayed: the account's
// signer was restored.
func (s *Service) Resume() {
	signal(s.resumed)
	s.unwrapper.resume()
}

// RequestHeartbeat has a heartbeat published once requests have stopped coming for
// five seconds, or after thirty (spec 60 §8.5).
func (s *Service) RequestHeartbeat() { s.heartbeat.request() }

// accept applies a message and tells the observers.
func (s *Service) accept(rumor market.Rumor) {
	s.delivery.Lock()
	defer s.delivery.Unlock()
	s.mu.Lock()
	added := s.threads.Add(rumor)
	s.mu.Unlock()
	if !added {
		return
	}
	for _, observer := range s.onRumor {
		s.contain("observing a message", func() { observer(rumor) })
	}
	if s.Live() && rumor.Event.PubKey != s.me {
		s.RequestHeartbeat()
	}
}

// goLive ends the history.
func (s *Service) goLive() {
	s.delivery.Lock()
	defer s.delivery.Unlock()
	s.mu.Lock()
	s.threads.Live(s.timestamp())
	s.mu.Unlock()
	for _, observer := range s.onLive {
		s.contain("observing the end of the history", observer)
	}
	close(s.live)
	s.RequestHeartbeat()
}

// background runs work until it is done, and until Close; it reports whether it was
// started.
func (s *Service) background(what string, work func(ctx context.Context)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
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
			s.log.Error().Str("event", "inbox.panic").Str("during", what).
				Str("panic", fmt.Sprintf("%T", problem)).Bytes("stack", debug.Stack()).Send()
		}
	}()
	work()
}

// wait returns after d, or when the signer is back; false when the service closes.
func (s *Service) wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.resumed:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

func (s *Service) timestamp() nostr.Timestamp { return nostr.Timestamp(s.now().Unix()) }

// targets are where everything of an inbox goes: the Hostr relay alone (spec 60 §3.3).
func (s *Service) targets() []string { return []string{s.relays.HostrRelay()} }

func errClosed() error {
	return fault.New(fault.UnexpectedError, "The messages are not there because the session was closed: ask again.").Transient()
}

// patientAccount gives each decryption in the background its limit.
type patientAccount struct{ Account }

// NIP44Decrypt implements Account.
func (a patientAccount) NIP44Decrypt(ctx context.Context, peer, payload string) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, signerLimit, errSignerTime)
	defer cancel()
	return a.Account.NIP44Decrypt(ctx, peer, payload)
}

var errSignerTime = errors.New("the signer did not answer in time")
