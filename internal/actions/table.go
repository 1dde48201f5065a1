package actions

import (
	"context"
	"encoding/json"
	"time"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/request"
	"hostr-daemon/internal/runtime"
)

// defaultLimit ends an action before the bridge gives up on it at 120 s.
const defaultLimit = 110 * time.Second

// action is one row of the table: how a call of that id is run.
type action struct {
	run func(ctx context.Context, session *runtime.Session, call request.Action) (request.Outcome, error)
	// limit is set where the action's own wait may be longer than the default.
	limit func(call request.Action) time.Duration
	// waitsForPerson marks sign-in waits.
	waitsForPerson bool
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
	work func(ctx context.Context, session *runtime.Session, input I) (answer[R], error),
) action {
	return action{run: func(ctx context.Context, session *runtime.Session, call request.Action) (request.Outcome, error) {
		input, err := parse(call.Input)
		if err != nil {
			return request.Outcome{}, err
		}
		result, err := work(ctx, session, input)
		if err != nil {
			return request.Outcome{}, err
		}
		return request.Outcome{Data: result.data, DryRun: input.IsDryRun(), Warnings: result.warnings}, nil
	}}
}

// pending makes a row of an action whose work is still to come: the input is
// checked, so that a caller learns of mistakes, then the answer says so.
func pending[I parsed](parse func(json.RawMessage) (I, error), what string) action {
	return action{run: func(_ context.Context, _ *runtime.Session, call request.Action) (request.Outcome, error) {
		if _, err := parse(call.Input); err != nil {
			return request.Outcome{}, err
		}
		return request.Outcome{}, notYet(what)
	}}
}

// table maps each id of the catalog to its row.
func table() map[string]action {
	return map[string]action{
		"hostr.session.status":  {run: sessionStatus},
		"hostr.session.connect": pending(ParseSessionConnectInput, "Signing in"),

		"hostr.listings.search":       run(ParseListingsSearchInput, listingsSearch),
		"hostr.listings.list":         pending(ParseListingsListInput, "Listing an author's places"),
		"hostr.listings.create":       pending(ParseListingsCreateInput, "Creating listings"),
		"hostr.listings.edit":         pending(ParseListingsEditInput, "Editing listings"),
		"hostr.listings.availability": pending(ParseListingsAvailabilityInput, "Checking free dates"),
		"hostr.listings.reviews":      pending(ParseListingsAnchorsInput, "Reading reviews"),
		"hostr.listings.orderGroups":  pending(ParseListingsAnchorsInput, "Reading a listing's orders"),

		"hostr.orders.bookAndPay":      pending(ParseOrderBookAndPayInput, "Booking and paying"),
		"hostr.orders.negotiateOffer":  pending(ParseOrdersOfferInput, "Making offers"),
		"hostr.orders.negotiateAccept": pending(ParseOrderTradeInput, "Accepting offers"),
		"hostr.orders.pay":             pending(ParseOrderPayInput, "Paying orders"),
		"hostr.orders.commit":          pending(ParseOrderCommitInput, "Committing orders"),
		"hostr.orders.cancel":          pending(ParseOrderTradeInput, "Cancelling orders"),
		"hostr.orders.review":          pending(ParseOrderReviewInput, "Reviewing stays"),

		"hostr.updates":          pending(ParseUpdatesInput, "Reading the inbox"),
		"hostr.thread.view":      pending(ParseThreadViewInput, "Reading conversations"),
		"hostr.thread.message":   pending(ParseThreadMessageInput, "Sending messages"),
		"hostr.escrow.involve":   pending(ParseEscrowInvolveInput, "Bringing an escrow in"),
		"hostr.profile.show":     pending(ParseEmptyInput, "Showing one's own profile"),
		"hostr.profile.lookup":   run(ParseProfileLookupInput, profileLookup),
		"hostr.profile.edit":     pending(ParseProfileEditInput, "Editing profiles"),
		"hostr.trips.list":       pending(ParseOrderCollectionInput, "Listing trips"),
		"hostr.bookings.list":    pending(ParseOrderCollectionInput, "Listing bookings"),
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
