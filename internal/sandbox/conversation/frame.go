package conversation

import (
	"encoding/json"
	"time"
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
