package conversation

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"hostr-daemon/internal/sandbox"
)

// find returns the seeded listings that a search must return: those that fit,
// newest first, at most limit.
func find(market *sandbox.Market, limit int, fits func(sandbox.Listing) bool) []sandbox.Listing {
	var found []sandbox.Listing
	for _, listing := range market.Listings {
		if fits(listing) && len(found) < limit {
			found = append(found, listing)
		}
	}
	return found
}

// wordSearch is how many listings the daemon looks through for words: the newest
// (spec 40 §4.1).
const wordSearch = 500

// findWords returns what a search for words must return.
func findWords(market *sandbox.Market, limit int, words string) []sandbox.Listing {
	var found []sandbox.Listing
	for _, listing := range market.Listings[:min(len(market.Listings), wordSearch)] {
		if withWords(words)(listing) && len(found) < limit {
			found = append(found, listing)
		}
	}
	return found
}

func inPlace(name string) func(sandbox.Listing) bool {
	return func(l sandbox.Listing) bool { return slices.Contains(l.Within, name) }
}

func withWords(words string) func(sandbox.Listing) bool {
	return func(l sandbox.Listing) bool {
		return strings.Contains(strings.ToLower(l.Title), strings.ToLower(words)) ||
			strings.Contains(strings.ToLower(l.Description), strings.ToLower(words))
	}
}

func withFeatures(guests int, features ...string) func(sandbox.Listing) bool {
	return func(l sandbox.Listing) bool {
		for _, feature := range features {
			if !slices.Contains(l.Features, feature) {
				return false
			}
		}
		return l.Guests >= guests
	}
}

// compare returns what is wrong about a search result, "" when nothing is: it
// must hold exactly the wanted listings in their order, and each as seeded.
func compare(result SearchResult, want []sandbox.Listing) string {
	if result.Count != len(result.Listings) {
		return fmt.Sprintf("count says %d, but there are %d listings", result.Count, len(result.Listings))
	}
	if difference := compareIDs(result.Listings, want); difference != "" {
		return difference
	}
	for i, got := range result.Listings {
		if difference := compareListing(got, want[i]); difference != "" {
			return fmt.Sprintf("listing %s (%s): %s", got.ID, got.Title, difference)
		}
	}
	return ""
}

func compareIDs(got []Summary, want []sandbox.Listing) string {
	gotIDs := make([]string, len(got))
	for i, listing := range got {
		gotIDs[i] = listing.ID
	}
	wantIDs := make([]string, len(want))
	for i, listing := range want {
		wantIDs[i] = listing.Event.ID
	}
	if slices.Equal(gotIDs, wantIDs) {
		return ""
	}
	missing := slices.DeleteFunc(slices.Clone(wantIDs), func(id string) bool { return slices.Contains(gotIDs, id) })
	extra := slices.DeleteFunc(slices.Clone(gotIDs), func(id string) bool { return slices.Contains(wantIDs, id) })
	if len(missing) == 0 && len(extra) == 0 {
		if len(gotIDs) != len(wantIDs) {
			return "some listings come more than once"
		}
		return "the right listings, but not newest first"
	}
	return fmt.Sprintf("%d listings instead of %d: missing %v, not wanted %v", len(gotIDs), len(wantIDs), brief(missing), brief(extra))
}

// compareListing checks the fields a bridge shows.
func compareListing(got Summary, want sandbox.Listing) string {
	for _, field := range []struct{ name, got, want string }{
		{"anchor", got.Anchor, want.Anchor},
		{"dTag", got.DTag, want.DTag},
		{"pubkey", got.Pubkey, want.Host.PublicKey},
		{"title", got.Title, want.Title},
		{"description", got.Description, want.Description},
		{"type", got.Type, want.Type},
		{"rentOrBuy", got.RentOrBuy, want.RentOrBuy()},
		{"active", strconv.FormatBool(got.Active), strconv.FormatBool(want.Active)},
		{"prices", pricesOf(got), pricesWanted(want)},
		{"max_guests", number(got.Specifications["max_guests"]), strconv.Itoa(want.Guests)},
		{"beds", number(got.Specifications["beds"]), strconv.Itoa(want.Beds)},
		{"features", strings.Join(featuresOf(got), " "), strings.Join(want.Features, " ")},
		{"images", strings.Join(got.Images, " "), strings.Join(imagesOf(want), " ")},
	} {
		if field.got != field.want {
			return fmt.Sprintf("%s is %q instead of %q", field.name, shorten(field.got, 120), shorten(field.want, 120))
		}
	}
	return ""
}

