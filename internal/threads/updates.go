package threads

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"hostr-daemon/internal/market"
)

// Updates are what is new for the account (spec 60 §10.7).
type Updates struct {
	// Inbox is every message in order of arrival, Threads all threads in order of
	// creation.
	Inbox   []market.Rumor
	Threads []*market.Thread
	// Trips and Bookings are the valid ones, at most limit of each.
	Trips, Bookings []market.TradeItem
	Reviews         ListingReviews
	// People are the counterparties of all threads, and the people of Trips and Bookings.
	People People
}

// Updates returns what there is now. It waits up to the limit of wait for the trades to
// be verified (Q11), and looks at no more than limit trades and listings of each kind.
// Errors are the cause of ctx, and those of a closed session.
func (s *Service) Updates(ctx context.Context, limit int, wait time.Duration) (Updates, error) {
	var updates Updates
	var reviews ListingReviews
	group, ctx := errgroup.WithContext(ctx)
	group.Go(contained(func() (err error) {
		reviews, err = s.listingReviews(ctx, limit)
		return err
	}))
	group.Go(contained(func() (err error) {
		if err = s.updateTrades(ctx, &updates, limit, wait); err != nil {
			return err
		}
		s.inbox.Read(func(threads *market.Threads) {
			updates.Inbox, updates.Threads = threads.Inbox(), threads.All()
		})
		updates.People, err = s.people.lookUp(ctx, updates.pubkeys())
		return err
	}))
	if err := group.Wait(); err != nil {
		return Updates{}, err
	}
	updates.Reviews = reviews
	return updates, nil
}

func (s *Service) updateTrades(ctx context.Context, updates *Updates, limit int, wait time.Duration) error {
	trips, err := s.trades.Trips(ctx, wait)
	if err != nil {
		return err
	}
	// Both wait for the same.
	bookings, err := s.trades.Bookings(ctx, 0)
	updates.Trips, updates.Bookings = firstValid(trips, limit), firstValid(bookings, limit)
	return err
}

// pubkeys returns all whose names are shown.
func (u *Updates) pubkeys() []string {
	var pubkeys []string
	for _, thread := range u.Threads {
		pubkeys = append(pubkeys, thread.Counterparties...)
	}
	for _, items := range [][]market.TradeItem{u.Trips, u.Bookings} {
		for _, item := range items {
			pubkeys = append(pubkeys, item.Pubkeys()...)
		}
	}
	return pubkeys
}

func firstValid(items []market.TradeItem, limit int) []market.TradeItem {
	var valid []market.TradeItem
	for _, item := range items {
		if item.Valid && len(valid) < limit {
			valid = append(valid, item)
		}
	}
	return valid
}
