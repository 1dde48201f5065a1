package trades

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/market"
	"hostr-daemon/internal/relay"
)

const (
	// smallestChunk is how many trade ids one REQ names at least, while there are as many.
	// Few, because relays cut long answers off without saying so.
	smallestChunk = 100
	// maxChunks bounds the REQs that are open at the same time (spec 82 §5).
	maxChunks = 16
)

// feed follows orders and transitions of a growing list of trades at the Hostr relay
// (spec 60 §8.2). The list is cut into chunks of one REQ each, which stays open past
// EOSE, so that there is no time between the stored and the live events. A chunk that
// grows is asked for anew as a whole.
//
// It knows trade ids and REQs. It must never know what the events say.
type feed struct {
	service *Service
	// grown and hurried get signals: there are new ids, and they need not wait.
	grown, hurried chan struct{}

	// What follows is guarded by the service's lock.

	ids []string
	// unasked is true while the chunks do not cover the ids.
	unasked bool
	chunks  []*chunk
}

// chunk is one REQ.
type chunk struct {
	ids []string
	// settled is true once the relay has sent what it has, or was given its time;
	// complete when it has said so, until the subscription ends.
	settled, complete bool
	// subscription is nil while there is none.
	subscription *relay.Subscription
	stop         context.CancelFunc
	// opened is closed when the first REQ was sent, or could not be.
	opened chan struct{}
}

func newFeed(s *Service) *feed {
	return &feed{service: s, grown: make(chan struct{}, 1), hurried: make(chan struct{}, 1)}
}

// add has a trade followed, and returns its place. The service's lock is held.
func (f *feed) add(tradeID string) (place int) {
	f.ids = append(f.ids, tradeID)
	f.unasked = true
	signal(f.grown)
	return len(f.ids) - 1
}

// replace has a trade followed in the place of another, so that only one chunk is
// asked for anew. The service's lock is held.
func (f *feed) replace(place int, tradeID string) {
	f.ids[place] = tradeID
	f.unasked = true
	signal(f.grown)
}

// hurry has new trades asked for at once.
func (f *feed) hurry() { signal(f.hurried) }

// settled reports whether all trades were asked for. The service's lock is held.
func (f *feed) settled() bool {
	return !f.unasked && !slices.ContainsFunc(f.chunks, func(c *chunk) bool { return !c.settled })
}

// isComplete reports whether the relay has said that it sent all it has of a trade, and
// still shows what comes. The service's lock is held.
func (f *feed) isComplete(tradeID string) bool {
	return slices.ContainsFunc(f.chunks, func(c *chunk) bool { return slices.Contains(c.ids, tradeID) && c.isComplete() })
}

// complete is isComplete for all trades. The service's lock is held.
func (f *feed) complete() bool {
	return !slices.ContainsFunc(f.chunks, func(c *chunk) bool { return !c.isComplete() })
}

func (c *chunk) isComplete() bool {
	return c.complete && c.subscription != nil && c.subscription.Standing()
}

// run asks for new trades, after a while in which more may come.
func (f *feed) run(ctx context.Context) {
	defer f.stopAll()
	for {
		select {
		case <-f.grown:
		case <-f.hurried:
			f.cover(ctx)
			continue
		case <-ctx.Done():
			return
		}
		if !f.gather(ctx) {
			return
		}
		f.cover(ctx)
	}
}

// gather waits until no more trades have come for a while; false when ctx ends.
func (f *feed) gather(ctx context.Context) bool {
	quiet, longest := time.NewTimer(f.service.limits.debounce), time.NewTimer(f.service.limits.debounceLongest)
	defer quiet.Stop()
	defer longest.Stop()
	for {
		select {
		case <-f.grown:
			quiet.Reset(f.service.limits.debounce)
		case <-f.hurried:
			return true
		case <-quiet.C:
			return true
		case <-longest.C:
			return true
		case <-ctx.Done():
			return false
		}
	}
}

