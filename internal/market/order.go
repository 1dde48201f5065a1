package market

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/nbd-wtf/go-nostr"
)

// Order is an offer, a booking or the end of one, read from an event of kind
// 32122 (spec 50 §3).
type Order struct {
	// Event is the event as found; it must not be changed.
	Event *nostr.Event
	// ListingAnchor is the value of the first a tag as it stands; see Listing.
	ListingAnchor string
	// TradeID is the value of the first d tag; "" when there is none.
	TradeID string
	// Participants are the p tags in their order.
	Participants []Participant
	// Proofs are the participant_proof tags that have all parts.
	Proofs []ParticipantProof
	// PublishedAt is the value of the published_at tag, Unix seconds; nil when the
	// event does not say.
	PublishedAt *nostr.Timestamp
	OrderContent
}

// Participant is a p tag of an order.
type Participant struct {
	// Pubkey of the buyer is the one of a trade key.
	Pubkey    string
	RelayHint string
	Role      Role
}

// ErrNotOrder is in the error of an event that is of another kind, without
// listing, or whose content cannot be read.
var ErrNotOrder = errors.New("the event is not an order")

// DecodeOrder reads an order. Its id and signature are not checked: events from
// relays have been, those inside private messages need not be right (spec 50
// §10.2). An event that is no order or has one unreadable value in its content
// is an ErrNotOrder. The order shares the event's memory.
func DecodeOrder(event *nostr.Event) (Order, error) {
	if event == nil || event.Kind != KindOrder {
		return Order{}, ErrNotOrder
	}
	anchor, ok := firstValue(event.Tags, "a")
	if !ok {
		return Order{}, fmt.Errorf("%w: it has no a tag", ErrNotOrder)
	}
	content, err := decodeOrderContent(event.Content)
	if err != nil {
		return Order{}, fmt.Errorf("%w: %w", ErrNotOrder, err)
	}
	order := Order{Event: event, ListingAnchor: anchor, OrderContent: content}
	order.TradeID, _ = firstValue(event.Tags, "d")
	if text, ok := firstValue(event.Tags, "published_at"); ok {
		if seconds, err := strconv.ParseInt(text, 10, 64); err == nil {
			published := nostr.Timestamp(seconds)
			order.PublishedAt = &published
		}
	}
	for _, tag := range event.Tags {
		if len(tag) >= 2 && tag[0] == "p" {
			order.Participants = append(order.Participants, participantOf(tag))
		}
		if proof, ok := readParticipantProof(tag); ok {
			order.Proofs = append(order.Proofs, proof)
		}
	}
	return order, nil
}

// Listing returns the listing's anchor; false when the a tag holds none, so that
// the order can stand in no group (spec 50 §12).
func (o Order) Listing() (Anchor, bool) {
	return exactAnchor(o.ListingAnchor)
}

// Anchor returns the order's own address.
func (o Order) Anchor() string {
	return Anchor{Kind: KindOrder, PubKey: o.Event.PubKey, Identifier: o.TradeID}.String()
}

// ParticipantOf returns the pubkey of the first p tag with that role; "" when
// there is none.
func (o Order) ParticipantOf(role Role) string {
	for _, participant := range o.Participants {
		if participant.Role == role {
			return participant.Pubkey
		}
	}
	return ""
}

func participantOf(tag nostr.Tag) Participant {
	participant := Participant{Pubkey: tag[1]}
	if len(tag) > 2 {
		participant.RelayHint = tag[2]
	}
	if len(tag) > 3 {
		participant.Role = Role(tag[3])
	}
	return participant
}

// exactAnchor reads an anchor in a tag. Tags are compared as they stand, so one
// that is written in another way than ours, with a pubkey in capitals for
// example, is none.
func exactAnchor(text string) (Anchor, bool) {
	anchor, err := parsePlainAnchor(text)
	if err != nil || anchor.String() != text {
		return Anchor{}, false
	}
	return anchor, true
}

// firstValue returns the value of the first tag of that name that has one.
func firstValue(tags nostr.Tags, name string) (string, bool) {
	for _, tag := range tags {
		if len(tag) >= 2 && tag[0] == name {
			return tag[1], true
		}
	}
	return "", false
}
