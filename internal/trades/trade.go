package trades

import (
	"slices"

	"hostr-daemon/internal/market"
)

const (
	// maxGroups bounds the groups that are kept of one trade: two or three are honest.
	maxGroups = 64
	// maxChildren bounds the private orders that are remembered of one trade.
	maxChildren = 256
	// maxTransitions bounds the transitions that are kept of one trade.
	maxTransitions = 512
)

// trade is what is known of one trade id.
type trade struct {
	id string
	// seller is the owner of the listing by the private orders, "" when there are none;
	// sellerIsOurs is true when we have sent one that says so.
	seller       string
	sellerIsOurs bool
	// sent is true when we have sent an order of the trade, authors are who signed those
	// that we sent as guest: a trade key of ours, also while the seed is not known.
	sent    bool
	authors []string
	// place is the trade's in the feed, gone is true once it is not followed any more.
	place int
	gone  bool
	// children are the private orders of our two-party threads.
	children []market.OrderChild
	// groups are the public orders, in order of arrival.
	groups      []*tradeGroup
	transitions []market.OrderTransition
}

// tradeGroup is one group of public orders.
type tradeGroup struct {
	rawID string
	group market.OrderGroup
	// verified is nil before the first verification, and lags behind the group while it
	// is queued.
	verified *verifiedGroup
	queued   bool
	// awaited is true while lists wait for the verification that it is queued for.
	awaited bool
	// unsure is true when something outside could not be asked, unopened when the signer
	// did not open a proof, needsKeys when the seed could tell more.
	unsure, unopened, needsKeys bool
	// signerFailed is true once the signer did not open a proof: nobody waits for it then.
	signerFailed bool
	// unasked are proofs that only the remote signer can open.
	unasked []proofJob
}

// verifiedGroup is a group as it was verified. It never changes.
type verifiedGroup struct {
	group        market.OrderGroup
	verification market.GroupVerification
	participants market.GroupParticipants
}

// orders returns all public orders of the trade.
func (t *trade) orders() []market.Order {
	var orders []market.Order
	for _, group := range t.groups {
		orders = append(orders, group.group.Orders()...)
	}
	return orders
}

// put adds an order to its group; false when it changes nothing.
func (t *trade) put(order market.Order) (*tradeGroup, bool) {
	rawID := order.RawGroupID()
	at := slices.IndexFunc(t.groups, func(group *tradeGroup) bool { return group.rawID == rawID })
	if at < 0 {
		group, ok := market.NewOrderGroup([]market.Order{order})
		if !ok {
			return nil, false
		}
		added := &tradeGroup{rawID: rawID, group: group}
		t.groups = append(t.groups, added)
		return added, true
	}
	group := t.groups[at]
	isThere := func(other market.Order) bool { return other.Event.ID == order.Event.ID }
	if slices.ContainsFunc(group.group.Orders(), isThere) {
		return nil, false
	}
	with, err := group.group.With(order)
	if err != nil || !slices.ContainsFunc(with.Orders(), isThere) {
		return nil, false // It is older than what is there.
	}
	group.group = with
	return group, true
}

// facts returns what makes orders of the trade trusted (spec 50 §17), the public ones
// given. Whose listing it is we say ourselves first, then those who wrote to us.
func (s *Service) facts(t *trade, orders []market.Order) market.TradeFacts {
	facts := market.TradeFacts{
		Ours: s.me, IsEscrow: s.isEscrow, Controlled: append([]string{s.me}, t.authors...), Sent: t.sent,
		Children: t.children, ListingOwner: t.seller,
	}
	if key, ok := s.ring.tradeKey(t.id); ok {
		facts.Controlled = append(facts.Controlled, key)
	}
	if t.sellerIsOurs {
		return facts
	}
	for _, order := range orders {
		if slices.Contains(facts.Controlled, order.Event.PubKey) {
			facts.ListingOwner = ownerOf(order)
			return facts
		}
	}
	sellsHere := func(order market.Order) bool { return ownerOf(order) == s.me }
	if slices.ContainsFunc(t.children, func(child market.OrderChild) bool { return sellsHere(child.Order) }) ||
		t.seller == "" && slices.ContainsFunc(orders, sellsHere) {
		facts.ListingOwner = s.me
	}
	return facts
}

// ownerOf returns the owner of the order's listing, "" when it names none.
func ownerOf(order market.Order) string {
	listing, _ := order.Listing()
	return listing.PubKey
}

// trusted returns whose public orders belong to a trade.
func (s *Service) trusted(t *trade, orders []market.Order) []string {
	return s.facts(t, orders).TrustedAuthors()
}

// TrustedAuthors returns whose public orders belong to a trade (spec 50 §17), by the
// messages and public orders known so far.
func (s *Service) TrustedAuthors(tradeID string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.known(tradeID)
	return s.trusted(t, t.orders())
}

// known returns what is known of a trade, which may be nothing. The lock is held.
func (s *Service) known(tradeID string) *trade {
	if t, ok := s.trades[tradeID]; ok {
		return t
	}
	return &trade{id: tradeID}
}

// ordersOf returns the public orders of a trade, those that this process has published
// included. The lock is held.
func (s *Service) ordersOf(t *trade) []market.Order {
	orders := t.orders()
	for _, event := range s.own[t.id].events() {
		if order, err := market.DecodeOrder(event); err == nil {
			orders = append(orders, order)
		}
	}
	return oncePerID(orders)
}

// Transitions returns the public transitions of a known trade in order of arrival, by
// anybody.
func (s *Service) Transitions(tradeID string) []market.OrderTransition {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t, ok := s.trades[tradeID]; ok {
		return slices.Clone(t.transitions)
	}
	return nil
}

// choose returns the group that stands for a trade, nil before one is verified. The
// lock is held.
func (s *Service) choose(t *trade) *tradeGroup {
	var candidates []*tradeGroup
	for _, group := range t.groups {
		if group.verified != nil {
			candidates = append(candidates, group)
		}
	}
	if len(candidates) < 2 {
		if len(candidates) == 1 {
			return candidates[0]
		}
		return nil
	}
	var groups []market.VerifiedGroup
	for _, candidate := range candidates {
		groups = append(groups, market.VerifiedGroup{Group: candidate.verified.group, Verification: candidate.verified.verification})
	}
	chosen, _ := market.ChooseGroup(groups, s.trusted(t, t.orders()))
	at := slices.IndexFunc(groups, func(group market.VerifiedGroup) bool { return group.Group.ID() == chosen.Group.ID() })
	return candidates[max(at, 0)]
}

// bound drops a group that nobody we trust has an order in when there are too many.
// The lock is held.
func (s *Service) bound(t *trade) {
	if len(t.groups) <= maxGroups {
		return
	}
	trusted := s.trusted(t, t.orders())
	at := slices.IndexFunc(t.groups, func(group *tradeGroup) bool {
		return !slices.ContainsFunc(group.group.Orders(), func(order market.Order) bool {
			return slices.Contains(trusted, order.Event.PubKey)
		})
	})
	if at >= 0 {
		s.forget(t.groups[at])
		t.groups = slices.Delete(t.groups, at, at+1)
	}
}
