package actions

import (
	"context"
	"encoding/json"
	"time"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/market"
	"hostr-daemon/internal/request"
	"hostr-daemon/internal/sessions"
)

// defaultLimit ends an action before the bridge gives up on it at 120 s.
const defaultLimit = 110 * time.Second

// limitMargin lets an action's own wait end by itself.
const limitMargin = 10 * time.Second

// action is one row of the table: how a call of that id is run.
type action struct {
	run func(ctx context.Context, caller caller, call request.Action) (request.Outcome, error)
	// limit is set where the action's own wait may be longer than the default.
	limit func(call request.Action) time.Duration
	// waitsForPerson tells of sign-in waits.
	waitsForPerson func(call request.Action) bool
	// pending is set where the work is still to come.
	pending bool
}

// caller is who asked, with the services to work for them.
type caller struct {
	registry *sessions.Registry
	session  *sessions.Session
	services *sessions.Services
}

// account returns the account the work is done for, or why it cannot be (spec 20 §6.1).
func (c caller) account(ctx context.Context, id string) (*sessions.Account, error) {
	return c.session.Check(ctx, id)
}

// answer is what an action function returns.
type answer[R any] struct {
	data     R
	warnings []*fault.Error
}

// warnings is the list of what may be one warning.
func warnings(warning *fault.Error) []*fault.Error {
	if warning == nil {
		return nil
	}
	return []*fault.Error{warning}
}

// parsed is what the generated inputs have in common.
type parsed interface{ IsDryRun() bool }

// run makes a row of a typed parser and a typed function.
func run[I parsed, R any](
	parse func(json.RawMessage) (I, error),
	work func(ctx context.Context, caller caller, input I) (answer[R], error),
) action {
	return action{run: func(ctx context.Context, caller caller, call request.Action) (request.Outcome, error) {
		input, err := parse(call.Input)
		if err != nil {
			return request.Outcome{}, err
		}
		result, err := work(ctx, caller, input)
		if err != nil {
			return request.Outcome{}, err
		}
		return request.Outcome{Data: result.data, DryRun: input.IsDryRun(), Warnings: result.warnings}, nil
	}}
}

// signedIn makes a row of a typed function that works for an account.
func signedIn[I parsed, R any](
	parse func(json.RawMessage) (I, error),
	work func(ctx context.Context, caller caller, account *sessions.Account, input I) (answer[R], error),
) action {
	return action{run: func(ctx context.Context, from caller, call request.Action) (request.Outcome, error) {
		return run(parse, func(ctx context.Context, from caller, input I) (answer[R], error) {
			account, err := from.account(ctx, call.ID)
			if err != nil {
				return answer[R]{}, err
			}
			return work(ctx, from, account, input)
		}).run(ctx, from, call)
	}}
}

// nothing is the result of what is still to come.
type nothing struct{}

// pending makes a row of an action whose work is still to come: input and account
// are checked, so that a caller learns of mistakes, then the answer says so.
func pending[I parsed](parse func(json.RawMessage) (I, error), what string) action {
	row := signedIn(parse, func(context.Context, caller, *sessions.Account, I) (answer[nothing], error) {
		return answer[nothing]{}, notYet(what)
	})
	row.pending = true
	return row
}

// connecting is the row of hostr.session.connect, which may wait for a person.
func connecting() action {
	row := run(ParseSessionConnectInput, sessionConnect)
	row.limit = func(call request.Action) time.Duration { return connectLimit(connectInput(call)) }
	row.waitsForPerson = func(call request.Action) bool { return connectInput(call).Wait }
	return row
}

// connectInput reads an input ahead of the call; one that is no sign-in input, or far
// too long to be one, reads as none.
func connectInput(call request.Action) SessionConnectInput {
	const longest = 1 << 12
	if len(call.Input) > longest {
		return SessionConnectInput{}
	}
	input, err := ParseSessionConnectInput(call.Input)
	if err != nil {
		return SessionConnectInput{}
	}
	return input
}

