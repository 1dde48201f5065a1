package actions

import (
	"context"
	"time"

	"hostr-daemon/internal/market"
	"hostr-daemon/internal/request"
	"hostr-daemon/internal/sessions"
)

// OrderListResult is the result of hostr.trips.list and hostr.bookings.list (spec 51
// §7).
type OrderListResult struct {
	Mode   market.CollectionMode `json:"mode"`
	Source string                `json:"source"`
	// Count is how many results there are, InvalidCount how many more trades.
	Count        int                     `json:"count"`
	InvalidCount int                     `json:"invalidCount"`
	Results      []market.CollectionItem `json:"results"`
}

// OrderLookupResult is the same for one trade id, verified or not. The cards of the
// bridge show one that is not found as pending.
type OrderLookupResult struct {
	Mode market.CollectionMode `json:"mode"`
	market.OrderLookup
}

// listSources name the lists in results.
var listSources = map[market.CollectionMode]string{
	market.Trips:    "userSubscriptions.myResolvedTripsList",
	market.Bookings: "userSubscriptions.myResolvedHostingsList",
}

// orderLists is the row of a list, which waits as long as its input says.
func orderLists(mode market.CollectionMode) action {
	row := signedIn(ParseOrderCollectionInput, func(ctx context.Context, caller caller, account *sessions.Account, input OrderCollectionInput) (answer[any], error) {
		return orderList(ctx, caller, account, input, mode)
	})
	row.limit = listLimit
	return row
}

// listLimit is the longest a list may take: its wait comes after the account's start
// and before the look-up of profiles.
func listLimit(call request.Action) time.Duration {
	const longest, around = 1 << 12, time.Minute
	if len(call.Input) > longest {
		return defaultLimit
	}
	input, err := ParseOrderCollectionInput(call.Input)
	if err != nil {
		return defaultLimit
	}
	return max(defaultLimit, seconds(input.WaitSeconds)+around)
}

// orderList returns an OrderListResult, or an OrderLookupResult for a trade id.
func orderList(ctx context.Context, caller caller, account *sessions.Account, input OrderCollectionInput, mode market.CollectionMode) (answer[any], error) {
	if err := caller.session.AwaitHydration(ctx); err != nil {
		return answer[any]{}, err
	}
	service, err := orderService(ctx, caller, account)
	if err != nil {
		return answer[any]{}, err
	}
	if input.TradeID != "" {
		found, err := service.Lookup(ctx, input.TradeID, seconds(input.WaitSeconds))
		if err != nil {
			return answer[any]{}, err
		}
		return answer[any]{data: OrderLookupResult{Mode: mode, OrderLookup: found.OrderLookup}, warnings: warnings(found.Warning)}, nil
	}
	collected, err := service.List(ctx, mode, input.Limit, seconds(input.WaitSeconds))
	if err != nil {
		return answer[any]{}, err
	}
	return answer[any]{data: OrderListResult{
		Mode: mode, Source: listSources[mode], Count: len(collected.Items),
		InvalidCount: collected.Invalid, Results: collected.Items,
	}, warnings: warnings(collected.Warning)}, nil
}
