package market_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/market"
	"hostr-daemon/internal/money"
)

func TestDraftEvent(t *testing.T) {
	t.Parallel()
	vectors := readVectors(t)
	event := vectors.event(t)
	want := compact(t, vectors.Create.ExpectedEvent)
	if diff := cmp.Diff(want, encode(t, market.NewEventJSON(event))); diff != "" {
		t.Error(diff)
	}
	if !event.CheckID() {
		t.Error("the id is not that of the event")
	}
}

func TestDraftSummary(t *testing.T) {
	t.Parallel()
	vectors := readVectors(t)
	want := compact(t, vectors.Create.ExpectedListingSummary)
	if diff := cmp.Diff(want, encode(t, vectors.listing(t).Summary())); diff != "" {
		t.Error(diff)
	}
}

func TestDraftChecks(t *testing.T) {
	t.Parallel()
	vectors := readVectors(t)
	usd, err := money.ParseAmount("1", "USD", 6)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		spoil func(*market.ListingDraft)
		want  string
	}{
		"title":        {func(d *market.ListingDraft) { d.Title = " " }, "missing_title title"},
		"description":  {func(d *market.ListingDraft) { d.Description = "" }, "missing_description description"},
		"images":       {func(d *market.ListingDraft) { d.Images = nil }, "images_required images"},
		"prices":       {func(d *market.ListingDraft) { d.Prices = nil }, "price_required price"},
		"currencies":   {func(d *market.ListingDraft) { d.SecurityDeposit = &usd }, "mixed_currencies "},
		"type":         {func(d *market.ListingDraft) { d.Type = "cabin" }, "invalid_listing_type type"},
		"duration":     {func(d *market.ListingDraft) { d.MinDuration = "2" }, "invalid_duration minDuration"},
		"cancellation": {func(d *market.ListingDraft) { d.CancellationPolicy = make([]money.CancellationRule, 1) }, "invalid_cancellation_policy cancellationPolicy[0]"},
		"features": {func(d *market.ListingDraft) {
			for _, letter := range strings.Split("abcdefghijklm", "") {
				d.Specifications.Set(letter, market.Flag())
			}
		}, "invalid_input specifications"},
		"a long name": {func(d *market.ListingDraft) { d.Specifications.Set(strings.Repeat("x", 129), market.Count(2)) }, "invalid_input specifications"},
		"long names":  {func(d *market.ListingDraft) { d.Specifications = longFlags(12, 128) }, "invalid_input specifications"},
		"giant names": {func(d *market.ListingDraft) { d.Specifications = longFlags(12, 5_000) }, "invalid_input specifications"},
	} {
		draft := vectors.draft(t)
		test.spoil(&draft)
		event, err := draft.Event()
		if checked := draft.Check(); checked == nil || checked.Error() != err.Error() {
			t.Errorf("%s: the check says %v, want %v", name, checked, err)
		}
		coded := fault.From(err)
		if coded == nil || string(coded.Code)+" "+coded.Path != test.want {
			t.Errorf("%s: %v, %v, want %s", name, event, err, test.want)
		}
	}
}

// longFlags are so many flags with names of so many bytes.
func longFlags(count, bytes int) market.Specifications {
	var specifications market.Specifications
	for i := range count {
		specifications.Set(strings.Repeat(string(rune('a'+i)), bytes), market.Flag())
	}
	return specifications
}

func TestTwelveFeaturesAreCombined(t *testing.T) {
	t.Parallel()
	draft := readVectors(t).draft(t)
	draft.Specifications = market.Specifications{}
	for _, letter := range strings.Split("lkjihgfedcba", "") {
		draft.Specifications.Set(letter, market.Flag())
	}
	event, err := draft.Event()
	if err != nil {
		t.Fatal(err)
	}
	combinations := values(event.Tags, "S")
	if len(combinations) != 1<<12-12-1 {
		t.Errorf("%d combinations", len(combinations))
	}
	if combinations[0] != "a+b" || combinations[len(combinations)-1] != "k+l" {
		t.Errorf("from %s to %s", combinations[0], combinations[len(combinations)-1])
	}
}

func TestFeatureCombinations(t *testing.T) {
	t.Parallel()
	vectors := readVectors(t)
	draft := vectors.draft(t)
	draft.Specifications = market.Specifications{}
	for _, feature := range vectors.FeatureCombinations.Features {
		draft.Specifications.Set(feature, market.Flag())
	}
	event, err := draft.Event()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(vectors.FeatureCombinations.S, values(event.Tags, "S")); diff != "" {
		t.Error(diff)
	}
}

