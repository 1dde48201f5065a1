package listings

import (
	"context"
	"errors"

	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/market"
	"hostr-daemon/internal/relay"
)

// Found is the outcome of a search.
type Found struct {
	// Listings are the newest versions, in the order the relay sent them.
	Listings []market.Listing
	// Warning is set when the relay's answer was cut off.
	Warning *fault.Error
}

// Criteria is a search as asked for (spec 40 §4.1).
type Criteria struct {
	// Location names a place; empty means anywhere.
	Location string
	// Market holds all other conditions. Its Cells are set by Search.
	Market market.SearchCriteria
}

// Search returns listings that meet the criteria (spec 40 §4.1 and §10). Bad
// criteria and an unknown place are errors before any relay is asked; a place
// without cells finds nothing without asking. A relay that does not answer in full
// gives what it has and a warning.
func (s *Service) Search(ctx context.Context, criteria Criteria) (Found, error) {
	filter, err := s.searchFilter(ctx, &criteria)
	if errors.Is(err, market.ErrMatchesNothing) {
		return Found{}, nil
	}
	if err != nil {
		return Found{}, err
	}
	answer, err := s.relays.Query(ctx, filter, relay.QueryOptions{})
	if err != nil {
		return Found{}, err
	}
	return Found{Listings: market.SelectListings(answer.Events, criteria.Market), Warning: answer.Warning()}, nil
}

// searchFilter makes the relay filter and puts the place's cells into the criteria.
func (s *Service) searchFilter(ctx context.Context, criteria *Criteria) (nostr.Filter, error) {
	criteria.Market.Cells = nil
	// Without the place first: a wrong word must not cost a look-up at the geocoder.
	filter, err := market.SearchFilter(criteria.Market)
	if err != nil || criteria.Location == "" {
		return filter, err
	}
	cells, err := s.cells.Of(ctx, criteria.Location)
	if err != nil {
		return nostr.Filter{}, atLocation(err)
	}
	criteria.Market.Cells = &cells
	return market.SearchFilter(criteria.Market)
}

// atLocation names the property when what is wrong is its text, and not the place or
// the way to the geocoder.
func atLocation(err error) error {
	if coded := (*fault.Error)(nil); errors.As(err, &coded) && coded.Code == fault.InvalidInput {
		return coded.At("location")
	}
	return err
}
