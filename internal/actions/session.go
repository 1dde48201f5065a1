package actions

import (
	"context"

	"hostr-daemon/internal/sessions"
)

// SessionStatus is the result of hostr.session.status (spec 20 §5.1).
type SessionStatus struct {
	// TokenPubkey is the session key, empty for the foreground session.
	TokenPubkey string `json:"tokenPubkey"`
	// SessionPubkey is the same, null for the foreground session.
	SessionPubkey *string `json:"sessionPubkey"`
	// ActivePubkey is the account signed in, or null.
	ActivePubkey  *string `json:"activePubkey"`
	Authenticated bool    `json:"authenticated"`
	SignerOnline  bool    `json:"signerOnline"`
	// Storage is present only when asked for.
	Storage *SessionStorage `json:"storage,omitempty"`
	// Reconnect is present only when the signer has to be connected again.
	Reconnect *sessions.Reconnect `json:"reconnect,omitempty"`
}

// SessionStorage tells where a session's secrets lie, without any of them.
type SessionStorage struct {
	Scope    string `json:"scope"`
	Isolated bool   `json:"isolated"`
}

func sessionStatus(ctx context.Context, caller caller, input SessionStatusInput) (answer[SessionStatus], error) {
	found, err := caller.session.Status(ctx)
	if err != nil {
		return answer[SessionStatus]{}, err
	}
	key := caller.session.Key()
	status := SessionStatus{
		TokenPubkey:   key,
		SessionPubkey: present(key),
		ActivePubkey:  present(found.ActivePubkey),
		Authenticated: found.ActivePubkey != "",
		SignerOnline:  found.SignerOnline,
		Reconnect:     found.Reconnect,
	}
	if input.IncludeStorageDetails {
		status.Storage = &SessionStorage{Scope: "hostr-session/" + key, Isolated: true}
	}
	return answer[SessionStatus]{data: status}, nil
}

// present is null for an empty text.
func present(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
