package orders

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/giftwrap"
	"hostr-daemon/internal/market"
	"hostr-daemon/internal/money"
	"hostr-daemon/internal/relay"
)

// Missing says what a step in a negotiation lacks. Actions show it in place of a
// preview, and as its fault otherwise.
type Missing struct {
	// Reason is a word of spec 51 §4 and §6.
	Reason string
	// Anchor is the listing that is missing, "" for other reasons.
	Anchor string
	fault  *fault.Error
}

// Error implements error.
func (m *Missing) Error() string { return m.fault.Error() }

// Unwrap returns the coded error.
func (m *Missing) Unwrap() error { return m.fault }

// Message is for people.
func (m *Missing) Message() string { return m.fault.Message }

// CounterRequest answers the newest offer of a trade.
type CounterRequest struct {
	TradeID string
	// Accept takes the amount of that offer; else Amount is offered.
	Accept bool
	Amount *money.Amount
	DryRun bool
	// Wait is how long the messages may take to arrive.
	Wait time.Duration
}

// Sent is a private order that was sent, or in a preview would be.
type Sent struct {
	// Order is signed.
	Order market.Order
	// Recipients are sorted, without the account.
	Recipients []string
	// Receipts are the relay's answers, one message copy after the other; nil in a preview.
	Receipts []relay.Receipt
}

// Counter answers the newest offer of a trade with another, or accepts it (spec 51
// §4). Neither side needs the other's turn, and no price is too high or too low: the
// host's signature over the terms, which its answers carry, is what binds.
//
// The error is a *Missing where there is nothing to answer: not_found,
// listing_not_found, amount_required.
func (s *Service) Counter(ctx context.Context, request CounterRequest) (Sent, error) {
	end, err := s.acting.Take(ctx, request.TradeID)
	if err != nil {
		return Sent{}, err
	}
	defer end()
	found, err := s.negotiation(ctx, request.TradeID, request.Wait)
	if err != nil {
		return Sent{}, err
	}
	if len(found.requests) == 0 {
		return Sent{}, s.noNegotiation(request.TradeID)
	}
	byTime := slices.Clone(found.requests)
	slices.SortStableFunc(byTime[found.ahead:], func(a, b market.Order) int { return cmp.Compare(a.Event.CreatedAt, b.Event.CreatedAt) })
	latest := byTime[len(byTime)-1]
	listing, err := s.listingOf(ctx, latest)
	if err != nil {
		return Sent{}, err
	}
	amount := request.Amount
	if request.Accept {
		amount = latest.Amount
	}
	if amount == nil {
		return Sent{}, noAmount(request.Accept)
	}
	order, err := s.counterOffer(ctx, market.CounterOffer{Previous: latest, Amount: *amount}, listing, byTime)
	if err != nil {
		return Sent{}, err
	}
	return s.sendOrder(ctx, order, found, request.DryRun)
}

// negotiation is the private side of a trade.
type negotiation struct {
	// requests are the orders of the trade by the time of their messages, see market.ByTurn;
	// the first of them, as many as ahead, are dated ahead.
	requests []market.Order
	ahead    int
	// recipients get what the account sends in the trade.
	recipients []string
	// ours is true when the account has sent one of them.
	ours bool
	// disputed is true when it is not known who of several people takes part.
	disputed bool
}

// negotiation waits for the messages and returns what they say of a trade. Where the
// account has sent nothing yet, strangers may have made it up, who know the id of a trade
// from its public orders: then those tell who takes part.
func (s *Service) negotiation(ctx context.Context, tradeID string, limit time.Duration) (negotiation, error) {
	s.config.Trades.Start()
	if err := s.config.Inbox.Await(ctx, limit); err != nil {
		return negotiation{}, err
	}
	found := s.readNegotiation(tradeID, nil)
	if len(found.requests) > 0 && !s.ownsListing(found.requests[0]) {
		// What others sent in the name of our trade key counts for nothing, once that is known.
		if err := s.config.SeedReady(ctx); err != nil {
			return negotiation{}, fmt.Errorf("nothing was sent, because the account seed is not ready: %w", err)
		}
		found = s.readNegotiation(tradeID, nil)
	}
	if len(found.requests) == 0 || found.ours {
		return found, nil
	}
	parties, err := s.parties(ctx, tradeID, limit)
	if err != nil {
		return negotiation{}, err
	}
	if found = s.readNegotiation(tradeID, parties); found.disputed {
		return negotiation{}, fault.New(fault.UnexpectedError,
			"Nothing was sent: several people make offers in trade %.80s, and it is not known which of them takes part in it.", tradeID).
			WithHint("hostr.updates shows their conversations; ask the guest to make a new offer, which has a trade id of its own.")
	}
	return found, nil
}

// parties returns who takes part in a trade by its public orders, nil when they do not
// tell.
func (s *Service) parties(ctx context.Context, tradeID string, limit time.Duration) ([]string, error) {
	trips, err := s.config.Trades.Trips(ctx, limit)
	if err != nil {
		return nil, err
	}
	// Both wait for the same.
	hostings, err := s.config.Trades.Hostings(ctx, 0)
	if err != nil {
		return nil, err
	}
	for _, item := range slices.Concat(trips.Items, hostings.Items) {
		if people := item.Participants.People(); item.Group.TradeID() == tradeID && slices.Contains(people, s.me) {
			return people, nil
		}
	}
	return nil, nil
}

