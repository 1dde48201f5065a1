package trades

import (
	"slices"

	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/market"
)

const (
	// maxTradeID bounds the length of a trade id, which stands in filters.
	maxTradeID = 256
	// maxAuthors bounds the keys of ours that are remembered of one trade: there is one.
	maxAuthors = 8
)

// observe learns from a message which trade it is about (spec 60 §8.3).
func (s *Service) observe(rumor market.Rumor) {
	child, ok := rumor.OrderChild()
	if !ok || child.Order.TradeID == "" || len(child.Order.TradeID) > maxTradeID {
		return
	}
	if _, usable := child.Order.Listing(); !usable || !market.OrderChildFits(rumor, s.me, s.Controls) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.follow(child.Order.TradeID, child.Sender)
	if t == nil {
		return
	}
	if len(t.children) < maxChildren && s.isOfTwo(rumor.Event, child.Order.TradeID) {
		t.children = append(t.children, child)
	}
	s.recordSeller(t, child)
	if len(t.groups) > 1 { // Another of them may stand for the trade now.
		s.askSigner(t)
	}
}

// isOfTwo reports whether a message stands in the thread of a trade between us and one
// other.
func (s *Service) isOfTwo(event *nostr.Event, tradeID string) bool {
	participants := market.ConversationParticipants(event.PubKey, event.Tags)
	return market.ConversationTag(event.Tags) == tradeID && len(participants) == 2 && slices.Contains(participants, s.me)
}

// recordSeller notes whose listing the trade is about. The first one says it, but what
// we have sent ourselves goes before what others claim.
func (s *Service) recordSeller(t *trade, child market.OrderChild) {
	seller, ours := ownerOf(child.Order), child.Sender == s.me
	if ours {
		s.recordSent(t, child.Order)
	}
	switch {
	case t.seller == "", ours && !t.sellerIsOurs:
		t.seller, t.sellerIsOurs = seller, ours
	case t.seller != seller:
		s.log.Warn().Str("event", "trades.other_seller").Str("trade", t.id).Str("sender", child.Sender).Send()
	}
}

// recordSent notes that we have sent an order of the trade, and as guest, by which key.
func (s *Service) recordSent(t *trade, order market.Order) {
	t.sent = true
	author := order.Event.PubKey
	if ownerOf(order) == s.me || ownerOf(order) == author || slices.Contains(t.authors, author) {
		return
	}
	if len(t.authors) < maxAuthors {
		t.authors = append(t.authors, author)
	}
	if _, found := s.ring.index(t.id); !found {
		signal(s.strayed)
	}
}

// follow returns a trade that is followed from now on if it was not, because of what
// the sender has sent; nil when there are too many. The lock is held.
func (s *Service) follow(tradeID, sender string) *trade {
	if t, ok := s.trades[tradeID]; ok {
		return t
	}
	t := &trade{id: tradeID}
	switch gone := s.makeRoom(sender); {
	case gone != nil:
		t.place = gone.place
		s.feed.replace(t.place, tradeID)
	case len(s.trades) >= s.limits.trades && sender != s.me:
		return nil
	default:
		t.place = s.feed.add(tradeID)
	}
	s.trades[tradeID] = t
	if sender != s.me {
		s.claims.add(t, sender)
	}
	for _, event := range s.own[tradeID].events() {
		s.apply(event)
	}
	s.notify()
	return t
}

// makeRoom gives a trade up that is known from somebody's messages alone, and returns
// it, when another one would be too many: of the sender, else of all. The lock is held.
func (s *Service) makeRoom(sender string) *trade {
	gone := s.claims.surplus(sender, s.limits.claims)
	if gone == nil {
		if len(s.trades) < s.limits.trades {
			return nil
		}
		if !s.full {
			s.full = true
			s.log.Warn().Str("event", "trades.too_many").Int("trades", len(s.trades)).Send()
		}
		if gone = s.claims.oldest(); gone == nil {
			return nil
		}
	}
	gone.gone = true
	delete(s.trades, gone.id)
	return gone
}

// Track follows a trade that this process has begun, before a message about it comes
// back. The seller is the owner of its listing.
func (s *Service) Track(tradeID, seller string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.follow(tradeID, s.me)
	t.sent = true
	if !t.sellerIsOurs {
		t.seller, t.sellerIsOurs = seller, true
	}
}

// inboxIsLive ends the discovery in the history.
func (s *Service) inboxIsLive() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inboxLive = true
	s.feed.hurry()
	signal(s.ring.higher) // Indexes that were met are stored from now on.
	s.notify()
}

// take applies an event that a relay has sent, or that this process has published.
func (s *Service) take(event *nostr.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.apply(event)
}

// apply takes an event of a trade that is followed. The lock is held.
func (s *Service) apply(event *nostr.Event) {
	switch event.Kind {
	case market.KindOrder:
		order, err := market.DecodeOrder(event)
		if err != nil {
			s.log.Debug().Str("event", "trades.order_skipped").Str("id", event.ID).Err(err).Send()
			return
		}
		if t, ok := s.trades[order.TradeID]; ok {
			s.applyOrder(t, order)
		}
	case market.KindOrderTransition:
		transition, err := market.DecodeOrderTransition(event)
		if err != nil {
			s.log.Debug().Str("event", "trades.transition_skipped").Str("id", event.ID).Err(err).Send()
			return
		}
		if t, ok := s.trades[transition.TradeID]; ok {
			s.applyTransition(t, transition)
		}
	}
}

func (s *Service) applyOrder(t *trade, order market.Order) {
	first := len(t.groups) == 0
	group, changed := t.put(order)
	if !changed {
		return
	}
	if first {
		s.listed = append(s.listed, t)
	}
	s.enqueue(group)
	s.bound(t)
	s.notify()
}

func (s *Service) applyTransition(t *trade, transition market.OrderTransition) {
	isThere := func(other market.OrderTransition) bool { return other.Event.ID == transition.Event.ID }
	if len(t.transitions) < maxTransitions && !slices.ContainsFunc(t.transitions, isThere) {
		t.transitions = append(t.transitions, transition)
		s.notify()
	}
}
