package market_test

import (
	"encoding/json"
	"math/big"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/market"
	"hostr-daemon/internal/money"
)

// comparers let cmp see through the types with unexported parts.
var comparers = cmp.Options{
	cmp.Comparer(func(a, b *big.Int) bool { return a.Cmp(b) == 0 }),
	cmp.Comparer(func(a, b money.Fraction) bool { return a.String() == b.String() }),
	cmp.AllowUnexported(market.Specifications{}, market.SpecificationValue{}),
	cmpopts.IgnoreFields(market.Specifications{}, "places"),
	cmpopts.EquateEmpty(),
}

func TestDecodeListingDefaults(t *testing.T) {
	t.Parallel()
	listing := decode(t, "A *room*")
	want := market.ListingFields{Description: "A *room*", Active: true, Quantity: 1, Type: market.Room}
	if diff := cmp.Diff(want, listing.ListingFields, comparers...); diff != "" {
		t.Error(diff)
	}
	if _, ok := listing.Anchor(); ok || listing.DTag != nil {
		t.Error("a listing without d tag has an anchor")
	}
	if listing.RentOrBuy() != market.Buy || listing.DisputePeriod() != 1209600 {
		t.Errorf("%s, %d", listing.RentOrBuy(), listing.DisputePeriod())
	}
	summary := encode(t, listing.Summary())
	for _, part := range []string{
		`"anchor":null,"dTag":null,`, `"autoAccept":false,"type":"room","rentOrBuy":"buy","quantity":1,"images":[],"prices":[],`,
		`"location":"","maxDisputePeriod":1209600,"cancellationPolicy":[],"tags":[]}`,
	} {
		if !strings.Contains(summary, part) {
			t.Errorf("%s lacks %s", summary, part)
		}
	}
}

