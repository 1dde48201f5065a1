package market

import (
	"math/big"
	"slices"

	"hostr-daemon/internal/money"
)

// NegotiationAction is what one may do in a negotiation.
type NegotiationAction string

// The actions of a negotiation, in the order of lists. Results of actions call a
// counter offer "offer".
const (
	NegotiationCancel  NegotiationAction = "cancel"
	NegotiationAccept  NegotiationAction = "accept"
	NegotiationCounter NegotiationAction = "offer"
	NegotiationPay     NegotiationAction = "pay"
)

// Negotiation is where a private negotiation stands for one side (spec 50 §15).
type Negotiation struct {
	// Actions may be empty, but not nil.
	Actions []NegotiationAction
	// OurPubkey is the key that our orders are signed with.
	OurPubkey string
	// Latest is the last offer; nil when there is none.
	Latest *Order
	// CounterMin and CounterMax bound a counter offer, where there is one and as
	// far as there are bounds.
	CounterMin, CounterMax *money.Amount
}

// May reports whether the action is possible.
func (n Negotiation) May(action NegotiationAction) bool { return slices.Contains(n.Actions, action) }

// NegotiationPolicy tells what the seller or the guest (RoleBuyer) may do. The
// orders are those of the thread in its order; identity is our own pubkey. A
// listing without prices is an error.
func NegotiationPolicy(orders []Order, listing Listing, role Role, identity string) (Negotiation, error) {
	seller := listing.Event.PubKey
	negotiation := Negotiation{Actions: []NegotiationAction{}, OurPubkey: ourPubkey(orders, seller, role, identity)}
	if len(orders) == 0 {
		return negotiation, nil
	}
	latest := orders[len(orders)-1]
	negotiation.Latest = &latest
	if latest.Stage == StageCancel {
		return negotiation, nil
	}
	price, err := listing.Cost(latest.Start, latest.End, latest.Quantity)
	if err != nil {
		return Negotiation{}, err
	}
	offers := negotiationOffers{latest: latest.Amount, price: price, role: role, theirs: latest.Event.PubKey != negotiation.OurPubkey}
	for _, order := range orders {
		if order.Event.PubKey == negotiation.OurPubkey {
			offers.own = order.Amount
		}
	}
	negotiation.Actions = append(negotiation.Actions, NegotiationCancel)
	if offers.mayAccept() {
		negotiation.Actions = append(negotiation.Actions, NegotiationAccept)
	}
	if least, most, possible := offers.counter(); possible && listing.Negotiable {
		negotiation.Actions = append(negotiation.Actions, NegotiationCounter)
		negotiation.CounterMin, negotiation.CounterMax = least, most
	}
	if offers.mayPay() {
		negotiation.Actions = append(negotiation.Actions, NegotiationPay)
	}
	return negotiation, nil
}

// ourPubkey returns the key that our orders are signed with: a guest's is a trade
// key.
func ourPubkey(orders []Order, seller string, role Role, identity string) string {
	if role == RoleSeller || len(orders) == 0 {
		return identity
	}
	for _, order := range slices.Backward(orders) {
		if order.Event.PubKey != seller {
			return order.Event.PubKey
		}
	}
	if recipient := orders[len(orders)-1].Recipient; recipient != "" {
		return recipient
	}
	return identity
}

type negotiationOffers struct {
	// latest is the last offer, own our last one; nil without one or its amount.
	latest, own *money.Amount
	price       money.Amount
	role        Role
	// theirs tells that the last offer is by the other side.
	theirs bool
}

// meets reports whether the last offer is as high as the price.
func (o negotiationOffers) meets() bool {
	return o.latest != nil && compareUnits(*o.latest, o.price) >= 0
}

func (o negotiationOffers) mayAccept() bool {
	return o.role == RoleSeller && o.theirs && o.latest != nil &&
		o.latest.Denomination == o.price.Denomination && compareUnits(*o.latest, o.price) < 0
}

func (o negotiationOffers) mayPay() bool {
	return o.role == RoleBuyer && o.latest != nil && (o.theirs || o.meets())
}

// counter returns the bounds of a counter offer. There is none between offers that
// meet, so neither for a guest whose own offer the seller has come to.
func (o negotiationOffers) counter() (least, most *money.Amount, possible bool) {
	if o.latest == nil || !o.theirs || o.role == RoleBuyer && o.meets() {
		return nil, nil, false
	}
	if o.role == RoleSeller {
		least, most = oneUnitMore(o.latest), o.own
		if most == nil {
			most = &o.price
		}
	} else {
		least, most = oneUnitMore(o.own), o.latest
	}
	crossed := least != nil && least.Denomination == most.Denomination && compareUnits(*least, *most) > 0
	return least, most, !crossed
}

func oneUnitMore(amount *money.Amount) *money.Amount {
	if amount == nil {
		return nil
	}
	more, _ := amount.Add(money.Amount{Denomination: amount.Denomination, Value: big.NewInt(1), Decimals: amount.Decimals})
	return &more
}
