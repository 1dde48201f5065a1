package market

import "slices"

// ReviewVerification is the outcome of verifying a review (spec 50 §8.2).
type ReviewVerification struct {
	Valid bool
	// Reason says why it is not valid, for people.
	Reason string
	// Transient tells that the chain could not be asked.
	Transient bool
}

// VerifyGroup is OrderGroup.Verify with what the caller knows of the listing and
// the chain, not forced.
type VerifyGroup func(OrderGroup) GroupVerification

// Verify checks that the reviewer took part in a trade that was confirmed. The
// orders are all that name the listing; listing is nil when there is none.
//
// A group here is an order that shows the reviewer's part, with the orders of the
// trade whose authors it names and which name its author: a seller's answer need
// not name the escrow, but a stranger's order must neither spoil a trade nor
// borrow its confirmation.
func (r Review) Verify(orders []Order, listing *Listing, verify VerifyGroup) ReviewVerification {
	candidates := r.candidates(orders)
	if len(candidates) == 0 {
		return ReviewVerification{Reason: "no order matches the review"}
	}
	if listing == nil {
		return ReviewVerification{Reason: "the listing of the review was not found"}
	}
	outcome := ReviewVerification{Reason: "the reviewer's part in the order is not proven"}
	for _, matched := range candidates {
		if !r.provesPartIn(matched) {
			continue
		}
		group, ok := tradeOf(matched, candidates)
		if !ok {
			continue
		}
		verification := verify(group)
		if verification.Valid && verification.ConfirmedCommitted {
			return ReviewVerification{Valid: true}
		}
		outcome.Transient = outcome.Transient || verification.Transient
		outcome.Reason = verification.Reason
		if verification.Valid {
			outcome.Reason = "the order was never confirmed"
		}
	}
	return outcome
}

// candidates returns the orders for this listing, if the review names one by its
// anchor only those of the same trade.
func (r Review) candidates(orders []Order) []Order {
	forListing := slices.DeleteFunc(slices.Clone(orders), func(order Order) bool {
		return order.ListingAnchor != r.ListingAnchor // a relay looks at later a tags too
	})
	if r.OrderAnchor == "" {
		return forListing
	}
	named := map[string]bool{}
	for _, order := range forListing {
		if order.Anchor() == r.OrderAnchor {
			named[order.TradeID] = true
		}
	}
	return slices.DeleteFunc(forListing, func(order Order) bool { return !named[order.TradeID] })
}

// provesPartIn reports whether the reviewer took part in the order: by his own key,
// or by a key that the order itself ties to this authorization.
func (r Review) provesPartIn(order Order) bool {
	reviewer := r.Event.PubKey
	if r.Proof == nil {
		return slices.ContainsFunc(order.Participants, func(participant Participant) bool { return participant.Pubkey == reviewer })
	}
	proof := *r.Proof
	hash := sha256Hex(proof.Authorization)
	committed := slices.ContainsFunc(order.Proofs, func(tag ParticipantProof) bool {
		return tag.Role == proof.Role && tag.Participant == proof.ParticipantPubkey && tag.PayloadHash == hash
	})
	plain := proof.ParticipantPubkey == reviewer && order.ParticipantOf(proof.Role) == reviewer
	if !committed && !plain {
		return false
	}
	authorization, err := order.checkAuthorization(proof.Authorization, proof.ParticipantPubkey, proof.Role)
	return err == nil && authorization.Identity == reviewer
}

// tradeOf returns the order with those of the same trade that it and they agree to
// belong together.
func tradeOf(order Order, candidates []Order) (OrderGroup, bool) {
	return NewOrderGroup(slices.DeleteFunc(slices.Clone(candidates), func(other Order) bool {
		return other.TradeID != order.TradeID ||
			!slices.Contains(order.participantPubkeys(), other.Event.PubKey) ||
			!slices.Contains(other.participantPubkeys(), order.Event.PubKey)
	}))
}
