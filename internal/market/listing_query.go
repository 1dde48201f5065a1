package market

import "github.com/nbd-wtf/go-nostr"

// ListFilter returns the relay filter of a list of one author's listings; an
// empty author is anyone (spec 40 §4.2). The author is 64 lower-case hex digits.
func ListFilter(author string, limit int) nostr.Filter {
	filter := nostr.Filter{
		Kinds: []int{KindListing},
		Tags:  nostr.TagMap{"t": {Category}},
		Limit: limit,
	}
	if author != "" {
		filter.Authors = []string{author}
	}
	return filter
}

// ListingFilter returns the relay filter of one listing. The anchor's kind does
// not count (spec 40 §3).
func ListingFilter(anchor Anchor) nostr.Filter {
	return nostr.Filter{
		Kinds:   []int{KindListing},
		Authors: []string{anchor.PubKey},
		Tags:    nostr.TagMap{"d": {anchor.Identifier}},
	}
}

// FindListing returns the newest version of a listing among the events a relay
// sent; false when none is there.
func FindListing(events []*nostr.Event, anchor Anchor) (Listing, bool) {
	for _, event := range newestVersions(events) {
		listing, err := DecodeListing(event)
		if err != nil || event.PubKey != anchor.PubKey || event.Tags.GetD() != anchor.Identifier {
			continue
		}
		return listing, true
	}
	return Listing{}, false
}
