package relay

import (
	"context"
	"errors"
	"slices"
	"sync"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/fault"
)

const (
	// maxHeldEvents and maxHeldBytes bound what waits for a subscription's consumer.
	maxHeldEvents = 10_000
	maxHeldBytes  = 32 << 20
	// seenEvents is how many ids a subscription remembers so as not to deliver an
	// event again after a reconnect.
	seenEvents = 100_000
	// maxRefusals bounds the refusals that wait to be read; further ones are only
	// logged.
	maxRefusals = 64
)

// SubscribeOptions are the less usual sides of a subscription.
type SubscribeOptions struct {
	// Relays are asked instead of the Hostr relay; hostr-only kinds go to that all
	// the same. Unusable URLs are dropped.
	Relays []string
	// BeforeAuth opens the REQ before AUTH, also after each reconnect: for the kind
	// 24133 answers of the remote signer that has to sign the AUTH.
	BeforeAuth bool
}

// Refusal tells that a relay does not serve a subscription.
type Refusal struct {
	RelayURL string
	// Reason is the relay's own text.
	Reason string
	// Final is false when the relay only wants an AUTH: the REQ is sent again once
	// one succeeds.
	Final bool
}

// Subscription is a REQ that stays open: stored events first, then each event as it
// comes. It survives lost connections: after each reconnect the original filter is
// sent again and what was delivered before is left out, so that nothing from the
// time between is lost.
//
// A consumer that falls behind by 10,000 events or 32 MiB pauses the subscription:
// the REQ is closed, and sent again with its original filter once the consumer has
// caught up. Stored events are not lost by that, ephemeral ones of the pause are.
type Subscription struct {
	client *Client
	cancel context.CancelFunc
	parts  []*subscriptionPart

	events        chan *nostr.Event
	storedAll     chan struct{}
	storedOnce    sync.Once
	restoredAgain chan struct{}
	refusals      chan Refusal
	filled        chan struct{} // wakes the goroutine that feeds events
	done          chan struct{}

	mu        sync.Mutex
	seen      *lru.Cache[string, struct{}]
	queue     []queuedEvent
	held      int // events admitted and not yet taken by the consumer
	heldBytes int
	paused    bool
	unstored  int // parts whose stored events are still coming
	complete  bool
}

// queuedEvent waits for the consumer; without an event it is the mark of Stored.
type queuedEvent struct {
	event *nostr.Event
	size  int
}

// subscriptionPart is the part of one relay in a subscription.
type subscriptionPart struct {
	subscription *Subscription
	connection   *connection
	wire         *wireSubscription
	storedTold   bool // guarded by the subscription's lock
}