func TestDecodeListingReads(t *testing.T) {
	t.Parallel()
	// Each case is the tags of a listing and a part of its summary.
	for name, test := range map[string]struct {
		tags nostr.Tags
		want string
	}{
		"first wins":                {nostr.Tags{{"title"}, {"title", "a"}, {"title", "b"}}, `"title":"a"`},
		"empty d tag":               {nostr.Tags{{"d", ""}}, `"anchor":"30402:` + author + `:","dTag":""`},
		"d tag with colons":         {nostr.Tags{{"d", "a:b"}}, `"anchor":"30402:` + author + `:a:b","dTag":"a:b"`},
		"active in any case":        {nostr.Tags{{"active", "TRUE"}}, `"active":true`},
		"active of another word":    {nostr.Tags{{"active", "yes"}}, `"active":false`},
		"unknown type":              {nostr.Tags{{"type", "cabin"}}, `"type":"room"`},
		"type in another case":      {nostr.Tags{{"type", "Villa"}}, `"type":"room"`},
		"type":                      {nostr.Tags{{"type", "villa"}}, `"type":"villa"`},
		"bad quantity":              {nostr.Tags{{"quantity", "many"}}, `"quantity":1`},
		"quantity":                  {nostr.Tags{{"quantity", " 3 "}}, `"quantity":3`},
		"images":                    {nostr.Tags{{"image", " a "}, {"image", " "}, {"image", "b", "1x1"}}, `"images":["a","b"]`},
		"bad price is skipped":      {nostr.Tags{{"price", "abc", "USD"}, {"price", "5", "USD", "day"}}, `"prices":[{"amount":{"value":"5.000000","smallestUnitValue":"5000000","denomination":"USD","decimals":6},"frequency":"daily"}]`},
		"short price is skipped":    {nostr.Tags{{"price", "5"}}, `"prices":[]`},
		"unknown period":            {nostr.Tags{{"price", "5", "EUR", "hour"}}, `"prices":[{"amount":{"value":"5.00000000","smallestUnitValue":"500000000","denomination":"EUR","decimals":8}}]`},
		"case of denomination":      {nostr.Tags{{"price", "5", "usd"}}, `"denomination":"usd","decimals":8}`},
		"rentOrBuy tag is ignored":  {nostr.Tags{{"rentOrBuy", "rent"}}, `"rentOrBuy":"buy"`},
		"rent by price":             {nostr.Tags{{"rentOrBuy", "buy"}, {"price", "5", "EUR", "month"}}, `"minDuration":"P1M","type":"room","rentOrBuy":"rent"`},
		"shortest stay as told":     {nostr.Tags{{"minDuration", "P9D"}, {"price", "5", "EUR", "month"}}, `"minDuration":"P9D"`},
		"blank shortest stay":       {nostr.Tags{{"minDuration", " "}, {"price", "5", "EUR", "year"}}, `"minDuration":"P1Y"`},
		"deposit":                   {nostr.Tags{{"securityDeposit", "1", "USD", "2"}}, `"securityDeposit":{"value":"1.00","smallestUnitValue":"100","denomination":"USD","decimals":2}`},
		"deposit of odd decimals":   {nostr.Tags{{"securityDeposit", "1", "USD", "x"}}, `"decimals":8},"maxDisputePeriod"`},
		"deposit of four elements":  {nostr.Tags{{"securityDeposit", "2", "USD"}, {"securityDeposit", "1", "USD", "0"}}, `"value":"1.0"`},
		"minimum":                   {nostr.Tags{{"minPaymentAmount", "1", "ETH", "18"}}, `"minPaymentAmount":{"value":"1.000000000000000000"`},
		"huge decimals":             {nostr.Tags{{"securityDeposit", "1", "USD", "999999999"}}, `"location":"","maxDisputePeriod"`},
		"more than int64 decimals":  {nostr.Tags{{"securityDeposit", "1", "USD", "99999999999999999999"}}, `"location":"","maxDisputePeriod"`},
		"negative decimals":         {nostr.Tags{{"securityDeposit", "1", "USD", "-1"}}, `"location":"","maxDisputePeriod"`},
		"bad deposit":               {nostr.Tags{{"securityDeposit", "x", "USD", "8"}, {"securityDeposit", "1", "USD", "8"}}, `"location":"","maxDisputePeriod"`},
		"dispute period":            {nostr.Tags{{"maxDisputePeriod", "5"}}, `"maxDisputePeriod":5`},
		"bad dispute period":        {nostr.Tags{{"maxDisputePeriod", "soon"}}, `"maxDisputePeriod":1209600`},
		"count without a number":    {nostr.Tags{{"spec", "max_guests"}}, `"max_guests":0`},
		"count as a word":           {nostr.Tags{{"spec", "max_guests", "two"}}, `"max_guests":0`},
		"count":                     {nostr.Tags{{"spec", "max_guests", "2", "x"}}, `"max_guests":2`},
		"flag with a number":        {nostr.Tags{{"spec", "kitchen", "1"}}, `"kitchen":false`},
		"flag":                      {nostr.Tags{{"amenity", "kitchen"}}, `"kitchen":true`},
		"later property wins":       {nostr.Tags{{"spec", "beds", "1"}, {"amenity", "beds", "4"}}, `"beds":4`},
		"policy in any order":       {nostr.Tags{{"cancellationPolicy", "secondsAfterOrder", "5", "refundFraction", "0.50", "odd"}}, `"cancellationPolicy":[{"secondsAfterOrder":5,"refundFraction":0.5}]`},
		"policy of both":            {nostr.Tags{{"cancellationPolicy", "refundFraction", "1.0", "secondsBeforeStart", "0", "secondsAfterOrder", "x"}}, `"cancellationPolicy":[{"secondsBeforeStart":0,"refundFraction":1}]`},
		"policy of no time":         {nostr.Tags{{"cancellationPolicy", "refundFraction", "1.0", "x", "y"}}, `"cancellationPolicy":[]`},
		"policy of negative time":   {nostr.Tags{{"cancellationPolicy", "refundFraction", "1.0", "secondsAfterOrder", "-1"}}, `"cancellationPolicy":[]`},
		"policy of more than all":   {nostr.Tags{{"cancellationPolicy", "refundFraction", "1.1", "secondsAfterOrder", "1"}}, `"cancellationPolicy":[]`},
		"policy NaN":                {nostr.Tags{{"cancellationPolicy", "refundFraction", "NaN", "secondsAfterOrder", "1"}}, `"cancellationPolicy":[]`},
		"tags without elements":     {nostr.Tags{nil, {}, {"title", "a"}}, `"tags":[[],[],["title","a"]]`},
		"negative count is as told": {nostr.Tags{{"spec", "tv", "-3"}}, `"tv":-3`},
	} {
		if summary := encode(t, decode(t, "", test.tags...).Summary()); !strings.Contains(summary, test.want) {
			t.Errorf("%s: %s lacks %s", name, summary, test.want)
		}
	}
}

