package market_test

import (
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/market"
)

func TestSearchFilter(t *testing.T) {
	t.Parallel()
	for _, vector := range readVectors(t).SearchFilters {
		criteria := vector.Input.criteria(t)
		filter, err := market.SearchFilter(criteria)
		if err != nil {
			t.Errorf("%+v: %v", criteria, err)
			continue
		}
		if diff := cmp.Diff(vector.Filter, filter); diff != "" {
			t.Errorf("%+v: %s", criteria, diff)
		}
	}
}

// criteria does by hand what the catalog's parser does with a search input:
// text lists split at commas, the limit is 10 by default and at most 50.
func (in searchInput) criteria(t *testing.T) market.SearchCriteria {
	t.Helper()
	criteria := market.SearchCriteria{
		Query: in.Query, Type: in.Type, RentOrBuy: in.RentOrBuy, Guests: in.Guests, Limit: min(in.Limit, 50),
	}
	if in.Limit == 0 {
		criteria.Limit = 10
	}
	var list string
	if json.Unmarshal(in.Features, &list) == nil {
		criteria.Features = strings.Split(list, ",")
	} else if in.Features != nil && json.Unmarshal(in.Features, &criteria.Features) != nil {
		t.Fatalf("features %s", in.Features)
	}
	return criteria
}

// The order of joined names is that of UTF-16, in which characters beyond the
// first plane come before U+E000.
func TestSearchFilterJoinsByCodeUnit(t *testing.T) {
	t.Parallel()
	filter, err := market.SearchFilter(market.SearchCriteria{Features: []string{"\uFF5E", " ", "\U0001F3CA", "pool", "Pool"}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"Pool+pool+\U0001F3CA+\uFF5E"}, filter.Tags["S"]); diff != "" {
		t.Error(diff)
	}
	if filter.Tags["s"] != nil {
		t.Errorf("single names are asked for too: %v", filter.Tags["s"])
	}
}

// One bad listing must not break a search (spec 40 §17).
func TestSelectListingsAmongOddOnes(t *testing.T) {
	t.Parallel()
	odd := []nostr.Tags{
		{{"d", "price"}, {"price", "abc", "USD"}},
		{{"d", "deposit"}, {"securityDeposit", "1", "USD", "999999999"}},
		{{"d", "guests"}, {"spec", "max_guests"}},
		{{"d", "policy"}, {"cancellationPolicy", "refundFraction", "NaN", "secondsAfterOrder", "1"}},
		{{"d", "digits"}, {"price", strings.Repeat("9", 1_000_000), "BTC"}},
		{nil, {}, {""}, {"d"}},
		nil,
	}
	var events []*nostr.Event
	for i, tags := range odd {
		events = append(events, &nostr.Event{ID: encode(t, i), PubKey: author, Kind: market.KindListing, Tags: tags})
	}
	listings := market.SelectListings(events, market.SearchCriteria{Limit: 50})
	// The last two have no d tag and therefore one address.
	if len(listings) != len(odd)-1 {
		t.Errorf("%d listings", len(listings))
	}
	for _, listing := range listings {
		encode(t, listing.Summary())
	}
}

