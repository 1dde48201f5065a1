package conversation

import (
	"encoding/json"
	"time"

	"github.com/nbd-wtf/go-nostr"
)

// Request is a request frame (spec 10 §2.1).
type Request struct {
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	TraceID string          `json:"traceId,omitempty"`
	Params  any             `json:"params,omitempty"`
}

// ActionParams are the params of callAction.
type ActionParams struct {
	Action string `json:"action"`
	Pubkey string `json:"pubkey,omitempty"`
	Input  any    `json:"input,omitempty"`
}

// Frame is an answer (spec 10 §2.2).
type Frame struct {
	ID      json.RawMessage `json:"id"`
	TraceID string          `json:"traceId"`
	Result  json.RawMessage `json:"result"`
	Error   *Issue          `json:"error"`

	text []byte    // as it came
	came time.Time // when
}

// Issue is an error or a warning.
type Issue struct {
	Code      string          `json:"code"`
	Message   string          `json:"message"`
	Path      string          `json:"path"`
	Hint      string          `json:"hint"`
	Retryable bool            `json:"retryable"`
	Details   json.RawMessage `json:"details"`
}

// Envelope is the result of an action (spec 10 §3.3).
type Envelope struct {
	OK          bool            `json:"ok"`
	Command     string          `json:"command"`
	Environment string          `json:"environment"`
	DryRun      *bool           `json:"dryRun"`
	TraceID     string          `json:"traceId"`
	Data        json.RawMessage `json:"data"`
	Warnings    []Issue         `json:"warnings"`
	Errors      []Issue         `json:"errors"`
}

// Catalog is the result of describe (spec 10 §3.1).
type Catalog struct {
	Version int          `json:"version"`
	Actions []ActionSpec `json:"actions"`
}

// ActionSpec is one action of the catalog.
type ActionSpec struct {
	ID           string `json:"id"`
	Title        string `json:"title"`
	RequiredRole string `json:"requiredRole"`
}

// Visible is the result of visibleActions (spec 10 §3.2).
type Visible struct {
	Version          int      `json:"version"`
	Pubkey           *string  `json:"pubkey"`
	IsEscrow         bool     `json:"isEscrow"`
	EscrowPubkeys    []string `json:"escrowPubkeys"`
	VisibleActionIDs []string `json:"visibleActionIds"`
}

// SessionStatus is the data of hostr.session.status (spec 20 §5.1).
type SessionStatus struct {
	TokenPubkey   *string `json:"tokenPubkey"`
	SessionPubkey *string `json:"sessionPubkey"`
	ActivePubkey  *string `json:"activePubkey"`
	Authenticated bool    `json:"authenticated"`
	SignerOnline  bool    `json:"signerOnline"`
}

// SearchResult is the data of hostr.listings.search (spec 40 §10).
type SearchResult struct {
	Count    int       `json:"count"`
	Listings []Summary `json:"listings"`
}

// Summary is a listing in a result (spec 40 §7.1), as far as it is looked at.
type Summary struct {
	ID             string         `json:"id"`
	Anchor         string         `json:"anchor"`
	DTag           string         `json:"dTag"`
	Pubkey         string         `json:"pubkey"`
	Title          string         `json:"title"`
	Description    string         `json:"description"`
	Active         bool           `json:"active"`
	Type           string         `json:"type"`
	RentOrBuy      string         `json:"rentOrBuy"`
	Images         []string       `json:"images"`
	Prices         []SummaryPrice `json:"prices"`
	Specifications map[string]any `json:"specifications"`
}

// SummaryPrice is a price in a result.
type SummaryPrice struct {
	Amount struct {
		Value             string `json:"value"`
		SmallestUnitValue string `json:"smallestUnitValue"`
		Denomination      string `json:"denomination"`
		Decimals          int    `json:"decimals"`
	} `json:"amount"`
	Frequency string `json:"frequency"`
}

// Profile is the data of hostr.profile.lookup (spec 20 §10.4).
type Profile struct {
	Pubkey   string         `json:"pubkey"`
	NPub     string         `json:"npub"`
	Exists   bool           `json:"exists"`
	Metadata map[string]any `json:"metadata"`
	Event    *struct {
		ID  string  `json:"id"`
		Sig *string `json:"sig"`
	} `json:"event"`
}

// Cancelled is the result of cancel (spec 10 §4.2).
type Cancelled struct {
	Cancelled bool   `json:"cancelled"`
	RequestID string `json:"requestId"`
}

// Event is an event in a result (spec 40 §7.3).
type Event struct {
	ID        string          `json:"id"`
	PubKey    string          `json:"pubkey"`
	CreatedAt nostr.Timestamp `json:"created_at"`
	Kind      int             `json:"kind"`
	Tags      nostr.Tags      `json:"tags"`
	Content   string          `json:"content"`
	Sig       *string         `json:"sig"` // null when unsigned
}

// event is the same as it goes over the wire.
func (e Event) event() nostr.Event {
	wire := nostr.Event{ID: e.ID, PubKey: e.PubKey, CreatedAt: e.CreatedAt, Kind: e.Kind, Tags: e.Tags, Content: e.Content}
	if e.Sig != nil {
		wire.Sig = *e.Sig
	}
	return wire
}

// Written is the data of hostr.listings.create and .edit (spec 40 §5.3, §6.3).
type Written struct {
	DryRun    bool   `json:"dryRun"`
	DTag      string `json:"dTag"`
	NextInput *struct {
		DryRun bool   `json:"dryRun"`
		DTag   string `json:"dTag"`
	} `json:"nextInput"`
	PlannedUploads []struct {
		SHA256 string `json:"sha256"`
		Size   int    `json:"size"`
		MIME   string `json:"mime"`
	} `json:"plannedUploads"`
	Event          Event   `json:"event"`
	Listing        Summary `json:"listing"`
	RelayResponses []struct {
		RelayURL            string `json:"relayUrl"`
		BroadcastSuccessful bool   `json:"broadcastSuccessful"`
	} `json:"relayResponses"`
}

// Availability is the data of hostr.listings.availability (spec 40 §12).
type Availability struct {
	Results []struct {
		Anchor          string   `json:"anchor"`
		Found           bool     `json:"found"`
		Available       bool     `json:"available"`
		Listing         *Summary `json:"listing"`
		OrderGroupCount int      `json:"orderGroupCount"`
	} `json:"results"`
}

// Reviews is the data of hostr.listings.reviews (spec 40 §13).
type Reviews struct {
	Results []ListingReviews `json:"results"`
}

// ListingReviews are those of one listing.
type ListingReviews struct {
	Anchor string  `json:"anchor"`
	Count  int     `json:"count"`
	Events []Event `json:"events"`
}

// OrderGroups is the data of hostr.listings.orderGroups (spec 40 §14).
type OrderGroups struct {
	Results []ListingOrderGroups `json:"results"`
}

// ListingOrderGroups are those of one listing.
type ListingOrderGroups struct {
	Anchor string       `json:"anchor"`
	Found  bool         `json:"found"`
	Count  int          `json:"count"`
	Groups []OrderGroup `json:"groups"`
}

// OrderGroup is what is public of one stay.
type OrderGroup struct {
	TradeID     string  `json:"tradeId"`
	BuyerPubkey string  `json:"buyerPubkey"` // null, here "", where there is none
	Stage       string  `json:"stage"`
	Cancelled   bool    `json:"cancelled"`
	Active      bool    `json:"active"`
	Start       string  `json:"start"`
	End         string  `json:"end"`
	Orders      []Event `json:"orders"`
}
