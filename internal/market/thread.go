package market

import (
	"cmp"
	"slices"
	"strings"

	"github.com/nbd-wtf/go-nostr"
)

// Thread is a conversation as it stood at one moment (spec 60 §7.2). Neither it nor
// the lists it returns change afterwards, nor may they be changed.
type Thread struct {
	// Anchor is its id, 64 hex digits; see ThreadAnchor.
	Anchor string
	// Tag is the trade id or another label; "" for none.
	Tag string
	// Participants are the account and everybody else, sorted; Counterparties are the
	// same without the account.
	Participants, Counterparties []string

	recipients              []string
	events, texts, readable []Rumor
	orderRequests           []OrderRequest
	selections              []SelectionMessage
	unread                  int
	lastActivity            nostr.Timestamp
	tradeID                 string
}

// OrderRequest is an order sent in a thread, and the message that brought it.
type OrderRequest struct {
	Order *Order
	Rumor Rumor
}

// SelectionMessage is an escrow selection sent in a thread, and the message that
// brought it.
type SelectionMessage struct {
	Selection *EscrowSelection
	Rumor     Rumor
}

// NewThread returns the thread of the account me and exactly these recipients under a
// tag, without messages, to be shown before anything is sent (spec 60 §10.3, Q17).
func NewThread(me string, recipients []string, tag string) *Thread {
	participants := append([]string{me}, recipients...)
	return newThread(me, participants, tag, ThreadAnchor(participants, tag))
}

func newThread(me string, participants []string, tag, anchor string) *Thread {
	all := sortedUnique(append([]string{me}, participants...))
	tag = strings.TrimSpace(tag)
	others := without(all, me)
	return &Thread{
		Anchor: anchor, Tag: tag, Participants: all, Counterparties: others, tradeID: tag,
		recipients: filter(others, nostr.IsValidPublicKey),
	}
}

// Recipients returns who gets what the account writes here, sorted: all others, but not
// what is no public key, or a key of the account itself, which a sender may have named to
// have every answer fail or tell whose key it is. None means that only the account itself
// does (spec 50 §18).
func (t *Thread) Recipients() []string { return t.recipients }

// Events returns all messages but receipts and foreign kinds, by time.
func (t *Thread) Events() []Rumor { return t.events }

// TextMessages returns the text messages by time.
func (t *Thread) TextMessages() []Rumor { return t.texts }

// OrderRequests returns the orders that count by the time of their messages, not their
// own; the same order as often as it was sent. In a thread of a trade there may be
// orders of another.
func (t *Thread) OrderRequests() []OrderRequest { return t.orderRequests }

// EscrowSelections returns the last selection of each escrow service, by the id that
// the service event claims; none of a thread without tag (spec 60 §8.3).
func (t *Thread) EscrowSelections() []SelectionMessage { return lastPerService(t.selections) }

// Unread returns how many messages of others the account has not seen.
func (t *Thread) Unread() int { return t.unread }

// LastActivity returns when the last message that people read was written, Unix
// seconds; in a thread without any, the last one of all; 0 in an empty thread.
func (t *Thread) LastActivity() nostr.Timestamp { return t.lastActivity }

// TradeID returns the tag, or without one the trade of the newest order that stands
// here as a message of its own kind; "" when there is none.
func (t *Thread) TradeID() string { return t.tradeID }

// reduce returns the thread as it stands.
func (c *conversation) reduce(me string, controls func(pubkey, tradeID string) bool) *Thread {
	thread := *c.empty
	thread.recipients = filter(thread.recipients, func(pubkey string) bool { return !controls(pubkey, thread.Tag) })
	thread.events = slices.Clone(c.events)
	slices.SortStableFunc(thread.events, func(a, b Rumor) int {
		return cmp.Compare(a.Event.CreatedAt, b.Event.CreatedAt)
	})
	for _, rumor := range thread.events {
		thread.take(rumor, OrderChildFits(rumor, me, controls))
	}
	for _, rumor := range thread.readable {
		if rumor.Event.PubKey != me && rumor.Event.CreatedAt > c.seenUntil {
			thread.unread++
		}
	}
	thread.lastActivity = newest(thread.readable)
	if len(thread.readable) == 0 {
		thread.lastActivity = max(newest(thread.events), newest(c.receipts))
	}
	return &thread
}

// take puts the next of the sorted events into the lists it belongs to.
func (t *Thread) take(rumor Rumor, fits bool) {
	switch {
	case rumor.Class == ClassText:
		t.texts = append(t.texts, rumor)
		t.readable = append(t.readable, rumor)
	case fits:
		t.orderRequests = append(t.orderRequests, OrderRequest{Order: rumor.Order, Rumor: rumor})
		t.readable = append(t.readable, rumor)
	case rumor.Class == ClassJSON && rumor.Selection != nil && t.Tag != "":
		t.selections = append(t.selections, SelectionMessage{Selection: rumor.Selection, Rumor: rumor})
	case rumor.Class == ClassTyped && rumor.Order != nil && t.Tag == "":
		t.tradeID = rumor.Order.TradeID
	}
}

// newest returns the latest time of the messages, at least 0.
func newest(rumors []Rumor) nostr.Timestamp {
	var latest nostr.Timestamp
	for _, rumor := range rumors {
		latest = max(latest, rumor.Event.CreatedAt)
	}
	return latest
}

// lastPerService returns the last selection of each service by the time of their
// messages, in that order.
func lastPerService(sent []SelectionMessage) []SelectionMessage {
	ordered := slices.Clone(sent)
	slices.SortStableFunc(ordered, func(a, b SelectionMessage) int {
		return cmp.Compare(a.Rumor.Event.CreatedAt, b.Rumor.Event.CreatedAt)
	})
	last := map[string]int{}
	for i, message := range ordered {
		last[message.Selection.EscrowService.Event.ID] = i
	}
	var kept []SelectionMessage
	for i, message := range ordered {
		if last[message.Selection.EscrowService.Event.ID] == i {
			kept = append(kept, message)
		}
	}
	return kept
}
