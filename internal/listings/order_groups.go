package listings

import (
	"context"
	"strings"
	"sync"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/market"
	"hostr-daemon/internal/relay"
)

// titleCandidates is how many listings are looked through for a title.
const titleCandidates = 200

// OrderGroups are the public orders of one listing, by trade.
type OrderGroups struct {
	// Found is false when there is no such listing.
	Found bool
	// Groups are in order of first arrival. They are not verified.
	Groups []market.OrderGroup
	// LookupError says why the text could not be looked up as an anchor; it is "" when
	// it could, or when it was a title.
	LookupError string
	// Warning is set when an answer was cut off.
	Warning *fault.Error
}

// OrderGroups returns the orders of each listing, in the order of the texts (spec 40
// §14). A text is an anchor or a title, or part of one, of a listing of the owner, or
// of anybody when owner is "".
func (s *Service) OrderGroups(ctx context.Context, texts []string, owner string) ([]OrderGroups, error) {
	candidates := sync.OnceValues(func() (relay.Answer, error) {
		return s.relays.Query(ctx, market.ListFilter(owner, titleCandidates), relay.QueryOptions{})
	})
	return perAnchor(ctx, texts, func(ctx context.Context, text string) (OrderGroups, error) {
		return s.orderGroups(ctx, text, candidates)
	})
}

func (s *Service) orderGroups(ctx context.Context, text string, candidates func() (relay.Answer, error)) (OrderGroups, error) {
	listing, sought, err := s.seek(ctx, text, candidates)
	if err != nil || listing == nil {
		return sought, err
	}
	orders, answer, err := s.orders(ctx, *listing)
	if err != nil {
		return OrderGroups{}, err
	}
	groups := OrderGroups{Found: true, Groups: market.GroupOrders(orders), Warning: sought.Warning}
	if !answer.Complete {
		groups.Warning = partial(answer, "There may be more orders of the listing.")
	}
	return groups, nil
}

// seek finds the listing that the text names. Without one the outcome says how the
// search went.
func (s *Service) seek(ctx context.Context, text string, candidates func() (relay.Answer, error)) (*market.Listing, OrderGroups, error) {
	var sought OrderGroups
	anchor, err := market.ParseAnchor(text)
	if err != nil {
		sought.LookupError = fault.From(err).Message
	} else {
		listing, answer, err := s.find(ctx, anchor)
		if err != nil || listing != nil {
			return listing, OrderGroups{}, err
		}
		sought.Warning = partial(answer, "The listing may exist all the same.")
	}
	answer, err := candidates()
	if err != nil {
		return nil, OrderGroups{}, err
	}
	listing, exact := titled(answer, text)
	switch {
	case exact:
		sought.Warning = nil
	case listing != nil:
		sought.Warning = partial(answer, "Another listing may fit the title better.")
	case sought.Warning == nil:
		sought.Warning = partial(answer, "The listing may exist all the same.")
	}
	return listing, sought, nil
}

// titled returns the first listing whose title is the text, else the first whose
// title contains it, in any case; exact tells which.
func titled(answer relay.Answer, text string) (listing *market.Listing, exact bool) {
	wanted := strings.ToLower(text)
	for _, candidate := range market.SelectListings(answer.Events, market.SearchCriteria{Limit: titleCandidates}) {
		title := strings.ToLower(candidate.Title)
		if title == wanted {
			return &candidate, true
		}
		if listing == nil && strings.Contains(title, wanted) {
			listing = &candidate
		}
	}
	return listing, false
}
