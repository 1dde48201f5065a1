package trades

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/market"
	"hostr-daemon/internal/relay"
)

const (
	// publicationLimit bounds a publication, which runs to its end also when nobody waits
	// for it any more (spec 10 §4.3).
	publicationLimit = 3 * time.Minute
	// maxOwn bounds the events of one trade that are remembered as published here.
	maxOwn = 256
)

// Publication is a public order to be published with the transition that records it.
type Publication struct {
	// Order is the unsigned order by the key.
	Order *nostr.Event
	// Key signs both; see Service.OwnKey.
	Key Signer
	// Role is the author's part in the trade.
	Role market.Role
	// Type and From are the transition's; it leads to the order's stage.
	Type market.TransitionType
	From market.Stage
	// Reason may be empty.
	Reason string
}

// Published is what a publication has become.
type Published struct {
	Order      *nostr.Event
	Transition *nostr.Event
	// Receipts are the relay's answers to the order.
	Receipts []relay.Receipt
}

// ownEvents are what this process has published of one trade.
type ownEvents struct {
	orders      []*nostr.Event
	transitions []*nostr.Event
}

func (o *ownEvents) events() []*nostr.Event {
	if o == nil {
		return nil
	}
	return slices.Concat(o.orders, o.transitions)
}

// Publish signs and publishes a public order, and then the transition that follows the
// author's last one in this trade (spec 50 §7). One author publishes one thing at a
// time in a trade, until it has ended whoever waits for it. A negotiation is refused: it
// is private (spec 50 §3.4). So is, as already_cancelled, whatever comes after the
// author's cancellation, and retryably what does not follow the author's last step.
//
// Once the order is signed all of it goes on when ctx ends. When the transition fails
// the order is public nevertheless, and the error says so.
func (s *Service) Publish(ctx context.Context, publication Publication) (Published, error) {
	order, err := market.DecodeOrder(publication.Order)
	if err != nil {
		return Published{}, fault.New(fault.UnexpectedError, "The order was not published: %w.", err)
	}
	if order.Stage == market.StageNegotiate {
		return Published{}, fault.New(fault.UnexpectedError,
			"The order of trade %.80s was not published: it is part of a negotiation, which is private.", order.TradeID)
	}
	if publication.Key.PublicKey() != order.Event.PubKey {
		return Published{}, fault.New(fault.UnexpectedError, "The order of trade %.80s was not published: its author has another key.", order.TradeID)
	}
	end, err := s.publishing.Take(ctx, order.Event.PubKey+":"+order.TradeID)
	if err != nil {
		return Published{}, err
	}
	if err := s.checkStep(publication, order); err != nil {
		end()
		return Published{}, err
	}
	signed := *publication.Order
	signed.CreatedAt = s.laterThanOwn(order)
	if err := publication.Key.SignEvent(ctx, &signed); err != nil {
		end()
		return Published{}, fmt.Errorf("signing the order of trade %.80s: %w", order.TradeID, err)
	}
	order.Event = &signed
	type outcome struct {
		published Published
		err       error
	}
	done := make(chan outcome, 1)
	started := s.publishInBackground("publishing an order", func(ctx context.Context) {
		result := outcome{err: fault.New(fault.UnexpectedError,
			"It is not known whether the order of trade %.80s was published: something went wrong inside hostr-daemon.", order.TradeID)}
		defer func() {
			end()
			done <- result
		}()
		ctx, cancel := context.WithTimeout(ctx, publicationLimit)
		defer cancel()
		result.published, result.err = s.publish(ctx, publication, order)
	})
	if !started {
		end()
		return Published{}, errClosed()
	}
	select {
	case result := <-done:
		return result.published, result.err
	case <-ctx.Done():
		return Published{}, context.Cause(ctx)
	}
}

// cancelledDetails are the details of already_cancelled for a committed trade (spec 51
// §5.1).
type cancelledDetails struct {
	TradeID    string             `json:"tradeId"`
	OrderGroup []market.EventJSON `json:"orderGroup"`
}

// checkStep refuses a step that the author's last one, as far as it is known here, does
// not allow: another call may have taken one since the order was made. The turn is held.
// A log that contradicts itself decides nothing.
func (s *Service) checkStep(publication Publication, order market.Order) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	author := order.Event.PubKey
	t := s.known(order.TradeID)
	orders := s.ordersOf(t)
	mine := slices.DeleteFunc(slices.Clone(orders), func(other market.Order) bool { return other.Event.PubKey != author })
	cancelled := slices.ContainsFunc(market.OrdersOfTrade(mine, nil), func(last market.Order) bool { return last.Stage == market.StageCancel })
	last := publication.From
	if chain := market.ResolveTransitions(s.transitionsOf(t, author), publication.Role); chain.Failure == nil && len(chain.Ordered) > 0 {
		last = chain.Ordered[len(chain.Ordered)-1].To
	}
	switch {
	case cancelled || last == market.StageCancel:
		return fault.New(fault.AlreadyCancelled, "Trade %.80s is cancelled already.", order.TradeID).
			WithDetails(cancelledDetails{TradeID: order.TradeID, OrderGroup: market.EventsOfOrders(market.OrdersOfTrade(orders, s.trusted(t, orders)))})
	case last != publication.From:
		return fault.New(fault.UnexpectedError,
			"The order of trade %.80s was not published: the trade has gone on to stage %s meanwhile. Try again.", order.TradeID, last).Transient()
	}
	return nil
}

