package listings

import (
	"context"

	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/market"
	"hostr-daemon/internal/relay"
)

// Availability tells whether a stay is possible.
type Availability struct {
	// Listing is nil when the relay has none.
	Listing *market.Listing
	// Availability is false without a complete answer of the relay; its count is of what
	// has come.
	market.Availability
	// Warning is set when an answer was cut off.
	Warning *fault.Error
}

// Availability tells for each anchor, in their order, whether the dates are free (spec
// 40 §12). Nobody's orders are verified, and neither the listing's state nor its
// quantity counts. An answer that was cut off is no error but a Warning.
func (s *Service) Availability(ctx context.Context, anchors []market.Anchor, stay market.DateRange) ([]Availability, error) {
	return perAnchor(ctx, anchors, func(ctx context.Context, anchor market.Anchor) (Availability, error) {
		return s.availability(ctx, anchor, stay)
	})
}

func (s *Service) availability(ctx context.Context, anchor market.Anchor, stay market.DateRange) (Availability, error) {
	listing, answer, err := s.find(ctx, anchor)
	switch {
	case err != nil:
		return Availability{}, err
	case listing == nil:
		return Availability{Warning: partial(answer, "The listing may exist all the same; the dates are not known to be free.")}, nil
	}
	orders, answer, err := s.orders(ctx, *listing)
	if err != nil {
		return Availability{}, err
	}
	availability := Availability{
		Listing:      listing,
		Availability: market.AvailabilityOf(orders, stay),
		Warning:      partial(answer, "The dates are not known to be free: the orders of the listing could not be read in full."),
	}
	availability.Available = availability.Available && answer.Complete
	return availability, nil
}

// orders returns the public orders that name the listing; what is none is left out.
func (s *Service) orders(ctx context.Context, listing market.Listing) ([]market.Order, relay.Answer, error) {
	address, _ := listing.Anchor()
	filter := nostr.Filter{Kinds: []int{market.KindOrder}, Tags: nostr.TagMap{"a": {address.String()}}}
	answer, err := s.relays.Query(ctx, filter, relay.QueryOptions{})
	if err != nil {
		return nil, relay.Answer{}, err
	}
	var orders []market.Order
	for _, event := range answer.Events {
		if order, err := market.DecodeOrder(event); err == nil {
			orders = append(orders, order)
		}
	}
	return orders, answer, nil
}
