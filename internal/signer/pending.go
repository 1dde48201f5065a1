package signer

import "time"

// PendingRequest is a request that was sent to the remote signer and is not
// answered yet: perhaps a person has to approve it (spec 10 §5.1).
type PendingRequest struct {
	// ID is the NIP-46 request id.
	ID string
	// Method is the NIP-46 method, such as sign_event.
	Method string
	// EventKind is the kind of the event to sign; nil for other methods.
	EventKind *int
	// CreatedAt is when it was sent first.
	CreatedAt time.Time
}

// Background reports whether the request belongs to the upkeep of the connection, so
// that nobody is told of it: AUTH at a relay and received heartbeats.
func (p PendingRequest) Background() bool {
	return p.EventKind != nil && (*p.EventKind == kindRelayAuthentication || *p.EventKind == kindReceivedHeartbeat)
}