// transitionsOf returns the author's transitions in a trade as far as they are known.
// The lock is held.
func (s *Service) transitionsOf(t *trade, author string) []market.OrderTransition {
	known := map[string]bool{}
	var transitions []market.OrderTransition
	add := func(transition market.OrderTransition) {
		if event := transition.Event; event.PubKey == author && transition.TradeID == t.id && !known[event.ID] {
			known[event.ID] = true
			transitions = append(transitions, transition)
		}
	}
	for _, transition := range t.transitions {
		add(transition)
	}
	for _, event := range s.own[t.id].events() {
		if transition, err := market.DecodeOrderTransition(event); err == nil {
			add(transition)
		}
	}
	return transitions
}

// publish is the part that goes on. The order is signed.
func (s *Service) publish(ctx context.Context, publication Publication, order market.Order) (Published, error) {
	receipts, err := s.relays.Publish(ctx, *order.Event, relay.PublishOptions{})
	if err != nil {
		return Published{}, err
	}
	s.Published(order.Event)
	transition, err := s.record(ctx, publication, order)
	if err != nil {
		s.log.Error().Str("event", "trades.order_without_transition").Str("trade", order.TradeID).
			Str("order", order.Event.ID).Str("stage", string(order.Stage)).Send()
		coded := fault.From(err)
		return Published{}, &fault.Error{
			Code: fault.UnexpectedError, Retryable: coded.Retryable, Cause: err,
			Message: fmt.Sprintf("The order of trade %.80s was published at stage %s, but not the record of it: %s", order.TradeID, order.Stage, coded.Message),
		}
	}
	return Published{Order: order.Event, Transition: transition, Receipts: receipts}, nil
}

// record publishes the transition of an order that was published.
func (s *Service) record(ctx context.Context, publication Publication, order market.Order) (*nostr.Event, error) {
	previous, err := s.lastTransition(ctx, order, publication.Role)
	if err != nil {
		return nil, err
	}
	event := market.OrderTransition{
		TradeID: order.TradeID, OrderID: order.Event.ID, Previous: previous, ListingAnchor: order.ListingAnchor,
		Type: publication.Type, From: publication.From, To: order.Stage,
		CommitTermsHash: order.CommitHash(), Reason: publication.Reason,
	}.Draft(order.Event.PubKey, s.timestamp())
	if err := publication.Key.SignEvent(ctx, event); err != nil {
		return nil, fmt.Errorf("signing the transition: %w", err)
	}
	if _, err := s.relays.Publish(ctx, *event, relay.PublishOptions{}); err != nil {
		return nil, err
	}
	s.Published(event)
	return event, nil
}

// lastTransition returns the id of the author's last transition in the trade, "" when
// there is none: by what the relay has and what this process has published, which the
// relay need not show at once.
func (s *Service) lastTransition(ctx context.Context, order market.Order, role market.Role) (string, error) {
	author := order.Event.PubKey
	filter := nostr.Filter{
		Kinds: []int{market.KindOrderTransition}, Authors: []string{author}, Tags: nostr.TagMap{"d": {order.TradeID}},
	}
	answer, err := s.relays.Query(ctx, filter, relay.QueryOptions{})
	if err != nil {
		return "", err
	}
	if !answer.Complete {
		return "", fault.New(fault.UnexpectedError, "The earlier records of the trade are not known. %s", answer.Warning().Message).Transient()
	}
	s.mu.Lock()
	var events []*nostr.Event
	if own := s.own[order.TradeID]; own != nil {
		events = slices.Clone(own.transitions)
	}
	s.mu.Unlock()
	events = append(events, answer.Events...)
	known := map[string]bool{}
	var chain []market.OrderTransition
	for _, event := range events {
		transition, err := market.DecodeOrderTransition(event)
		if err != nil || event.PubKey != author || transition.TradeID != order.TradeID || known[event.ID] {
			continue
		}
		known[event.ID] = true
		chain = append(chain, transition)
	}
	resolved := market.ResolveTransitions(chain, role)
	if resolved.Failure != nil {
		return "", fmt.Errorf("the earlier records of the trade contradict each other: %w", resolved.Failure)
	}
	return resolved.LastID(), nil
}

// Published takes in an order or transition that this process has published, without
// waiting for the relay to show it.
func (s *Service) Published(event *nostr.Event) {
	tradeID, err := tradeIDOf(event)
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.own[tradeID]
	if own == nil {
		own = &ownEvents{}
		s.own[tradeID] = own
	}
	kept := &own.orders
	if event.Kind == market.KindOrderTransition {
		kept = &own.transitions
	}
	if len(*kept) < maxOwn {
		*kept = append(*kept, event)
	}
	s.apply(event)
	s.notify()
}

func tradeIDOf(event *nostr.Event) (string, error) {
	switch event.Kind {
	case market.KindOrder:
		order, err := market.DecodeOrder(event)
		return order.TradeID, err
	case market.KindOrderTransition:
		transition, err := market.DecodeOrderTransition(event)
		return transition.TradeID, err
	}
	return "", errors.New("neither an order nor a transition")
}

// laterThanOwn returns a time for an order at which it replaces every order of its
// author in the trade that is known here (spec 82 §7.1).
func (s *Service) laterThanOwn(order market.Order) nostr.Timestamp {
	s.mu.Lock()
	defer s.mu.Unlock()
	var newest nostr.Timestamp
	note := func(event *nostr.Event) {
		if event.PubKey == order.Event.PubKey {
			newest = max(newest, event.CreatedAt)
		}
	}
	if t, ok := s.trades[order.TradeID]; ok {
		for _, other := range t.orders() {
			note(other.Event)
		}
	}
	if own := s.own[order.TradeID]; own != nil {
		for _, event := range own.orders {
			note(event)
		}
	}
	return max(order.Event.CreatedAt, market.NextCreatedAt(newest, order.Event.CreatedAt))
}