func TestDecodeListingOfAnotherKind(t *testing.T) {
	t.Parallel()
	for _, event := range []*nostr.Event{nil, {}, {Kind: 30403}, {Kind: 1}} {
		if _, err := market.DecodeListing(event); err != market.ErrNotListing {
			t.Errorf("%v: %v", event, err)
		}
	}
}

func TestImageMetadata(t *testing.T) {
	t.Parallel()
	listing := decode(t, "",
		nostr.Tag{"imeta", "m image/png"},
		nostr.Tag{"imeta", "url "},
		nostr.Tag{"imeta", "nospace", " url b", "alt A view", "url a", "url c", "size x", "fallback 1", "fallback 2", "fallback ", "extra z"},
		nostr.Tag{"imeta", "url d", "size 67", "blurhash h", "thumb t", "image i", "x 1", "ox 2", "dim 1x2", "m image/gif"},
	)
	want := []market.ImageMetadata{
		{URL: "a", Alt: "A view", Fallbacks: []string{"1", "2"}},
		{
			URL: "d", MIME: "image/gif", SHA256: "1", OriginalSHA256: "2", Size: pointer[int64](67),
			Dimensions: "1x2", Blurhash: "h", Thumb: "t", Image: "i",
		},
	}
	if diff := cmp.Diff(want, listing.ImageMetadata); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(
		nostr.Tag{"imeta", "url d", "m image/gif", "x 1", "ox 2", "size 67", "dim 1x2", "blurhash h", "thumb t", "image i"},
		want[1].Tag(),
	); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(nostr.Tag{"imeta", "url a", "alt A view", "fallback 1", "fallback 2"}, want[0].Tag()); diff != "" {
		t.Error(diff)
	}
}

func TestSpecificationsKeepTheirOrder(t *testing.T) {
	t.Parallel()
	var specifications market.Specifications
	input := `{"zebra":true,"pool":false,"beds":2,"name":"x","apple":true,"share":2.0,"max_guests":0,"zebra":3,"none":null}`
	if err := json.Unmarshal([]byte(input), &specifications); err != nil {
		t.Fatal(err)
	}
	laid := specifications.With(
		market.Counter{Name: "max_guests", Count: 4},
		market.Counter{Name: "bedrooms", Count: 1},
		market.Counter{Name: "beds", Count: 0},
	)
	if diff := cmp.Diff(
		[]string{"zebra", "pool", "name", "apple", "share", "max_guests", "none", "bedrooms"}, specificationNames(laid),
	); diff != "" {
		t.Error(diff)
	}
	if len(specifications.Entries()) != 8 {
		t.Error("the counters changed the original")
	}
	draft := readVectors(t).draft(t)
	draft.Specifications = laid
	event, err := draft.Event()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"zebra", "apple", "max_guests", "bedrooms"}, values(event.Tags, "spec")); diff != "" {
		t.Error(diff)
	}
	for _, bad := range []string{`null`, `[]`, `"pool"`, `5`} {
		if err := specifications.UnmarshalJSON([]byte(bad)); err == nil {
			t.Errorf("%s is read", bad)
		}
	}
}

