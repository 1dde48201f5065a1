package market

import (
	"errors"
	"fmt"

	"github.com/nbd-wtf/go-nostr"
)

// TransitionType is the sort of a change of an order.
type TransitionType string

// The changes of an order.
const (
	TransitionCounterOffer TransitionType = "counterOffer"
	TransitionCommit       TransitionType = "commit"
	TransitionCancel       TransitionType = "cancel"
	TransitionConfirm      TransitionType = "confirm"
)

func (t TransitionType) known() bool {
	return t == TransitionCounterOffer || t == TransitionCommit || t == TransitionCancel || t == TransitionConfirm
}

// OrderTransition is an entry of the log that each author keeps of the public
// changes of an order, kind 1326 (spec 50 §7).
type OrderTransition struct {
	// Event is the event as found, nil before there is one; it must not be changed.
	Event *nostr.Event
	// TradeID may be empty.
	TradeID string
	// OrderID is the id of the order event as published.
	OrderID string
	// Previous is the id of the author's transition before this one; "" for the first.
	Previous      string
	ListingAnchor string
	Type          TransitionType
	From, To      Stage
	// CommitTermsHash is the order's commit hash.
	CommitTermsHash string
	// Reason and UpdatedFields may be empty.
	Reason        string
	UpdatedFields []string
}

// ErrNotTransition is in the error of an event that is of another kind or whose
// type or stages are unknown.
var ErrNotTransition = errors.New("the event is not an order transition")

// DecodeOrderTransition reads a transition. Its signature is not checked.
func DecodeOrderTransition(event *nostr.Event) (OrderTransition, error) {
	if event == nil || event.Kind != KindOrderTransition {
		return OrderTransition{}, ErrNotTransition
	}
	fields, err := readFields(event.Content)
	if err != nil {
		return OrderTransition{}, fmt.Errorf("%w: %w", ErrNotTransition, err)
	}
	transition := OrderTransition{
		Event: event,
		Type:  TransitionType(fields.text("transitionType")),
		From:  Stage(fields.text("fromStage")),
		To:    Stage(fields.text("toStage")),
	}
	if fields.problem != nil {
		return OrderTransition{}, fmt.Errorf("%w: %w", ErrNotTransition, fields.problem)
	}
	if !transition.Type.known() || !transition.From.known() || !transition.To.known() {
		return OrderTransition{}, fmt.Errorf("%w: %.20q from %.20q to %.20q is unknown",
			ErrNotTransition, transition.Type, transition.From, transition.To)
	}
	// The chain does not depend on the rest, so it may be unreadable.
	transition.CommitTermsHash = fields.optionalText("commitTermsHash")
	transition.Reason = fields.optionalText("reason")
	transition.UpdatedFields = fields.texts("updatedFields")
	transition.readTags(event.Tags)
	return transition, nil
}

func (t *OrderTransition) readTags(tags nostr.Tags) {
	found := false
	if t.TradeID, found = firstValue(tags, "d"); !found {
		t.TradeID, _ = firstValue(tags, "t") // old events have no d
	}
	t.OrderID, _ = firstValue(tags, "e")
	t.Previous, _ = firstValue(tags, "prev")
	t.ListingAnchor, _ = firstValue(tags, "a")
}

// Draft returns the unsigned event of a transition by the author of the order.
func (t OrderTransition) Draft(author string, now nostr.Timestamp) *nostr.Event {
	var tags nostr.Tags
	if t.TradeID != "" {
		tags = append(tags, nostr.Tag{"d", t.TradeID}, nostr.Tag{"t", t.TradeID})
	}
	tags = append(tags, nostr.Tag{"e", t.OrderID})
	if t.Previous != "" {
		tags = append(tags, nostr.Tag{"prev", t.Previous})
	}
	tags = append(tags, nostr.Tag{"a", t.ListingAnchor})
	text := appendQuoted([]byte(`{"transitionType":`), string(t.Type))
	text = appendQuoted(append(text, `,"fromStage":`...), string(t.From))
	text = appendQuoted(append(text, `,"toStage":`...), string(t.To))
	text = appendQuoted(append(text, `,"commitTermsHash":`...), t.CommitTermsHash)
	if t.Reason != "" {
		text = appendQuoted(append(text, `,"reason":`...), t.Reason)
	}
	if len(t.UpdatedFields) > 0 {
		text = appendTexts(append(text, `,"updatedFields":`...), t.UpdatedFields)
	}
	return draft(author, KindOrderTransition, now, string(append(text, '}')), tags)
}
