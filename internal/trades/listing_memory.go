package trades

import (
	"context"
	"slices"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/market"
	"hostr-daemon/internal/relay"
)

const (
	// keptListings bounds the listings that are remembered, a few kilobytes each.
	keptListings = 2000
	// listingsAtOnce is how many listings one query asks for.
	listingsAtOnce = 50
)

// listingMemory looks listings up, each once while the session lasts (spec 50 §13.4).
// That there is none is remembered only when the relay said so.
type listingMemory struct {
	relays Relays
	// timeout bounds one query.
	timeout time.Duration
	found   *lru.Cache[market.Anchor, *market.Listing]
}

func newListingMemory(relays Relays) *listingMemory {
	found, err := lru.New[market.Anchor, *market.Listing](keptListings)
	if err != nil {
		panic(err) // Only for a size below one.
	}
	return &listingMemory{relays: relays, timeout: usualLimits().stored, found: found}
}

// get returns a listing, nil for none; known is false when it has to be loaded.
func (m *listingMemory) get(anchor market.Anchor) (listing *market.Listing, known bool) {
	return m.found.Get(anchor)
}

// load asks for the listings that are not known yet. What does not come stays unknown.
func (m *listingMemory) load(ctx context.Context, anchors []market.Anchor) {
	var missing []market.Anchor
	for _, anchor := range anchors {
		if !m.found.Contains(anchor) && !slices.Contains(missing, anchor) {
			missing = append(missing, anchor)
		}
	}
	for asked := range slices.Chunk(missing, listingsAtOnce) {
		answer, err := m.relays.Query(ctx, listingsFilter(asked), relay.QueryOptions{Timeout: m.timeout})
		if err != nil {
			return
		}
		for _, anchor := range asked {
			if listing, ok := market.FindListing(answer.Events, anchor); ok {
				m.found.Add(anchor, &listing)
			} else if answer.Complete {
				m.found.Add(anchor, nil)
			}
		}
	}
}

// listingsFilter asks for several listings at once; it may match some more.
func listingsFilter(anchors []market.Anchor) nostr.Filter {
	filter := nostr.Filter{Kinds: []int{market.KindListing}, Tags: nostr.TagMap{}}
	for _, anchor := range anchors {
		if !slices.Contains(filter.Authors, anchor.PubKey) {
			filter.Authors = append(filter.Authors, anchor.PubKey)
		}
		if !slices.Contains(filter.Tags["d"], anchor.Identifier) {
			filter.Tags["d"] = append(filter.Tags["d"], anchor.Identifier)
		}
	}
	return filter
}
