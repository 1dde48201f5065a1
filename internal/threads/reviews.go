package threads

import (
	"context"
	"slices"

	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/market"
	"hostr-daemon/internal/relay"
)

// ListingReviews are what guests wrote about the account's listings.
type ListingReviews struct {
	// Listings are those that have reviews.
	Listings []ReviewedListing
	// Warning is set when an answer was cut off.
	Warning *fault.Error
}

// ReviewedListing is a listing with its reviews, which are not verified.
type ReviewedListing struct {
	Listing market.Listing
	Anchor  string
	// Reviews are signed, of kind 31555, in order of arrival.
	Reviews []*nostr.Event
}

// listingReviews asks for the listings and then once for the reviews of them all.
func (s *Service) listingReviews(ctx context.Context, limit int) (ListingReviews, error) {
	own := nostr.Filter{Kinds: []int{market.KindListing}, Authors: []string{s.me}, Limit: limit}
	answer, err := s.relays.Query(ctx, own, relay.QueryOptions{})
	if err != nil {
		return ListingReviews{}, err
	}
	found := ListingReviews{Warning: incomplete(answer, "There may be more listings of this account.")}
	var anchors []string
	for _, listing := range market.SelectListings(answer.Events, market.SearchCriteria{Limit: limit}) {
		if anchor, ok := listing.Anchor(); ok {
			anchors = append(anchors, anchor.String())
			found.Listings = append(found.Listings, ReviewedListing{Listing: listing, Anchor: anchor.String()})
		}
	}
	if len(anchors) == 0 {
		return found, nil
	}
	reviews := nostr.Filter{Kinds: []int{market.KindReview}, Tags: nostr.TagMap{"a": anchors}}
	if answer, err = s.relays.Query(ctx, reviews, relay.QueryOptions{}); err != nil {
		return ListingReviews{}, err
	}
	if found.Warning == nil {
		found.Warning = incomplete(answer, "There may be more reviews of this account's listings.")
	}
	for i := range found.Listings {
		found.Listings[i].Reviews = reviewsOf(answer.Events, found.Listings[i].Anchor)
	}
	found.Listings = slices.DeleteFunc(found.Listings, func(listing ReviewedListing) bool { return len(listing.Reviews) == 0 })
	return found, nil
}

func reviewsOf(events []*nostr.Event, anchor string) []*nostr.Event {
	var reviews []*nostr.Event
	for _, event := range events {
		if _, err := market.DecodeReview(event); err == nil && event.Tags.FindWithValue("a", anchor) != nil {
			reviews = append(reviews, event)
		}
	}
	return reviews
}

// incomplete is the warning of an answer that was cut off, nil when it was not (spec 10
// §3.3). what says what is not known because of it.
func incomplete(answer relay.Answer, what string) *fault.Error {
	warning := answer.Warning()
	if warning == nil {
		return nil
	}
	return fault.New(fault.PartialResult, "%s %s", what, warning.Message).Transient()
}
