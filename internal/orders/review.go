package orders

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nbd-wtf/go-nostr"
	"golang.org/x/sync/errgroup"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/market"
	"hostr-daemon/internal/relay"
)

// ReviewRequest is what a guest says of a stay.
type ReviewRequest struct {
	TradeID string
	// Stars is 1..5.
	Stars   int
	Content string
	DryRun  bool
	// Wait is how long the booking may take to show.
	Wait time.Duration
}

// Review is a review that was published, or in a preview would be.
type Review struct {
	market.Review
	// Event is unsigned in a preview, with its id.
	Event  *nostr.Event
	Lookup market.OrderLookup
	// Receipts has one entry per relay; nil in a preview.
	Receipts []relay.Receipt
}

// Unreviewable says why a review cannot be. Actions show it in place of a preview, and
// as its fault otherwise.
type Unreviewable struct {
	// Reason is order_not_reviewable or review_invalid.
	Reason fault.Code
	// Event is the unsigned review where there is one.
	Event  *market.EventJSON
	Lookup market.OrderLookup
	fault  *fault.Error
}

// Error implements error.
func (u *Unreviewable) Error() string { return u.fault.Error() }

// Unwrap returns the coded error.
func (u *Unreviewable) Unwrap() error { return u.fault }

// Message is for people.
func (u *Unreviewable) Message() string { return u.fault.Message }

// reviewDetails are the details of errors about a review.
type reviewDetails struct {
	TradeID     string             `json:"tradeId"`
	Event       *market.EventJSON  `json:"event,omitempty"`
	OrderLookup market.OrderLookup `json:"orderLookup"`
}

// Review publishes a guest's review of a booking (spec 51 §6), to the Hostr relay and
// the account's own write relays. Only the guest of the booking can: its order proves
// who is behind the trade key. A second review takes the place of the first.
//
// The error is an *Unreviewable where nothing is committed or readers would not believe
// the review.
func (s *Service) Review(ctx context.Context, request ReviewRequest) (Review, error) {
	found, err := s.Lookup(ctx, request.TradeID, request.Wait)
	if err != nil {
		return Review{}, err
	}
	order, ok := reviewedOrder(found.Public)
	if !found.Committed || !ok {
		return Review{}, notReviewable(found)
	}
	review, err := s.draftReview(ctx, request, order)
	if err != nil {
		return Review{}, err
	}
	if err := s.checkReview(ctx, review, order, found.OrderLookup); err != nil {
		return Review{}, err
	}
	written := Review{Review: review, Event: review.Event, Lookup: found.OrderLookup}
	if request.DryRun {
		return written, nil
	}
	signed := *review.Event
	signed.CreatedAt = market.NextCreatedAt(review.Event.CreatedAt, s.timestamp())
	if err := s.config.Account.SignEvent(ctx, &signed); err != nil {
		return Review{}, fmt.Errorf("the review was not published, because it was not signed: %w", err)
	}
	written.Event = &signed
	targets := append([]string{s.config.Relays.HostrRelay()}, s.config.People.WriteRelays(s.me)...)
	return finish(ctx, s, "publishing the review", func(ctx context.Context) (Review, error) {
		receipts, err := s.config.Relays.Publish(ctx, signed, relay.PublishOptions{Relays: targets})
		if err != nil {
			return Review{}, fmt.Errorf("publishing the review: %w", err)
		}
		written.Receipts = receipts
		return written, nil
	})
}

func notReviewable(found Lookup) *Unreviewable {
	problem := fault.New(fault.OrderNotReviewable, "Trade %.80s has no committed order, so there is no stay to review.", found.TradeID)
	if found.Warning != nil {
		problem = fault.New(fault.OrderNotReviewable, "No committed order of trade %.80s was found, but the Hostr relay has not told all it has, or the account seed is not there yet: try again.", found.TradeID).Transient()
	}
	return &Unreviewable{
		Reason: fault.OrderNotReviewable, Lookup: found.OrderLookup,
		fault: problem.WithDetails(reviewDetails{TradeID: found.TradeID, OrderLookup: found.OrderLookup}),
	}
}

