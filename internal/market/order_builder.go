package market

import (
	"slices"
	"strconv"
	"time"

	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/money"
)

// Every builder returns an unsigned event with its id; who signs is said by the
// table of spec 50 §10. Participants are the tags of PlanParticipants.

// FirstOffer is a guest's first offer, signed by the trade key (spec 50 §10.1).
type FirstOffer struct {
	ListingAnchor string
	TradeID       string
	// TradeKey is the pubkey of the trade key.
	TradeKey     string
	Start, End   time.Time
	Amount       money.Amount
	Participants nostr.Tags
}

// Event returns the offer.
func (f FirstOffer) Event(now nostr.Timestamp) *nostr.Event {
	content := OrderContent{
		Start: &f.Start, End: &f.End, Stage: StageNegotiate, Quantity: 1, Amount: &f.Amount, Recipient: f.TradeKey,
	}
	return draftOrder(f.TradeKey, f.ListingAnchor, f.TradeID, f.Participants, content, now)
}

// CounterOffer answers an order with another amount, or accepts it with the same
// (spec 50 §10.2).
type CounterOffer struct {
	Previous Order
	// Author is the trade key's pubkey or the listing's owner.
	Author       string
	Amount       money.Amount
	Participants nostr.Tags
	// Authorization is the seller's signature over Terms: by the seller the signed
	// DraftAuthorization, by the buyer what CarriedAuthorization finds, else nil.
	Authorization *nostr.Event
}

// Terms returns the content of the offer without authorization.
func (c CounterOffer) Terms() OrderContent {
	return OrderContent{
		Start: c.Previous.Start, End: c.Previous.End, Stage: StageNegotiate, Quantity: c.Previous.Quantity,
		Amount: &c.Amount, Recipient: c.Previous.Recipient,
	}
}

// DraftAuthorization returns the authorization that a seller signs and puts into
// the offer.
func (c CounterOffer) DraftAuthorization(now nostr.Timestamp) *nostr.Event {
	return DraftCommitAuthorization(c.Author, c.Previous.ListingAnchor, c.Previous.TradeID, c.Terms(), now)
}

// CarriedAuthorization returns the authorization of the thread's latest order
// that has one, when it holds for this offer as well, so that a buyer who accepts
// keeps the seller's word; else nil.
func (c CounterOffer) CarriedAuthorization(thread []Order) *nostr.Event {
	for _, order := range slices.Backward(thread) {
		if order.CommitAuthorization == nil {
			continue
		}
		if checkCommitAuthorization(order.CommitAuthorization, c.Previous.ListingAnchor, c.Previous.TradeID, c.Terms()) != nil {
			return nil
		}
		return order.CommitAuthorization
	}
	return nil
}

// Event returns the offer.
func (c CounterOffer) Event(now nostr.Timestamp) *nostr.Event {
	content := c.Terms()
	content.CommitAuthorization = c.Authorization
	return draftOrder(c.Author, c.Previous.ListingAnchor, c.Previous.TradeID, c.Participants, content, now)
}

// Commit is a paid order, signed by the trade key (spec 50 §10.4).
type Commit struct {
	Negotiated Order
	// TradeKey is the pubkey of the trade key.
	TradeKey     string
	Proof        OrderProof
	Participants nostr.Tags
}

// Event returns the committed order.
func (c Commit) Event(now nostr.Timestamp) *nostr.Event {
	content := c.Negotiated.OrderContent
	content.Stage, content.Proof = StageCommit, &c.Proof
	return draftOrder(c.TradeKey, c.Negotiated.ListingAnchor, c.Negotiated.TradeID, c.Participants, content, now)
}

// CancelNegotiation returns the private end of a negotiation: a copy of the
// latest order, whoever made it, by the author (spec 50 §10.3). Its proofs can
// no longer be opened when the author is another; they do no harm.
func CancelNegotiation(latest Order, author string, now nostr.Timestamp) *nostr.Event {
	return copyOrder(latest, author, StageCancel, now)
}

