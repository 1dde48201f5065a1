package market

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// OrderGroup is the orders of one trade, at most one of each author (spec 50
// §12). "First" and "last" order mean places in its list. Groups come from
// NewOrderGroup and GroupOrders, hold at least one order and never change.
type OrderGroup struct {
	orders []Order
}

var (
	// ErrOutsideGroup refuses an order by somebody who takes no part in the group,
	// or of another trade.
	ErrOutsideGroup = errors.New("the order does not belong to the group")
	// ErrNoGroup says of an order that it has no trade id or no usable listing
	// anchor. It counts for availability only.
	ErrNoGroup = errors.New("the order can stand in no group")
)

// NewOrderGroup makes one group of orders, whoever takes part in them. Those that
// can stand in no group are left out; false when none is left.
func NewOrderGroup(orders []Order) (OrderGroup, bool) {
	var group OrderGroup
	for _, order := range orders {
		if order.checkGroupable() == nil {
			group.put(order)
		}
	}
	return group, len(group.orders) > 0
}

// With returns the group with one more order, or with a newer version of one. An
// older version changes nothing. ErrOutsideGroup and ErrNoGroup refuse the order.
func (g OrderGroup) With(order Order) (OrderGroup, error) {
	if err := order.checkGroupable(); err != nil {
		return g, err
	}
	if strings.TrimSpace(order.TradeID) != strings.TrimSpace(g.TradeID()) {
		return g, fmt.Errorf("%w: it is of trade %.64q", ErrOutsideGroup, order.TradeID)
	}
	if !slices.Contains(g.ParticipantPubkeys(), order.Event.PubKey) {
		return g, fmt.Errorf("%w: its author %.64q takes no part", ErrOutsideGroup, order.Event.PubKey)
	}
	group := OrderGroup{orders: slices.Clone(g.orders)}
	group.put(order)
	return group, nil
}

// Orders returns the orders of the group, which must not be changed.
func (g OrderGroup) Orders() []Order { return g.orders }

// ID returns the id over all participants as the orders name them.
func (g OrderGroup) ID() string { return ThreadAnchor(g.ParticipantPubkeys(), g.TradeID()) }

// ParticipantPubkeys returns the authors and p values of all orders, sorted. The
// buyer's is the one of a trade key.
func (g OrderGroup) ParticipantPubkeys() []string {
	var pubkeys []string
	for _, order := range g.orders {
		pubkeys = append(pubkeys, order.participantPubkeys()...)
	}
	return sortedUnique(pubkeys)
}

// TradeID returns the trade id of the first order.
func (g OrderGroup) TradeID() string { return g.first().TradeID }

// ListingAnchor returns the listing's address as the first order writes it.
func (g OrderGroup) ListingAnchor() string { return g.first().ListingAnchor }

// Listing returns the listing's address.
func (g OrderGroup) Listing() Anchor {
	anchor, _ := g.first().Listing()
	return anchor
}

// SellerPubkey returns the owner of the listing.
func (g OrderGroup) SellerPubkey() string { return g.Listing().PubKey }

// EscrowPubkey returns the escrow that a proof names, else a p tag; "" when there
// is none. Either is the word of whoever wrote the order.
func (g OrderGroup) EscrowPubkey() string {
	for _, order := range g.orders {
		if order.Proof != nil && order.Proof.Escrow != nil {
			if pubkey := order.Proof.Escrow.EscrowPubkey(); pubkey != "" {
				return pubkey
			}
		}
	}
	for _, order := range g.orders {
		if pubkey := order.ParticipantOf(RoleEscrow); pubkey != "" {
			return pubkey
		}
	}
	return ""
}

// BuyerPubkey returns the author of the buyer's order, as a rule a trade key; ""
// when there is none.
func (g OrderGroup) BuyerPubkey() string {
	if order := g.BuyerOrder(); order != nil {
		return order.Event.PubKey
	}
	return ""
}

// SellerOrder returns the order by the owner of the listing; nil when there is none.
func (g OrderGroup) SellerOrder() *Order {
	seller := g.SellerPubkey()
	return g.last(func(author string) bool { return author == seller })
}

// EscrowOrder returns the order by the escrow, unless the seller is his own; nil
// when there is none.
func (g OrderGroup) EscrowOrder() *Order {
	seller, escrow := g.SellerPubkey(), g.EscrowPubkey()
	return g.last(func(author string) bool { return author == escrow && author != seller })
}