func (s *Service) readNegotiation(tradeID string, parties []string) negotiation {
	var private market.TradeThread
	s.config.Inbox.Read(func(threads *market.Threads) { private = threads.TradeThread(tradeID, parties) })
	found := negotiation{ours: private.Ours, disputed: private.Disputed}
	var ordered []market.OrderRequest
	ordered, found.ahead = market.ByTurn(private.Requests, s.timestamp())
	for _, request := range ordered {
		found.requests = append(found.requests, *request.Order)
	}
	if len(found.requests) > 0 {
		listing, _ := found.requests[0].Listing()
		found.recipients = private.Recipients(s.me, listing.PubKey)
	}
	return found
}

// timestampAfter is the time of an order that comes after these.
func (s *Service) timestampAfter(orders []market.Order) nostr.Timestamp {
	var times []nostr.Timestamp
	for _, order := range orders {
		times = append(times, order.Event.CreatedAt)
	}
	return market.FollowingCreatedAt(s.timestamp(), times...)
}

func (s *Service) ownsListing(order market.Order) bool {
	listing, _ := order.Listing()
	return listing.PubKey == s.me
}

// tradeDetails are the details of errors about a trade.
type tradeDetails struct {
	TradeID string `json:"tradeId"`
}

func (s *Service) noNegotiation(tradeID string) *Missing {
	problem := fault.New(fault.NotFound, "There is no private negotiation with trade id %.80s: hostr.updates lists those there are.", tradeID)
	if !s.config.Inbox.Live() {
		problem = fault.New(fault.NotFound, "No private negotiation with trade id %.80s was found, but not all messages have been read yet: try again.", tradeID).Transient()
	}
	return &Missing{Reason: "private_negotiation_not_found", fault: problem.WithDetails(tradeDetails{TradeID: tradeID})}
}

func noAmount(accept bool) *Missing {
	problem := fault.New(fault.AmountRequired, "An offer in a negotiation needs an amount: pass amount.").At("amount")
	if accept {
		problem = fault.New(fault.AmountRequired, "The newest offer names no amount, so it cannot be accepted: make an offer with hostr.orders.negotiateOffer.")
	}
	return &Missing{Reason: "amount_required", fault: problem}
}

// listingOf loads the listing that an order is about.
func (s *Service) listingOf(ctx context.Context, order market.Order) (market.Listing, error) {
	var listing *market.Listing
	var warning *fault.Error
	if anchor, ok := order.Listing(); ok {
		var err error
		if listing, warning, err = s.config.Listings.Find(ctx, anchor); err != nil {
			return market.Listing{}, err
		}
	}
	if listing == nil {
		return market.Listing{}, &Missing{
			Reason: "listing_not_found", Anchor: order.ListingAnchor, fault: listingNotFound(order.ListingAnchor, warning),
		}
	}
	return *listing, nil
}

// counterOffer builds and signs the answer to an offer (spec 50 §10.2).
func (s *Service) counterOffer(ctx context.Context, offer market.CounterOffer, listing market.Listing, thread []market.Order) (market.Order, error) {
	anchor, _ := offer.Previous.Listing()
	key, err := s.config.Trades.OwnKey(ctx, anchor, offer.Previous.TradeID)
	if err != nil {
		return market.Order{}, err
	}
	offer.Author = key.PublicKey()
	parties := market.TradeParties{Seller: listing.Event.PubKey, Buyer: offer.Author, BuyerIdentity: s.me}
	sells := offer.Author == listing.Event.PubKey
	if sells {
		parties = market.TradeParties{Seller: offer.Author, Buyer: offer.Previous.BuyerPubkey()}
	}
	if offer.Participants, err = s.plan(ctx, key, parties, offer.Previous.ListingAnchor, offer.Previous.TradeID); err != nil {
		return market.Order{}, err
	}
	if sells {
		offer.Authorization = offer.DraftAuthorization(s.timestamp())
		if err := key.SignEvent(ctx, offer.Authorization); err != nil {
			return market.Order{}, fmt.Errorf("nothing was sent, because the agreement to the terms was not signed: %w", err)
		}
	} else {
		offer.Authorization = offer.CarriedAuthorization(thread)
	}
	event := offer.Event(s.timestampAfter(thread))
	if err := key.SignEvent(ctx, event); err != nil {
		return market.Order{}, fmt.Errorf("nothing was sent, because the offer was not signed: %w", err)
	}
	return market.DecodeOrder(event)
}

// sendOrder sends a private order to the other party, unless it is a preview.
func (s *Service) sendOrder(ctx context.Context, order market.Order, found negotiation, dryRun bool) (Sent, error) {
	sent := Sent{Order: order, Recipients: found.recipients}
	if sent.Recipients == nil {
		sent.Recipients = []string{}
	}
	draft := market.NewOrderMessage(order.Event, order.TradeID, sent.Recipients)
	if err := s.checkSize(draft); err != nil || dryRun {
		return sent, err
	}
	var err error
	sent.Receipts, err = s.config.Inbox.Send(ctx, draft)
	return sent, err
}

// checkSize refuses what is too long to be sent, also in a preview.
func (s *Service) checkSize(draft market.MessageDraft) error {
	if err := giftwrap.CheckSize(draft.Event(s.me, s.timestamp())); err != nil {
		return fault.New(fault.UnexpectedError, "Nothing was sent: the order holds too much: %w.", err)
	}
	return nil
}
