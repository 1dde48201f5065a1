package actions

import (
	"context"

	"hostr-daemon/internal/listings"
	"hostr-daemon/internal/market"
	"hostr-daemon/internal/sessions"
)

// ListingsResult is the result of hostr.listings.search and .list (spec 40 §10).
type ListingsResult struct {
	// Count is the number of listings returned.
	Count    int                     `json:"count"`
	Listings []market.ListingSummary `json:"listings"`
}

func listingsSearch(ctx context.Context, caller caller, input ListingsSearchInput) (answer[ListingsResult], error) {
	found, err := caller.services.Listings.Search(ctx, listings.Criteria{
		Location: input.Location,
		Market: market.SearchCriteria{
			Query:     input.Query,
			Type:      input.Type,
			RentOrBuy: input.RentOrBuy,
			Guests:    input.Guests,
			Features:  input.Features,
			Limit:     input.Limit,
		},
	})
	if err != nil {
		return answer[ListingsResult]{}, err
	}
	return answer[ListingsResult]{data: listingsResult(found), warnings: warnings(found.Warning)}, nil
}

func listingsList(ctx context.Context, caller caller, account *sessions.Account, input ListingsListInput) (answer[ListingsResult], error) {
	author := input.Author
	if input.Mine {
		author = account.Pubkey()
	}
	found, err := caller.services.Listings.List(ctx, author, input.Limit)
	if err != nil {
		return answer[ListingsResult]{}, err
	}
	return answer[ListingsResult]{data: listingsResult(found), warnings: warnings(found.Warning)}, nil
}

func listingsResult(found listings.Found) ListingsResult {
	result := ListingsResult{Count: len(found.Listings), Listings: make([]market.ListingSummary, 0, len(found.Listings))}
	for _, listing := range found.Listings {
		result.Listings = append(result.Listings, listing.Summary())
	}
	return result
}
