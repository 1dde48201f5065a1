package actions

import (
	"context"
	"errors"
	"fmt"
	"time"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/qr"
	"hostr-daemon/internal/request"
	"hostr-daemon/internal/secrets"
	"hostr-daemon/internal/sessions"
)

// SessionConnectResult is the result of hostr.session.connect (spec 20 §5.2): the
// account once it is signed in, before that the code to show.
type SessionConnectResult struct {
	Authenticated bool `json:"authenticated"`
	// Pubkey and CredentialType are there once signed in.
	Pubkey         string                 `json:"pubkey,omitempty"`
	CredentialType secrets.CredentialType `json:"credentialType,omitempty"`
	// The rest is there while the sign-in is pending.
	Pending               bool                   `json:"pending,omitempty"`
	DisplayTitle          string                 `json:"displayTitle,omitempty"`
	DisplayMessage        string                 `json:"displayMessage,omitempty"`
	NostrConnect          string                 `json:"nostrconnect,omitempty"`
	QR                    string                 `json:"qr,omitempty"`
	QRImage               string                 `json:"qrImage,omitempty"`
	NextInput             *sessions.ConnectInput `json:"nextInput,omitempty"`
	NextStep              string                 `json:"nextStep,omitempty"`
	AssistantInstructions []string               `json:"assistantInstructions,omitempty"`
}

func sessionConnect(ctx context.Context, caller caller, input SessionConnectInput) (answer[SessionConnectResult], error) {
	if account := caller.session.Account(); account != nil && account.Pubkey() == caller.session.Key() && caller.session.Restore(ctx) == nil {
		return answer[SessionConnectResult]{data: authenticated(sessions.SignedIn{Pubkey: account.Pubkey(), Credential: account.Credential()})}, nil
	}
	pending, err := caller.registry.Connect(caller.session.Key(), input.Regenerate)
	if err != nil {
		return answer[SessionConnectResult]{}, err
	}
	if signedIn, ok := pending.Collect(); ok {
		return answer[SessionConnectResult]{data: authenticated(signedIn)}, nil
	}
	if !input.Wait {
		pending.Listen(ctx)
		result, err := pendingConnect(pending.URI())
		return answer[SessionConnectResult]{data: result}, err
	}
	signedIn, err := waitForSigner(ctx, pending, time.Duration(input.TimeoutSeconds)*time.Second)
	if err != nil {
		return answer[SessionConnectResult]{}, err
	}
	return answer[SessionConnectResult]{data: authenticated(signedIn)}, nil
}

func authenticated(signedIn sessions.SignedIn) SessionConnectResult {
	return SessionConnectResult{Authenticated: true, Pubkey: signedIn.Pubkey, CredentialType: signedIn.Credential}
}

func pendingConnect(uri string) (SessionConnectResult, error) {
	code, err := codeOf(uri)
	if err != nil {
		return SessionConnectResult{}, err
	}
	return SessionConnectResult{
		Pending:        true,
		DisplayTitle:   "Sign in to Hostr",
		DisplayMessage: "Scan this code with your Nostr signer app, or open the link on the device that has it, and approve the connection.",
		NostrConnect:   uri,
		QR:             code.terminal,
		QRImage:        code.image,
		NextInput:      &sessions.ConnectInput{Wait: true},
		NextStep:       "Show the code, then call hostr_session_connect again at once with wait=true and regenerate=false; when it reports authenticated, carry on.",
		AssistantInstructions: []string{
			"Show the user the QR code and the nostrconnect link.",
			"Call hostr_session_connect again at once with wait=true and regenerate=false, without waiting for the user to say anything.",
			"When it reports authenticated, carry on with what the user asked for.",
		},
	}, nil
}

// connectCode is a sign-in code in its two drawn forms.
type connectCode struct{ terminal, image string }

func codeOf(uri string) (connectCode, error) {
	image, err := qr.PNGDataURI(uri)
	if err != nil {
		return connectCode{}, fmt.Errorf("drawing the sign-in code: %w", err)
	}
	terminal, err := qr.Terminal(uri)
	if err != nil {
		return connectCode{}, fmt.Errorf("drawing the sign-in code: %w", err)
	}
	return connectCode{terminal: terminal, image: image}, nil
}

// waitForSigner waits for the person with the signer. Giving up leaves the sign-in
// open for the next call.
func waitForSigner(ctx context.Context, pending *sessions.PendingSignIn, patience time.Duration) (sessions.SignedIn, error) {
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	signedIn, err := pending.Wait(waiting)
	if err != nil && waiting.Err() != nil && ctx.Err() == nil {
		return sessions.SignedIn{}, fault.New(fault.NostrConnectTimeout, "The signer has not approved the sign-in within %s. The code stays valid: approve it and call again with wait=true.", patience).Transient()
	}
	return signedIn, err
}

