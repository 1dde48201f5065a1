package conversation

import (
	"encoding/json"

	"github.com/nbd-wtf/go-nostr"
)

// Traded is the data of the actions that offer, accept and cancel (spec 51 §3 to §5).
type Traded struct {
	DryRun      bool   `json:"dryRun"`
	WillPublish bool   `json:"willPublish"`
	Mode        string `json:"mode"`
	Delivery    string `json:"delivery"`
	TradeID     string `json:"tradeId"`
	Event       *Event `json:"event"`
	Listing     struct {
		Title string `json:"title"`
	} `json:"listing"`
	OrderGroup       []Event    `json:"orderGroup"`
	RecipientPubkeys []string   `json:"recipientPubkeys"`
	RelayResponses   []Accepted `json:"relayResponses"`
}

// Accepted is what a relay answered to an event.
type Accepted struct {
	RelayURL            string `json:"relayUrl"`
	BroadcastSuccessful bool   `json:"broadcastSuccessful"`
}

// Terms is the content of an order (spec 50 §3.2), with its keys in the order written.
type Terms struct {
	Start               string          `json:"start,omitempty"`
	End                 string          `json:"end,omitempty"`
	Proof               json.RawMessage `json:"proof"`
	Stage               string          `json:"stage"`
	Quantity            int             `json:"quantity"`
	Amount              *TermsAmount    `json:"amount,omitempty"`
	Recipient           string          `json:"recipient,omitempty"`
	CommitAuthorization json.RawMessage `json:"commitAuthorization,omitempty"`
}

// TermsAmount is an amount in an order.
type TermsAmount struct {
	Value        string `json:"value"`
	Denomination string `json:"denomination"`
	Decimals     int    `json:"decimals"`
}

// terms reads the content of an order; what cannot be read has no stage.
func (e Event) terms() (terms Terms) {
	if json.Unmarshal([]byte(e.Content), &terms) != nil {
		return Terms{}
	}
	return terms
}

// Updates is the data of hostr.updates (spec 60 §10.7).
type Updates struct {
	Threads      []Thread    `json:"threads"`
	TripCount    int         `json:"tripCount"`
	Trips        []TradeItem `json:"trips"`
	BookingCount int         `json:"bookingCount"`
	Bookings     []TradeItem `json:"bookings"`
}

// Thread is a conversation in Updates (spec 60 §10.8).
type Thread struct {
	Conversation        string     `json:"conversation"`
	CounterpartyPubkeys []string   `json:"counterpartyPubkeys"`
	Counterparties      []Somebody `json:"counterparties"`
	UnreadCount         int        `json:"unreadCount"`
	OrderRequests       []Event    `json:"orderRequests"`
	TextMessages        []Event    `json:"textMessages"`
}

// Somebody is a profile summary (spec 60 §10.1).
type Somebody struct {
	Pubkey string `json:"pubkey"`
	Name   string `json:"name"`
}

// Viewed is the data of hostr.thread.view (spec 60 §10.2).
type Viewed struct {
	Found      bool       `json:"found"`
	ThreadView ThreadView `json:"threadView"`
}

// ThreadView is a conversation to read (spec 60 §10.5).
type ThreadView struct {
	TradeID        string     `json:"tradeId"`
	Counterparties []Somebody `json:"counterparties"`
	UnreadCount    int        `json:"unreadCount"`
	MessageCount   int        `json:"messageCount"`
	Messages       []Message  `json:"messages"`
	OrderRequests  []Event    `json:"orderRequests"`
}

// Message is a text in a ThreadView.
type Message struct {
	ID           string `json:"id"`
	SenderPubkey string `json:"senderPubkey"`
	SenderName   string `json:"senderName"`
	SentByUser   bool   `json:"sentByUser"`
	Content      string `json:"content"`
}

// Said is the data of hostr.thread.message and hostr.escrow.involve (spec 60 §10.3, §10.4).
type Said struct {
	DryRun             bool              `json:"dryRun"`
	RequiresMessage    bool              `json:"requiresMessage"`
	Content            string            `json:"content"`
	SentMessage        *Message          `json:"sentMessage"`
	TradeID            string            `json:"tradeId"`
	ParticipantPubkeys []string          `json:"participantPubkeys"`
	RecipientPubkeys   []string          `json:"recipientPubkeys"`
	Roles              map[string]string `json:"roles"`
}

// TradeList is the data of hostr.trips.list and hostr.bookings.list (spec 51 §7).
type TradeList struct {
	Mode         string      `json:"mode"`
	Count        int         `json:"count"`
	InvalidCount int         `json:"invalidCount"`
	Results      []TradeItem `json:"results"`
}

// TradeItem is a trip or a booking (spec 51 §2.9).
type TradeItem struct {
	Found   bool   `json:"found"`
	Mode    string `json:"mode"`
	TradeID string `json:"tradeId"`
	Valid   bool   `json:"valid"`
	Group   struct {
		OrderGroup
		ListingTitle string `json:"listingTitle"`
	} `json:"group"`
	Participants struct {
		Roles    map[string]string   `json:"roles"`
		Profiles map[string]Somebody `json:"profiles"`
	} `json:"participants"`
}

// newEvent is a signed event as results have it.
func newEvent(event nostr.Event) Event {
	return Event{event.ID, event.PubKey, event.CreatedAt, event.Kind, event.Tags, event.Content, &event.Sig}
}
