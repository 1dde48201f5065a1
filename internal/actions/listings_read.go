package actions

import (
	"context"
	"fmt"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/input"
	"hostr-daemon/internal/market"
)

// ListingsAvailabilityResult is the result of hostr.listings.availability (spec 40
// §12), in the order of the anchors.
type ListingsAvailabilityResult struct {
	Results []ListingAvailability `json:"results"`
}

// ListingAvailability is the answer for one listing.
type ListingAvailability struct {
	// Anchor is as it was given.
	Anchor    string `json:"anchor"`
	Found     bool   `json:"found"`
	Available bool   `json:"available"`
	// Partial is true when the relay did not answer in full.
	Partial bool `json:"partial,omitempty"`
	// Listing and OrderGroupCount are there when it was found.
	Listing         *market.ListingSummary `json:"listing,omitempty"`
	OrderGroupCount *int                   `json:"orderGroupCount,omitempty"`
}

func listingsAvailability(ctx context.Context, caller caller, input ListingsAvailabilityInput) (answer[ListingsAvailabilityResult], error) {
	stay := market.DateRange{Start: input.Start, End: input.End}
	found, err := caller.services.Listings.Availability(ctx, addresses(input.Anchors), stay)
	if err != nil {
		return answer[ListingsAvailabilityResult]{}, err
	}
	var warnings []*fault.Error
	results := make([]ListingAvailability, 0, len(found))
	for i, one := range found {
		result := ListingAvailability{Anchor: input.Anchors[i].Given, Available: one.Available, Partial: one.Warning != nil}
		if one.Listing != nil {
			summary := one.Listing.Summary()
			result.Found, result.Listing, result.OrderGroupCount = true, &summary, &one.OrderGroupCount
		}
		results = append(results, result)
		warnings = appendPartial(warnings, one.Warning, i, result.Anchor)
	}
	return answer[ListingsAvailabilityResult]{data: ListingsAvailabilityResult{results}, warnings: warnings}, nil
}

// ListingsReviewsResult is the result of hostr.listings.reviews (spec 40 §13), in the
// order of the anchors.
type ListingsReviewsResult struct {
	// Tag is the tag by which reviews were looked for.
	Tag     string           `json:"tag"`
	Results []ListingReviews `json:"results"`
}

// ListingReviews are the reviews of one listing, unverified.
type ListingReviews struct {
	// Anchor is as it was given.
	Anchor string `json:"anchor"`
	// Count is how many there are, Events holds no more than the limit.
	Count   int                `json:"count"`
	Events  []market.EventJSON `json:"events"`
	Partial bool               `json:"partial,omitempty"`
}

func listingsReviews(ctx context.Context, caller caller, input ListingsAnchorsInput) (answer[ListingsReviewsResult], error) {
	anchors, err := input.DecodeAnchors()
	if err != nil {
		return answer[ListingsReviewsResult]{}, err
	}
	found, err := caller.services.Listings.Reviews(ctx, addresses(anchors))
	if err != nil {
		return answer[ListingsReviewsResult]{}, err
	}
	var warnings []*fault.Error
	results := make([]ListingReviews, 0, len(found))
	for i, one := range found {
		result := ListingReviews{Anchor: anchors[i].Given, Count: len(one.Events), Events: []market.EventJSON{}, Partial: one.Warning != nil}
		for _, event := range one.Events[:min(len(one.Events), input.Limit)] {
			result.Events = append(result.Events, market.NewEventJSON(event))
		}
		results = append(results, result)
		warnings = appendPartial(warnings, one.Warning, i, result.Anchor)
	}
	return answer[ListingsReviewsResult]{data: ListingsReviewsResult{Tag: "a", Results: results}, warnings: warnings}, nil
}

// ListingsOrderGroupsResult is the result of hostr.listings.orderGroups (spec 40 §14),
// in the order of the anchors.
type ListingsOrderGroupsResult struct {
	Results []ListingOrderGroups `json:"results"`
}

// ListingOrderGroups are the public orders of one listing, unverified.
type ListingOrderGroups struct {
	// Anchor is as it was given; it may be a title.
	Anchor string `json:"anchor"`
	Found  bool   `json:"found"`
	// Count is how many groups there are, Groups holds no more than the limit.
	Count int `json:"count"`
	// Groups are there when the listing was found, LookupError may be when it was not.
	Groups      []market.OrderGroupResult `json:"groups,omitzero"`
	LookupError string                    `json:"lookupError,omitempty"`
	Partial     bool                      `json:"partial,omitempty"`
}

// listingsOrderGroups looks titles up among the listings of whoever is signed in.
func listingsOrderGroups(ctx context.Context, caller caller, input ListingsAnchorsInput) (answer[ListingsOrderGroupsResult], error) {
	owner := ""
	if account := caller.session.Account(); account != nil {
		owner = account.Pubkey()
	}
	found, err := caller.services.Listings.OrderGroups(ctx, input.Anchors, owner)
	if err != nil {
		return answer[ListingsOrderGroupsResult]{}, err
	}
	var warnings []*fault.Error
	results := make([]ListingOrderGroups, 0, len(found))
	for i, one := range found {
		result := ListingOrderGroups{
			Anchor: input.Anchors[i], Found: one.Found, Count: len(one.Groups),
			LookupError: one.LookupError, Partial: one.Warning != nil,
		}
		if one.Found {
			result.Groups = make([]market.OrderGroupResult, 0, min(len(one.Groups), input.Limit))
		}
		for _, group := range one.Groups[:min(len(one.Groups), input.Limit)] {
			result.Groups = append(result.Groups, group.Result())
		}
		results = append(results, result)
		warnings = appendPartial(warnings, one.Warning, i, result.Anchor)
	}
	return answer[ListingsOrderGroupsResult]{data: ListingsOrderGroupsResult{results}, warnings: warnings}, nil
}

func addresses(anchors []input.GivenAnchor) []market.Anchor {
	addresses := make([]market.Anchor, 0, len(anchors))
	for _, anchor := range anchors {
		addresses = append(addresses, anchor.Anchor)
	}
	return addresses
}

// appendPartial adds the warning of one result, if it has one (spec 40 §12).
func appendPartial(warnings []*fault.Error, warning *fault.Error, index int, anchor string) []*fault.Error {
	if warning == nil {
		return warnings
	}
	return append(warnings, warning.At(fmt.Sprintf("anchors[%d]", index)).WithDetails(partialDetails{Anchor: anchor}))
}

// partialDetails name the listing of a partial result.
type partialDetails struct {
	// Anchor is as it was given.
	Anchor string `json:"anchor"`
}
