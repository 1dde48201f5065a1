package actions

import (
	"slices"
	"strings"

	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/market"
	"hostr-daemon/internal/threads"
)

// ThreadView is a thread for people to read (spec 60 §10.5).
type ThreadView struct {
	// Type is thread-view.
	Type   string `json:"type"`
	Anchor string `json:"anchor"`
	// TradeID and Conversation are both the thread's tag.
	TradeID      string `json:"tradeId,omitempty"`
	Conversation string `json:"conversation,omitempty"`
	Title        string `json:"title"`
	// Counterparties are all but the account, by pubkey.
	Counterparties []market.ProfileSummary `json:"counterparties"`
	UnreadCount    int                     `json:"unreadCount"`
	// MessageCount is how many text messages there are, Messages holds the last of them.
	MessageCount    int             `json:"messageCount"`
	HasMoreMessages bool            `json:"hasMoreMessages"`
	Messages        []ThreadMessage `json:"messages"`
	// OrderRequests are the orders sent here, not signed by whom they may seem to be.
	OrderRequests []market.EventJSON `json:"orderRequests"`
}

// ThreadMessage is a text message in a ThreadView.
type ThreadMessage struct {
	ID           string `json:"id"`
	SenderPubkey string `json:"senderPubkey"`
	SenderName   string `json:"senderName"`
	SentByUser   bool   `json:"sentByUser"`
	Content      string `json:"content"`
	// CreatedAt is ISO text in UTC.
	CreatedAt string `json:"createdAt"`
}

// newThreadView shows a thread with its last messages to the account me. A warning tells
// when not even these, or not all orders, can be shown at once.
func newThreadView(thread *market.Thread, people threads.People, me string, limit int) (ThreadView, *fault.Error) {
	texts := thread.TextMessages()
	shown := texts[max(0, len(texts)-limit):]
	view := ThreadView{
		Type: "thread-view", Anchor: thread.Anchor, TradeID: thread.Tag, Conversation: thread.Tag,
		Title: titleOf(thread, people), Counterparties: people.Of(thread.Counterparties),
		UnreadCount: thread.Unread(), MessageCount: len(texts),
		Messages: make([]ThreadMessage, len(shown)),
	}
	for i, message := range shown {
		view.Messages[i] = ThreadMessage{
			ID: message.Event.ID, SenderPubkey: message.Event.PubKey, SenderName: people.One(message.Event.PubKey).Name,
			SentByUser: message.Event.PubKey == me, Content: message.Event.Content,
			CreatedAt: isoTime(message.Event.CreatedAt),
		}
	}
	messages, orders := sizeBudget{left: threadSize}, sizeBudget{left: threadSize}
	view.Messages = lastFitting(&messages, view.Messages)
	view.HasMoreMessages = len(view.Messages) < len(texts)
	view.OrderRequests = lastFitting(&orders, requestEvents(thread))
	return view, tooLarge(messages.cut || orders.cut)
}

// titleOf names a thread (spec 60 §10.5).
func titleOf(thread *market.Thread, people threads.People) string {
	if title := bookedTitle(thread); title != "" {
		return title
	}
	var names []string
	for _, person := range people.Of(thread.Counterparties) {
		names = append(names, person.Name)
	}
	const beginning = 8
	tag := []rune(thread.Tag)
	switch {
	case len(names) > 0:
		return "Chat with " + strings.Join(names, ", ")
	case len(tag) > 0:
		return "Conversation " + string(tag[:min(beginning, len(tag))])
	default:
		return "Conversation"
	}
}

// bookedTitle is the title of the listing inside the newest order with a proof; "" when
// there is none.
func bookedTitle(thread *market.Thread) string {
	for _, request := range slices.Backward(thread.OrderRequests()) {
		proof := request.Order.Proof
		if proof == nil || proof.Listing == nil {
			continue
		}
		if listing, err := market.DecodeListing(proof.Listing); err == nil {
			return listing.Title
		}
	}
	return ""
}

func requestEvents(thread *market.Thread) []market.EventJSON {
	events := []market.EventJSON{}
	for _, request := range thread.OrderRequests() {
		events = append(events, market.NewEventJSON(request.Order.Event))
	}
	return events
}

// SentMessage is a message of the account that was sent (spec 60 §10.6).
type SentMessage struct {
	ID           string `json:"id"`
	SenderPubkey string `json:"senderPubkey"`
	SentByUser   bool   `json:"sentByUser"`
	Content      string `json:"content"`
	// CreatedAt is ISO text in UTC.
	CreatedAt string `json:"createdAt"`
}

func newSentMessage(message *nostr.Event) *SentMessage {
	return &SentMessage{
		ID: message.ID, SenderPubkey: message.PubKey, SentByUser: true, Content: message.Content,
		CreatedAt: isoTime(message.CreatedAt),
	}
}

// isoTime writes a time as results show it (spec 60 §10).
func isoTime(at nostr.Timestamp) string { return at.Time().UTC().Format("2006-01-02T15:04:05.000Z") }
