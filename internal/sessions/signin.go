package sessions

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/relay"
	"hostr-daemon/internal/secrets"
	"hostr-daemon/internal/signer"
)

// SignedIn is the outcome of a sign-in.
type SignedIn struct {
	Pubkey     string
	Credential secrets.CredentialType
}

// SignInWithKey signs the account of a private key (an nsec) in to its own session
// and brings its background work up (spec 20 §5.6).
func (r *Registry) SignInWithKey(ctx context.Context, nsec secrets.Secret) (SignedIn, error) {
	if !strings.HasPrefix(nsec.Reveal(), "nsec1") {
		return SignedIn{}, invalidNSec()
	}
	identity, err := secrets.NewPrivateKeyIdentity(nsec)
	if err != nil {
		return SignedIn{}, invalidNSec()
	}
	return r.signIn(ctx, identity)
}

func invalidNSec() *fault.Error {
	return fault.New(fault.InvalidNSec, "This is no private key of Nostr: it starts with nsec1 and has 63 characters; copy it again from the app that keeps it.").
		At("nsec").Transient()
}

// signIn stores an identity under the account's own session key and makes that
// session act as it.
func (r *Registry) signIn(ctx context.Context, identity secrets.Identity) (SignedIn, error) {
	session, err := r.session(identity.PublicKey)
	if err != nil {
		return SignedIn{}, err
	}
	account, err := session.signIn(ctx, identity)
	if err != nil {
		return SignedIn{}, err
	}
	session.announce(account)
	return SignedIn{Pubkey: account.pubkey, Credential: account.credential}, nil
}

// signIn makes the session act as the identity. It is stored first: a crash after
// that leaves a session that the next start restores.
func (s *Session) signIn(ctx context.Context, identity secrets.Identity) (*Account, error) {
	s.change.Lock()
	defer s.change.Unlock()
	stored, err := s.records.SignIn(ctx, identity)
	if err != nil {
		return nil, err
	}
	account, err := accountOf(stored)
	if err != nil {
		return nil, err
	}
	if err := s.become(account); err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.opened = true
	s.mu.Unlock()
	if account.connection == nil {
		return account, nil
	}
	remote, err := s.remote(ctx, account)
	if err != nil {
		return nil, fmt.Errorf("connecting the remote signer: %w", err)
	}
	if err := account.holder.Set(remote); err != nil {
		return nil, err
	}
	account.lost.Store(false)
	return account, nil
}

// Check is what stands between a request and an account's work (spec 20 §6.1): who
// is signed in, whether they can sign, and whether the request means them. what
// names the action for the message.
func (s *Session) Check(ctx context.Context, what string) (*Account, error) {
	account, err := s.signedIn()
	if err != nil {
		return nil, err
	}
	if account == nil {
		return nil, s.authRequired("%s needs a signed-in account, and this account is not signed in here: connect its Nostr signer, then ask again.", what)
	}
	if account.NeedsRecovery() {
		if err := s.Restore(ctx); err != nil {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			return nil, s.authRequired("%s needs the account's Nostr signer, which does not answer: open the signer app or connect it again, then ask again.", what)
		}
	}
	if account.pubkey != s.key {
		return nil, fault.New(fault.SessionPubkeyMismatch, "%s was asked for in the name of %s, but the session is signed in as %s: ask with the account's own pubkey.", what, s.key, account.pubkey).
			WithDetails(mismatchDetails{TokenPubkey: s.key, ActivePubkey: account.pubkey})
	}
	return account, nil
}

type mismatchDetails struct {
	TokenPubkey  string `json:"tokenPubkey"`
	ActivePubkey string `json:"activePubkey"`
}

// Status is what hostr.session.status tells (spec 20 §5.1).
type Status struct {
	// ActivePubkey is empty when nobody is signed in.
	ActivePubkey string
	SignerOnline bool
	// Reconnect is set when the signer has to be connected again.
	Reconnect *Reconnect
}