// BuyerOrder returns the last order by neither seller nor escrow; nil when there
// is none.
func (g OrderGroup) BuyerOrder() *Order {
	seller, escrow := g.SellerPubkey(), g.EscrowPubkey()
	return g.last(func(author string) bool { return author != seller && author != escrow })
}

// CommittedOrder returns the first order at commit; nil when there is none.
func (g OrderGroup) CommittedOrder() *Order {
	for i := range g.orders {
		if g.orders[i].Stage == StageCommit {
			return &g.orders[i]
		}
	}
	return nil
}

// Cancelled reports whether any party has cancelled.
func (g OrderGroup) Cancelled() bool {
	return slices.ContainsFunc(g.orders, func(order Order) bool { return order.Stage == StageCancel })
}

// Stage returns cancel when any party has cancelled, else commit when any has
// committed, else negotiate.
func (g OrderGroup) Stage() Stage {
	switch {
	case g.Cancelled():
		return StageCancel
	case g.CommittedOrder() != nil:
		return StageCommit
	}
	return StageNegotiate
}

// Active reports whether somebody has committed and nobody has cancelled.
func (g OrderGroup) Active() bool { return g.Stage() == StageCommit }

// Confirmed reports whether the seller's own order is at commit.
func (g OrderGroup) Confirmed() bool { return atCommit(g.SellerOrder()) }

// CommitConfirmed reports whether the seller or the escrow has committed. The
// escrow is whoever the orders name; verification asks for more.
func (g OrderGroup) CommitConfirmed() bool { return g.Confirmed() || atCommit(g.EscrowOrder()) }

// Start returns when the stay begins, by the committed order, else by the first
// order that says it; nil when none does.
func (g OrderGroup) Start() *time.Time {
	return g.firstDate(func(order *Order) *time.Time { return order.Start })
}

// End returns when the stay ends, found like Start.
func (g OrderGroup) End() *time.Time {
	return g.firstDate(func(order *Order) *time.Time { return order.End })
}

// Completed reports whether the stay was not cancelled and is over.
func (g OrderGroup) Completed(now time.Time) bool {
	end := g.End()
	return !g.Cancelled() && end != nil && end.Before(now)
}

// EmbeddedListing returns the listing inside the last order that has a proof: the
// sender's word, unless the group is verified. False when there is none.
func (g OrderGroup) EmbeddedListing() (Listing, bool) {
	for _, order := range slices.Backward(g.orders) {
		if order.Proof != nil {
			listing, err := DecodeListing(order.Proof.Listing)
			return listing, err == nil
		}
	}
	return Listing{}, false
}

func (g OrderGroup) first() Order {
	if len(g.orders) == 0 {
		return Order{}
	}
	return g.orders[0]
}

func (g OrderGroup) last(byAuthor func(pubkey string) bool) *Order {
	for i := range slices.Backward(g.orders) {
		if byAuthor(g.orders[i].Event.PubKey) {
			return &g.orders[i]
		}
	}
	return nil
}

// firstDate skips orders without the date: an escrow confirms without dates.
func (g OrderGroup) firstDate(of func(*Order) *time.Time) *time.Time {
	if committed := g.CommittedOrder(); committed != nil && of(committed) != nil {
		return of(committed)
	}
	for i := range g.orders {
		if date := of(&g.orders[i]); date != nil {
			return date
		}
	}
	return nil
}

// put adds an order at the end, unless the group has a newer one by its author,
// which otherwise goes.
func (g *OrderGroup) put(order Order) {
	known := slices.IndexFunc(g.orders, func(other Order) bool { return other.Event.PubKey == order.Event.PubKey })
	if known >= 0 {
		if !supersedes(order.Event, g.orders[known].Event) {
			return
		}
		g.orders = slices.Delete(g.orders, known, known+1)
	}
	g.orders = append(g.orders, order)
}

func atCommit(order *Order) bool { return order != nil && order.Stage == StageCommit }

func (o Order) checkGroupable() error {
	if _, usable := o.Listing(); !usable {
		return fmt.Errorf("%w: %.120q is no listing anchor", ErrNoGroup, o.ListingAnchor)
	}
	if o.TradeID == "" {
		return fmt.Errorf("%w: it has no trade id", ErrNoGroup)
	}
	return nil
}

// participantPubkeys returns the author and the p values as written.
func (o Order) participantPubkeys() []string {
	pubkeys := []string{o.Event.PubKey}
	for _, participant := range o.Participants {
		pubkeys = append(pubkeys, participant.Pubkey)
	}
	return pubkeys
}
