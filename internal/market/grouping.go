package market

import (
	"cmp"
	"slices"
)

// GroupOrders sorts orders into groups by the participants that each one names
// (spec 50 §12), in order of first arrival. A stranger cannot get into the group
// of others, since the own pubkey makes it another one. Orders that can stand in
// no group are left out.
func GroupOrders(orders []Order) []OrderGroup {
	return groupByRawID(slices.DeleteFunc(slices.Clone(orders), func(order Order) bool {
		return order.checkGroupable() != nil
	}))
}

// groupByRawID also takes orders that can stand in no group; of such groups only
// stage and dates may be asked.
func groupByRawID(orders []Order) []OrderGroup {
	places := map[string]int{}
	var groups []OrderGroup
	for _, order := range orders {
		id := order.RawGroupID()
		place, known := places[id]
		if !known {
			place = len(groups)
			places[id] = place
			groups = append(groups, OrderGroup{})
		}
		groups[place].put(order)
	}
	return groups
}

// RawGroupID returns the id of the group that the order stands in by what it says
// itself: its author, its p values, and its trade id or, without one, its own id.
func (o Order) RawGroupID() string {
	tradeID := o.TradeID
	if tradeID == "" {
		tradeID = o.Event.ID
	}
	return ThreadAnchor(o.participantPubkeys(), tradeID)
}

// OrdersOfTrade chooses among the public orders that name one trade id: those in
// groups with an order by a trusted author, if there are such groups, and of each
// author the newest. Sorted by created_at, oldest first (spec 50 §17.2).
func OrdersOfTrade(orders []Order, trusted []string) []Order {
	groups := GroupOrders(orders)
	if ours := slices.DeleteFunc(slices.Clone(groups), func(group OrderGroup) bool {
		return !group.hasAuthor(trusted)
	}); len(ours) > 0 {
		groups = ours
	}
	var newest OrderGroup // by author, across the groups
	for _, group := range groups {
		for _, order := range group.orders {
			newest.put(order)
		}
	}
	slices.SortStableFunc(newest.orders, func(a, b Order) int {
		return cmp.Or(cmp.Compare(a.Event.CreatedAt, b.Event.CreatedAt), cmp.Compare(a.Event.ID, b.Event.ID))
	})
	return newest.orders
}

// VerifiedGroup is a group with the outcome of its verification.
type VerifiedGroup struct {
	Group        OrderGroup
	Verification GroupVerification
}

// ChooseGroup returns the group that stands for a trade when there are several:
// one with an order by a trusted author, then a valid one, then the one with more
// orders (spec 50 §17.1). Among equals the one with the newest order, so that the
// order of arrival does not matter. False when there is no group.
func ChooseGroup(groups []VerifiedGroup, trusted []string) (VerifiedGroup, bool) {
	if len(groups) == 0 {
		return VerifiedGroup{}, false
	}
	return slices.MaxFunc(groups, func(a, b VerifiedGroup) int {
		return cmp.Or(
			compareBool(a.Group.hasAuthor(trusted), b.Group.hasAuthor(trusted)),
			compareBool(a.Verification.Valid, b.Verification.Valid),
			cmp.Compare(len(a.Group.orders), len(b.Group.orders)),
			cmp.Compare(a.Group.newestCreatedAt(), b.Group.newestCreatedAt()),
			cmp.Compare(b.Group.ID(), a.Group.ID()),
		)
	}), true
}

// ListsTrip reports whether a trade may be listed as a trip: we have sent an order of
// it, or our trade key takes part, or we have signed one of its orders; and one of the
// orders is by somebody who takes part for certain.
//
// Spec 50 §17.1 also has our identity do as a participant. But anybody can commit to
// a listing of his own, name us as its guest and write to us about it, so that only
// does for an escrow, whom others have to name. Nor do orders of strangers alone make
// a trip of a negotiation, cancelled ones above all.
func (g OrderGroup) ListsTrip(facts TradeFacts) bool {
	if facts.IsEscrow {
		return facts.Sent || g.names(facts.Controlled)
	}
	tradeKeys := slices.DeleteFunc(slices.Clone(facts.Controlled), func(pubkey string) bool { return pubkey == facts.Ours })
	return g.hasAuthor(facts.TrustedAuthors()) && (facts.Sent || g.names(tradeKeys) || g.hasAuthor([]string{facts.Ours}))
}

func (g OrderGroup) names(pubkeys []string) bool {
	return slices.ContainsFunc(g.ParticipantPubkeys(), func(pubkey string) bool { return slices.Contains(pubkeys, pubkey) })
}

func (g OrderGroup) hasAuthor(pubkeys []string) bool {
	return slices.ContainsFunc(g.orders, func(order Order) bool { return slices.Contains(pubkeys, order.Event.PubKey) })
}

func (g OrderGroup) newestCreatedAt() (newest int64) {
	for _, order := range g.orders {
		newest = max(newest, int64(order.Event.CreatedAt))
	}
	return newest
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}