// Status tells who is signed in and whether they can sign; a lost signer is given
// one chance to come back.
func (s *Session) Status(ctx context.Context) (Status, error) {
	account, err := s.signedIn()
	if account == nil {
		return Status{}, err
	}
	status := Status{ActivePubkey: account.pubkey, SignerOnline: true}
	if account.NeedsRecovery() {
		if err := s.Restore(ctx); err != nil {
			if ctx.Err() != nil {
				return Status{}, context.Cause(ctx)
			}
			status.SignerOnline = false
			status.Reconnect = s.reconnectHint("The account's Nostr signer does not answer.")
		}
	}
	return status, nil
}

// Reconnect tells an assistant how to bring a signer back (spec 20 §6.2).
type Reconnect struct {
	SessionAction         string       `json:"sessionAction"`
	TokenPubkey           string       `json:"tokenPubkey"`
	Message               string       `json:"message"`
	SessionInput          ConnectInput `json:"sessionInput"`
	Then                  ConnectInput `json:"then"`
	Instructions          string       `json:"instructions"`
	AssistantInstructions []string     `json:"assistantInstructions"`
	// Reason and OriginalError are set for a signer that withdrew its permission.
	Reason        string `json:"reason,omitempty"`
	OriginalError string `json:"originalError,omitempty"`
}

// ConnectInput is an input of hostr.session.connect.
type ConnectInput struct {
	Wait       bool `json:"wait"`
	Regenerate bool `json:"regenerate"`
}

func (s *Session) reconnectHint(message string) *Reconnect {
	return &Reconnect{
		SessionAction: "hostr_session_connect",
		TokenPubkey:   s.key,
		Message:       message,
		SessionInput:  ConnectInput{Wait: false, Regenerate: true},
		Then:          ConnectInput{Wait: true},
		Instructions:  "Get a new sign-in code, show it, and wait for the signer to approve; then repeat what was asked.",
		AssistantInstructions: []string{
			"Call hostr_session_connect with wait=false and regenerate=true.",
			"Show the user the QR code and the nostrconnect link it returns.",
			"Call hostr_session_connect again at once with wait=true and regenerate=false.",
			"When it reports authenticated, repeat the action that failed.",
		},
	}
}

func (s *Session) authRequired(format string, what string) *fault.Error {
	problem := fault.New(fault.AuthRequired, format, what)
	return problem.WithDetails(s.reconnectHint(problem.Message))
}

// Stale turns the error of an action into auth_required when the remote signer has
// withdrawn its permission, and puts that signer away (spec 20 §6.3). Other errors
// come back as they are.
func (s *Session) Stale(err error) error {
	account := s.Account()
	if errors.Is(err, signer.ErrClosed) || errors.Is(err, relay.ErrClosed) {
		return s.replaced(account)
	}
	var rejected *signer.Rejected
	if err == nil || account == nil || account.connection == nil || !errors.As(err, &rejected) || !rejected.NotAuthorized() {
		return err
	}
	account.lose()
	problem := fault.New(fault.AuthRequired, "The Nostr signer no longer lets this connection act for the account: connect it again, then repeat what was asked.").Transient()
	hint := s.reconnectHint(problem.Message)
	hint.Reason, hint.OriginalError = "signer_not_authorized", rejected.Error()
	return problem.WithDetails(hint)
}

// replaced explains an action that was cut off because its account signed out, or
// signed in anew, while it ran.
func (s *Session) replaced(account *Account) error {
	if s.registry.lifetime.Err() != nil {
		return ErrClosed
	}
	if account == nil {
		return s.authRequired("%s", "The account signed out while this was under way: sign in, then ask again.")
	}
	return fault.New(fault.UnexpectedError, "The account signed in anew while this was under way: ask again.").Transient()
}

// Operation registers a call that wants to hear of signer requests; the returned
// function ends that. Without a token or an account it does nothing.
func (s *Session) Operation(token, traceID string) (end func()) {
	account := s.Account()
	if account == nil || token == "" {
		return func() {}
	}
	return s.registry.notices.register(account.pubkey, token, traceID)
}
