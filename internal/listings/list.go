package listings

import (
	"context"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/market"
	"hostr-daemon/internal/relay"
)

// List returns the newest listings of an author, 64 lower-case hex digits, or of
// anybody when author is "" (spec 40 §4.2 and §11), at most limit of them. A relay
// that does not answer in full gives what it has and a warning.
func (s *Service) List(ctx context.Context, author string, limit int) (Found, error) {
	answer, err := s.relays.Query(ctx, market.ListFilter(author, limit), relay.QueryOptions{})
	if err != nil {
		return Found{}, err
	}
	return Found{
		Listings: market.SelectListings(answer.Events, market.SearchCriteria{Limit: limit}),
		Warning:  answer.Warning(),
	}, nil
}

// Sought is the outcome of a look-up.
type Sought struct {
	// Listing is the newest version, nil when the relay has none.
	Listing *market.Listing
	// Warning is set when there is no Listing but the relay's answer was cut off, so that
	// it may exist all the same.
	Warning *fault.Error
}

// Find looks one listing up (spec 40 §4). The kind in the anchor does not count.
func (s *Service) Find(ctx context.Context, anchor market.Anchor) (Sought, error) {
	listing, answer, err := s.find(ctx, anchor)
	if err != nil || listing != nil {
		return Sought{Listing: listing}, err
	}
	return Sought{Warning: answer.Warning()}, nil
}

// find returns nil for a listing that is not in the answer.
func (s *Service) find(ctx context.Context, anchor market.Anchor) (*market.Listing, relay.Answer, error) {
	answer, err := s.relays.Query(ctx, market.ListingFilter(anchor), relay.QueryOptions{})
	if err != nil {
		return nil, relay.Answer{}, err
	}
	if listing, ok := market.FindListing(answer.Events, anchor); ok {
		return &listing, answer, nil
	}
	return nil, answer, nil
}
