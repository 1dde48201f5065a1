package threads

import (
	"context"
	"slices"
	"time"

	"github.com/nbd-wtf/go-nostr"
	"golang.org/x/sync/errgroup"

	"hostr-daemon/internal/market"
)

const (
	// peopleAtOnce is how many profiles are looked up side by side.
	peopleAtOnce = 16
	// peopleLimit bounds the look-ups of one call; who was not found by then has no
	// profile this time.
	peopleLimit = 20 * time.Second
)

// People are profile summaries by pubkey.
type People map[string]market.ProfileSummary

// Of returns the summaries of the pubkeys, in their order.
func (p People) Of(pubkeys []string) []market.ProfileSummary {
	summaries := make([]market.ProfileSummary, len(pubkeys))
	for i, pubkey := range pubkeys {
		summaries[i] = p.One(pubkey)
	}
	return summaries
}

// One returns the summary of a pubkey, which for somebody who is not among the people
// is that of a person without profile.
func (p People) One(pubkey string) market.ProfileSummary {
	if summary, known := p[pubkey]; known {
		return summary
	}
	return market.NewProfileSummary(pubkey, nil)
}

// directory looks people up.
type directory struct {
	find func(ctx context.Context, pubkey string) (*market.Profile, error)
}

// lookUp returns the summaries of all pubkeys. The error is the cause of ctx.
func (d directory) lookUp(ctx context.Context, pubkeys []string) (People, error) {
	pubkeys = slices.Compact(slices.Sorted(slices.Values(pubkeys)))
	summaries := make([]market.ProfileSummary, len(pubkeys))
	limited, cancel := context.WithTimeout(ctx, peopleLimit)
	defer cancel()
	var group errgroup.Group
	group.SetLimit(peopleAtOnce)
	for i, pubkey := range pubkeys {
		group.Go(contained(func() error {
			summaries[i] = market.NewProfileSummary(pubkey, d.profile(limited, pubkey))
			return nil
		}))
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	people := make(People, len(pubkeys))
	for i, pubkey := range pubkeys {
		people[pubkey] = summaries[i]
	}
	return people, nil
}

// profile returns nil for whoever has no profile or cannot be looked up. Messages may
// name anything as a pubkey, which is not asked for.
func (d directory) profile(ctx context.Context, pubkey string) *market.Profile {
	if !nostr.IsValidPublicKey(pubkey) || ctx.Err() != nil {
		return nil
	}
	profile, err := d.find(ctx, pubkey)
	if err != nil {
		return nil
	}
	return profile
}