// connectLimit lets the wait that was asked for end by itself.
func connectLimit(input SessionConnectInput) time.Duration {
	if !input.Wait {
		return defaultLimit
	}
	return max(defaultLimit, time.Duration(input.TimeoutSeconds)*time.Second+limitMargin)
}

// OAuthPending is the result of startOAuthNostrConnect (spec 20 §5.4).
type OAuthPending struct {
	RequestID    string `json:"requestId"`
	Pending      bool   `json:"pending"`
	NostrConnect string `json:"nostrconnect"`
	QR           string `json:"qr"`
	QRImage      string `json:"qrImage"`
}

// OAuthSignedIn is the result of the completing methods (spec 20 §5.5 and §5.6).
type OAuthSignedIn struct {
	Authenticated  bool                   `json:"authenticated"`
	Pubkey         string                 `json:"pubkey"`
	CredentialType secrets.CredentialType `json:"credentialType"`
}

// StartOAuthNostrConnect begins a sign-in with a remote signer (spec 20 §5.4).
func (p *Product) StartOAuthNostrConnect(ctx context.Context, start request.OAuthNostrConnect) (request.Outcome, error) {
	registry, err := p.runtime.Sessions(ctx)
	if err != nil {
		return request.Outcome{}, err
	}
	pending, err := registry.StartLogin(start.RequestID, start.Regenerate)
	if err != nil {
		return request.Outcome{}, err
	}
	pending.Listen(ctx)
	code, err := codeOf(pending.URI())
	if err != nil {
		return request.Outcome{}, err
	}
	return request.Outcome{Data: OAuthPending{
		RequestID: start.RequestID, Pending: true, NostrConnect: pending.URI(), QR: code.terminal, QRImage: code.image,
	}}, nil
}

// CompleteOAuthNostrConnect waits for the remote signer (spec 20 §5.5).
func (p *Product) CompleteOAuthNostrConnect(ctx context.Context, complete request.OAuthNostrConnect) (request.Outcome, error) {
	registry, err := p.runtime.Sessions(ctx)
	if err != nil {
		return request.Outcome{}, err
	}
	pending, ok := registry.Login(complete.RequestID)
	if !ok {
		return request.Outcome{}, unknownLogin()
	}
	signedIn, err := waitForSigner(ctx, pending, complete.Timeout)
	if errors.Is(err, sessions.ErrReplaced) {
		return request.Outcome{}, unknownLogin()
	}
	if fault.Is(err, fault.SessionConnectFailed) {
		incomplete := *fault.From(err)
		incomplete.Code = fault.NostrConnectIncomplete
		return request.Outcome{}, &incomplete
	}
	if err != nil {
		return request.Outcome{}, err
	}
	return request.Outcome{Data: OAuthSignedIn{Authenticated: true, Pubkey: signedIn.Pubkey, CredentialType: signedIn.Credential}}, nil
}

func unknownLogin() *fault.Error {
	return fault.New(fault.UnknownOAuthRequest, "No sign-in is pending under this request id: start it again.")
}

// CompleteOAuthNSec signs in with a private key (spec 20 §5.6).
func (p *Product) CompleteOAuthNSec(ctx context.Context, complete request.OAuthNSec) (request.Outcome, error) {
	registry, err := p.runtime.Sessions(ctx)
	if err != nil {
		return request.Outcome{}, err
	}
	signedIn, err := registry.SignInWithKey(ctx, secrets.NewSecret(complete.NSec))
	if err != nil {
		return request.Outcome{}, err
	}
	registry.ForgetLogin(complete.RequestID)
	return request.Outcome{Data: OAuthSignedIn{Authenticated: true, Pubkey: signedIn.Pubkey, CredentialType: signedIn.Credential}}, nil
}

// SignedOut is the result of logoutSession (spec 10 §3.5).
type SignedOut struct {
	// Pubkey is the session key; an npub comes back as hex.
	Pubkey    string `json:"pubkey"`
	SignedOut bool   `json:"signedOut"`
}

// LogoutSession ends an account's session (spec 20 §7).
func (p *Product) LogoutSession(ctx context.Context, pubkey string) (request.Outcome, error) {
	registry, err := p.runtime.Sessions(ctx)
	if err != nil {
		return request.Outcome{}, err
	}
	pubkey = sessionKey(pubkey)
	if err := registry.Logout(ctx, pubkey); err != nil {
		return request.Outcome{}, err
	}
	return request.Outcome{Data: SignedOut{Pubkey: pubkey, SignedOut: true}}, nil
}
