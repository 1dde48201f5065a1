package market_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/market"
	"hostr-daemon/internal/money"
)

func TestEdit(t *testing.T) {
	t.Parallel()
	vectors := readVectors(t)
	patch := vectors.Edit.Patch
	edited, err := vectors.listing(t).Edit(market.ListingPatch{
		Title:           &patch.Title,
		Active:          &patch.Active,
		Specifications:  &patch.Specifications,
		Counters:        []market.Counter{{Name: "max_guests", Count: patch.Guests}},
		SecurityDeposit: market.Clear[money.Amount](),
	})
	if err != nil {
		t.Fatal(err)
	}
	want := compact(t, vectors.Edit.ExpectedEvent)
	if diff := cmp.Diff(want, encode(t, market.NewEventJSON(edited))); diff != "" {
		t.Error(diff)
	}
}

// An edit that changes nothing moves the tags that are kept to the front, once.
func TestEmptyEditSettles(t *testing.T) {
	t.Parallel()
	listing := readVectors(t).listing(t)
	before := slices.Clone(listing.Event.Tags)
	once := edit(t, listing, market.ListingPatch{})
	if diff := cmp.Diff(listing.ListingFields, once.ListingFields, comparers...); diff != "" {
		t.Error(diff)
	}
	twice := edit(t, once, market.ListingPatch{})
	if diff := cmp.Diff(once.Event, twice.Event); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(before, listing.Event.Tags); diff != "" {
		t.Errorf("the edit changed the old event: %s", diff)
	}
}

func TestEditKeepsForeignTags(t *testing.T) {
	t.Parallel()
	listing := readVectors(t).listing(t)
	event := *listing.Event
	event.Tags = append(nostr.Tags{
		{"summary", "short"}, {}, {"status", "active"}, {"t", "holiday"}, {"amenity", "sauna"}, {"price", "abc", "USD"},
	}, event.Tags...)
	foreign, err := market.DecodeListing(&event)
	if err != nil {
		t.Fatal(err)
	}
	edited := edit(t, foreign, market.ListingPatch{}).Event.Tags
	wantFirst := nostr.Tags{{"summary", "short"}, {}, {"status", "active"}, {"d", "garden-room"}}
	if diff := cmp.Diff(wantFirst, edited[:4]); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"accommodation"}, values(edited, "t")); diff != "" {
		t.Error(diff)
	}
	if values(edited, "amenity") != nil || !slices.Contains(values(edited, "spec"), "sauna") {
		t.Error("amenity does not come out as spec")
	}
	if diff := cmp.Diff([]string{"0.00100000", "0.00600000"}, values(edited, "price")); diff != "" {
		t.Error(diff)
	}
}