// draftReview returns the unsigned review with the proof of the guest's part.
func (s *Service) draftReview(ctx context.Context, request ReviewRequest, order market.Order) (market.Review, error) {
	listing, _ := order.Listing()
	key, err := s.config.Trades.OwnKey(ctx, listing, request.TradeID)
	if err != nil {
		return market.Review{}, err
	}
	proof, err := market.NewReviewProof(order, market.RoleBuyer, key.PublicKey(), s.me, func(_, sender, payload string) (string, error) {
		if key.IsRemote() {
			return "", errors.New("no proof is opened by another device")
		}
		return key.NIP44Decrypt(ctx, sender, payload)
	})
	if err != nil {
		return market.Review{}, fault.New(fault.UnexpectedError,
			"Trade %.80s cannot be reviewed by this account, only by its guest: %w.", request.TradeID, err)
	}
	review := market.Review{
		TradeID: request.TradeID, ListingAnchor: order.ListingAnchor, OrderAnchor: order.Anchor(),
		Stars: request.Stars, Text: request.Content, Proof: &proof,
	}
	review.Event = review.Draft(s.me, s.timestamp())
	return review, nil
}

// reviewedOrder is the buyer's order, else the last one at commit.
func reviewedOrder(public []market.Order) (market.Order, bool) {
	group, ok := market.NewOrderGroup(public)
	if !ok {
		return market.Order{}, false
	}
	if buyer := group.BuyerOrder(); buyer != nil {
		return *buyer, true
	}
	for _, order := range slices.Backward(public) {
		if order.Stage == market.StageCommit {
			return order, true
		}
	}
	return market.Order{}, false
}

// checkReview judges the review as its readers will (spec 50 §8.2).
func (s *Service) checkReview(ctx context.Context, review market.Review, order market.Order, lookup market.OrderLookup) error {
	orders, listing, complete, err := s.ofListing(ctx, order)
	if err != nil {
		return err
	}
	chain := s.chain(ctx)
	outcome := review.Verify(orders, listing, func(group market.OrderGroup) market.GroupVerification {
		return group.Verify(listing, false, chain)
	})
	if outcome.Valid {
		return nil
	}
	event := market.NewEventJSON(review.Event)
	problem := fault.New(fault.ReviewInvalid, "The review would not count: %s.", outcome.Reason)
	if outcome.Transient || !complete {
		problem = problem.Transient()
	}
	return &Unreviewable{
		Reason: fault.ReviewInvalid, Event: &event, Lookup: lookup,
		fault: problem.WithDetails(reviewDetails{TradeID: review.TradeID, Event: &event, OrderLookup: lookup}),
	}
}

// chain asks the chain about payments; nil where there is none.
func (s *Service) chain(ctx context.Context) market.ChainVerifier {
	if s.config.Payments == nil {
		return nil
	}
	return func(order market.Order) market.ChainVerdict { return s.config.Payments.VerifyPayment(ctx, order) }
}

// ofListing returns all public orders for the listing of an order, and its newest
// version, nil when there is none. complete is false when the relay did not answer both in full.
func (s *Service) ofListing(ctx context.Context, order market.Order) (orders []market.Order, listing *market.Listing, complete bool, err error) {
	anchor, _ := order.Listing()
	var answer relay.Answer
	var warning *fault.Error
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		filter := nostr.Filter{Kinds: []int{market.KindOrder}, Tags: nostr.TagMap{"a": {order.ListingAnchor}}}
		answer, err = s.config.Relays.Query(ctx, filter, relay.QueryOptions{})
		return err
	})
	group.Go(func() (err error) {
		listing, warning, err = s.config.Listings.Find(ctx, anchor)
		return err
	})
	if err := group.Wait(); err != nil {
		return nil, nil, false, err
	}
	for _, event := range answer.Events {
		if order, err := market.DecodeOrder(event); err == nil {
			orders = append(orders, order)
		}
	}
	return orders, listing, answer.Complete && warning == nil, nil
}
