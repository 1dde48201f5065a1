package actions

import (
	"context"
	"errors"

	"hostr-daemon/internal/market"
	"hostr-daemon/internal/orders"
	"hostr-daemon/internal/relay"
	"hostr-daemon/internal/sessions"
)

// OrderReviewResult is the result of hostr.orders.review (spec 51 §6).
type OrderReviewResult struct {
	DryRun bool `json:"dryRun"`
	// WillPublish is there in a preview.
	WillPublish bool   `json:"willPublish,omitempty"`
	TradeID     string `json:"tradeId"`
	// Rating is 1..5 stars.
	Rating        int    `json:"rating"`
	Content       string `json:"content"`
	ListingAnchor string `json:"listingAnchor"`
	OrderAnchor   string `json:"orderAnchor"`
	// Event is unsigned in a preview.
	Event market.EventJSON `json:"event"`
	// OrderLookup belongs to a preview, RelayResponses are there once it was published.
	OrderLookup    *market.OrderLookup `json:"orderLookup,omitempty"`
	RelayResponses []relay.Receipt     `json:"relayResponses,omitzero"`
}

// UnreviewableResult stands in place of the preview of a review that cannot be.
type UnreviewableResult struct {
	DryRun      bool   `json:"dryRun"`
	WillPublish bool   `json:"willPublish"`
	TradeID     string `json:"tradeId"`
	Reason      string `json:"reason"`
	Message     string `json:"message"`
	// Event is unsigned; it is there when the review is what is wrong.
	Event       *market.EventJSON  `json:"event,omitempty"`
	OrderLookup market.OrderLookup `json:"orderLookup"`
}

// ordersReview returns an OrderReviewResult, or an UnreviewableResult in place of a
// preview.
func ordersReview(ctx context.Context, caller caller, account *sessions.Account, input OrderReviewInput) (answer[any], error) {
	if err := caller.session.AwaitHydration(ctx); err != nil {
		return answer[any]{}, err
	}
	service, err := orderService(ctx, caller, account)
	if err != nil {
		return answer[any]{}, err
	}
	review, err := service.Review(ctx, orders.ReviewRequest{
		TradeID: input.TradeID, Stars: input.Rating, Content: input.Content,
		DryRun: input.DryRun, Wait: seconds(input.TimeoutSeconds),
	})
	var unreviewable *orders.Unreviewable
	if input.DryRun && errors.As(err, &unreviewable) {
		return answer[any]{data: UnreviewableResult{
			DryRun: true, TradeID: input.TradeID, Reason: string(unreviewable.Reason), Message: unreviewable.Message(),
			Event: unreviewable.Event, OrderLookup: unreviewable.Lookup,
		}}, nil
	}
	if err != nil {
		return answer[any]{}, err
	}
	result := OrderReviewResult{
		DryRun: input.DryRun, WillPublish: input.DryRun, TradeID: input.TradeID, Rating: input.Rating, Content: input.Content,
		ListingAnchor: review.ListingAnchor, OrderAnchor: review.OrderAnchor,
		Event: market.NewEventJSON(review.Event), RelayResponses: review.Receipts,
	}
	if input.DryRun {
		result.OrderLookup = &review.Lookup
	}
	return answer[any]{data: result}, nil
}
