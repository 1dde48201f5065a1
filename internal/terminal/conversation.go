package terminal

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/actions"
	"hostr-daemon/internal/market"
)

// mostThreads is how many conversations of the updates are shown, the liveliest ones.
const mostThreads = 10

// somebody is a person by the name they give themselves, and enough of the key to tell
// them from others who give the same.
func somebody(person market.ProfileSummary) string {
	if strings.HasPrefix(person.Name, person.Pubkey[:min(len(person.Pubkey), 8)]) {
		return shortKey(person.Pubkey) // there is no name
	}
	return shortened(person.Name) + " (" + shortKey(person.Pubkey) + ")"
}

func everybody(people []market.ProfileSummary) string {
	var names []string
	for _, person := range people {
		names = append(names, somebody(person))
	}
	return cmp.Or(strings.Join(names, " and "), "nobody")
}

// updates prints what is new for an account.
func updates(page *resultPage, result actions.UpdatesResult) {
	// How much is unread a command that has just begun cannot know (spec 60 §7.3).
	fmt.Fprintf(page, "%s, %s, %s, %s.\n", counted(len(result.Threads), "conversation"), counted(result.TripCount, "trip"), counted(result.BookingCount, "booking"), counted(result.ListingReviewCount, "review"))
	liveliest := slices.Clone(result.Threads)
	slices.SortStableFunc(liveliest, func(a, b actions.UpdatesThread) int { return cmp.Compare(lastOf(b), lastOf(a)) })
	for i, thread := range liveliest[:min(len(liveliest), mostThreads)] {
		fmt.Fprintf(page, "\n%2d. ", i+1)
		updatedThread(page, thread)
	}
	if more := len(liveliest) - mostThreads; more > 0 {
		fmt.Fprintf(page, "\n%s: --json\n", counted(more, "more conversation"))
	}
	updatedTrades(page, "Trips", result.Trips, result.TripCount)
	updatedTrades(page, "Bookings", result.Bookings, result.BookingCount)
	for _, reviewed := range result.ListingReviews {
		fmt.Fprintf(page, "\n%s\n", wrap(fmt.Sprintf("%s of %s:", counted(reviewed.Count, "review"), cmp.Or(excerpt(reviewed.Listing.Title), "(no title)")), ""))
		for _, event := range reviewed.Reviews {
			review(page, event)
		}
	}
	if len(result.Threads) > 0 {
		nextCall(page, "To read a conversation:", "hostr.thread.view", "tradeId=TRADE")
	}
}

// lastOf is when something last came into a conversation.
func lastOf(thread actions.UpdatesThread) (last nostr.Timestamp) {
	for _, events := range [][]market.EventJSON{thread.TextMessages, thread.OrderRequests} {
		for _, event := range events {
			last = max(last, event.CreatedAt)
		}
	}
	return last
}

// updatedThread prints who is in a conversation, its last offer and its last words.
func updatedThread(page *resultPage, thread actions.UpdatesThread) {
	fmt.Fprintf(page, "%s\n", everybody(thread.Counterparties))
	if n := len(thread.OrderRequests); n > 0 {
		if order, err := decoded(thread.OrderRequests[n-1]); err == nil {
			fmt.Fprintf(page, "%s\n", list(append(orderFacts(order), "offered "+moment(order.Event.CreatedAt)), listingIndent))
		}
	}
	if n := len(thread.TextMessages); n > 0 {
		last := thread.TextMessages[n-1]
		fmt.Fprintf(page, "%s%s:\n%s\n", listingIndent, moment(last.CreatedAt), wrap(excerpt(last.Content), listingIndent+"  "))
	}
	if thread.Conversation != "" {
		fmt.Fprintf(page, "%strade %s\n", listingIndent, tradeTag(thread.Conversation))
	}
}

// tradeTag leaves a trade id whole, so that it can be copied.
func tradeTag(id string) string {
	const whole = 64
	if id = oneLine(id); len([]rune(id)) <= whole {
		return id
	}
	return string([]rune(id)[:whole]) + "…"
}

func updatedTrades(page *resultPage, heading string, items []market.CollectionItem, count int) {
	if len(items) == 0 {
		return
	}
	fmt.Fprintf(page, "\n%s:\n", heading)
	for i, item := range items {
		fmt.Fprintf(page, "%2d. ", i+1)
		trade(page, item)
	}
	if more := count - len(items); more > 0 {
		fmt.Fprintf(page, "%s%d more: with a larger limit\n", listingIndent, more)
	}
}

// viewed prints a conversation.
func viewed(page *resultPage, result actions.ThreadViewResult) {
	if !result.Found || result.ThreadView == nil {
		fmt.Fprintf(page, "%s\n", wrap(cmp.Or(result.Message, "No such conversation."), ""))
		nextCall(page, "All conversations:", "hostr.updates")
		return
	}
	view := *result.ThreadView
	with := "with " + everybody(view.Counterparties)
	if title := excerpt(view.Title); strings.HasPrefix(title, "Chat with ") {
		with = "Chat " + with // it has no title but that
	} else {
		fmt.Fprintf(page, "%s\n", wrap(title, ""))
	}
	fmt.Fprintf(page, "%s\n%s\n", wrap(with, ""), messageCount(view))
	if view.TradeID != "" {
		fmt.Fprintf(page, "trade %s\n", tradeTag(view.TradeID))
	}
	for _, entry := range entries(view) {
		fmt.Fprintf(page, "\n  %s, %s:\n%s\n", entry.at.Format(momentForm), entry.what, entry.text)
	}
	nextCall(page, "To answer (a preview, unless dryRun=false is added):", "hostr.thread.message", "threadAnchor="+view.Anchor, "content=…")
	if n := len(view.OrderRequests); n > 0 && view.TradeID != "" {
		if order, err := decoded(view.OrderRequests[n-1]); err == nil && order.Stage == market.StageNegotiate {
			nextCall(page, "To accept the last offer, likewise:", "hostr.orders.negotiateAccept", "tradeId="+view.TradeID)
		}
	}
}

