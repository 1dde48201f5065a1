// Package request holds what travels between the line protocol and the product:
// the typed parameters of each method that does work, and the outcome that
// becomes an answer. It knows neither frames nor actions; both sides import it.
package request

import (
	"encoding/json"
	"time"

	"hostr-daemon/internal/fault"
)

// Action is one callAction (spec 10 §3.4).
type Action struct {
	// ID is the action, for example hostr.listings.search.
	ID string
	// Pubkey names the session; empty for public calls. It need not be a key: the
	// bridge uses its own session id for hostr.session.connect (spec 10 §6.4).
	Pubkey string
	// Input is the raw JSON object of the call, never nil ("{}" when none was given).
	Input json.RawMessage
	// NotificationToken is echoed as operationToken in notifications; may be empty.
	NotificationToken string
	// TraceID is the caller's trace id; may be empty.
	TraceID string
}

// Upload is one uploadImage (spec 20 §11).
type Upload struct {
	Base64   string
	Pubkey   string
	MIME     string
	Filename string
}

// OAuthNostrConnect is one startOAuthNostrConnect or completeOAuthNostrConnect
// (spec 20 §5.4 and §5.5).
type OAuthNostrConnect struct {
	RequestID string
	// Regenerate drops a pending request first; only read by start.
	Regenerate bool
	// Timeout is how long complete waits for the signer; only read by complete.
	Timeout time.Duration
}

// OAuthNSec is one completeOAuthNsec (spec 20 §5.6). NSec is a secret.
type OAuthNSec struct {
	RequestID string
	NSec      string
}

// Outcome is a success. The envelope around it is the protocol's business.
type Outcome struct {
	// Data encodes to a JSON object, or is nil when there is none.
	Data any
	// DryRun repeats the parsed dryRun input; false for actions that have none.
	DryRun bool
	// Warnings tell that the answer is incomplete (code partial_result).
	Warnings []*fault.Error
}
