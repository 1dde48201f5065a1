package terminal

import (
	"cmp"
	"fmt"

	"hostr-daemon/internal/actions"
	"hostr-daemon/internal/market"
)

// tradeNouns are what a trade is to the guest and to the host.
var tradeNouns = map[market.CollectionMode]string{market.Trips: "trip", market.Bookings: "booking"}

// trades prints somebody's trips or bookings.
func trades(page *resultPage, result actions.OrderListResult, incomplete bool) {
	noun := tradeNouns[result.Mode]
	switch {
	case len(result.Results) == 0 && incomplete:
		fmt.Fprintf(page, "No %ss could be read. What is wrong: hostr-daemon doctor\n", noun)
	case len(result.Results) == 0:
		fmt.Fprintf(page, "No %ss. What is still being negotiated is in hostr.updates.\n", noun)
	}
	for i, item := range result.Results {
		fmt.Fprintf(page, "%2d. ", i+1)
		trade(page, item)
		page.WriteByte('\n')
	}
	if len(result.Results) > 0 {
		fmt.Fprintf(page, "%s.\n", counted(len(result.Results), noun))
	}
	if result.InvalidCount > 0 {
		fmt.Fprintf(page, "%s\n", wrap(counted(result.InvalidCount, "more "+noun)+" not shown: above the limit, or not proven to be paid.", ""))
	}
	if len(result.Results) > 0 {
		trade := "tradeId=TRADE"
		if len(result.Results) == 1 {
			trade = "tradeId=" + tradeTag(result.Results[0].TradeID)
		}
		nextCall(page, "To read what was said about one, or to call it off:", "hostr.thread.view", trade)
		fmt.Fprintf(page, "  hostr-daemon call hostr.orders.cancel --as %s %s\n", shellWord(page.call.account()), shellWord(trade))
	}
}

// trade prints one; its title goes on the line that has begun.
func trade(page *resultPage, item market.CollectionItem) {
	title := item.Group.ListingTitle
	if item.Listing != nil {
		title = cmp.Or(item.Listing.Title, title)
	}
	fmt.Fprintf(page, "%s\n", cmp.Or(excerpt(title), "(no title)"))
	fmt.Fprintf(page, "%s%s\n", listingIndent, dates(item.Group.Start, item.Group.End))
	facts := []string{state(item.Group)}
	profiles := item.Participants.Profiles
	for _, party := range []struct {
		role   string
		person *market.ProfileSummary
		shown  bool
	}{{"host", profiles.Seller, item.Mode != market.Bookings}, {"guest", profiles.Buyer, item.Mode != market.Trips}, {"escrow", profiles.Escrow, true}} {
		if party.shown && party.person != nil {
			facts = append(facts, party.role+" "+somebody(*party.person))
		}
	}
	fmt.Fprintf(page, "%s\n%strade %s\n", list(facts, listingIndent), listingIndent, oneLine(item.TradeID))
}

// state tells how far a stay got.
func state(group market.OrderGroupResult) string {
	switch {
	case group.Cancelled:
		return "cancelled"
	case group.Confirmed && group.BuyerPubkey == nil:
		return "blocked by the host"
	case group.Confirmed:
		return "booked and confirmed by the host"
	case group.Stage == market.StageCommit:
		return "booked, not confirmed by the host"
	default:
		return "not booked"
	}
}

// lookedUp prints what is public of one trade.
func lookedUp(page *resultPage, result actions.OrderLookupResult) {
	if !result.Found || result.Group == nil {
		fmt.Fprintf(page, "%s\n", wrap("No public order of trade "+excerpt(result.TradeID)+". One that is only negotiated has none; "+
			"one that was just paid may take a moment.", ""))
		return
	}
	title := result.Group.ListingTitle
	if result.Listing != nil {
		title = cmp.Or(result.Listing.Title, title)
	}
	facts := []string{state(*result.Group)}
	if result.Group.BuyerPubkey != nil {
		facts = append(facts, "booked by the key "+shortKey(*result.Group.BuyerPubkey))
	}
	fmt.Fprintf(page, "%s\n%s%s\n%s\n%strade %s\n\n%s\n", cmp.Or(excerpt(title), "(no title)"),
		listingIndent, dates(result.Group.Start, result.Group.End), list(facts, listingIndent), listingIndent, oneLine(result.TradeID),
		wrap("This is what the orders say; nothing of it is verified.", ""))
}