func messageCount(view actions.ThreadView) string {
	text := counted(view.MessageCount, "message")
	if view.HasMoreMessages {
		text += fmt.Sprintf(", the last %d here", len(view.Messages))
	}
	return text
}

// entry is something that was offered or said.
type entry struct {
	at   time.Time
	what string
	text string
}

// entries are the offers and messages of a conversation, oldest first.
func entries(view actions.ThreadView) []entry {
	var all []entry
	for _, event := range view.OrderRequests {
		if order, err := decoded(event); err == nil {
			all = append(all, entry{order.Event.CreatedAt.Time().UTC(), "offer of the " + side(order), list(orderFacts(order), listingIndent)})
		}
	}
	for _, message := range view.Messages {
		at, _ := time.Parse(time.RFC3339, message.CreatedAt) // the action writes no other
		author := somebody(market.ProfileSummary{Pubkey: message.SenderPubkey, Name: message.SenderName})
		if message.SentByUser {
			author = "you"
		}
		all = append(all, entry{at.UTC(), author, words(message.Content)})
	}
	slices.SortStableFunc(all, func(a, b entry) int { return a.at.Compare(b.at) })
	return all
}

// side is who made an order. The host's key is that of the listing's owner; the
// guest's is made for the trade.
func side(order market.Order) string {
	if listing, usable := order.Listing(); usable && listing.PubKey == order.Event.PubKey {
		return "host"
	}
	return "guest"
}

// words is a message's text, cut where it goes on and on.
func words(text string) string {
	const longest = 2000
	if runes := []rune(text); len(runes) > longest {
		text = string(runes[:longest]) + "… (more of it: --json)"
	}
	return wrap(text, listingIndent+"  ") // further than anything of ours
}

// messageSent prints a message, or the preview of one.
func messageSent(page *resultPage, result actions.ThreadMessageResult) {
	to := recipients(result.RecipientPubkeys, result.ThreadView.Counterparties)
	if result.SentMessage != nil {
		fmt.Fprintf(page, "%s\n\n%s\n", wrap("Sent to "+to+", in private.", ""), words(result.SentMessage.Content))
		nextCall(page, "To read the answer:", "hostr.thread.view", "threadAnchor="+result.ThreadView.Anchor)
		return
	}
	fmt.Fprintf(page, "%s\n\n%s\n", wrap("This is a preview: nothing was sent. It would go to "+to+", in private:", ""), words(result.Content))
	goOn(page, toSend)
}

// escrowInvolved prints a message to the escrow and the other side, the preview of one,
// or that there is nothing to send yet.
func escrowInvolved(page *resultPage, result actions.EscrowInvolveResult) {
	to := recipients(result.RecipientPubkeys, result.ThreadView.Counterparties)
	switch {
	case result.SentMessage != nil:
		fmt.Fprintf(page, "%s\n\n%s\n", wrap("Sent to "+to+", in private.", ""), words(result.SentMessage.Content))
		nextCall(page, "To read the answer:", "hostr.thread.view", "threadAnchor="+result.ThreadView.Anchor)
	case result.RequiresMessage:
		fmt.Fprintf(page, "%s\n", wrap("Nothing was sent. The escrow and the other side can be written to together: "+to+".", ""))
		fmt.Fprintf(page, "\n%s\n  content=… dryRun=false\n", wrap("To do so, repeat the command with these added (without dryRun=false it is a preview):", ""))
	default:
		fmt.Fprintf(page, "%s\n\n%s\n", wrap("This is a preview: nothing was sent. It would go to "+to+", in private:", ""), words(result.Content))
		goOn(page, toSend)
	}
	if roles := result.Roles; roles != nil {
		facts := []string{"host " + shortKey(roles.Seller)}
		if roles.Buyer != "" {
			facts = append(facts, "guest "+shortKey(roles.Buyer))
		}
		if roles.Escrow != "" {
			facts = append(facts, "escrow "+shortKey(roles.Escrow))
		}
		fmt.Fprintf(page, "\nIn this trade:\n%s\n", list(facts, listingIndent))
	}
}

// recipients names the people something goes to.
func recipients(pubkeys []string, known []market.ProfileSummary) string {
	people := make([]market.ProfileSummary, len(pubkeys))
	for i, pubkey := range pubkeys {
		people[i] = market.NewProfileSummary(pubkey, nil)
		if at := slices.IndexFunc(known, func(p market.ProfileSummary) bool { return p.Pubkey == pubkey }); at >= 0 {
			people[i] = known[at]
		}
	}
	return everybody(people)
}