// cover opens REQs for the ids that have none. The REQ of a chunk that was smaller ends
// when the one in its place is open.
func (f *feed) cover(ctx context.Context) {
	s := f.service
	s.mu.Lock()
	wanted := slices.Collect(slices.Chunk(slices.Clone(f.ids), chunkSize(len(f.ids))))
	before := f.chunks
	var chunks, fresh, stale []*chunk
	for i, ids := range wanted {
		if i < len(before) && slices.Equal(before[i].ids, ids) {
			chunks = append(chunks, before[i])
			continue
		}
		opened := &chunk{ids: ids, opened: make(chan struct{})}
		chunks, fresh = append(chunks, opened), append(fresh, opened)
		if i < len(before) {
			stale = append(stale, before[i])
		}
	}
	if len(before) > len(wanted) {
		stale = append(stale, before[len(wanted):]...)
	}
	f.chunks, f.unasked = chunks, false
	s.mu.Unlock()
	for _, c := range fresh {
		var listening context.Context
		listening, c.stop = context.WithCancel(ctx)
		if !s.background("following trades", func(context.Context) { f.follow(listening, c) }) {
			close(c.opened)
		}
	}
	for _, c := range fresh {
		select {
		case <-c.opened:
		case <-ctx.Done():
		}
	}
	for _, c := range stale {
		c.stop()
	}
}

func (f *feed) stopAll() {
	f.service.mu.Lock()
	defer f.service.mu.Unlock()
	for _, c := range f.chunks {
		c.stop()
	}
}

// chunkSize returns how many ids stand in one REQ.
func chunkSize(ids int) int {
	size := smallestChunk
	for size*maxChunks < ids {
		size *= 2
	}
	return size
}

// follow keeps a REQ open until it is stopped.
func (f *feed) follow(ctx context.Context, c *chunk) {
	s := f.service
	filter := nostr.Filter{Kinds: []int{market.KindOrder, market.KindOrderTransition}, Tags: nostr.TagMap{"d": c.ids}}
	for wait := s.limits.retryFirst; ctx.Err() == nil; wait = min(2*wait, s.limits.retryLongest) {
		err := errors.New("something went wrong inside hostr-daemon")
		s.contain("following trades", func() { err = f.listen(ctx, c, filter) })
		c.open()
		if ctx.Err() != nil {
			return
		}
		f.interrupt(c)
		s.log.Info().Str("event", "trades.interrupted").Err(err).Send()
		pause(ctx, wait)
	}
}

// listen serves one subscription until it ends.
func (f *feed) listen(ctx context.Context, c *chunk, filter nostr.Filter) error {
	subscription, err := f.service.relays.Subscribe(ctx, filter, relay.SubscribeOptions{})
	c.open()
	if err != nil {
		return err
	}
	defer subscription.Close()
	f.service.mu.Lock()
	c.subscription = subscription
	f.service.mu.Unlock()
	boundary := time.NewTimer(f.service.limits.stored)
	defer boundary.Stop()
	stored := subscription.Stored()
	for {
		select {
		case event, open := <-subscription.Events():
			if !open {
				return errors.New("the subscription has ended")
			}
			f.service.take(event)
		case <-stored:
			stored = nil
			f.settle(c, subscription.Complete())
		case <-boundary.C:
			f.settle(c, false)
		case refusal := <-subscription.Refusals():
			if refusal.Final {
				return errors.New(refusal.RelayURL + " does not serve orders: " + refusal.Reason)
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (c *chunk) open() {
	select {
	case <-c.opened:
	default:
		close(c.opened)
	}
}

// settle notes that the relay has answered, or had its time.
func (f *feed) settle(c *chunk, complete bool) {
	f.service.mu.Lock()
	defer f.service.mu.Unlock()
	if c.settled && (c.complete || !complete) {
		return
	}
	c.settled, c.complete = true, c.complete || complete
	f.service.notify()
}

// interrupt notes that nothing comes of a chunk for now: what the relay said before
// tells nothing of what happens meanwhile.
func (f *feed) interrupt(c *chunk) {
	f.service.mu.Lock()
	defer f.service.mu.Unlock()
	c.settled, c.complete, c.subscription = true, false, nil
	f.service.notify()
}