func TestManySpecifications(t *testing.T) {
	t.Parallel()
	tags := nostr.Tags{}
	for n := range 20_000 {
		tags = append(tags, nostr.Tag{"spec", "name" + strings.Repeat("x", n%100), "1"}, nostr.Tag{"spec", string(rune('a' + n%26))})
	}
	listing := decode(t, "", tags...)
	if n := len(listing.Specifications.Entries()); n != 126 {
		t.Errorf("%d properties", n)
	}
}

const author = "79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798"

func decode(t *testing.T, content string, tags ...nostr.Tag) market.Listing {
	t.Helper()
	event := &nostr.Event{Kind: market.KindListing, PubKey: author, Content: content, Tags: tags}
	listing, err := market.DecodeListing(event)
	if err != nil {
		t.Fatal(err)
	}
	return listing
}

// FuzzDecodeListing checks that no event breaks reading, showing and editing,
// and that an edit that changes nothing comes to rest.
func FuzzDecodeListing(f *testing.F) {
	for _, seed := range []string{
		`[["d","a"],["title","t"],["price","abc","USD"],["price","5","USD","day"]]`,
		`[["securityDeposit","1","USD","999999999"],["spec","max_guests"],["spec","pool"],["spec","gym"]]`,
		`[["cancellationPolicy","refundFraction","NaN","secondsAfterOrder","1"],["imeta","url a","dim 1x1"],["image","a"]]`,
		`[[],null,["d"],["g","1"],["minDuration","P1DT"],["active","?"]]`,
	} {
		f.Add([]byte(seed), "A *room*")
	}
	f.Fuzz(func(t *testing.T, rawTags []byte, content string) {
		var tags nostr.Tags
		if json.Unmarshal(rawTags, &tags) != nil {
			t.Skip()
		}
		listing := decode(t, content, tags...)
		if summary, err := json.Marshal(listing.Summary()); err != nil || !json.Valid(summary) {
			t.Fatalf("%s: %v", summary, err)
		}
		event, err := listing.Edit(market.ListingPatch{})
		if err != nil {
			t.Skip()
		}
		once, err := market.DecodeListing(event)
		if err != nil {
			t.Fatal(err)
		}
		again, err := once.Edit(market.ListingPatch{})
		if err != nil {
			t.Fatal(err)
		}
		if again.ID != event.ID {
			t.Fatalf("a second edit differs:\n%v\n%v", event.Tags, again.Tags)
		}
	})
}

func BenchmarkDecodeListing(b *testing.B) {
	event := readVectors(b).event(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := market.DecodeListing(event); err != nil {
			b.Fatal(err)
		}
	}
}

// A listing of eight features carries 247 combinations.
func BenchmarkDecodeListingOfEightFeatures(b *testing.B) {
	event := listingOfEightFeatures(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := market.DecodeListing(event); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSummaryJSON(b *testing.B) {
	benchmarkSummaries(b, readVectors(b).event(b))
}

func BenchmarkSummaryJSONOfEightFeatures(b *testing.B) {
	benchmarkSummaries(b, listingOfEightFeatures(b))
}

func benchmarkSummaries(b *testing.B, event *nostr.Event) {
	listing, err := market.DecodeListing(event)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		summaries := make([]market.ListingSummary, 0, 500)
		for range 500 {
			summaries = append(summaries, listing.Summary())
		}
		data, err := json.Marshal(summaries)
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(len(data)))
	}
}

func listingOfEightFeatures(b *testing.B) *nostr.Event {
	draft := readVectors(b).draft(b)
	for _, name := range []string{"pool", "gym", "washer", "elevator", "heating", "jacuzzi"} {
		draft.Specifications.Set(name, market.Flag())
	}
	event, err := draft.Event()
	if err != nil {
		b.Fatal(err)
	}
	return event
}
