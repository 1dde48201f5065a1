package actions

import (
	"context"
	"errors"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/market"
	"hostr-daemon/internal/money"
	"hostr-daemon/internal/orders"
	"hostr-daemon/internal/relay"
	"hostr-daemon/internal/sessions"
)

// FirstOfferResult is the result of hostr.orders.negotiateOffer for a new trade (spec
// 51 §3.1).
type FirstOfferResult struct {
	DryRun bool `json:"dryRun"`
	// Delivery is giftwrap: nothing of an offer is public.
	Delivery string `json:"delivery"`
	// Event is signed, also in a preview.
	Event        market.EventJSON `json:"event"`
	TradeID      string           `json:"tradeId"`
	TradeContext TradeContext     `json:"tradeContext"`
	// Listing and the Amount of the input belong to a preview.
	Listing *market.ListingSummary `json:"listing,omitempty"`
	Amount  *money.AmountResult    `json:"amount,omitempty"`
	// RelayResponses are there once it was sent.
	RelayResponses []relay.Receipt `json:"relayResponses,omitzero"`
}

// TradeContext is a trade as other actions pass it on (spec 51 §2.5).
type TradeContext struct {
	TradeID       string           `json:"tradeId"`
	ListingAnchor string           `json:"listingAnchor"`
	SellerPubkey  string           `json:"sellerPubkey"`
	Order         market.EventJSON `json:"order"`
}

// CounterOfferResult is the result of hostr.orders.negotiateOffer in a trade and of
// hostr.orders.negotiateAccept (spec 51 §4).
type CounterOfferResult struct {
	DryRun bool `json:"dryRun"`
	// Event is signed, also in a preview.
	Event   market.EventJSON `json:"event"`
	TradeID string           `json:"tradeId"`
	// RecipientPubkeys belong to a preview, RelayResponses are there once it was sent.
	RecipientPubkeys []string        `json:"recipientPubkeys,omitzero"`
	RelayResponses   []relay.Receipt `json:"relayResponses,omitzero"`
}

// MissingResult stands in place of a preview that cannot be (spec 51 §4).
type MissingResult struct {
	DryRun      bool   `json:"dryRun"`
	WillPublish bool   `json:"willPublish"`
	TradeID     string `json:"tradeId"`
	Reason      string `json:"reason"`
	Message     string `json:"message"`
	// Anchor is the listing that is missing.
	Anchor string `json:"anchor,omitempty"`
}

// OrderCancelResult is the result of hostr.orders.cancel (spec 51 §5).
type OrderCancelResult struct {
	// Mode is committed or negotiation.
	Mode   string `json:"mode"`
	DryRun bool   `json:"dryRun"`
	// WillPublish is there in a preview of a public cancellation, which has no Event.
	WillPublish bool              `json:"willPublish,omitempty"`
	Event       *market.EventJSON `json:"event,omitempty"`
	TradeID     string            `json:"tradeId"`
	// OrderGroup belongs to a preview of a public cancellation, RecipientPubkeys to that of
	// a private one.
	OrderGroup       []market.EventJSON `json:"orderGroup,omitzero"`
	RecipientPubkeys []string           `json:"recipientPubkeys,omitzero"`
	// RelayResponses are there once a private one was sent.
	RelayResponses []relay.Receipt `json:"relayResponses,omitzero"`
}

// ordersNegotiateOffer returns a FirstOfferResult, or what counterOffer does.
func ordersNegotiateOffer(ctx context.Context, caller caller, account *sessions.Account, input OrdersOfferInput) (answer[any], error) {
	if input.TradeID != "" {
		return counterOffer(ctx, caller, account, orders.CounterRequest{
			TradeID: input.TradeID, Amount: input.Amount, DryRun: input.DryRun, Wait: seconds(input.TimeoutSeconds),
		})
	}
	service, err := orderService(ctx, caller, account)
	if err != nil {
		return answer[any]{}, err
	}
	offer, err := service.FirstOffer(ctx, orders.FirstOfferRequest{
		Listing: input.ListingAnchor.Anchor, Given: input.ListingAnchor.Given,
		Start: *input.Start, End: *input.End, Amount: input.Amount, DryRun: input.DryRun,
	})
	if err != nil {
		return answer[any]{}, err
	}
	return answer[any]{data: firstOfferResult(offer, input)}, nil
}

