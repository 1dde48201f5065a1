package market

import (
	"errors"
	"fmt"

	"github.com/nbd-wtf/go-nostr"
)

// TradeKeyTerms say whose key a participant of a trade is.
type TradeKeyTerms struct {
	// Identity is the pubkey of the person, Participant the one in the order.
	Identity    string
	Participant string
	Role        Role
	// ListingAnchor and TradeID are the a and d tags of the order.
	ListingAnchor string
	TradeID       string
}

// TradeKeyAuthorization is a buyer's signature over a trade key, kind 1329,
// shown only to the other participants (spec 50 §6.1).
type TradeKeyAuthorization struct {
	// Event is the event as found; it must not be changed.
	Event *nostr.Event
	TradeKeyTerms
}

// ErrNotTradeKeyAuthorization is in the error of an event that is of another
// kind or whose content cannot be read.
var ErrNotTradeKeyAuthorization = errors.New("the event is not a trade key authorization")

// DecodeTradeKeyAuthorization reads an authorization. The signature is not
// checked, see Authorizes.
func DecodeTradeKeyAuthorization(event *nostr.Event) (TradeKeyAuthorization, error) {
	if event == nil || event.Kind != KindTradeKeyAuthorization {
		return TradeKeyAuthorization{}, ErrNotTradeKeyAuthorization
	}
	fields, err := readFields(event.Content)
	if err != nil {
		return TradeKeyAuthorization{}, fmt.Errorf("%w: %w", ErrNotTradeKeyAuthorization, err)
	}
	authorization := TradeKeyAuthorization{Event: event, TradeKeyTerms: TradeKeyTerms{
		Identity:    event.PubKey,
		Participant: fields.text("participantPubkey"),
		Role:        Role(fields.text("role")),
	}}
	authorization.ListingAnchor, _ = firstValue(event.Tags, "a")
	authorization.TradeID, _ = firstValue(event.Tags, "d")
	fields.integerOr("version", authorizationVersion)
	if fields.problem != nil {
		return TradeKeyAuthorization{}, fmt.Errorf("%w: %w", ErrNotTradeKeyAuthorization, fields.problem)
	}
	return authorization, nil
}

// DraftTradeKeyAuthorization returns the unsigned event that the identity signs.
func DraftTradeKeyAuthorization(terms TradeKeyTerms, now nostr.Timestamp) *nostr.Event {
	text := appendQuoted([]byte(`{"version":1,"role":`), string(terms.Role))
	text = append(appendQuoted(append(text, `,"participantPubkey":`...), terms.Participant), '}')
	return draft(terms.Identity, KindTradeKeyAuthorization, now, string(text),
		nostr.Tags{{"a", terms.ListingAnchor}, {"d", terms.TradeID}})
}

// Authorizes reports whether the identity signed exactly these terms.
func (a TradeKeyAuthorization) Authorizes(terms TradeKeyTerms) bool {
	return a.TradeKeyTerms == terms && IsSigned(a.Event)
}
