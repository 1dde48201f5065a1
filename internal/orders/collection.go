package orders

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/market"
)

// Collected is a list of trades as results show it.
type Collected struct {
	Items []market.CollectionItem
	// Invalid is how many trades are not among Items: those that could not be verified,
	// and those beyond the limit.
	Invalid int
	// Warning is nil when the list is whole.
	Warning *fault.Error
}

// List returns the account's trips or bookings (spec 51 §7), the valid ones, at most
// limit. It waits until all are verified, or until the wait is over.
func (s *Service) List(ctx context.Context, mode market.CollectionMode, limit int, wait time.Duration) (Collected, error) {
	all := s.config.Trades.Trips
	if mode == market.Bookings {
		all = s.config.Trades.Hostings
	}
	list, err := all(ctx, wait)
	if err != nil {
		return Collected{}, err
	}
	var valid []market.TradeItem
	for _, item := range list.Items {
		if item.Valid && len(valid) < limit {
			valid = append(valid, item)
		}
	}
	items, err := s.Collection(ctx, valid, mode)
	return Collected{Items: items, Invalid: len(list.Items) - len(valid), Warning: list.Warning}, err
}

// Collection returns trades as results show them, in their order, with the profiles of
// the people who take part (spec 51 §2.9).
func (s *Service) Collection(ctx context.Context, items []market.TradeItem, mode market.CollectionMode) ([]market.CollectionItem, error) {
	var pubkeys []string
	for _, item := range items {
		pubkeys = append(pubkeys, item.Pubkeys()...)
	}
	summaries, err := s.Summaries(ctx, pubkeys)
	if err != nil {
		return nil, err
	}
	results := make([]market.CollectionItem, 0, len(items))
	for _, item := range items {
		results = append(results, item.Result(mode, func(pubkey string) market.ProfileSummary { return summaries[pubkey] }))
	}
	return results, nil
}

const (
	// profilesAtOnce is how many profiles of one call are looked up at the same time.
	profilesAtOnce = 16
	// profilesLimit bounds all look-ups of one call.
	profilesLimit = 25 * time.Second
)

// Summaries returns what is shown of people, by pubkey. Whose profile cannot be loaded
// counts as having none; the only error is the cause of ctx.
func (s *Service) Summaries(ctx context.Context, pubkeys []string) (map[string]market.ProfileSummary, error) {
	shown := make(map[string]market.ProfileSummary, len(pubkeys))
	for _, pubkey := range pubkeys {
		shown[pubkey] = market.NewProfileSummary(pubkey, nil)
	}
	limited, cancel := context.WithTimeout(ctx, profilesLimit)
	defer cancel()
	var mu sync.Mutex
	var looking errgroup.Group
	looking.SetLimit(profilesAtOnce)
	for _, pubkey := range slices.Collect(maps.Keys(shown)) {
		looking.Go(func() error {
			s.contain("looking up a profile", func() {
				profile := s.profile(limited, pubkey)
				mu.Lock()
				defer mu.Unlock()
				shown[pubkey] = market.NewProfileSummary(pubkey, profile)
			})
			return nil
		})
	}
	_ = looking.Wait() // nothing fails
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return shown, nil
}

// profile returns nil for somebody without a profile, or whose profile is not known.
func (s *Service) profile(ctx context.Context, pubkey string) *market.Profile {
	if ctx.Err() != nil {
		return nil
	}
	profile, err := s.config.People.Profile(ctx, pubkey)
	if err != nil {
		return nil
	}
	return profile
}
