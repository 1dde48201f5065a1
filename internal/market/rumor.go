package market

import (
	"slices"

	"github.com/nbd-wtf/go-nostr"
)

// Tags of messages (spec 60 §1).
const (
	tagConversation = "conversation"
	tagAlt          = "alt"
	tagSeenUntil    = "seen_until"
)

// Rumor is an accepted message: an unsigned event whose author its seal has proved
// (NIP-59). It must not be changed.
type Rumor struct {
	// Event has the right id and no signature.
	Event *nostr.Event
	Class RumorClass
	// Child is the event that a message of ClassJSON carries. Neither its id nor its
	// signature is checked.
	Child *nostr.Event
	// Order is the Child as an order, or the Event of ClassTyped as one; nil when it is
	// of another kind. A child has to fit before it counts, see OrderChildFits.
	Order *Order
	// Selection is the same for an escrow selection.
	Selection *EscrowSelection
}

// MessageDraft is a message to be sent.
type MessageDraft struct {
	Kind    int
	Content string
	// Conversation is the trade id or another label; "" for none.
	Conversation string
	// Extra are tags of the caller's own.
	Extra nostr.Tags
	// Recipients are pubkeys in any order; the author is left out.
	Recipients []string
}

// NewOrderMessage returns the draft that carries an order in the thread of its trade
// (spec 50 §18).
func NewOrderMessage(order *nostr.Event, tradeID string, recipients []string) MessageDraft {
	return MessageDraft{
		Kind: KindStructuredMessage, Content: EncodeEmbeddedEvent(order), Conversation: tradeID, Recipients: recipients,
	}
}

// Event returns the rumor of the draft, with its id: the tags are conversation, the
// caller's, alt, and p of each recipient sorted (spec 60 §1).
func (d MessageDraft) Event(author string, now nostr.Timestamp) *nostr.Event {
	tags := nostr.Tags{}
	if d.Conversation != "" {
		tags = append(tags, nostr.Tag{tagConversation, d.Conversation})
	}
	tags = append(tags, d.Extra...)
	if alt := d.alternative(); alt != "" {
		tags = append(tags, nostr.Tag{tagAlt, alt})
	}
	for _, recipient := range without(sortedUnique(d.Recipients), author) {
		tags = append(tags, nostr.Tag{"p", recipient})
	}
	event := &nostr.Event{PubKey: author, CreatedAt: now, Kind: d.Kind, Tags: tags, Content: d.Content}
	event.ID = event.GetID()
	return event
}

// alternative returns the text that clients show that do not know the child, "" for
// none (NIP-31).
func (d MessageDraft) alternative() string {
	isAlt := func(tag nostr.Tag) bool { return len(tag) > 0 && tag[0] == tagAlt }
	if d.Kind != KindStructuredMessage || slices.ContainsFunc(d.Extra, isAlt) {
		return ""
	}
	child, err := DecodeEmbeddedEvent(d.Content)
	if err != nil {
		return ""
	}
	switch child.Kind {
	case KindOrder:
		return "Order Proposal"
	case KindEscrowServiceSelected:
		return "Escrow Service Selected"
	default:
		return ""
	}
}

// without returns the texts that are not the one, in a slice of their own.
func without(texts []string, one string) []string {
	return slices.DeleteFunc(slices.Clone(texts), func(text string) bool { return text == one })
}
