package terminal

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"hostr-daemon/internal/actions"
	"hostr-daemon/internal/market"
	"hostr-daemon/internal/money"
	"hostr-daemon/internal/relay"
)

// listingIndent stands before what belongs to a listing.
const listingIndent = "    "

func listings(page *resultPage, result actions.ListingsResult, incomplete bool) {
	if len(result.Listings) == 0 && incomplete {
		page.WriteString("No listings could be read. What is wrong: hostr-daemon doctor\n")
		return
	}
	if len(result.Listings) == 0 {
		page.WriteString("No listings found.\n")
		return
	}
	for i, found := range result.Listings {
		fmt.Fprintf(page, "%2d. ", i+1)
		summary(page, found)
		page.WriteByte('\n')
	}
	fmt.Fprintf(page, "%s.\n", counted(len(result.Listings), "listing"))
}

// summary prints what a guest wants to know; its title goes on the line that has begun.
func summary(page *resultPage, listing market.ListingSummary) {
	fmt.Fprintf(page, "%s\n", cmp.Or(excerpt(listing.Title), "(no title)"))
	fmt.Fprintf(page, "%s\n", list(highlights(listing), listingIndent))
	if names := features(listing.Specifications); len(names) > 0 {
		fmt.Fprintf(page, "%s\n", list(names, listingIndent))
	}
	if place := excerpt(listing.Location); place != "" {
		fmt.Fprintf(page, "%s\n", wrap(place, listingIndent))
	}
	if text := excerpt(unmarked(listing.Description)); text != "" {
		fmt.Fprintf(page, "%s\n", wrap(text, listingIndent))
	}
	if len(listing.Images) > 0 {
		fmt.Fprintf(page, "%s%s\n", listingIndent, images(listing.Images))
	}
	if listing.Anchor != nil {
		fmt.Fprintf(page, "%s%s\n", listingIndent, oneLine(*listing.Anchor))
	}
}

// unmarked drops the marks of Markdown for bold text.
func unmarked(text string) string { return strings.ReplaceAll(text, "**", "") }

// highlights are what a guest looks at first.
func highlights(listing market.ListingSummary) []string {
	parts := []string{string(listing.Type)}
	for _, price := range listing.Prices {
		parts = append(parts, priceText(price))
	}
	specifications := listing.Specifications
	for _, count := range []struct {
		number int64
		noun   string
	}{{specifications.MaxGuests, "guests"}, {specifications.Bedrooms, "bedrooms"}, {specifications.Beds, "beds"}, {specifications.Bathrooms, "bathrooms"}} {
		if count.number > 0 {
			parts = append(parts, fmt.Sprintf("%s: %d", count.noun, count.number))
		}
	}
	if listing.RentOrBuy == market.Buy && len(listing.Prices) > 0 {
		parts = append(parts, "for sale")
	}
	if !listing.Active {
		parts = append(parts, "not active")
	}
	return parts
}

// features are the amenities in words, the first few of them.
func features(specifications market.SpecificationSummary) []string {
	const most = 8
	encoded, err := json.Marshal(specifications)
	if err != nil {
		panic(err) // numbers and booleans always encode
	}
	var names []string
	gjson.ParseBytes(encoded).ForEach(func(name, value gjson.Result) bool {
		if value.Type == gjson.True {
			names = append(names, strings.ReplaceAll(name.Str, "_", " "))
		}
		return true
	})
	if len(names) > most {
		names = append(names[:most], fmt.Sprintf("and %d more", len(names)-most))
	}
	return names
}

// images tells where they are: the cover, and how many more there are.
func images(urls []string) string {
	cover := oneLine(urls[0])
	if len(urls) == 1 {
		return cover
	}
	return fmt.Sprintf("%s and %s", cover, counted(len(urls)-1, "more image"))
}

// periods are the words for how often a price is paid.
var periods = map[money.Frequency]string{
	money.OneTime: "", money.Daily: " a night", money.Weekly: " a week", money.Monthly: " a month", money.Yearly: " a year",
}

func priceText(price money.PriceResult) string {
	return amountText(price.Amount) + periods[price.Frequency]
}

// amountText writes small amounts of bitcoin in sats.
func amountText(amount money.AmountResult) string {
	const mostDigits = 7 // a tenth of a bitcoin and more is written as such
	if amount.Denomination == "BTC" && amount.Decimals == 8 && len(amount.SmallestUnitValue) <= mostDigits {
		return thousands(amount.SmallestUnitValue) + " sats"
	}
	return thousands(shortDecimal(amount.Value)) + " " + shortened(amount.Denomination)
}

// thousands parts the digits before the point into groups of three.
func thousands(number string) string {
	whole, fraction, found := strings.Cut(number, ".")
	sign := ""
	if strings.HasPrefix(whole, "-") {
		sign, whole = "-", whole[1:]
	}
	groups := ""
	for len(whole) > 3 {
		groups = "," + whole[len(whole)-3:] + groups
		whole = whole[:len(whole)-3]
	}
	if found {
		fraction = "." + fraction
	}
	return sign + whole + groups + fraction
}

// shortDecimal drops zeros at the end but two.
func shortDecimal(value string) string {
	whole, fraction, found := strings.Cut(value, ".")
	if !found || len(fraction) <= 2 {
		return value
	}
	return whole + "." + fraction[:2] + strings.TrimRight(fraction[2:], "0")
}

func counted(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return strconv.Itoa(n) + " " + noun
}

// created prints a new listing, or how it would be and what publishes it.
func created(page *resultPage, result actions.ListingCreateResult) {
	if !result.DryRun {
		published(page, "Published.", result.Listing, result.RelayResponses)
		return
	}
	uploaded := ""
	switch n := len(result.PlannedUploads); {
	case n == 1:
		uploaded = " Its image is on the image server already."
	case n > 1:
		uploaded = fmt.Sprintf(" Its %d images are on the image server already.", n)
	}
	preview(page, "This is a preview: nothing was published."+uploaded, result.Listing)
	fmt.Fprintf(page, "\n%s\n  dryRun=false %s\n  in a JSON input: \"dryRun\":false,\"dTag\":%s\n",
		wrap("To publish it, repeat the command with these added (without this dTag it would be another listing):", ""),
		shellWord("dTag="+oneLine(result.DTag)), quoted(oneLine(result.DTag)))
}

// edited prints a listing as it is after an edit, or would be.
func edited(page *resultPage, result actions.ListingEditResult) {
	if !result.DryRun {
		published(page, "Published: this is the listing now.", result.Listing, result.RelayResponses)
		return
	}
	preview(page, "This is a preview: nothing was published, and the listing is as it was.", result.Listing)
	page.WriteString("\nTo publish the change, repeat the command with this added:\n  dryRun=false\n  in a JSON input: \"dryRun\":false\n")
}

func preview(page *resultPage, verdict string, shown market.ListingSummary) {
	fmt.Fprintf(page, "%s\n\n%s", wrap(verdict, ""), listingIndent)
	summary(page, shown)
}

func published(page *resultPage, verdict string, shown market.ListingSummary, receipts []relay.Receipt) {
	preview(page, verdict, shown)
	refusals(page, receipts)
	if shown.Anchor != nil {
		fmt.Fprintf(page, "\nTo change it:\n  hostr-daemon call hostr.listings.edit --as %s %s 'patch={\"title\":\"…\"}'\n",
			shellWord(cmp.Or(oneLine(page.call.As), shown.PubKey)), shellWord("anchor="+oneLine(*shown.Anchor)))
	}
}
