// Package actions runs the catalog's actions: who may call it, what the input
// means, which service does the work, and what the result looks like.
//
// It knows sessions and their services. It knows no frames, and touches no relay,
// chain or file itself.
package actions

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/catalog"
	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/media"
	"hostr-daemon/internal/request"
	"hostr-daemon/internal/runtime"
	"hostr-daemon/internal/sessions"
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
	visible := p.catalog.Visible(sessionKey(pubkey), facts.EscrowPubkeys)
	if given := strings.TrimSpace(pubkey); given != "" {
		visible.Pubkey = &given
	}
	return visible, nil
}

// CallAction runs one action in the order of spec 30 §7.2: caller, session, id,
// input, work. Every failure is a coded error.
func (p *Product) CallAction(ctx context.Context, call request.Action) (request.Outcome, error) {
	call.Pubkey = sessionKey(call.Pubkey)
	spec, known := p.catalog.Lookup(call.ID)
	if call.Pubkey == "" && !spec.Public {
		return request.Outcome{}, p.nameless(spec, known, call.ID)
	}
	from, err := p.caller(ctx, call.Pubkey)
	if err != nil {
		return request.Outcome{}, err
	}
	from.session.Hydrate()
	defer from.session.Operation(call.NotificationToken, call.TraceID)()
	outcome, err := p.dispatch(ctx, from, spec, known, call)
	if err != nil {
		return request.Outcome{}, from.session.Stale(err)
	}
	return outcome, nil
}

// nameless refuses a call without a pubkey. An id that does not exist has the same
// code (spec 10 §3.4 step 2).
func (p *Product) nameless(spec catalog.Action, known bool, id string) *fault.Error {
	if spec.AnyName {
		return fault.New(fault.AuthRequired,
			"%s needs the parameter pubkey, which is missing: any text that names who asks, such as your own session's id, will do; nobody need be signed in.", named(id)).At("pubkey")
	}
	refusal := fault.New(fault.AuthRequired,
		"%s needs a signed-in account: sign in with hostr.session.connect and pass the account's pubkey.", named(id))
	if known {
		return refusal
	}
	return refusal.WithHint(p.meant(id))
}

// meant is the question for an id that does not exist, "" where none is near.
func (p *Product) meant(id string) string {
	if nearest := p.catalog.Nearest(id); nearest != "" {
		return "Did you mean " + nearest + "?"
	}
	return ""
}

// caller opens the session of a pubkey, or the foreground one.
func (p *Product) caller(ctx context.Context, pubkey string) (caller, error) {
	registry, err := p.runtime.Sessions(ctx)
	if err != nil {
		return caller{}, err
	}
	from := caller{registry: registry}
	if pubkey == "" {
		from.session, err = registry.Foreground(ctx)
	} else {
		from.session, err = registry.Opened(ctx, pubkey)
	}
	if err != nil {
		return caller{}, err
	}
	from.services, err = from.session.Services(ctx)
	return from, err
}

func (p *Product) dispatch(ctx context.Context, from caller, spec catalog.Action, known bool, call request.Action) (request.Outcome, error) {
	if !known {
		return request.Outcome{}, p.unknown(call.ID)
	}
	if spec.RequiredRole != "" {
		if err := requireEscrow(ctx, from, call.ID); err != nil {
			return request.Outcome{}, err
		}
	}
	return p.table[call.ID].run(ctx, from, call)
}

// escrowDetails are the details of escrow_role_required.
type escrowDetails struct {
	Pubkey        string   `json:"pubkey"`
	EscrowPubkeys []string `json:"escrowPubkeys"`
}

// requireEscrow lets only the environment's escrow operators through (spec 10 §3.4).
func requireEscrow(ctx context.Context, from caller, id string) error {
	account, err := from.account(ctx, id)
	if err != nil {
		return err
	}
	escrows := from.registry.EscrowPubkeys()
	if slices.Contains(escrows, account.Pubkey()) {
		return nil
	}
	return fault.New(fault.EscrowRoleRequired, "%s is for the escrow operators of this environment, and %s is none of them.", named(id), account.Pubkey()).
		WithDetails(escrowDetails{Pubkey: account.Pubkey(), EscrowPubkeys: escrows})
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
	waits := p.table[call.ID].waitsForPerson
	return waits != nil && waits(call)
}

// UploadImage stores an image on Blossom (spec 20 §11), in the name of the account
// if it is signed in and can sign.
func (p *Product) UploadImage(ctx context.Context, upload request.Upload) (request.Outcome, error) {
	registry, err := p.runtime.Sessions(ctx)
	if err != nil {
		return request.Outcome{}, err
	}
	var signer media.Signer
	if key := sessionKey(upload.Pubkey); key != "" {
		if session, err := registry.Session(ctx, key); err == nil {
			if account := session.Account(); account != nil && account.Pubkey() == key && !account.NeedsRecovery() {
				signer = watchedSigner{account.Signer(), session}
			}
		}
	}
	uploaded, err := registry.Media().Upload(ctx, media.UploadRequest{Base64: upload.Base64, MIME: upload.MIME, Filename: upload.Filename}, signer)
	if err != nil {
		return request.Outcome{}, err
	}
	return request.Outcome{Data: uploaded}, nil
}

// watchedSigner has its session put a remote signer away that withdrew its permission:
// the upload goes on unsigned and does not end with that error.
type watchedSigner struct {
	media.Signer
	session *sessions.Session
}

// SignEvent implements media.Signer.
func (s watchedSigner) SignEvent(ctx context.Context, event *nostr.Event) error {
	err := s.Signer.SignEvent(ctx, event)
	if err != nil {
		_ = s.session.Stale(err)
	}
	return err
}

// unknownDetails are the details of unknown_action (spec 10 §3.4 step 6).
type unknownDetails struct {
	Action           string   `json:"action"`
	AvailableActions []string `json:"availableActions"`
}

func (p *Product) unknown(id string) *fault.Error {
	return fault.New(fault.UnknownAction, "There is no action %s; details.availableActions lists those there are.", named(id)).
		WithHint(p.meant(id)).
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
	return fault.New(fault.NotImplemented, "%s is not part of this version of hostr-daemon yet. Nothing was changed; a later version will do it.", what)
}
