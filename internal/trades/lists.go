package trades

import (
	"context"
	"time"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/market"
)

// Item is a trade in a list. It never changes.
type Item struct {
	Group        market.OrderGroup
	Verification market.GroupVerification
	Participants market.GroupParticipants
	// Listing is the one inside the last order that has a proof, nil when there is none.
	Listing *market.Listing
}

// TradeID returns the trade id.
func (i Item) TradeID() string { return i.Group.TradeID() }

// List is the trades on one side of the account.
type List struct {
	// Items are in order of their first public order, one for each trade. Those whose
	// Verification is not valid are not for people.
	Items []Item
	// Warning is nil when the list is whole, else a partial_result.
	Warning *fault.Error
}

// Trips returns the account's trades of other people's listings, as they stand once
// everything known of them is verified, or after the limit (spec 50 §17.1).
func (s *Service) Trips(ctx context.Context, limit time.Duration) (List, error) {
	return s.list(ctx, limit, false)
}

// Hostings returns the trades of the account's own listings, likewise.
func (s *Service) Hostings(ctx context.Context, limit time.Duration) (List, error) {
	return s.list(ctx, limit, true)
}

func (s *Service) list(ctx context.Context, limit time.Duration, hostings bool) (List, error) {
	settled, err := s.awaitSettled(ctx, limit)
	if err != nil {
		return List{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var list List
	for _, t := range s.listed {
		if group := s.choose(t); group != nil && s.lists(t, group.verified.group, hostings) {
			list.Items = append(list.Items, group.verified.item())
		}
	}
	list.Warning = s.doubt(settled)
	return list, nil
}

// lists reports whether a trade belongs into a list. The lock is held.
func (s *Service) lists(t *trade, group market.OrderGroup, hostings bool) bool {
	if isHosting := group.SellerPubkey() == s.me; isHosting || hostings {
		return isHosting && hostings
	}
	return group.ListsTrip(s.facts(t, t.orders()))
}

// doubt says why there may be more than is listed. The lock is held.
func (s *Service) doubt(settled bool) *fault.Error {
	switch {
	case !settled && !s.inboxLive:
		return partial("The messages that tell which trades there are have not all come yet.")
	case !settled:
		return partial("Not all trades are verified yet.")
	case !s.feed.complete():
		return partial("The Hostr relay did not answer in full.")
	case s.full:
		return fault.New(fault.PartialResult,
			"There may be more trades. The account has got messages about more than %d, so that the oldest are passed over of which nothing is public and nothing was answered.", s.limits.trades)
	}
	return nil
}

func partial(why string) *fault.Error {
	return fault.New(fault.PartialResult, "There may be more trades. %s Ask again in a moment.", why).Transient()
}

// item returns the group as lists show it.
func (v *verifiedGroup) item() Item {
	item := Item{Group: v.group, Verification: v.verification, Participants: v.participants}
	if listing, ok := v.group.EmbeddedListing(); ok {
		item.Listing = &listing
	}
	return item
}