// Subscribe opens a subscription. It returns at once; relays that cannot be reached
// are tried again for as long as the subscription is open. The end of the context
// closes it.
func (c *Client) Subscribe(ctx context.Context, filter nostr.Filter, options SubscribeOptions) (*Subscription, error) {
	if filter.LimitZero {
		return nil, errors.New("a subscription with a limit of 0 is not sent; use since to leave out stored events")
	}
	filter, empty := prepareFilter(filter)
	relays := c.readRelays(filter.Kinds, options.Relays)
	if len(relays) == 0 {
		return nil, fault.New(fault.RelayRequired, "There is no relay to subscribe at.")
	}
	if empty {
		relays = nil
	}
	s := &Subscription{
		client: c, seen: newSeen(),
		events: make(chan *nostr.Event), storedAll: make(chan struct{}), restoredAgain: make(chan struct{}, 1),
		refusals: make(chan Refusal, maxRefusals), filled: make(chan struct{}, 1), done: make(chan struct{}),
		unstored: len(relays), complete: true,
	}
	for _, url := range relays {
		if err := s.addPart(url, filter, options.BeforeAuth); err != nil {
			return nil, err
		}
	}
	if err := s.start(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// newSeen returns an empty memory of delivered ids.
func newSeen() *lru.Cache[string, struct{}] {
	seen, err := lru.New[string, struct{}](seenEvents)
	if err != nil {
		panic(err) // Only for a size below one.
	}
	return seen
}

func (s *Subscription) addPart(url string, filter nostr.Filter, beforeAuth bool) error {
	connection, err := s.client.connection(url)
	if err != nil {
		return err
	}
	part := &subscriptionPart{subscription: s, connection: connection}
	part.wire = &wireSubscription{
		filter: filter, receiver: part, live: true, beforeAuth: beforeAuth, number: s.client.lastID.Add(1),
	}
	part.wire.sequence = newSequence(s.client.verifier, part.deliver)
	s.parts = append(s.parts, part)
	return nil
}

// start opens the REQs before it returns: what the caller sends next reaches a
// connected relay after them.
func (s *Subscription) start(ctx context.Context) error {
	ctx, s.cancel = context.WithCancel(ctx)
	for _, part := range s.parts {
		part.connection.register(part.wire)
	}
	s.client.mu.Lock()
	defer s.client.mu.Unlock()
	if s.client.closed {
		s.cancel()
		s.unregister()
		return ErrClosed
	}
	s.client.tasks.Go(func() { s.run(ctx) })
	return nil
}

// Events delivers verified events that match the filter, each once: per relay in
// the order of its frames. The channel is closed when the subscription ends.
func (s *Subscription) Events() <-chan *nostr.Event { return s.events }

// Stored is closed when every relay has sent EOSE, or has refused for good, and
// the consumer has taken from Events what came before: read Events while you wait.
// It stays open while a relay cannot be reached, so wait with a deadline; the end
// of the subscription closes it too.
func (s *Subscription) Stored() <-chan struct{} { return s.storedAll }

// Complete reports, once Stored is closed, whether every relay sent EOSE.
func (s *Subscription) Complete() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.complete && s.unstored == 0
}

// Standing reports whether every relay has sent EOSE to the REQ that is open there now.
// It is false again after a lost connection, a CLOSED or a pause, until the repeated REQ
// has its EOSE: what happened meanwhile is not known.
func (s *Subscription) Standing() bool {
	return !slices.ContainsFunc(s.parts, func(part *subscriptionPart) bool { return !part.connection.isStanding(part.wire) })
}

// Restored gets a signal whenever a REQ stands again after a lost connection or a
// pause: requests whose answers may have been missed can be repeated now. Signals
// that are not read are one.
func (s *Subscription) Restored() <-chan struct{} { return s.restoredAgain }

// Refusals tells which relays do not serve the subscription and why.
func (s *Subscription) Refusals() <-chan Refusal { return s.refusals }

// Close ends the subscription at the relays and waits for its goroutine.
func (s *Subscription) Close() {
	s.cancel()
	<-s.done
}

// run feeds the consumer until the subscription ends.
func (s *Subscription) run(ctx context.Context) {
	defer s.end()
	if len(s.parts) == 0 {
		s.storedOnce.Do(func() { close(s.storedAll) })
	}
	for {
		select {
		case <-s.filled:
		case <-ctx.Done():
			return
		case <-s.client.ctx.Done():
			return
		}
		for _, queued := range s.takeQueue() {
			if !s.hand(ctx, queued) {
				return
			}
		}
		s.resumeIfDrained()
	}
}

func (s *Subscription) end() {
	s.cancel()
	s.unregister()
	s.storedOnce.Do(func() { close(s.storedAll) })
	close(s.events)
	close(s.done)
}

func (s *Subscription) unregister() {
	for _, part := range s.parts {
		part.connection.unregister(part.wire)
	}
}

func (s *Subscription) takeQueue() []queuedEvent {
	s.mu.Lock()
	defer s.mu.Unlock()
	queue := s.queue
	s.queue = nil
	return queue
}

// hand waits for the consumer; false when the subscription ends first.
func (s *Subscription) hand(ctx context.Context, queued queuedEvent) bool {
	if queued.event == nil {
		s.storedOnce.Do(func() { close(s.storedAll) })
		return true
	}
	select {
	case s.events <- queued.event:
		s.mu.Lock()
		s.release(queued.size)
		s.mu.Unlock()
		return true
	case <-ctx.Done():
		return false
	case <-s.client.ctx.Done():
		return false
	}
}

func (s *Subscription) resumeIfDrained() {
	s.mu.Lock()
	resume := s.paused && s.held == 0
	s.paused = s.paused && !resume
	s.mu.Unlock()
	if resume {
		for _, part := range s.parts {
			part.connection.resume(part.wire)
		}
	}
}

func (s *Subscription) refuse(refusal Refusal) {
	select {
	case s.refusals <- refusal:
	default:
	}
}

// release gives back the room of an event. The lock is held.
func (s *Subscription) release(size int) {
	s.held--
	s.heldBytes -= size
	if s.paused && s.held == 0 {
		s.signal()
	}
}

func (s *Subscription) signal() {
	select {
	case s.filled <- struct{}{}:
	default:
	}
}

// admit drops an event that was delivered before; only verified events count.
func (p *subscriptionPart) admit(event *nostr.Event, size int) bool {
	s := p.subscription
	s.mu.Lock()
	had := s.seen.Contains(event.ID)
	fits := s.held == 0 || s.held < s.client.heldEvents && s.heldBytes+size <= s.client.heldBytes
	if !had && fits {
		s.held++
		s.heldBytes += size
	}
	s.mu.Unlock()
	if !had && !fits {
		p.pause()
	}
	return !had && fits
}

func (p *subscriptionPart) pause() {
	p.connection.pause(p.wire)
	s := p.subscription
	s.mu.Lock()
	defer s.mu.Unlock()
	s.paused = true
	s.signal() // The consumer may have caught up meanwhile.
}

func (p *subscriptionPart) deliver(event *nostr.Event, size int, genuine bool) {
	s := p.subscription
	s.mu.Lock()
	defer s.mu.Unlock()
	if !genuine || s.seen.Contains(event.ID) {
		s.release(size)
		return
	}
	s.seen.Add(event.ID, struct{}{})
	s.queue = append(s.queue, queuedEvent{event, size})
	s.signal()
}

func (p *subscriptionPart) stored() { p.finishStored(true) }

func (p *subscriptionPart) ended(_ End, reason string) {
	p.connection.log.Warn().Str("reason", reason).Msg("the relay refused a subscription")
	p.subscription.refuse(Refusal{RelayURL: p.connection.url, Reason: reason, Final: true})
	p.finishStored(false)
}

func (p *subscriptionPart) refused(reason string) {
	p.connection.log.Warn().Str("reason", reason).Msg("the relay wants an AUTH for a subscription that failed")
	p.subscription.refuse(Refusal{RelayURL: p.connection.url, Reason: reason})
}

func (p *subscriptionPart) restored() {
	select {
	case p.subscription.restoredAgain <- struct{}{}:
	default:
	}
}

// finishStored puts the mark of Stored behind the events that came before it.
func (p *subscriptionPart) finishStored(complete bool) {
	s := p.subscription
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.storedTold {
		return
	}
	p.storedTold = true
	s.complete = s.complete && complete
	if s.unstored--; s.unstored == 0 {
		s.queue = append(s.queue, queuedEvent{})
		s.signal()
	}
}