func pricesOf(listing Summary) string {
	texts := make([]string, len(listing.Prices))
	for i, price := range listing.Prices {
		texts[i] = fmt.Sprintf("%s (%s) %s %s", price.Amount.Value, price.Amount.SmallestUnitValue,
			price.Amount.Denomination, cmp.Or(price.Frequency, "once"))
	}
	return strings.Join(texts, ", ")
}

// priceLine writes the prices for people.
func priceLine(listing Summary) string {
	texts := make([]string, len(listing.Prices))
	for i, price := range listing.Prices {
		texts[i] = amountForPeople(price) + cmp.Or(periods[price.Frequency], " "+price.Frequency)
	}
	return strings.Join(texts, " or ")
}

// periods are the words for frequencies; a listing without one is sold.
var periods = map[string]string{"": " to buy it", "daily": " a day", "weekly": " a week", "monthly": " a month", "yearly": " a year"}

// satsBelow is the amount, in sats, from which on a price is written in BTC.
const satsBelow = 10_000_000

// amountForPeople writes small amounts of BTC in sats, and others without the
// zeros at their end.
func amountForPeople(price SummaryPrice) string {
	english := message.NewPrinter(language.English) // for the commas
	amount := price.Amount
	units, err := strconv.ParseInt(amount.SmallestUnitValue, 10, 64)
	switch {
	case err != nil:
		return amount.Value + " " + amount.Denomination
	case amount.Denomination == "BTC" && amount.Decimals == 8 && units < satsBelow:
		return english.Sprintf("%d sats", units)
	}
	whole, fraction, _ := strings.Cut(amount.Value, ".")
	if figure, err := strconv.ParseInt(whole, 10, 64); err == nil {
		whole = english.Sprintf("%d", figure)
	}
	if fraction = strings.TrimRight(fraction, "0"); fraction != "" {
		whole += "." + fraction
	}
	return whole + " " + amount.Denomination
}

func pricesWanted(listing sandbox.Listing) string {
	frequencies := map[string]string{"": "once", "day": "daily", "week": "weekly", "month": "monthly", "year": "yearly"}
	texts := make([]string, len(listing.Prices))
	for i, price := range listing.Prices {
		texts[i] = fmt.Sprintf("%s (%d) %s %s", price.Amount(), price.Units, price.Denomination, frequencies[price.Period])
	}
	return strings.Join(texts, ", ")
}

func featuresOf(listing Summary) []string {
	var features []string
	for name, value := range listing.Specifications {
		if value == true {
			features = append(features, name)
		}
	}
	slices.Sort(features)
	return features
}

func imagesOf(listing sandbox.Listing) []string {
	var urls []string
	for tag := range listing.Event.Tags.FindAll("image") {
		urls = append(urls, tag[1])
	}
	return urls
}

// number writes a JSON number without a fraction as an integer.
func number(value any) string {
	if figure, ok := value.(float64); ok && figure == math.Trunc(figure) {
		return strconv.FormatInt(int64(figure), 10)
	}
	return fmt.Sprint(value)
}

func brief(ids []string) []string {
	short := make([]string, 0, len(ids))
	for _, id := range ids[:min(len(ids), 3)] {
		short = append(short, shortID(id))
	}
	if len(ids) > 3 {
		short = append(short, fmt.Sprintf("and %d more", len(ids)-3))
	}
	return short
}

func shortID(id string) string { return id[:min(len(id), 8)] }
