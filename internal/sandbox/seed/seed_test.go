package seed

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image/png"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/sandbox/geocoder"
)

func options(t testing.TB, seed int64, listings int) Options {
	t.Helper()
	places, err := geocoder.Places()
	if err != nil {
		t.Fatal(err)
	}
	pictures, err := NewPictures(seed, 6)
	if err != nil {
		t.Fatal(err)
	}
	var images []Image
	for i, picture := range pictures {
		images = append(images, picture.At(fmt.Sprintf("http://blossom.example/%d.png", i)))
	}
	return Options{
		Seed: seed, Hosts: 5, Guests: 6, Listings: listings, Odd: true,
		Images: images, Settlements: geocoder.Settlements(places),
	}
}

func marketOf(t testing.TB, seed int64, listings int) *Market {
	t.Helper()
	market, err := Make(options(t, seed, listings))
	if err != nil {
		t.Fatal(err)
	}
	return market
}

func TestEveryEventIsGenuine(t *testing.T) {
	t.Parallel()
	seen := make(map[string]bool)
	for _, event := range marketOf(t, 1, 30).Events() {
		if valid, err := event.CheckSignature(); !event.CheckID() || !valid || err != nil {
			t.Errorf("kind %d, %s: not genuine: %v", event.Kind, event.ID, err)
		}
		if seen[event.ID] {
			t.Errorf("event %s comes twice", event.ID)
		}
		seen[event.ID] = true
	}
	if len(seen) < 30+5+5+1+20 {
		t.Errorf("only %d events", len(seen))
	}
}

func TestTheSeedDecidesEverything(t *testing.T) {
	t.Parallel()
	ids := func(market *Market) (all []string) {
		for _, event := range market.Events() {
			all = append(all, event.ID)
		}
		return all
	}
	first, second, other := marketOf(t, 1, 30), marketOf(t, 1, 30), marketOf(t, 2, 30)
	if difference := cmp.Diff(ids(first), ids(second)); difference != "" {
		t.Errorf("one seed gives two markets:\n%s", difference)
	}
	if slices.ContainsFunc(ids(other), func(id string) bool { return slices.Contains(ids(first), id) }) {
		t.Error("two seeds share events")
	}
	if first.Escrow.PrivateKey != second.Escrow.PrivateKey || first.Escrow.PrivateKey == other.Escrow.PrivateKey {
		t.Error("the seed must decide the keys")
	}
	if more := marketOf(t, 1, 40); more.Listings[29].Event.ID != first.Listings[29].Event.ID {
		t.Error("more listings must not change the others")
	}
}

// TestTagsSayWhatTheListingSays reads the tags back by spec 40 §1 and §2.
func TestTagsSayWhatTheListingSays(t *testing.T) {
	t.Parallel()
	for _, listing := range marketOf(t, 3, 60).Listings {
		tags := listing.Event.Tags
		values := func(key string) (all []string) {
			for tag := range tags.FindAll(key) {
				all = append(all, strings.Join(tag[1:], " "))
			}
			return all
		}
		var features, counts, prices []string
		for tag := range tags.FindAll("spec") {
			if len(tag) == 2 {
				features = append(features, tag[1])
			} else {
				counts = append(counts, tag[1]+"="+tag[2])
			}
		}
		for _, price := range listing.Prices {
			prices = append(prices, strings.TrimSpace(price.Amount()+" "+price.Denomination+" "+price.Period))
		}
		want := [][2]any{
			{values("d"), []string{listing.DTag}}, {values("title"), []string{listing.Title}},
			{values("t"), []string{"accommodation"}}, {values("type"), []string{listing.Type}}, {values("T"), []string{listing.Type}},
			{values("active"), []string{fmt.Sprint(listing.Active)}}, {values("A"), []string{fmt.Sprint(listing.Active)}},
			{values("I"), []string{fmt.Sprint(listing.AutoAccept)}}, {values("N"), []string{fmt.Sprint(listing.Negotiable)}},
			{values("M"), []string{listing.RentOrBuy()}}, {values("rentOrBuy"), []string{listing.RentOrBuy()}},
			{values("c"), []string{fmt.Sprint(listing.Guests)}}, {values("b"), []string{fmt.Sprint(listing.Beds)}},
			{values("B"), []string{fmt.Sprint(listing.Bedrooms)}}, {values("R"), []string{fmt.Sprint(listing.Bathrooms)}},
			{features, listing.Features}, {values("price"), prices},
			{len(values("g")), 16}, {len(values("s")), len(features) + len(counts)},
			{len(values("S")), 1<<len(features) - len(features) - 1},
			{len(values("image")) > 0 && len(values("image")) == len(values("imeta")), true},
			{len(values("minDuration")) == 1, listing.RentOrBuy() == "rent"},
		}
		for i, pair := range want {
			if difference := cmp.Diff(pair[1], pair[0]); difference != "" {
				t.Errorf("listing %s, check %d (-listing +tags):\n%s", listing.Title, i, difference)
			}
		}
		if length := len(listing.Description); length < minDescription || length > 1500 || listing.Event.Content != listing.Description {
			t.Errorf("description of %d bytes: %s", length, listing.Description)
		}
		if listing.Guests < listing.Beds || listing.Guests > 20 || listing.Bathrooms < 1 {
			t.Errorf("rooms of %s: %+v", listing.Title, listing)
		}
	}
}

