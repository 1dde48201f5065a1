package actions

import (
	"context"

	"hostr-daemon/internal/request"
	"hostr-daemon/internal/runtime"
)

// SessionStatus is the result of hostr.session.status (spec 20 §5.1).
type SessionStatus struct {
	// TokenPubkey is the session's name, empty for the foreground session.
	TokenPubkey string `json:"tokenPubkey"`
	// SessionPubkey is null for the foreground session.
	SessionPubkey *string `json:"sessionPubkey"`
	// ActivePubkey is the account signed in, or null.
	ActivePubkey  *string `json:"activePubkey"`
	Authenticated bool    `json:"authenticated"`
	SignerOnline  bool    `json:"signerOnline"`
	// Storage is present only when asked for.
	Storage *SessionStorage `json:"storage,omitempty"`
}

// SessionStorage tells where a session's secrets lie, without any of them.
type SessionStorage struct {
	Scope    string `json:"scope"`
	Isolated bool   `json:"isolated"`
}

// sessionStatus reports who is signed in. Without a pubkey that is nobody; named
// accounts come with signing in.
func sessionStatus(_ context.Context, _ *runtime.Session, call request.Action) (request.Outcome, error) {
	input, err := ParseSessionStatusInput(call.Input)
	if err != nil {
		return request.Outcome{}, err
	}
	if call.Pubkey != "" {
		return request.Outcome{}, notYet("The status of a signed-in account")
	}
	status := SessionStatus{}
	if input.IncludeStorageDetails {
		status.Storage = &SessionStorage{Scope: "hostr-session/" + status.TokenPubkey, Isolated: true}
	}
	return request.Outcome{Data: status}, nil
}
