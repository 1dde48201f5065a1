package terminal

import (
	"fmt"

	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/actions"
	"hostr-daemon/internal/market"
	"hostr-daemon/internal/relay"
)

// What previews end with.
const (
	toSend    = "To send it, repeat the command with this added:"
	toPublish = "To publish it, repeat the command with this added:"
)

// firstOffer prints an offer that opens a trade.
func firstOffer(page *resultPage, result actions.FirstOfferResult) {
	verdict := "Sent to the host, in private. Nothing is booked yet."
	if result.DryRun {
		verdict = "This is a preview: nothing was sent, and nobody knows of it."
	}
	var title string
	if result.Listing != nil {
		title = result.Listing.Title
	}
	offered(page, verdict, title, result.Event)
	if result.DryRun {
		offerNotes(page, result.Event, result.Listing, result.Amount)
		goOn(page, "Only the host will be able to read it. "+toSend)
		return
	}
	refusals(page, result.RelayResponses)
	nextCall(page, "To see whether the host has answered:", "hostr.thread.view", "tradeId="+result.TradeID)
}

// counterOffer prints an offer within a trade, or the acceptance of one.
func counterOffer(page *resultPage, result actions.CounterOfferResult) {
	if result.DryRun {
		offered(page, "This is a preview: nothing was sent.", "", result.Event)
		offerNotes(page, result.Event, nil, nil)
		goOn(page, "It would go to "+counted(len(result.RecipientPubkeys), "person")+", in private. "+toSend)
		return
	}
	offered(page, sentVerdict(page), "", result.Event)
	refusals(page, result.RelayResponses)
	nextCall(page, "To see the conversation:", "hostr.thread.view", "tradeId="+result.TradeID)
}

// impossible stands in place of a preview.
func impossible(page *resultPage, message, tradeID string) {
	fmt.Fprintf(page, "%s\n%strade %s\n", wrap("This is a preview, and it would not work: "+oneLine(message), ""), listingIndent, tradeTag(tradeID))
}

// cancelled prints the end of a negotiation, or of a booking.
func cancelled(page *resultPage, result actions.OrderCancelResult) {
	public := result.Mode == "committed"
	verdict := map[[2]bool]string{
		{true, true}:   "This is a preview: nothing was published. It would cancel the booked stay, for everybody to see.",
		{true, false}:  "This is a preview: nothing was sent. It would end the negotiation, in private.",
		{false, true}:  "The booking is cancelled, for everybody to see. What an escrow holds is not touched by that.",
		{false, false}: "The negotiation is ended. The other side was told, in private.",
	}[[2]bool{result.DryRun, public}]
	switch {
	case result.Event != nil:
		offered(page, verdict, "", *result.Event)
	case len(result.OrderGroup) > 0:
		offered(page, verdict, "", result.OrderGroup[0])
	default:
		fmt.Fprintf(page, "%s\n\n%strade %s\n", wrap(verdict, ""), listingIndent, oneLine(result.TradeID))
	}
	refusals(page, result.RelayResponses)
	switch {
	case result.DryRun && public:
		goOn(page, "What an escrow holds would not be touched by that. "+toPublish)
	case result.DryRun:
		goOn(page, toSend)
	}
}

// reviewed prints a review.
func reviewed(page *resultPage, result actions.OrderReviewResult) {
	verdict := "Published, in your own name."
	if result.DryRun {
		verdict = "This is a preview: nothing was published."
	}
	fmt.Fprintf(page, "%s\n\n%s%s\n%s\n", verdict, listingIndent, stars(result.Rating), wrap(result.Content, listingIndent))
	fmt.Fprintf(page, "%s%s\n%strade %s\n", listingIndent, excerpt(result.ListingAnchor), listingIndent, oneLine(result.TradeID))
	refusals(page, result.RelayResponses)
	if result.DryRun {
		goOn(page, "It would tell everybody that you stayed there. "+toPublish)
	}
}

// offered prints what an order says, below a verdict. An order that cannot be read is
// shown by its trade alone.
func offered(page *resultPage, verdict, title string, event market.EventJSON) {
	fmt.Fprintf(page, "%s\n\n", wrap(verdict, ""))
	if title = excerpt(title); title != "" {
		fmt.Fprintf(page, "%s\n", wrap(title, listingIndent))
	}
	order, err := decoded(event)
	if err != nil {
		fmt.Fprintf(page, "%s(the order cannot be shown: see --json)\n", listingIndent)
		return
	}
	fmt.Fprintf(page, "%s\n", list(orderFacts(order), listingIndent))
	fmt.Fprintf(page, "%s\n%strade %s\n", wrap(excerpt(order.ListingAnchor), listingIndent), listingIndent, oneLine(order.TradeID))
}

func decoded(shown market.EventJSON) (market.Order, error) { return market.DecodeOrder(wire(shown)) }

// wire is an event of a result without its signature.
func wire(shown market.EventJSON) *nostr.Event {
	return &nostr.Event{ID: shown.ID, PubKey: shown.PubKey, CreatedAt: shown.CreatedAt, Kind: shown.Kind, Tags: shown.Tags, Content: shown.Content}
}

// orderFacts are the days, the price and whether it is called off.
func orderFacts(order market.Order) []string {
	facts := []string{"no dates"}
	if order.Start != nil && order.End != nil {
		facts = []string{stayInWords(order.Start.UTC(), order.End.UTC())}
	}
	if order.Amount != nil {
		facts = append(facts, amountText(order.Amount.Result()))
	}
	if order.Quantity > 1 {
		facts = append(facts, fmt.Sprintf("%d of them", order.Quantity))
	}
	if order.Stage == market.StageCancel {
		facts = append(facts, "called off")
	}
	return facts
}

// refusals names the relays that did not take something.
func refusals(page *resultPage, receipts []relay.Receipt) {
	for _, receipt := range receipts {
		if !receipt.BroadcastSuccessful {
			fmt.Fprintf(page, "\n%s\n", wrap(receipt.RelayURL+" did not take it: "+receipt.Message, ""))
		}
	}
}

// goOn ends a preview with what makes it real.
func goOn(page *resultPage, how string) {
	fmt.Fprintf(page, "\n%s\n  dryRun=false\n  in a JSON input: \"dryRun\":false\n", wrap(how, ""))
}

// nextCall names a command that follows, as the same account.
func nextCall(page *resultPage, why, action string, inputs ...string) {
	fmt.Fprintf(page, "\n%s\n  hostr-daemon call %s --as %s", wrap(why, ""), action, shellWord(page.call.account()))
	for _, input := range inputs {
		fmt.Fprintf(page, " %s", shellWord(oneLine(input)))
	}
	page.WriteByte('\n')
}
