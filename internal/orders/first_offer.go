package orders

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/market"
	"hostr-daemon/internal/money"
	"hostr-daemon/internal/relay"
)

// FirstOfferRequest says what a guest offers.
type FirstOfferRequest struct {
	Listing market.Anchor
	// Given is the listing as the caller named it.
	Given      string
	Start, End time.Time
	// Amount is the listing's price for these dates when nil.
	Amount *money.Amount
	DryRun bool
}

// FirstOffer is an offer that was sent, or in a preview would be.
type FirstOffer struct {
	// Order is signed.
	Order   market.Order
	Listing market.Listing
	// Receipts are the relay's answers, one message copy after the other; nil in a preview.
	Receipts []relay.Receipt
}

// FirstOffer offers a stay to the owner of a listing (spec 51 §3.1). A preview uses no
// trade account up, so that the live call has the same trade id.
//
// Errors are listing_not_found, listing_unavailable, availability_unknown, those of
// signing and sending, and unexpected_error where the listing has no price.
func (s *Service) FirstOffer(ctx context.Context, request FirstOfferRequest) (FirstOffer, error) {
	if err := s.config.SeedReady(ctx); err != nil {
		return FirstOffer{}, fmt.Errorf("nothing was offered, because the account seed is not ready: %w", err)
	}
	listing, err := s.free(ctx, request)
	if err != nil {
		return FirstOffer{}, err
	}
	order, trade, err := s.firstOffer(ctx, request, *listing)
	if err != nil {
		return FirstOffer{}, err
	}
	offer := FirstOffer{Order: order, Listing: *listing}
	if request.DryRun {
		return offer, nil
	}
	return finish(ctx, s, "sending the offer", func(ctx context.Context) (FirstOffer, error) {
		draft := market.NewOrderMessage(order.Event, order.TradeID, []string{listing.Event.PubKey})
		if offer.Receipts, err = s.config.Inbox.Send(ctx, draft); err != nil {
			if nothingLeft(err) {
				s.config.Trades.Release(trade)
			}
			return FirstOffer{}, err
		}
		s.keepTrade(ctx, order, listing.Event.PubKey)
		return offer, nil
	})
}

// nothingLeft reports whether it is certain that no copy of a message has left.
func nothingLeft(err error) bool {
	var said interface{ NothingLeft() bool }
	return errors.As(err, &said) && said.NothingLeft()
}

// free returns the listing if the dates are known to be free.
func (s *Service) free(ctx context.Context, request FirstOfferRequest) (*market.Listing, error) {
	stay := market.DateRange{Start: request.Start, End: request.End}
	listing, available, warning, err := s.config.Listings.Available(ctx, request.Listing, stay)
	details := unavailableDetails{Anchor: request.Given, Start: isoText(request.Start), End: isoText(request.End)}
	switch {
	case err != nil:
		return nil, err
	case listing == nil:
		return nil, listingNotFound(request.Given, warning)
	case warning != nil:
		return nil, fault.New(fault.AvailabilityUnknown,
			"Nothing was offered: whether the dates are free is not known. %s Try again.", warning.Message).
			WithDetails(details).Transient()
	case !available:
		return nil, fault.New(fault.ListingUnavailable,
			"The listing %.200s is taken from %s to %s: choose other dates; hostr.listings.availability tells which are free.",
			request.Given, request.Start.UTC().Format(time.DateOnly), request.End.UTC().Format(time.DateOnly)).
			WithDetails(details)
	}
	return listing, nil
}

// unavailableDetails are the details of listing_unavailable and availability_unknown.
type unavailableDetails struct {
	// Anchor is as it was given.
	Anchor string `json:"anchor"`
	// Start and End are ISO texts in UTC.
	Start string `json:"start"`
	End   string `json:"end"`
}

func isoText(instant time.Time) string { return instant.UTC().Format("2006-01-02T15:04:05.000Z") }

// anchorDetails are the details of listing_not_found.
type anchorDetails struct {
	// Anchor is as it was given.
	Anchor string `json:"anchor"`
}