func TestSearchFilterRefuses(t *testing.T) {
	t.Parallel()
	for want, criteria := range map[string]market.SearchCriteria{
		"invalid_listing_type type":     {Type: "cabin"},
		"invalid_rent_or_buy rentOrBuy": {RentOrBuy: "lease"},
	} {
		_, err := market.SearchFilter(criteria)
		if coded := fault.From(err); coded == nil || string(coded.Code)+" "+coded.Path != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestSearchFilterPlace(t *testing.T) {
	t.Parallel()
	if _, err := market.SearchFilter(market.SearchCriteria{Cells: &[]string{}, Limit: 10}); !errors.Is(err, market.ErrMatchesNothing) {
		t.Errorf("a place without cells: %v", err)
	}
	if _, err := market.SearchFilter(market.SearchCriteria{Cells: new([]string), Limit: 10}); !errors.Is(err, market.ErrMatchesNothing) {
		t.Errorf("a place with a nil list: %v", err)
	}
	filter, err := market.SearchFilter(market.SearchCriteria{Cells: &[]string{"644572501406732483"}, Limit: 10})
	if err != nil || filter.Tags["g"][0] != "644572501406732483" {
		t.Errorf("%v, %v", filter, err)
	}
}

func TestSearchFilterGuests(t *testing.T) {
	t.Parallel()
	for guests, want := range map[int]struct{ count, first, last string }{
		math.MinInt: {"20", "1", "20"},
		0:           {"20", "1", "20"},
		1:           {"20", "1", "20"},
		20:          {"1", "20", "20"},
		22:          {"31", "22", "52"},
		math.MaxInt: {"31", "9223372036854775807", "9223372036854775837"},
	} {
		filter, err := market.SearchFilter(market.SearchCriteria{Guests: &guests})
		if err != nil {
			t.Fatal(err)
		}
		counts := filter.Tags["c"]
		if encode(t, len(counts)) != want.count || counts[0] != want.first || counts[len(counts)-1] != want.last {
			t.Errorf("%d guests: %v", guests, counts)
		}
	}
}

// A search finds what a draft writes: the filter's values are among its tags.
func TestSearchFilterMatchesDraft(t *testing.T) {
	t.Parallel()
	vectors := readVectors(t)
	event := vectors.event(t)
	for name, criteria := range map[string]market.SearchCriteria{
		"features": {Features: []string{"wireless_internet", "kitchen"}},
		"feature":  {Features: []string{"beds"}},
		"guests":   {Guests: pointer(2)},
		"type":     {Type: " Room "},
		"rent":     {RentOrBuy: "Rent"},
		"place":    {Cells: &[]string{"1", "640068901779361991"}},
	} {
		filter, err := market.SearchFilter(criteria)
		if err != nil || !filter.Matches(event) {
			t.Errorf("%s: %v, %v", name, filter, err)
		}
	}
	for name, criteria := range map[string]market.SearchCriteria{
		"features": {Features: []string{"wireless_internet", "pool"}},
		"guests":   {Guests: pointer(3)},
		"buy":      {RentOrBuy: "buy"},
	} {
		filter, err := market.SearchFilter(criteria)
		if err != nil || filter.Matches(event) {
			t.Errorf("no %s: %v, %v", name, filter, err)
		}
	}
}

func TestSelectListings(t *testing.T) {
	t.Parallel()
	event := func(id, pubkey, d string, at nostr.Timestamp, title, content string) *nostr.Event {
		return &nostr.Event{
			ID: id, PubKey: pubkey, Kind: market.KindListing, CreatedAt: at, Content: content,
			Tags: nostr.Tags{{"d", d}, {"title", title}, {"active", "false"}},
		}
	}
	events := []*nostr.Event{
		event("05", "a", "x", 10, "Old garden", "quiet"),
		nil,
		{ID: "00", Kind: 1, Content: "Garden"},
		event("04", "a", "y", 10, "Attic", "Über den DÄCHERN"),
		event("03", "a", "x", 11, "New house", "quiet"),
		event("09", "b", "x", 10, "GARDEN room", ""),
		event("02", "b", "x", 10, "Garden room, same second", ""),
		{ID: "01", PubKey: "c", Kind: market.KindListing, Content: "a garden without d"},
	}
	for _, test := range []struct {
		query string
		limit int
		want  string
	}{
		{"", 50, "04 03 02 01"},
		{"", 2, "04 03"},
		{"", 0, ""},
		{"garden", 50, "02 01"},
		{" GARDEN ", 1, "02"},
		{"über den dächern", 50, "04"},
		{"ÜBER", 50, "04"},
		{"old", 50, ""},
		{"nowhere", 50, ""},
	} {
		var ids []string
		for _, listing := range market.SelectListings(events, market.SearchCriteria{Query: test.query, Limit: test.limit}) {
			ids = append(ids, listing.Event.ID)
		}
		if got := strings.Join(ids, " "); got != test.want {
			t.Errorf("%q up to %d: %q, want %q", test.query, test.limit, got, test.want)
		}
	}
}

func TestListFilter(t *testing.T) {
	t.Parallel()
	want := nostr.Filter{
		Kinds: []int{30402}, Authors: []string{author}, Tags: nostr.TagMap{"t": {"accommodation"}}, Limit: 50,
	}
	if diff := cmp.Diff(want, market.ListFilter(author, 50)); diff != "" {
		t.Error(diff)
	}
	if filter := market.ListFilter("", 50); filter.Authors != nil {
		t.Errorf("anyone's listings are asked of %v", filter.Authors)
	}
}

func TestFindListing(t *testing.T) {
	t.Parallel()
	anchor := market.Anchor{Kind: 1, PubKey: author, Identifier: "a:b"}
	want := nostr.Filter{Kinds: []int{30402}, Authors: []string{author}, Tags: nostr.TagMap{"d": {"a:b"}}}
	if diff := cmp.Diff(want, market.ListingFilter(anchor)); diff != "" {
		t.Error(diff)
	}
	event := func(id, pubkey, d string, at nostr.Timestamp) *nostr.Event {
		return &nostr.Event{ID: id, PubKey: pubkey, Kind: market.KindListing, CreatedAt: at, Tags: nostr.Tags{{"d", d}}}
	}
	listing, ok := market.FindListing([]*nostr.Event{
		event("5", author, "a", 99), event("4", "b", "a:b", 99), event("3", author, "a:b", 1),
		event("2", author, "a:b", 2), event("1", author, "a:b", 2),
	}, anchor)
	if !ok || listing.Event.ID != "1" {
		t.Errorf("%v, %v", listing.Event, ok)
	}
	if listing, ok := market.FindListing([]*nostr.Event{event("5", author, "a", 99)}, anchor); ok {
		t.Errorf("found %v", listing.Event)
	}
}

func TestSearchFilterRefusesFloodsOfFeatures(t *testing.T) {
	t.Parallel()
	features := make([]string, 1_000_000)
	for i := range features {
		features[i] = strconv.Itoa(i)
	}
	_, err := market.SearchFilter(market.SearchCriteria{Features: features, Limit: 1})
	if problem := fault.From(err); problem == nil || problem.Code != fault.InvalidInput || problem.Path != "features" {
		t.Errorf("a million features give %v", err)
	}
}