// table maps each id of the catalog to its row.
func table() map[string]action {
	return map[string]action{
		"hostr.session.status":  run(ParseSessionStatusInput, sessionStatus),
		"hostr.session.connect": connecting(),

		"hostr.listings.search":       run(ParseListingsSearchInput, listingsSearch),
		"hostr.listings.list":         signedIn(ParseListingsListInput, listingsList),
		"hostr.listings.create":       signedIn(ParseListingsCreateInput, listingsCreate),
		"hostr.listings.edit":         signedIn(ParseListingsEditInput, listingsEdit),
		"hostr.listings.availability": run(ParseListingsAvailabilityInput, listingsAvailability),
		"hostr.listings.reviews":      run(ParseListingsAnchorsInput, listingsReviews),
		"hostr.listings.orderGroups":  run(ParseListingsAnchorsInput, listingsOrderGroups),

		"hostr.orders.bookAndPay":      pending(ParseOrderBookAndPayInput, "Booking and paying"),
		"hostr.orders.negotiateOffer":  signedIn(ParseOrdersOfferInput, ordersNegotiateOffer),
		"hostr.orders.negotiateAccept": signedIn(ParseOrderTradeInput, ordersNegotiateAccept),
		"hostr.orders.pay":             pending(ParseOrderPayInput, "Paying orders"),
		"hostr.orders.commit":          pending(ParseOrderCommitInput, "Committing orders"),
		"hostr.orders.cancel":          signedIn(ParseOrderTradeInput, ordersCancel),
		"hostr.orders.review":          signedIn(ParseOrderReviewInput, ordersReview),

		"hostr.updates":          signedIn(ParseUpdatesInput, updates),
		"hostr.thread.view":      signedIn(ParseThreadViewInput, threadView),
		"hostr.thread.message":   signedIn(ParseThreadMessageInput, threadMessage),
		"hostr.escrow.involve":   signedIn(ParseEscrowInvolveInput, escrowInvolve),
		"hostr.profile.show":     signedIn(ParseEmptyInput, profileShow),
		"hostr.profile.lookup":   run(ParseProfileLookupInput, profileLookup),
		"hostr.profile.edit":     signedIn(ParseProfileEditInput, profileEdit),
		"hostr.trips.list":       orderLists(market.Trips),
		"hostr.bookings.list":    orderLists(market.Bookings),
		"hostr.escrow.methods":   pending(ParseEscrowMethodsInput, "Finding escrow methods"),
		"hostr.swaps.watch":      pending(ParseSwapsWatchInput, "Watching payments"),
		"hostr.swaps.recoverAll": pending(ParseSwapsRecoverAllInput, "Recovering swaps"),
		"hostr.swaps.list":       pending(ParseSwapsListInput, "Listing swaps"),

		"hostr.escrow.service.list":   pending(ParseEscrowServiceListInput, "Managing escrow services"),
		"hostr.escrow.service.get":    pending(ParseEscrowServiceGetInput, "Managing escrow services"),
		"hostr.escrow.service.edit":   pending(ParseEscrowServiceUpdateInput, "Managing escrow services"),
		"hostr.escrow.service.delete": pending(ParseEscrowServiceDeleteInput, "Managing escrow services"),

		"hostr.escrow.trades.list":      pending(ParseEscrowTradesListInput, "Arbitrating trades"),
		"hostr.escrow.trades.view":      pending(ParseEscrowTradeViewInput, "Arbitrating trades"),
		"hostr.escrow.trades.audit":     pending(ParseEscrowTradeAuditInput, "Arbitrating trades"),
		"hostr.escrow.trades.arbitrate": pending(ParseEscrowArbitrateInput, "Arbitrating trades"),

		"hostr.escrow.badges.definitions.list":   pending(ParseEscrowBadgeDefinitionsListInput, "Managing badges"),
		"hostr.escrow.badges.definitions.edit":   pending(ParseEscrowBadgeDefinitionEditInput, "Managing badges"),
		"hostr.escrow.badges.definitions.delete": pending(ParseEscrowBadgeDefinitionDeleteInput, "Managing badges"),
		"hostr.escrow.badges.awards.list":        pending(ParseEscrowBadgeAwardsListInput, "Managing badges"),
		"hostr.escrow.badges.award":              pending(ParseEscrowBadgeAwardInput, "Managing badges"),
		"hostr.escrow.badges.revoke":             pending(ParseEscrowBadgeRevokeInput, "Managing badges"),
	}
}