// listingNotFound tells of a listing that the relay has not shown; the warning is set
// when it may have it all the same.
func listingNotFound(anchor string, warning *fault.Error) *fault.Error {
	problem := fault.New(fault.ListingNotFound, "There is no listing %.200s on the Hostr relay.", anchor)
	if warning != nil {
		problem = fault.New(fault.ListingNotFound, "The listing %.200s was not found, but it may exist all the same. %s", anchor, warning.Message).Transient()
	}
	return problem.WithDetails(anchorDetails{Anchor: anchor})
}

// firstOffer builds and signs the offer (spec 50 §10.1), with a trade account that is
// reserved for it unless this is a preview.
func (s *Service) firstOffer(ctx context.Context, request FirstOfferRequest, listing market.Listing) (market.Order, TradeKey, error) {
	amount := request.Amount
	if amount == nil {
		cost, err := listing.Cost(&request.Start, &request.End, 1)
		if err != nil {
			return market.Order{}, TradeKey{}, fmt.Errorf("the listing %.200s cannot be offered for without an amount: %w", request.Given, err)
		}
		amount = &cost
	}
	trade, err := s.config.Trades.Reserve(ctx, !request.DryRun)
	if err != nil {
		return market.Order{}, TradeKey{}, err
	}
	order, err := s.signedOffer(ctx, request, trade, listing, *amount)
	if err != nil && !request.DryRun {
		s.config.Trades.Release(trade)
	}
	return order, trade, err
}

func (s *Service) signedOffer(
	ctx context.Context, request FirstOfferRequest, trade TradeKey, listing market.Listing, amount money.Amount,
) (market.Order, error) {
	anchor := market.Anchor{Kind: market.KindListing, PubKey: listing.Event.PubKey, Identifier: request.Listing.Identifier}.String()
	parties := market.TradeParties{Seller: listing.Event.PubKey, Buyer: trade.Key.PublicKey(), BuyerIdentity: s.me}
	participants, err := s.plan(ctx, trade.Key, parties, anchor, trade.TradeID)
	if err != nil {
		return market.Order{}, err
	}
	event := market.FirstOffer{
		ListingAnchor: anchor, TradeID: trade.TradeID, TradeKey: trade.Key.PublicKey(),
		Start: request.Start, End: request.End, Amount: amount, Participants: participants,
	}.Event(s.timestamp())
	if err := trade.Key.SignEvent(ctx, event); err != nil {
		return market.Order{}, fmt.Errorf("signing the offer: %w", err)
	}
	return market.DecodeOrder(event)
}

// tradeState is the record of a trade (spec 50 §19), in the order of its keys.
type tradeState struct {
	ID            string          `json:"id"`
	State         string          `json:"state"`
	IsTerminal    bool            `json:"isTerminal"`
	UpdatedAt     string          `json:"updatedAt"`
	TradeID       string          `json:"tradeId"`
	ListingAnchor string          `json:"listingAnchor"`
	SellerPubkey  string          `json:"sellerPubkey"`
	Order         json.RawMessage `json:"order"`
}

// keepTrade records an offer that was sent. It cannot be taken back, so a failure is no
// reason to call it one.
func (s *Service) keepTrade(ctx context.Context, order market.Order, seller string) {
	state, err := json.Marshal(tradeState{
		ID: order.TradeID, State: "offered", UpdatedAt: s.config.Now().UTC().Format("2006-01-02T15:04:05.000000Z"),
		TradeID: order.TradeID, ListingAnchor: order.ListingAnchor, SellerPubkey: seller,
		Order: json.RawMessage(market.EncodeEmbeddedEvent(order.Event)),
	})
	if err == nil {
		err = s.config.Records.PutTrade(ctx, order.TradeID, state)
	}
	if err != nil {
		s.config.Logger.Warn().Str("event", "orders.trade_not_recorded").Str("trade", order.TradeID).Err(err).Send()
	}
}
