// Package actions runs the catalog's actions: who may call it, what the input
// means, which service does the work, and what the result looks like.
//
// It knows sessions and their services. It knows no frames, and touches no relay,
// chain or file itself.
package actions

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"hostr-daemon/catalog"
	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/request"
	"hostr-daemon/internal/runtime"
)

// Product answers the methods of the line protocol. It implements
// daemon.Product, and the command line calls it directly.
type Product struct {
	catalog *catalog.Catalog
	runtime *runtime.Runtime
	table   map[string]action
}

// New returns the product over a running daemon.
func New(actionCatalog *catalog.Catalog, running *runtime.Runtime) *Product {
	return &Product{catalog: actionCatalog, runtime: running, table: table()}
}

// Describe returns the whole catalog (spec 30 §3), or why the daemon cannot serve.
func (p *Product) Describe(ctx context.Context) (json.RawMessage, error) {
	if _, err := p.runtime.Environment(ctx); err != nil {
		return nil, err
	}
	return p.catalog.Describe(), nil
}

// VisibleActions returns what an account may see (spec 30 §4).
func (p *Product) VisibleActions(ctx context.Context, pubkey string) (any, error) {
	facts, err := p.runtime.Environment(ctx)
	if err != nil {
		return nil, err
	}
	return p.catalog.Visible(pubkey, facts.EscrowPubkeys), nil
}

// CallAction runs one action in the order of spec 30 §7.2: caller, session, id,
// input, work. Every failure is a coded error.
func (p *Product) CallAction(ctx context.Context, call request.Action) (request.Outcome, error) {
	call.Pubkey = strings.TrimSpace(call.Pubkey)
	spec, known := p.catalog.Lookup(call.ID)
	if call.Pubkey == "" && !spec.Public {
		return request.Outcome{}, fault.New(fault.AuthRequired,
			"%s needs a signed-in account: sign in with hostr.session.connect and pass the account's pubkey.", named(call.ID))
	}
	session, err := p.runtime.Foreground(ctx)
	if err != nil {
		return request.Outcome{}, err
	}
	if !known {
		return request.Outcome{}, p.unknown(call.ID)
	}
	return p.table[call.ID].run(ctx, session, call)
}

// TimeLimit is the longest a call may take before the protocol answers for it.
func (p *Product) TimeLimit(call request.Action) time.Duration {
	if limit := p.table[call.ID].limit; limit != nil {
		return limit(call)
	}
	return defaultLimit
}

// WaitsForPerson tells whether the call does nothing but wait for somebody to
// approve a sign-in, so that at the end of input it need not be waited for.
func (p *Product) WaitsForPerson(call request.Action) bool {
	return p.table[call.ID].waitsForPerson
}

// UploadImage stores an image on Blossom (spec 20 §11).
func (p *Product) UploadImage(context.Context, request.Upload) (request.Outcome, error) {
	return request.Outcome{}, notYet("Uploading images")
}

// LogoutSession ends an account's session (spec 20 §7).
func (p *Product) LogoutSession(context.Context, string) (request.Outcome, error) {
	return request.Outcome{}, notYet("Signing out")
}

// StartOAuthNostrConnect begins a sign-in with a remote signer (spec 20 §5.4).
func (p *Product) StartOAuthNostrConnect(context.Context, request.OAuthNostrConnect) (request.Outcome, error) {
	return request.Outcome{}, notYet("Signing in with Nostr Connect")
}

// CompleteOAuthNostrConnect waits for the remote signer (spec 20 §5.5).
func (p *Product) CompleteOAuthNostrConnect(context.Context, request.OAuthNostrConnect) (request.Outcome, error) {
	return request.Outcome{}, notYet("Signing in with Nostr Connect")
}

// CompleteOAuthNSec signs in with a private key (spec 20 §5.6).
func (p *Product) CompleteOAuthNSec(context.Context, request.OAuthNSec) (request.Outcome, error) {
	return request.Outcome{}, notYet("Signing in with a private key")
}

// unknownDetails are the details of unknown_action (spec 10 §3.4 step 6).
type unknownDetails struct {
	Action           string   `json:"action"`
	AvailableActions []string `json:"availableActions"`
}

func (p *Product) unknown(id string) *fault.Error {
	return fault.New(fault.UnknownAction, "There is no action %s; details.availableActions lists those there are.", named(id)).
		WithDetails(unknownDetails{Action: id, AvailableActions: p.catalog.IDs()})
}

// named makes an id from outside fit for a message: quoted, on one line, bounded.
func named(id string) string {
	const longest = 80
	if runes := []rune(id); len(runes) > longest {
		id = string(runes[:longest]) + "…"
	}
	return strconv.Quote(id)
}

// notYet answers what a later version will do.
func notYet(what string) *fault.Error {
	return fault.New(fault.NotImplemented, "%s is not part of this version of hostr-daemon yet. Searching listings and looking up profiles work without it.", what)
}
