package orders

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/market"
)

// CancelRequest ends a trade.
type CancelRequest struct {
	TradeID string
	DryRun  bool
	// Wait is how long the messages may take to arrive where there is no public commit.
	Wait time.Duration
}

// Cancelled is a cancellation.
type Cancelled struct {
	// Public is the orders of a committed trade, nil for a negotiation.
	Public []market.Order
	// Event is the published cancellation of a committed trade, nil in a preview.
	Event *nostr.Event
	// Sent is the private cancellation of a negotiation.
	Sent Sent
}

// Cancel ends a trade (spec 51 §5): in public when somebody has committed, else in the
// conversation alone. Whether somebody has is asked of the relay; when that cannot be
// found out the error is a retryable unexpected_error, since a private cancellation
// would leave the booking standing.
//
// Other errors are already_cancelled and order_not_found, also in a preview. Funds in
// escrow stay there.
func (s *Service) Cancel(ctx context.Context, request CancelRequest) (Cancelled, error) {
	end, err := s.acting.Take(ctx, request.TradeID)
	if err != nil {
		return Cancelled{}, err
	}
	defer end()
	public, err := s.committed(ctx, request.TradeID)
	if err != nil {
		return Cancelled{}, err
	}
	if len(public) > 0 {
		return s.cancelCommitted(ctx, public, request)
	}
	return s.cancelNegotiation(ctx, request)
}

// committed returns the public orders of a trade if one of them is at commit. It waits
// for all of them: the other side may have cancelled a moment ago.
func (s *Service) committed(ctx context.Context, tradeID string) ([]market.Order, error) {
	public, err := s.config.Trades.WaitPublic(ctx, tradeID, PublicWait{Done: never, Limit: s.limits.commit, UntilAnswered: true})
	switch believed := s.believed(tradeID, public.Orders); {
	case err != nil:
		return nil, err
	case anyCommitted(believed):
		return believed, nil
	case !public.Complete:
		return nil, fault.New(fault.UnexpectedError,
			"Nothing was cancelled: it is not known whether trade %.80s is committed, since the Hostr relay did not answer in full or the account seed is not there yet. Try again.", tradeID).Transient()
	}
	return nil, nil
}

func never([]market.Order) bool { return false }

func anyCommitted(orders []market.Order) bool {
	return slices.ContainsFunc(orders, func(order market.Order) bool { return order.Stage == market.StageCommit })
}

// cancelCommitted publishes the cancellation of a booking (spec 50 §10.5).
func (s *Service) cancelCommitted(ctx context.Context, public []market.Order, request CancelRequest) (Cancelled, error) {
	group, err := cancellable(public, request.TradeID)
	if err != nil || request.DryRun {
		return Cancelled{Public: public}, err
	}
	key, err := s.config.Trades.OwnKey(ctx, group.Listing(), request.TradeID)
	if err != nil {
		return Cancelled{}, err
	}
	// Another call may have cancelled meanwhile.
	latest, err := s.config.Trades.WaitPublic(ctx, request.TradeID, PublicWait{Done: never})
	if err != nil {
		return Cancelled{}, err
	}
	if group, err = cancellable(market.OrdersOfTrade(slices.Concat(public, s.believed(request.TradeID, latest.Orders)), nil), request.TradeID); err != nil {
		return Cancelled{}, err
	}
	publication, err := s.publicCancel(ctx, group, key)
	if err != nil {
		return Cancelled{}, err
	}
	event, err := s.config.Trades.Publish(ctx, publication)
	return Cancelled{Public: public, Event: event}, err
}

// alreadyDetails are the details of already_cancelled for a committed trade.
type alreadyDetails struct {
	TradeID    string             `json:"tradeId"`
	OrderGroup []market.EventJSON `json:"orderGroup"`
}

// cancellable returns the orders of a trade as one group, unless it is cancelled.
func cancellable(public []market.Order, tradeID string) (market.OrderGroup, error) {
	group, ok := market.NewOrderGroup(public)
	if !ok {
		return market.OrderGroup{}, fmt.Errorf("the orders of trade %.80s name no listing", tradeID)
	}
	if group.Cancelled() {
		return market.OrderGroup{}, fault.New(fault.AlreadyCancelled, "Trade %.80s is cancelled already.", tradeID).
			WithDetails(alreadyDetails{TradeID: tradeID, OrderGroup: market.EventsOfOrders(public)})
	}
	return group, nil
}

