package market

import (
	"slices"
	"strings"
)

// GroupVerification is the outcome of verifying a group (spec 50 §13).
type GroupVerification struct {
	// Valid groups may be shown; cancelled ones are valid too.
	Valid bool
	// ConfirmedCommitted tells that the seller, the escrow or the chain confirms
	// the booking. Only Verify sets it.
	ConfirmedCommitted bool
	// Reason says why the group is invalid, for people.
	Reason string
	// Transient tells that the chain could not be asked, so that the outcome must
	// not be kept.
	Transient bool
	// Fields are the checks of the buyer's order, if they decided.
	Fields []FieldCheck
}

// ChainVerdict is what the chain says about the payment of an order (spec 70
// §10.1).
type ChainVerdict struct {
	Valid bool
	// Reason says why it is not valid, for people.
	Reason string
	// Transient tells that a failure is one of asking.
	Transient bool
}

// ChainVerifier looks at the payment of an order on the chain. It gets orders with
// an EVM payment and an escrow context.
type ChainVerifier func(Order) ChainVerdict

// Verify checks a group (spec 50 §13.2). The listing is today's version, nil when
// it is not known; force wants the buyer's payment checked whatever the seller or
// the escrow says; chain is nil where there is none to ask.
//
// An escrow's word counts only under a configuration that the seller has signed,
// and orders for another listing than the group's do not count at all: otherwise
// a buyer could confirm a booking to himself.
func (g OrderGroup) Verify(listing *Listing, force bool, chain ChainVerifier) GroupVerification {
	parties := g.partiesThatCount()
	verification := g.verifyWithoutChain(parties, listing, force)
	if !verification.Valid {
		return verification
	}
	verification.ConfirmedCommitted = parties.commitConfirmed()
	buyer := parties.buyer
	if buyer == nil || verification.ConfirmedCommitted && !force || chain == nil || !buyer.Proof.hasEscrowPayment() {
		return verification
	}
	verdict := chain(*buyer)
	if verdict.Valid {
		verification.ConfirmedCommitted = true
		return verification
	}
	verification.Transient = verdict.Transient
	if force || parties.seller == nil {
		verification.Valid, verification.ConfirmedCommitted = false, false
		verification.Reason = verdict.Reason
	}
	return verification
}

// VerifyWithoutChain checks only what the events themselves show (spec 50 §13.1).
func (g OrderGroup) VerifyWithoutChain(listing *Listing, force bool) GroupVerification {
	return g.verifyWithoutChain(g.partiesThatCount(), listing, force)
}

func (g OrderGroup) verifyWithoutChain(parties groupParties, listing *Listing, force bool) GroupVerification {
	confirmed := parties.seller != nil || atCommit(parties.escrow)
	switch {
	case g.Cancelled(), confirmed && !force, parties.buyer == nil && parties.seller != nil:
		return GroupVerification{Valid: true}
	case parties.buyer == nil:
		return GroupVerification{Reason: "there is no order by a guest or host"}
	case parties.seller == nil && listing != nil && !listing.AutoAccept:
		return GroupVerification{Reason: "the host does not accept bookings automatically and has not answered"}
	}
	order := VerifyOrder(*parties.buyer)
	return GroupVerification{Valid: order.Valid(), Reason: order.Reason(), Fields: order.Fields}
}

// groupParties are the orders of a group that verification counts.
type groupParties struct {
	seller, escrow, buyer *Order
}

func (p groupParties) commitConfirmed() bool { return atCommit(p.seller) || atCommit(p.escrow) }

func (g OrderGroup) partiesThatCount() groupParties {
	group := g.ordersForItsListing()
	parties := groupParties{seller: group.SellerOrder(), buyer: group.BuyerOrder()}
	if escrow := group.EscrowOrder(); escrow != nil && group.sellerAppointed(escrow.Event.PubKey) {
		parties.escrow = escrow
	}
	return parties
}