func TestCombinationsOfFeatures(t *testing.T) {
	t.Parallel()
	got := combinations([]string{"pool", "kitchen", "gym"})
	want := nostr.Tags{{"S", "gym+kitchen"}, {"S", "gym+kitchen+pool"}, {"S", "gym+pool"}, {"S", "kitchen+pool"}}
	if difference := cmp.Diff(want, got); difference != "" {
		t.Errorf("(-want +got):\n%s", difference)
	}
}

// TestCellTags compares with the points of spec 42 §2.
func TestCellTags(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		latitude, longitude float64
		finest, coarsest    string
	}{
		{13.697629, -89.191156, "645940393961590811", "578395892768309247"},
		{38.7223, -9.1393, "645021033775005900", "577481099093999615"},
		{-33.8688, 151.2093, "647358238575743144", "579838452023951359"},
	} {
		tags, err := cellTags(c.latitude, c.longitude)
		if err != nil {
			t.Fatal(err)
		}
		if tags[0][1] != c.finest || tags[15][1] != c.coarsest || len(tags) != 16 {
			t.Errorf("%f, %f: %v", c.latitude, c.longitude, tags)
		}
	}
}

func TestTheMarketIsVaried(t *testing.T) {
	t.Parallel()
	market := marketOf(t, 1, 110)
	seen := make(map[string]int)
	for _, listing := range market.Listings {
		seen[listing.Type]++
		seen[listing.RentOrBuy()]++
		seen[listing.Prices[0].Denomination]++
		seen["period "+listing.Prices[0].Period]++
		seen[listing.Place]++
		seen[fmt.Sprint("active ", listing.Active)]++
		for _, name := range []string{"cancellationPolicy", "securityDeposit", "minPaymentAmount", "maxDisputePeriod"} {
			if listing.Event.Tags.Find(name) != nil {
				seen[name]++
			}
		}
	}
	for _, what := range []string{
		"room", "house", "apartment", "villa", "hotel", "hostel", "resort", "rent", "buy", "BTC", "USD",
		"period day", "period month", "active true", "active false", "Lisbon", "El Zonte", "Juayúa",
		"cancellationPolicy", "securityDeposit", "minPaymentAmount", "maxDisputePeriod",
	} {
		if seen[what] == 0 {
			t.Errorf("no listing with %s", what)
		}
	}
	fields := make(map[string]int)
	for _, person := range slices.Concat(market.Hosts, market.Guests) {
		if person.Profile == nil {
			fields["no profile"]++
			continue
		}
		var content map[string]any
		if err := json.Unmarshal([]byte(person.Profile.Content), &content); err != nil {
			t.Fatal(err)
		}
		for key := range content {
			fields[key]++
		}
	}
	for _, field := range []string{"name", "display_name", "about", "picture", "banner", "website", "nip05", "lud16", "bot", "no profile"} {
		if fields[field] == 0 || fields[field] == len(market.Hosts)+len(market.Guests) && field != "name" {
			t.Errorf("%s is in %d profiles", field, fields[field])
		}
	}
}

func TestPicturesAreDifferentPNGs(t *testing.T) {
	t.Parallel()
	pictures, err := NewPictures(1, 12)
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]bool)
	for i, picture := range pictures {
		if _, err := png.Decode(bytes.NewReader(picture.PNG)); err != nil {
			t.Errorf("picture %d: %v", i, err)
		}
		seen[string(picture.PNG)] = true
	}
	if len(seen) != 12 {
		t.Errorf("%d different pictures of 12", len(seen))
	}
}

func TestMakeNeedsSomebodyToHost(t *testing.T) {
	t.Parallel()
	if _, err := Make(Options{Listings: 1}); err == nil {
		t.Error("listings without hosts")
	}
}

func BenchmarkMake(b *testing.B) {
	o := options(b, 1, 1000)
	for b.Loop() {
		if _, err := Make(o); err != nil {
			b.Fatal(err)
		}
	}
}
