package orders

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
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
	// absentFor is how long somebody without a profile is not looked up again (spec 60
	// §10.1): each such look-up asks many relays to the end.
	absentFor = time.Minute
	// rememberedAbsent bounds the people without profile that are remembered.
	rememberedAbsent = 4096
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
	if s.absent.has(pubkey) || ctx.Err() != nil {
		return nil
	}
	profile, err := s.config.People.Profile(ctx, pubkey)
	if err != nil {
		return nil
	}
	if profile == nil {
		s.absent.add(pubkey)
	}
	return profile
}

// absentees are the people who had no profile a moment ago.
type absentees struct {
	now   func() time.Time
	mu    sync.Mutex
	since *simplelru.LRU[string, time.Time]
}

func newAbsentees(now func() time.Time) *absentees {
	since, err := simplelru.NewLRU[string, time.Time](rememberedAbsent, nil)
	if err != nil {
		panic(err) // only a size below 1 fails
	}
	return &absentees{now: now, since: since}
}

func (a *absentees) has(pubkey string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	since, known := a.since.Get(pubkey)
	return known && a.now().Sub(since) < absentFor
}

func (a *absentees) add(pubkey string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.since.Add(pubkey, a.now())
}