// CancelOwnOrder returns the public cancellation that replaces the author's own
// public order (spec 50 §10.5).
func CancelOwnOrder(own Order, now nostr.Timestamp) *nostr.Event {
	return copyOrder(own, own.Event.PubKey, StageCancel, NextCreatedAt(own.Event.CreatedAt, now))
}

// ConfirmOwnOrder returns the confirmation that replaces the author's own public
// order (spec 50 §10.6).
func ConfirmOwnOrder(own Order, now nostr.Timestamp) *nostr.Event {
	return copyOrder(own, own.Event.PubKey, StageCommit, NextCreatedAt(own.Event.CreatedAt, now))
}

// BlankOrder cancels or confirms a trade for somebody who has no public order in
// it yet (spec 50 §10.5, §10.6).
type BlankOrder struct {
	Author        string
	ListingAnchor string
	TradeID       string
	Participants  nostr.Tags
}

// Cancel returns the cancellation with the dates of the group, which may be nil.
func (b BlankOrder) Cancel(start, end *time.Time, now nostr.Timestamp) *nostr.Event {
	return b.event(OrderContent{Start: start, End: end, Stage: StageCancel, Quantity: 1}, now)
}

// Confirm returns the confirmation, which has no dates.
func (b BlankOrder) Confirm(now nostr.Timestamp) *nostr.Event {
	return b.event(OrderContent{Stage: StageCommit, Quantity: 1}, now)
}

func (b BlankOrder) event(content OrderContent, now nostr.Timestamp) *nostr.Event {
	return draftOrder(b.Author, b.ListingAnchor, b.TradeID, b.Participants, content, now)
}

// TradeParties are the pubkeys of a trade.
type TradeParties struct {
	Seller string
	// Buyer is the buyer's pubkey in the order, "" when unknown. BuyerIdentity is
	// who it is, where the order is to prove it; else "".
	Buyer         string
	BuyerIdentity string
	// Escrow is "" when there is none.
	Escrow string
}

// Participants returns the parties that are known, in the order of their tags,
// without relay hints and authorizations.
func (p TradeParties) Participants() []PlannedParticipant {
	participants := []PlannedParticipant{{Role: RoleSeller, Pubkey: p.Seller, Identity: p.Seller}}
	if p.Buyer != "" {
		identity := p.BuyerIdentity
		if identity == "" {
			identity = p.Buyer
		}
		participants = append(participants, PlannedParticipant{Role: RoleBuyer, Pubkey: p.Buyer, Identity: identity})
	}
	if p.Escrow != "" {
		participants = append(participants, PlannedParticipant{Role: RoleEscrow, Pubkey: p.Escrow, Identity: p.Escrow})
	}
	return participants
}

// BuyerPubkey returns the buyer as the order names it: the p tag, else the
// recipient, else the author (spec 50 §10.2).
func (o Order) BuyerPubkey() string {
	if marked := o.ParticipantOf(RoleBuyer); marked != "" {
		return marked
	}
	if o.Recipient != "" {
		return o.Recipient
	}
	return o.Event.PubKey
}

// draftOrder returns an order built anew, whose published_at is its own time.
func draftOrder(author, listingAnchor, tradeID string, participants nostr.Tags, content OrderContent, now nostr.Timestamp) *nostr.Event {
	tags := nostr.Tags{{"a", listingAnchor}, {"d", tradeID}}
	tags = append(tags, participants...)
	tags = append(tags, nostr.Tag{"published_at", strconv.FormatInt(int64(now), 10)})
	return draft(author, KindOrder, now, content.Encode(), tags)
}

// copyOrder returns an order with the same tags and content at another stage.
func copyOrder(order Order, author string, stage Stage, now nostr.Timestamp) *nostr.Event {
	content := order.OrderContent
	content.Stage = stage
	return draft(author, KindOrder, now, content.Encode(), slices.Clone(order.Event.Tags))
}

// draft returns an unsigned event with its id.
func draft(author string, kind int, now nostr.Timestamp, content string, tags nostr.Tags) *nostr.Event {
	event := &nostr.Event{PubKey: author, CreatedAt: now, Kind: kind, Tags: tags, Content: content}
	event.ID = event.GetID()
	return event
}
