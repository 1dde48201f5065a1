package terminal

import (
	"fmt"
	"strings"
	"time"

	"hostr-daemon/internal/actions"
	"hostr-daemon/internal/market"
)

// availability prints whether each listing is free on the dates asked for.
func availability(page *resultPage, result actions.ListingsAvailabilityResult) {
	for i, one := range result.Results {
		title := one.Anchor
		if one.Listing != nil && one.Listing.Title != "" {
			title = one.Listing.Title
		}
		fmt.Fprintf(page, "%2d. %s\n%s%s\n", i+1, excerpt(title), listingIndent, verdict(one))
		if one.Listing != nil {
			fmt.Fprintf(page, "%s\n", list(highlights(*one.Listing), listingIndent))
			fmt.Fprintf(page, "%s%s\n", listingIndent, oneLine(one.Anchor))
		}
	}
}

func verdict(one actions.ListingAvailability) string {
	switch {
	case one.Partial && !one.Found:
		return "not known, the relay did not answer in full"
	case !one.Found:
		return "no such listing"
	case one.Available:
		return "free on these days"
	case one.Partial:
		return "not known to be free, the relay did not answer in full"
	default:
		return "taken"
	}
}

// reviews prints what guests say. Nobody has checked that they stayed.
func reviews(page *resultPage, result actions.ListingsReviewsResult) {
	for i, one := range result.Results {
		fmt.Fprintf(page, "%2d. %s\n", i+1, oneLine(one.Anchor))
		fmt.Fprintf(page, "%s%s\n", listingIndent, reviewCount(one))
		for _, event := range one.Events {
			review(page, event)
		}
	}
}

func reviewCount(one actions.ListingReviews) string {
	switch {
	case one.Partial:
		return "at least " + counted(one.Count, "review") + ", the relay did not answer in full"
	case one.Count == 0:
		return "no reviews"
	case one.Count > len(one.Events):
		return fmt.Sprintf("%s, the first %d here (that they stayed is not verified)", counted(one.Count, "review"), len(one.Events))
	default:
		return counted(one.Count, "review") + " (that they stayed is not verified)"
	}
}

func review(page *resultPage, shown market.EventJSON) {
	decoded, err := market.DecodeReview(wire(shown))
	if err != nil {
		return // the action gives none that cannot be read
	}
	fmt.Fprintf(page, "%s%s  %s  by %s\n", listingIndent, stars(decoded.Stars),
		shown.CreatedAt.Time().UTC().Format(time.DateOnly), shortKey(shown.PubKey))
	if text := excerpt(decoded.Text); text != "" {
		fmt.Fprintf(page, "%s\n", wrap(text, listingIndent+"  "))
	}
}

// stars draws a rating.
func stars(rating int) string {
	const most = 5
	rating = min(max(rating, 0), most)
	return strings.Repeat("★", rating) + strings.Repeat("☆", most-rating)
}

// orderGroups prints the stays that are public, a line each.
func orderGroups(page *resultPage, result actions.ListingsOrderGroupsResult) {
	shown := 0
	for i, one := range result.Results {
		fmt.Fprintf(page, "%2d. %s\n", i+1, excerpt(one.Anchor))
		switch {
		case !one.Found && one.Partial:
			fmt.Fprintf(page, "%snot known, the relay did not answer in full\n", listingIndent)
		case !one.Found && one.LookupError != "":
			fmt.Fprintf(page, "%s\n", wrap("no such listing: "+one.LookupError, listingIndent))
		case !one.Found:
			fmt.Fprintf(page, "%sno such listing\n", listingIndent)
		default:
			fmt.Fprintf(page, "%s%s\n", listingIndent, groupCount(one))
		}
		for _, group := range one.Groups {
			fmt.Fprintf(page, "%s\n%s  trade %s\n", list(groupFacts(group), listingIndent), listingIndent, tradeTag(group.TradeID))
		}
		shown += len(one.Groups)
	}
	if shown > 0 {
		page.WriteString("\nAll of a group, its events too: --json\n")
	}
}

func groupCount(one actions.ListingOrderGroups) string {
	text := counted(one.Count, "order group")
	if one.Count > len(one.Groups) {
		text += fmt.Sprintf(", the first %d here", len(one.Groups))
	}
	if one.Partial {
		text = "at least " + text + ", the relay did not answer in full"
	}
	return text
}

// groupFacts tell of one stay when it is, how far it got, and who is in it.
func groupFacts(group market.OrderGroupResult) []string {
	facts := []string{stay(group.Start, group.End), string(group.Stage)}
	switch {
	case group.Cancelled || !group.Confirmed:
	case group.BuyerPubkey == nil:
		facts = append(facts, "blocked by the host")
	default:
		facts = append(facts, "confirmed by the host")
	}
	if group.BuyerPubkey != nil {
		facts = append(facts, "buyer "+shortKey(*group.BuyerPubkey))
	}
	if group.EscrowPubkey != nil {
		facts = append(facts, "escrow "+shortKey(*group.EscrowPubkey))
	}
	return facts
}

// stay writes the days of arrival and departure.
func stay(start, end *string) string {
	if start == nil || end == nil {
		return "no dates"
	}
	return day(*start) + " to " + day(*end)
}

// day drops the time of day where it is midnight in UTC, as dates of stays are written.
func day(instant string) string { return strings.TrimSuffix(instant, "T00:00:00.000Z") }

// shortKey is enough of a key or an id to tell it from others nearby.
func shortKey(key string) string {
	const longest = 8
	if runes := []rune(oneLine(key)); len(runes) > longest {
		return string(runes[:longest]) + "…"
	}
	return oneLine(key)
}
