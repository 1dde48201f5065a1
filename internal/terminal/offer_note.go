package terminal

import (
	"fmt"
	"strings"
	"time"

	"hostr-daemon/internal/market"
	"hostr-daemon/internal/money"
)

// offerNotes are what the daemon takes in an offer and a person may not have meant.
// Only the preview of a first offer has the listing, and the amount as it was given: an
// order whose amount is below zero cannot be read.
func offerNotes(page *resultPage, event market.EventJSON, listing *market.ListingSummary, amount *money.AmountResult) {
	var notes []string
	if order, err := decoded(event); err == nil {
		notes = append(notes, dateNotes(order, page.call.Now)...)
		if amount == nil && order.Amount != nil {
			asked := order.Amount.Result()
			amount = &asked
		}
	}
	if amount != nil {
		notes = append(notes, amountNotes(*amount, listing)...)
	}
	if listing != nil && listing.PubKey == page.call.Pubkey {
		notes = append(notes, "this is your own listing.")
	}
	if listing != nil && !listing.Active {
		notes = append(notes, "the listing is not active: its host does not offer it at the moment.")
	}
	if len(notes) > 0 {
		page.WriteByte('\n')
	}
	for _, note := range notes {
		fmt.Fprintf(page, "%s\n", wrap("Note: "+note, ""))
	}
}

func dateNotes(order market.Order, now time.Time) []string {
	const day = 24 * time.Hour
	switch {
	case order.Start == nil || order.End == nil:
		return nil
	case order.End.Before(*order.Start):
		return []string{"the stay ends before it begins."}
	case order.End.Equal(*order.Start):
		return []string{"the stay ends when it begins."}
	case order.Start.Before(now.Truncate(day)):
		return []string{"the stay begins in the past."}
	}
	return nil
}

func amountNotes(amount money.AmountResult, listing *market.ListingSummary) (notes []string) {
	switch {
	case amount.SmallestUnitValue == "0":
		notes = append(notes, "the amount is zero.")
	case strings.HasPrefix(amount.SmallestUnitValue, "-"):
		notes = append(notes, "the amount is below zero.")
	}
	if listing == nil || len(listing.Prices) == 0 {
		return notes
	}
	var currencies []string
	for _, price := range listing.Prices {
		if price.Amount.Denomination == amount.Denomination {
			return notes
		}
		currencies = append(currencies, shortened(price.Amount.Denomination))
	}
	return append(notes, "the host asks for "+strings.Join(currencies, " or ")+", and this offers "+shortened(amount.Denomination)+".")
}

// sentVerdict tells what an offer that was sent means, and an acceptance.
func sentVerdict(page *resultPage) string {
	if page.call.Action == "hostr.orders.negotiateAccept" {
		return "The offer is accepted; the other side was told, in private. Accepting books nothing: the guest pays next, which this version of hostr-daemon cannot do yet."
	}
	return "Sent, in private. Nothing is booked by it."
}