func TestEditFields(t *testing.T) {
	t.Parallel()
	vectors := readVectors(t)
	var specifications market.Specifications
	specifications.Set("pool", market.Flag())
	other := "https://blossom.example/other.png"
	for name, test := range map[string]struct {
		patch market.ListingPatch
		tag   string
		want  []nostr.Tag
	}{
		"cells are replaced": {
			market.ListingPatch{Cells: &[]string{"1", "2"}}, "g", []nostr.Tag{{"g", "1"}, {"g", "2"}},
		},
		"cells stay": {
			market.ListingPatch{}, "g", []nostr.Tag{{"g", "644572501406732483"}, {"g", "640068901779361991"}},
		},
		"dispute period is cleared": {
			market.ListingPatch{MaxDisputePeriod: market.Clear[int64]()}, "maxDisputePeriod", nil,
		},
		"dispute period is set": {
			market.ListingPatch{MaxDisputePeriod: market.Set[int64](7)}, "maxDisputePeriod", []nostr.Tag{{"maxDisputePeriod", "7"}},
		},
		"deposit is set": {
			market.ListingPatch{SecurityDeposit: market.Set(money.Satoshis(9))}, "securityDeposit",
			[]nostr.Tag{{"securityDeposit", "0.00000009", "BTC", "8"}},
		},
		"rules are cleared": {
			market.ListingPatch{CancellationPolicy: &[]money.CancellationRule{}}, "cancellationPolicy", nil,
		},
		"images take their metadata with them": {
			market.ListingPatch{Images: &market.ImageSet{URLs: []string{other}}}, "imeta", nil,
		},
		"images are replaced": {
			market.ListingPatch{Images: &market.ImageSet{URLs: []string{other}}}, "image", []nostr.Tag{{"image", other}},
		},
		"counters go over new properties": {
			market.ListingPatch{Specifications: &specifications, Counters: []market.Counter{{Name: "beds", Count: 3}}},
			"spec", []nostr.Tag{{"spec", "pool"}, {"spec", "beds", "3"}},
		},
		"counters go over old properties": {
			market.ListingPatch{Counters: []market.Counter{{Name: "max_guests", Count: 4}, {Name: "beds"}, {Name: "bedrooms", Count: 1}}},
			"spec", []nostr.Tag{{"spec", "wireless_internet"}, {"spec", "kitchen"}, {"spec", "max_guests", "4"}, {"spec", "bedrooms", "1"}},
		},
		"properties are cleared": {
			market.ListingPatch{Specifications: &market.Specifications{}}, "s", nil,
		},
		"publication keeps its time": {
			market.ListingPatch{}, "published_at", []nostr.Tag{{"published_at", "1767225600"}},
		},
		"a title may be blank": {
			market.ListingPatch{Title: pointer("")}, "title", []nostr.Tag{{"title", ""}},
		},
		"the shortest stay": {
			market.ListingPatch{MinDuration: pointer("P3D")}, "minDuration", []nostr.Tag{{"minDuration", "P3D"}},
		},
	} {
		var got []nostr.Tag
		for tag := range edit(t, vectors.listing(t), test.patch).Event.Tags.FindAll(test.tag) {
			got = append(got, tag)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestEditOfAnotherClientsListing(t *testing.T) {
	t.Parallel()
	listing, err := market.DecodeListing(&nostr.Event{
		Kind: market.KindListing, PubKey: strings.Repeat("a", 64), CreatedAt: 1700000000, Content: "A *boat*",
		Tags: nostr.Tags{{"title", "Boat"}, {"price", "100", "USD"}, {"d", "boat"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	edited := edit(t, listing, market.ListingPatch{}).Event
	want := nostr.Tags{
		{"d", "boat"}, {"title", "Boat"}, {"t", "accommodation"}, {"published_at", "1700000000"},
		{"active", "true"}, {"negotiable", "false"}, {"checkIn", "15:0"}, {"checkOut", "11:0"}, {"location", ""},
		{"quantity", "1"}, {"type", "room"}, {"autoAccept", "false"}, {"price", "100.000000", "USD"},
		{"rentOrBuy", "buy"}, {"T", "room"}, {"A", "true"}, {"I", "false"}, {"N", "false"}, {"M", "buy"},
	}
	if diff := cmp.Diff(want, edited.Tags); diff != "" {
		t.Error(diff)
	}
}

func TestEditChecks(t *testing.T) {
	t.Parallel()
	listing := readVectors(t).listing(t)
	usd := money.Amount{Denomination: "USD", Decimals: 6}
	for want, patch := range map[string]market.ListingPatch{
		"images_required images":       {Images: &market.ImageSet{}},
		"price_required price":         {Prices: &[]money.Price{}},
		"invalid_duration minDuration": {MinDuration: pointer("P")},
		"invalid_listing_type type":    {Type: pointer(market.ListingType("cabin"))},
		"mixed_currencies ":            {SecurityDeposit: market.Set(usd), MinPaymentAmount: market.Set(money.Satoshis(1))},
		"invalid_cancellation_policy cancellationPolicy[1]": {CancellationPolicy: &[]money.CancellationRule{
			{SecondsAfterOrder: pointer[int64](0)}, {SecondsAfterOrder: pointer[int64](-1)},
		}},
		"invalid_input specifications": {Specifications: pointer(longFlags(1, 129))},
	} {
		_, err := listing.Edit(patch)
		if checked := listing.CheckEdit(patch); checked == nil || checked.Error() != err.Error() {
			t.Errorf("the check says %v, want %v", checked, err)
		}
		if coded := fault.From(err); coded == nil || string(coded.Code)+" "+coded.Path != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if _, err := listing.Edit(market.ListingPatch{SecurityDeposit: market.Set(usd)}); err != nil {
		t.Errorf("a currency unlike that of the unchanged prices is refused: %v", err)
	}
}

// A listing of another client may have names that are too long to combine. It can be
// edited once it has others; a long name alone does no harm.
func TestEditOfLongNames(t *testing.T) {
	t.Parallel()
	foreign := func(count int) market.Listing {
		event := &nostr.Event{Kind: market.KindListing, PubKey: strings.Repeat("a", 64), CreatedAt: 1700000000}
		for i := range count {
			event.Tags = append(event.Tags, nostr.Tag{"spec", strings.Repeat(string(rune('a'+i)), 5_000)})
		}
		listing, err := market.DecodeListing(event)
		if err != nil {
			t.Fatal(err)
		}
		return listing
	}
	title := market.ListingPatch{Title: pointer("New")}
	for _, err := range []error{foreign(12).CheckEdit(title), second(foreign(12).Edit(title))} {
		if coded := fault.From(err); coded == nil || coded.Code != fault.InvalidInput || coded.Path != "specifications" {
			t.Errorf("%v", err)
		}
	}
	if edited := edit(t, foreign(1), title); edited.Title != "New" || len(edited.Specifications.Entries()) != 1 {
		t.Errorf("%+v", edited.ListingFields)
	}
	title.Specifications = &market.Specifications{}
	if edited := edit(t, foreign(12), title); edited.Title != "New" || len(edited.Specifications.Entries()) != 0 {
		t.Errorf("%+v", edited.ListingFields)
	}
}

func second(_ *nostr.Event, err error) error { return err }

func edit(t *testing.T, listing market.Listing, patch market.ListingPatch) market.Listing {
	t.Helper()
	event, err := listing.Edit(patch)
	if err != nil {
		t.Fatal(err)
	}
	edited, err := market.DecodeListing(event)
	if err != nil {
		t.Fatal(err)
	}
	return edited
}