// publicCancel replaces the key's own order, or makes one where it has none.
func (s *Service) publicCancel(ctx context.Context, group market.OrderGroup, key Signer) (Publication, error) {
	publication := Publication{Key: key, Role: market.RoleBuyer, Type: market.TransitionCancel, From: market.StageNegotiate}
	if key.PublicKey() == group.SellerPubkey() {
		publication.Role = market.RoleSeller
	}
	for _, order := range group.Orders() {
		if order.Event.PubKey == key.PublicKey() {
			publication.From = order.Stage
			publication.Order = market.CancelOwnOrder(order, s.timestamp())
			return publication, nil
		}
	}
	parties := market.TradeParties{Seller: group.SellerPubkey(), Buyer: group.BuyerPubkey(), Escrow: group.EscrowPubkey()}
	participants, err := s.plan(ctx, key, parties, group.ListingAnchor(), group.TradeID())
	if err != nil {
		return Publication{}, err
	}
	publication.Order = market.BlankOrder{
		Author: key.PublicKey(), ListingAnchor: group.ListingAnchor(), TradeID: group.TradeID(), Participants: participants,
	}.Cancel(group.Start(), group.End(), s.timestamp())
	return publication, nil
}

// cancelNegotiation ends a private negotiation (spec 50 §10.3).
func (s *Service) cancelNegotiation(ctx context.Context, request CancelRequest) (Cancelled, error) {
	found, err := s.negotiation(ctx, request.TradeID, request.Wait)
	if err != nil {
		return Cancelled{}, err
	}
	details := tradeDetails{TradeID: request.TradeID}
	if len(found.requests) == 0 {
		return Cancelled{}, s.noOrder(request.TradeID)
	}
	previous := found.requests[len(found.requests)-1]
	if previous.Stage == market.StageCancel {
		return Cancelled{}, fault.New(fault.AlreadyCancelled, "The negotiation of trade %.80s is cancelled already.", request.TradeID).
			WithDetails(details)
	}
	listing, _ := previous.Listing()
	key, err := s.config.Trades.OwnKey(ctx, listing, request.TradeID)
	if err != nil {
		return Cancelled{}, err
	}
	event := market.CancelNegotiation(previous, key.PublicKey(), s.timestampAfter(found.requests))
	if s.checkSize(market.NewOrderMessage(signedSize(event), request.TradeID, found.recipients)) != nil {
		event = bareCancel(found.requests, key.PublicKey(), event.CreatedAt)
	}
	if err := key.SignEvent(ctx, event); err != nil {
		return Cancelled{}, fmt.Errorf("nothing was cancelled, because the cancellation was not signed: %w", err)
	}
	order, err := market.DecodeOrder(event)
	if err != nil {
		return Cancelled{}, err
	}
	sent, err := s.sendOrder(ctx, order, found, request.DryRun)
	return Cancelled{Sent: sent}, err
}

// signedSize returns the event as long as it will be once it is signed.
func signedSize(event *nostr.Event) *nostr.Event {
	signed := *event
	signed.Sig = strings.Repeat("0", 2*schnorrSize)
	return &signed
}

// schnorrSize is how many bytes a signature has.
const schnorrSize = 64

// bareCancel is a cancellation without what need not be in it, where the other side has
// filled the newest order up until a copy cannot be sent. It is about our own order where
// there is one, which others have not filled.
func bareCancel(requests []market.Order, author string, now nostr.Timestamp) *nostr.Event {
	order := requests[len(requests)-1]
	for _, own := range requests {
		if own.Event.PubKey == author {
			order = own
		}
	}
	listing, _ := order.Listing()
	participants := nostr.Tags{{"p", listing.PubKey, "", string(market.RoleSeller)}}
	if buyer := order.BuyerPubkey(); nostr.IsValidPublicKey(buyer) {
		participants = append(participants, nostr.Tag{"p", buyer, "", string(market.RoleBuyer)})
	}
	return market.BlankOrder{
		Author: author, ListingAnchor: order.ListingAnchor, TradeID: order.TradeID, Participants: participants,
	}.Cancel(order.Start, order.End, now)
}

func (s *Service) noOrder(tradeID string) *fault.Error {
	problem := fault.New(fault.OrderNotFound, "There is neither a booking nor a negotiation with trade id %.80s: hostr.updates lists those there are.", tradeID)
	if !s.config.Inbox.Live() {
		problem = fault.New(fault.OrderNotFound, "No negotiation with trade id %.80s was found, but not all messages have been read yet: try again.", tradeID).Transient()
	}
	return problem.WithDetails(tradeDetails{TradeID: tradeID})
}
