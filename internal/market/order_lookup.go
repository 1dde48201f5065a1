package market

import (
	"cmp"
	"slices"
)

// OrderLookup is what is public of one trade as results of actions show it (spec 51
// §2.7). Nothing of it is verified.
type OrderLookup struct {
	// TradeID is as it was given.
	TradeID string `json:"tradeId"`
	// Found tells that there is a public order, Committed that one is at commit.
	Found     bool `json:"found"`
	Committed bool `json:"committed"`
	// Count is how many orders there are, one of each author.
	Count int               `json:"count"`
	Group *OrderGroupResult `json:"group,omitempty"`
	// Listing is today's version.
	Listing *ListingSummary `json:"listing,omitempty"`
	// CommittedOrder is the newest one at commit.
	CommittedOrder *EventJSON `json:"committedOrder,omitempty"`
	// Orders are oldest first.
	Orders []EventJSON `json:"orders"`
}

// NewOrderLookup returns the form of the public orders of a trade; those that can
// stand in no group are left out. listing is nil when it is not known.
func NewOrderLookup(tradeID string, orders []Order, listing *Listing) OrderLookup {
	orders = slices.DeleteFunc(slices.Clone(orders), func(order Order) bool { return order.checkGroupable() != nil })
	slices.SortStableFunc(orders, func(a, b Order) int { return cmp.Compare(a.Event.CreatedAt, b.Event.CreatedAt) })
	lookup := OrderLookup{TradeID: tradeID, Orders: EventsOfOrders(orders), Count: len(orders)}
	for i, order := range orders {
		if order.Stage == StageCommit {
			lookup.Committed, lookup.CommittedOrder = true, &lookup.Orders[i]
		}
	}
	group, ok := NewOrderGroup(orders)
	if !ok {
		return lookup
	}
	result := group.Result()
	lookup.Found, lookup.Group = true, &result
	if listing != nil {
		summary := listing.Summary()
		lookup.Listing = &summary
	}
	return lookup
}

// EventsOfOrders returns the events of the orders as results show them; not nil.
func EventsOfOrders(orders []Order) []EventJSON {
	events := make([]EventJSON, 0, len(orders))
	for _, order := range orders {
		events = append(events, NewEventJSON(order.Event))
	}
	return events
}
