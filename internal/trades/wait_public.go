package trades

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/market"
	"hostr-daemon/internal/relay"
)

const (
	// maxFound bounds the orders that are kept of a trade that is not followed.
	maxFound = 2000
	// momentOfEvents is for how long events are gathered before they are looked at.
	momentOfEvents = 20 * time.Millisecond
)

// PublicWait says how long to wait for the public orders of a trade.
type PublicWait struct {
	// Done ends the wait; nil means that any order does. It is called with the orders as
	// in PublicOrders, not while strangers alone may have made them, and must not call the
	// service.
	Done func(orders []market.Order) bool
	// Limit is the longest wait. With 0 only what is known counts.
	Limit time.Duration
	// UntilAnswered also ends the wait once the relay has said that there is no more and
	// the account's messages are read. The relay is then asked whatever is known.
	UntilAnswered bool
}

// PublicOrders are the public orders of one trade that belong to it as far as that can
// be told, the newest of each author, oldest first (spec 50 §17.2).
type PublicOrders struct {
	Orders []market.Order
	// Complete is true when the relay has said that it sent all it has, and our keys tell
	// which of it is ours: with UntilAnswered in this wait, not some time before. Without it, and without an order, it is not known whether there
	// is one.
	Complete bool
}

// WaitPublic waits for public orders of a trade. Running into the limit is no error.
// The orders of a trade that is not followed are asked for in this call alone, and
// count only if one of them names a key of ours.
func (s *Service) WaitPublic(ctx context.Context, tradeID string, wait PublicWait) (PublicOrders, error) {
	s.Start()
	tradeID = strings.TrimSpace(tradeID)
	if wait.Done == nil {
		wait.Done = func(orders []market.Order) bool { return len(orders) > 0 }
	}
	waiting := publicWaiting{service: s, tradeID: tradeID, until: wait}
	if wait.Limit > 0 {
		s.learnKeysSoon()
		if wait.UntilAnswered || !s.follows(tradeID) {
			if err := waiting.ask(ctx); err != nil {
				return PublicOrders{}, err
			}
			defer waiting.asked.Close()
		}
	}
	return waiting.run(ctx)
}

func (s *Service) follows(tradeID string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, followed := s.trades[tradeID]
	return followed
}

// publicWaiting is one wait.
type publicWaiting struct {
	service *Service
	tradeID string
	until   PublicWait
	// asked is the wait's own subscription, nil where the feed is enough.
	asked *relay.Subscription
	// found are the orders of that, answered is true once it has brought all there were.
	found    []market.Order
	answered bool
}

func (w *publicWaiting) ask(ctx context.Context) (err error) {
	w.asked, err = w.service.relays.Subscribe(ctx, ordersFilter(w.tradeID), relay.SubscribeOptions{})
	return err
}

func (w *publicWaiting) run(ctx context.Context) (PublicOrders, error) {
	var events <-chan *nostr.Event
	var stored <-chan struct{}
	if w.asked != nil {
		events, stored = w.asked.Events(), w.asked.Stored()
	}
	timer := time.NewTimer(w.until.Limit)
	defer timer.Stop()
	for {
		orders, seen, changed := w.look()
		if seen.all || w.until.Limit <= 0 || seen.believed && w.until.Done(orders.Orders) {
			return orders, nil
		}
		select {
		case event, open := <-events:
			if !open {
				events, stored = nil, nil
				continue
			}
			w.take(event)
			w.takeMore(events)
		case <-stored:
			stored = nil
			w.answered = w.asked.Complete()
		case <-changed:
		case <-timer.C:
			orders, _, _ := w.look()
			return orders, nil
		case <-ctx.Done():
			return PublicOrders{}, context.Cause(ctx)
		case <-w.service.ctx.Done():
			return PublicOrders{}, errClosed()
		}
	}
}

// take keeps an order of the trade.
func (w *publicWaiting) take(event *nostr.Event) {
	order, err := market.DecodeOrder(event)
	if err == nil && order.TradeID == w.tradeID && len(w.found) < maxFound {
		w.found = append(w.found, order)
	}
}

// takeMore takes what comes within a moment, so that many orders are looked at once.
func (w *publicWaiting) takeMore(events <-chan *nostr.Event) {
	moment := time.NewTimer(momentOfEvents)
	defer moment.Stop()
	for {
		select {
		case event, open := <-events:
			if !open {
				return
			}
			w.take(event)
		case <-moment.C:
			return
		}
	}
}

// sight is how far the orders of a look can be relied on.
type sight struct {
	// all is true when no more is to be expected, believed when the orders are not those of
	// strangers alone, as far as that can ever be told.
	all, believed bool
}

// look returns the orders as they stand, and what is closed when that changes.
func (w *publicWaiting) look() (found PublicOrders, seen sight, changed <-chan struct{}) {
	s := w.service
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.known(w.tradeID)
	_, followed := s.trades[w.tradeID]
	orders := oncePerID(append(s.ordersOf(t), w.found...))
	facts := s.facts(t, orders)
	trusted := facts.TrustedAuthors()
	if followed || slices.ContainsFunc(orders, s.namesUs) {
		found.Orders = market.OrdersOfTrade(orders, trusted)
	}
	sells := facts.ListingOwner == s.me
	keys := sells || s.ring.known()
	found.Complete = keys && (w.answered || !w.until.UntilAnswered && s.feed.isComplete(w.tradeID))
	seen.all = w.until.UntilAnswered && keys && w.answered && s.inboxLive && s.feed.settled()
	// In a trade that we have begun, strangers alone never count. In others they do once
	// all is there that could tell them from the parties.
	seen.believed = found.Complete && s.inboxLive && (sells || !t.sent) ||
		slices.ContainsFunc(orders, func(order market.Order) bool { return slices.Contains(trusted, order.Event.PubKey) })
	return found, seen, s.changed
}

// namesUs reports whether a key of ours is the author of an order or named in it.
func (s *Service) namesUs(order market.Order) bool {
	if s.ring.controls(order.Event.PubKey, order.TradeID) {
		return true
	}
	return slices.ContainsFunc(order.Participants, func(participant market.Participant) bool {
		return s.ring.controls(participant.Pubkey, order.TradeID)
	})
}

func oncePerID(orders []market.Order) []market.Order {
	known := map[string]bool{}
	return slices.DeleteFunc(orders, func(order market.Order) bool {
		had := known[order.Event.ID]
		known[order.Event.ID] = true
		return had
	})
}