// ordersForItsListing leaves out orders for another listing, whose owner could be
// the buyer himself.
func (g OrderGroup) ordersForItsListing() OrderGroup {
	return OrderGroup{orders: slices.DeleteFunc(slices.Clone(g.orders), func(order Order) bool {
		listing, usable := order.Listing()
		return !usable || listing != g.Listing()
	})}
}

// sellerAppointed reports whether an order by a buyer shows that the seller
// trusts this escrow.
func (g OrderGroup) sellerAppointed(escrow string) bool {
	seller := g.SellerPubkey()
	return slices.ContainsFunc(g.orders, func(order Order) bool {
		author := order.Event.PubKey
		return author != seller && author != escrow && order.Proof.appoints(escrow, seller)
	})
}

func (p *OrderProof) appoints(escrow, seller string) bool {
	if p == nil || p.Escrow == nil {
		return false
	}
	method, methodErr := p.Escrow.SellerMethodEvent()
	service, serviceErr := p.Escrow.ServiceEvent()
	return methodErr == nil && serviceErr == nil &&
		method.PubKey == seller && method.Tags.ContainsAny("p", []string{escrow}) &&
		service.PubKey == escrow &&
		IsSigned(method) && IsSigned(service)
}

func (p *OrderProof) hasEscrowPayment() bool {
	return p != nil && p.Escrow != nil && p.Payment.isEVM()
}

func (p *PaymentProof) isEVM() bool { return p != nil && p.Method == PaymentEVM && p.TxHash != "" }

// FieldCheck is one check of an order. Its names are part of audits.
type FieldCheck struct {
	Name string
	OK   bool
	// Message says what is wrong, for people; empty when OK.
	Message string
}

// OrderVerification is the outcome of the checks of one order.
type OrderVerification struct {
	// Fields are the checks made, in order.
	Fields []FieldCheck
}

// Valid reports whether every check passed.
func (v OrderVerification) Valid() bool {
	return !slices.ContainsFunc(v.Fields, func(field FieldCheck) bool { return !field.OK })
}

// Reason joins the messages of the checks that failed.
func (v OrderVerification) Reason() string {
	var messages []string
	for _, field := range v.Fields {
		if !field.OK {
			messages = append(messages, field.Message)
		}
	}
	return strings.Join(messages, "; ")
}

func (v *OrderVerification) check(name string, ok bool, message string) {
	field := FieldCheck{Name: name, OK: ok}
	if !ok {
		field.Message = message
	}
	v.Fields = append(v.Fields, field)
}

// VerifyOrder checks one order by what it carries (spec 50 §13.3). An order by the
// owner of its listing needs no proof. What the chain says is not asked.
func VerifyOrder(order Order) OrderVerification {
	var verification OrderVerification
	if anchor, usable := order.Listing(); usable && anchor.PubKey == order.Event.PubKey {
		verification.check("publisher", true, "")
		return verification
	}
	if order.Proof == nil {
		verification.check("proof", false, "the order has no proof")
		return verification
	}
	listing, genuine := order.embeddedListing()
	verification.check("proof", genuine, "the listing in the proof is not the one that the host has signed")
	payment := order.Proof.Payment
	switch {
	case payment.isEVM():
		verification.check("paymentProof", true, "")
		verification.check("escrow", order.Proof.Escrow != nil, "the payment names no escrow")
	case payment != nil && payment.Method == PaymentZap:
		verification.check("paymentProof", true, "")
		verification.checkZap(order, listing)
	default:
		verification.check("paymentProof", false, "the proof has no payment")
	}
	return verification
}

// embeddedListing returns the listing inside the proof and whether it is the one
// that the order is for, as its owner signed it: price, deposit and dispute period
// are read from it.
func (o Order) embeddedListing() (Listing, bool) {
	listing, err := DecodeListing(o.Proof.Listing)
	if err != nil {
		return Listing{}, false
	}
	anchor, usable := o.Listing()
	genuine := usable && listing.DTag != nil && *listing.DTag == anchor.Identifier &&
		listing.Event.PubKey == anchor.PubKey && IsSigned(listing.Event)
	return listing, genuine
}