func TestDraftTagsOfOddCases(t *testing.T) {
	t.Parallel()
	vectors := readVectors(t)
	for name, test := range map[string]struct {
		change func(*market.ListingDraft)
		tag    string
		want   []nostr.Tag
	}{
		"a fixed price has no shortest stay": {
			func(d *market.ListingDraft) { d.Prices[0].Frequency = money.OneTime; d.Prices = d.Prices[:1] },
			"minDuration", nil,
		},
		"a fixed price has no fourth element": {
			func(d *market.ListingDraft) { d.Prices[0].Frequency = money.OneTime; d.Prices = d.Prices[:1] },
			"price", []nostr.Tag{{"price", "0.00100000", "BTC"}},
		},
		"a fixed price is for sale": {
			func(d *market.ListingDraft) { d.Prices[0].Frequency = money.OneTime; d.Prices = d.Prices[:1] },
			"rentOrBuy", []nostr.Tag{{"rentOrBuy", "buy"}},
		},
		"the first recurring price decides": {
			func(d *market.ListingDraft) {
				d.MinDuration = " "
				d.Prices[0].Frequency, d.Prices[1].Frequency = money.OneTime, money.Monthly
			},
			"minDuration", []nostr.Tag{{"minDuration", "P1M"}},
		},
		"dimensions follow the image": {
			func(d *market.ListingDraft) { d.ImageMetadata[0].Dimensions = "640x480" },
			"image", []nostr.Tag{{"image", vectors.Create.Stubs.BlossomDescriptor.URL, "640x480"}},
		},
		"odd dimensions do not": {
			func(d *market.ListingDraft) { d.ImageMetadata[0].Dimensions = "wide" },
			"image", []nostr.Tag{{"image", vectors.Create.Stubs.BlossomDescriptor.URL}},
		},
		"one feature is no combination": {
			func(d *market.ListingDraft) {
				d.Specifications = market.Specifications{}
				d.Specifications.Set("pool", market.Flag())
			},
			"S", nil,
		},
		"only counts above 0 are written": {
			func(d *market.ListingDraft) {
				d.Specifications = market.Specifications{}
				d.Specifications.Set("beds", market.Count(0))
				d.Specifications.Set("bedrooms", market.Count(-1))
				d.Specifications.Set("bathrooms", market.Count(2))
			},
			"spec", []nostr.Tag{{"spec", "bathrooms", "2"}},
		},
	} {
		draft := vectors.draft(t)
		test.change(&draft)
		event, err := draft.Event()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var got []nostr.Tag
		for tag := range event.Tags.FindAll(test.tag) {
			got = append(got, tag)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// What is written reads back as it was meant.
func TestDraftReadsBack(t *testing.T) {
	t.Parallel()
	vectors := readVectors(t)
	draft := vectors.draft(t)
	draft.Specifications.Set("unheard_of", market.Flag())
	draft.ImageMetadata[0].Fallbacks = []string{"https://one.example", "https://two.example"}
	draft.ImageMetadata[0].Dimensions = "3x4"
	event, err := draft.Event()
	if err != nil {
		t.Fatal(err)
	}
	listing, err := market.DecodeListing(event)
	if err != nil {
		t.Fatal(err)
	}
	want := draft.ListingFields
	want.PublishedAt = &draft.CreatedAt
	want.CheckIn, want.CheckOut = "15:0", "11:0"
	want.Specifications = listing.Specifications
	if diff := cmp.Diff(want, listing.ListingFields, comparers...); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(
		[]string{"wireless_internet", "kitchen", "max_guests", "beds", "unheard_of"},
		specificationNames(listing.Specifications),
	); diff != "" {
		t.Error(diff)
	}
}

func TestNewDTag(t *testing.T) {
	t.Parallel()
	for _, vector := range readVectors(t).DTag {
		if got := market.NewDTag(time.UnixMicro(vector.Microseconds)); got != vector.DTag {
			t.Errorf("%d = %s, want %s", vector.Microseconds, got, vector.DTag)
		}
	}
}

func TestNextCreatedAt(t *testing.T) {
	t.Parallel()
	for _, vector := range readVectors(t).NextCreatedAt {
		if got := market.NextCreatedAt(vector.Previous, vector.Now); got != vector.Result {
			t.Errorf("%d at %d = %d, want %d", vector.Previous, vector.Now, got, vector.Result)
		}
	}
	// The vectors of spec 82 §7.1 and its rule for drafts without a date.
	for _, test := range []struct{ previous, now, want nostr.Timestamp }{
		{1000, 1000, 1001}, {1000, 2000, 2000}, {0, 1000, 1000}, {-5, 1000, 1000}, {2000, 1000, 2001},
	} {
		if got := market.NextCreatedAt(test.previous, test.now); got != test.want {
			t.Errorf("NextCreatedAt(%d, %d) = %d, want %d", test.previous, test.now, got, test.want)
		}
	}
}

func TestDatesOverlap(t *testing.T) {
	t.Parallel()
	for _, vector := range readVectors(t).DatesOverlap {
		a := market.DateRange{Start: vector.A[0], End: vector.A[1]}
		b := market.DateRange{Start: vector.B[0], End: vector.B[1]}
		if a.Overlaps(b) != vector.Overlap || b.Overlaps(a) != vector.Overlap {
			t.Errorf("%v and %v: %v and %v, want %v", vector.A, vector.B, a.Overlaps(b), b.Overlaps(a), vector.Overlap)
		}
	}
}

func values(tags nostr.Tags, name string) []string {
	var found []string
	for tag := range tags.FindAll(name) {
		found = append(found, tag[1])
	}
	return found
}

func specificationNames(specifications market.Specifications) []string {
	var names []string
	for _, entry := range specifications.Entries() {
		names = append(names, entry.Name)
	}
	return names
}