func firstOfferResult(offer orders.FirstOffer, input OrdersOfferInput) FirstOfferResult {
	event := market.NewEventJSON(offer.Order.Event)
	result := FirstOfferResult{
		DryRun: input.DryRun, Delivery: "giftwrap", Event: event, TradeID: offer.Order.TradeID,
		TradeContext: TradeContext{
			TradeID: offer.Order.TradeID, ListingAnchor: offer.Order.ListingAnchor,
			SellerPubkey: offer.Listing.Event.PubKey, Order: event,
		},
		RelayResponses: offer.Receipts,
	}
	if input.DryRun {
		listing := offer.Listing.Summary()
		result.Listing = &listing
		if input.Amount != nil {
			amount := input.Amount.Result()
			result.Amount = &amount
		}
	}
	return result
}

func ordersNegotiateAccept(ctx context.Context, caller caller, account *sessions.Account, input OrderTradeInput) (answer[any], error) {
	return counterOffer(ctx, caller, account, orders.CounterRequest{
		TradeID: input.TradeID, Accept: true, DryRun: input.DryRun, Wait: seconds(input.TimeoutSeconds),
	})
}

// counterOffer returns a CounterOfferResult, or a MissingResult in place of a preview.
func counterOffer(ctx context.Context, caller caller, account *sessions.Account, request orders.CounterRequest) (answer[any], error) {
	service, err := orderService(ctx, caller, account)
	if err != nil {
		return answer[any]{}, err
	}
	sent, err := service.Counter(ctx, request)
	var missing *orders.Missing
	if request.DryRun && errors.As(err, &missing) {
		return answer[any]{data: MissingResult{
			DryRun: true, TradeID: request.TradeID, Reason: missing.Reason, Message: missing.Message(), Anchor: missing.Anchor,
		}}, nil
	}
	if err != nil {
		return answer[any]{}, err
	}
	result := CounterOfferResult{
		DryRun: request.DryRun, Event: market.NewEventJSON(sent.Order.Event), TradeID: sent.Order.TradeID, RelayResponses: sent.Receipts,
	}
	if request.DryRun {
		result.RecipientPubkeys = sent.Recipients
	}
	return answer[any]{data: result}, nil
}

func ordersCancel(ctx context.Context, caller caller, account *sessions.Account, input OrderTradeInput) (answer[OrderCancelResult], error) {
	service, err := orderService(ctx, caller, account)
	if err != nil {
		return answer[OrderCancelResult]{}, err
	}
	cancelled, err := service.Cancel(ctx, orders.CancelRequest{
		TradeID: input.TradeID, DryRun: input.DryRun, Wait: seconds(input.TimeoutSeconds),
	})
	if err != nil {
		return answer[OrderCancelResult]{}, err
	}
	return answer[OrderCancelResult]{data: cancelResult(cancelled, input)}, nil
}

func cancelResult(cancelled orders.Cancelled, input OrderTradeInput) OrderCancelResult {
	result := OrderCancelResult{Mode: "committed", DryRun: input.DryRun, TradeID: input.TradeID}
	event := cancelled.Event
	switch {
	case cancelled.Public == nil:
		event = cancelled.Sent.Order.Event
		result.Mode, result.RelayResponses = "negotiation", cancelled.Sent.Receipts
		if input.DryRun {
			result.RecipientPubkeys = cancelled.Sent.Recipients
		}
	case input.DryRun:
		result.WillPublish, result.OrderGroup = true, market.EventsOfOrders(cancelled.Public)
	}
	if event != nil {
		shown := market.NewEventJSON(event)
		result.Event = &shown
	}
	return result
}

// orderService returns the order service of the account. Somebody may have signed in or
// out since the call began.
func orderService(ctx context.Context, caller caller, account *sessions.Account) (*orders.Service, error) {
	services, err := caller.session.Services(ctx)
	if err != nil {
		return nil, err
	}
	if services.Orders == nil || caller.session.Account() != account {
		return nil, fault.New(fault.AuthRequired, "The account signed out while the call began: sign in with hostr.session.connect and call again.").Transient()
	}
	return services.Orders, nil
}
