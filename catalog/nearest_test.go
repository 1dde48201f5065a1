package catalog_test

import (
	"slices"
	"strings"
	"testing"
)

func TestNearest(t *testing.T) {
	t.Parallel()
	loaded := load(t)
	for given, want := range map[string]string{
		"hostr_listings_search":         "hostr.listings.search",
		" Hostr.Listings.Search ":       "hostr.listings.search",
		"listings.search":               "hostr.listings.search",
		"hostr.listing.search":          "hostr.listings.search",
		"hostr.orders.negotiate":        "",
		"":                              "",
		strings.Repeat("hostr.", 10000): "",
	} {
		if got := loaded.Nearest(given); got != want {
			t.Errorf("%.40q: %q, want %q", given, got, want)
		}
	}
	if !slices.Contains(loaded.Specifications(), "wireless_internet") || !slices.Contains(loaded.Specifications(), "beds") {
		t.Errorf("amenities: %q", loaded.Specifications())
	}
}
