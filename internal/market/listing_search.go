package market

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/fault"
)

// SearchCriteria says which listings to find (spec 40 §4.1). Empty fields do not
// restrict.
type SearchCriteria struct {
	// Query is text that the title or description must contain, in any case.
	Query string
	// Type and RentOrBuy are words, checked here.
	Type      string
	RentOrBuy string
	// Guests is the least capacity.
	Guests *int
	// Features are names of specifications that all must be there.
	Features []string
	// Cells are the H3 cells of the place, as decimal text. nil means anywhere; an
	// empty list is a place without cells, where nothing lies.
	Cells *[]string
	// Limit is the most listings to return.
	Limit int
}

// ErrMatchesNothing says that no listing can meet the criteria, so that no relay
// need be asked.
var ErrMatchesNothing = errors.New("no listing can match")

const (
	// queryPageSize is how many listings are fetched to look for words in them.
	queryPageSize = 500
	// usualCapacity ends the list of capacities asked for; beyond it, capacitySpan
	// numbers are asked for instead.
	usualCapacity = 20
	capacitySpan  = 30
)

// maxSearchFeatures is above the number of features that Hostr knows.
const maxSearchFeatures = 128

// SearchFilter returns the relay filter of a search. Unknown words are
// invalid_listing_type or invalid_rent_or_buy; an empty place is
// ErrMatchesNothing. Inactive listings match too.
func SearchFilter(criteria SearchCriteria) (nostr.Filter, error) {
	tags := nostr.TagMap{"t": {Category}}
	if criteria.Type != "" {
		kind, err := ParseListingType(criteria.Type)
		if err != nil {
			return nostr.Filter{}, err
		}
		tags["T"] = []string{string(kind)}
	}
	if criteria.RentOrBuy != "" {
		rentOrBuy, err := ParseRentOrBuy(criteria.RentOrBuy)
		if err != nil {
			return nostr.Filter{}, err
		}
		tags["M"] = []string{string(rentOrBuy)}
	}
	if criteria.Guests != nil {
		tags["c"] = capacities(*criteria.Guests)
	}
	if len(criteria.Features) > maxSearchFeatures {
		return nostr.Filter{}, fault.New(fault.InvalidInput, "%d features are more than any place can have.", len(criteria.Features)).
			At("features").WithHint(fmt.Sprintf("at most %d names, such as kitchen or pool", maxSearchFeatures)).
			WithDetails(inputReason{Reason: "range"})
	}
	switch features := sortedNames(criteria.Features); len(features) {
	case 0:
	case 1:
		tags["s"] = features
	default:
		tags[combinationLetter] = []string{joinFeatures(features)}
	}
	if criteria.Cells != nil {
		if len(*criteria.Cells) == 0 {
			return nostr.Filter{}, ErrMatchesNothing
		}
		tags["g"] = slices.Clone(*criteria.Cells)
	}
	limit := criteria.Limit
	if strings.TrimSpace(criteria.Query) != "" {
		limit = queryPageSize
	}
	return nostr.Filter{Kinds: []int{KindListing}, Tags: tags, Limit: limit}, nil
}

// SelectListings returns what a search shows of the events a relay sent: the
// newest version of each listing, in order of arrival, that contains the query,
// up to the limit. Events that are no listings are passed over.
func SelectListings(events []*nostr.Event, criteria SearchCriteria) []Listing {
	query := strings.ToLower(strings.TrimSpace(criteria.Query))
	listings := make([]Listing, 0, min(len(events), max(criteria.Limit, 0)))
	for _, event := range newestVersions(events) {
		if len(listings) >= criteria.Limit {
			break
		}
		if listing, err := DecodeListing(event); err == nil && listing.contains(query) {
			listings = append(listings, listing)
		}
	}
	return listings
}

// contains looks for lower-case text in the title and the description.
func (l Listing) contains(query string) bool {
	return query == "" ||
		strings.Contains(strings.ToLower(l.Title), query) ||
		strings.Contains(strings.ToLower(l.Description), query)
}

// capacities lists the guest counts to ask for: a relay cannot compare numbers.
func capacities(guests int) []string {
	first := uint64(max(guests, 1))
	last := uint64(usualCapacity)
	if first > usualCapacity {
		last = first + capacitySpan
	}
	var counts []string
	for n := first; n <= last; n++ {
		counts = append(counts, strconv.FormatUint(n, 10))
	}
	return counts
}

// newestVersions keeps one event per address, the newest, of equally old ones
// that with the lowest id (NIP-01), in order of arrival. Other kinds are dropped.
func newestVersions(events []*nostr.Event) []*nostr.Event {
	type address struct{ pubkey, identifier string }
	newest := make(map[address]*nostr.Event, len(events))
	key := func(event *nostr.Event) address { return address{event.PubKey, event.Tags.GetD()} }
	for _, event := range events {
		if event == nil || event.Kind != KindListing {
			continue
		}
		if known := newest[key(event)]; known == nil || supersedes(event, known) {
			newest[key(event)] = event
		}
	}
	return slices.DeleteFunc(slices.Clone(events), func(event *nostr.Event) bool {
		return event == nil || newest[key(event)] != event
	})
}

func supersedes(event, known *nostr.Event) bool {
	if event.CreatedAt != known.CreatedAt {
		return event.CreatedAt > known.CreatedAt
	}
	return event.ID < known.ID
}
