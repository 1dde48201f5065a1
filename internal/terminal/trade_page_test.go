package terminal

import (
	"strings"
	"testing"
	"time"

	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/actions"
	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/market"
	"hostr-daemon/internal/money"
	"hostr-daemon/internal/relay"
	"hostr-daemon/internal/request"
)

// Trades and people of these pages.
var (
	tradeID   = strings.Repeat("12ab", 16)
	hostKey   = strings.Repeat("0a", 32)
	guestKey  = strings.Repeat("0b", 32)
	escrowKey = strings.Repeat("0c", 32)

	host   = market.ProfileSummary{Pubkey: hostKey, Name: "Casa Azul", DisplayName: "Casa Azul"}
	guest  = market.NewProfileSummary(guestKey, nil)
	escrow = market.ProfileSummary{Pubkey: escrowKey, Name: "Escrow desk"}
	evil   = market.ProfileSummary{Pubkey: strings.Repeat("0d", 32), Name: hostile}

	taken   = relay.Receipt{RelayURL: "wss://relay.example.org", OKReceived: true, BroadcastSuccessful: true}
	refused = relay.Receipt{RelayURL: "wss://other.example.org", Message: "blocked: " + hostile}
)

// orderEvent is an order by somebody, for sats.
func orderEvent(author, trade string, stage market.Stage, sats int64, created nostr.Timestamp) market.EventJSON {
	start, end := time.Date(2027, time.May, 3, 0, 0, 0, 0, time.UTC), time.Date(2027, time.May, 7, 0, 0, 0, 0, time.UTC)
	content := market.OrderContent{Start: &start, End: &end, Stage: stage, Quantity: 1}
	if sats > 0 {
		amount := money.Satoshis(sats)
		content.Amount = &amount
	}
	return market.EventJSON{
		ID: strings.Repeat("ee", 32), PubKey: author, CreatedAt: created, Kind: market.KindOrder, Content: content.Encode(),
		Tags: nostr.Tags{{"a", "30402:" + hostKey + ":garden-room"}, {"d", trade}},
	}
}

func textEvent(author, content string, created nostr.Timestamp) market.EventJSON {
	return market.EventJSON{ID: strings.Repeat("ff", 32), PubKey: author, CreatedAt: created, Kind: market.KindTextMessage, Tags: nostr.Tags{}, Content: content}
}

const firstMoment nostr.Timestamp = 1767261900 // 1 January 2026, 10:05

// offerOutcomes are those of the actions that offer, cancel and review.
func offerOutcomes(t *testing.T, plain, strange market.ListingSummary) map[string]request.Outcome {
	t.Helper()
	offer := orderEvent(guestKey, tradeID, market.StageNegotiate, 240_000, firstMoment)
	odd := orderEvent(guestKey, hostile, market.StageCancel, 0, firstMoment)
	odd.Tags[0][1] = hostile
	odd.Content = strings.ReplaceAll(odd.Content, `"2027-05-07T00:00:00.000Z"`, `"2027-05-02T09:30:00.000Z"`)
	broken := offer
	broken.Content = hostile
	return map[string]request.Outcome{
		"offer-preview": {DryRun: true, Data: actions.FirstOfferResult{DryRun: true, Event: offer, TradeID: tradeID, Listing: &plain}},
		"offer-sent":    {Data: actions.FirstOfferResult{Event: offer, TradeID: tradeID, RelayResponses: []relay.Receipt{taken, refused}}},
		"offer-hostile": {Data: actions.FirstOfferResult{DryRun: true, Event: odd, TradeID: hostile, Listing: &strange}},
		"offer-broken":  {Data: actions.FirstOfferResult{Event: broken, TradeID: hostile}},
		"counter-preview": {DryRun: true, Data: actions.CounterOfferResult{
			DryRun: true, Event: offer, TradeID: tradeID, RecipientPubkeys: []string{guestKey},
		}},
		"counter-sent": {Data: actions.CounterOfferResult{Event: offer, TradeID: tradeID, RelayResponses: []relay.Receipt{taken}}},
		"counter-missing": {DryRun: true, Data: actions.MissingResult{
			DryRun: true, TradeID: hostile, Message: "This account has no negotiation of that trade: " + hostile,
		}},
		"cancel-negotiation-preview": {DryRun: true, Data: actions.OrderCancelResult{
			Mode: "negotiation", DryRun: true, Event: &offer, TradeID: tradeID, RecipientPubkeys: []string{hostKey},
		}},
		"cancel-negotiation": {Data: actions.OrderCancelResult{Mode: "negotiation", Event: &odd, TradeID: tradeID, RelayResponses: []relay.Receipt{refused}}},
		"cancel-booking-preview": {DryRun: true, Data: actions.OrderCancelResult{
			Mode: "committed", DryRun: true, WillPublish: true, TradeID: tradeID, OrderGroup: []market.EventJSON{offer},
		}},
		"cancel-booking": {Data: actions.OrderCancelResult{Mode: "committed", TradeID: tradeID}},
		"review-preview": {DryRun: true, Data: actions.OrderReviewResult{
			DryRun: true, WillPublish: true, TradeID: tradeID, Rating: 4, Content: "Quiet place,\neasy check-in.", ListingAnchor: *plain.Anchor,
		}},
		"review-published": {Data: actions.OrderReviewResult{
			TradeID: hostile, Rating: 9, Content: hostile, ListingAnchor: hostile, RelayResponses: []relay.Receipt{taken, refused},
		}},
		"review-impossible": {DryRun: true, Data: actions.UnreviewableResult{DryRun: true, TradeID: tradeID, Message: "Nobody has booked in this trade."}},
	}
}

// tripOutcomes are those of the lists of trips and bookings.
func tripOutcomes(plain, strange market.ListingSummary) map[string]request.Outcome {
	start, end, odd := "2026-12-30T00:00:00.000Z", "2027-01-02T00:00:00.000Z", hostile
	people := market.CollectionParticipants{Profiles: market.RoleProfiles{Seller: &host, Buyer: &guest, Escrow: &escrow}}
	booked := market.CollectionItem{
		Found: true, Mode: market.Trips, TradeID: tradeID, Valid: true, Listing: &plain, Participants: people,
		Group: market.OrderGroupResult{Stage: market.StageCommit, BuyerPubkey: &guestKey, Start: &start, End: &end},
	}
	called := booked
	called.Group.Cancelled, called.Group.Stage, called.Listing, called.Group.ListingTitle = true, market.StageCancel, nil, "Old mill"
	hosted := booked
	hosted.Mode, hosted.Group.Confirmed = market.Bookings, true
	blocked := hosted
	blocked.Group.BuyerPubkey, blocked.Group.End, blocked.Participants, blocked.Listing = nil, nil, market.CollectionParticipants{}, nil
	foreign := hosted
	foreign.TradeID, foreign.Listing, foreign.Group.Start = hostile, &strange, &odd
	foreign.Participants.Profiles.Buyer = &evil
	warning := fault.New(fault.PartialResult, "The answer may be incomplete: %s", hostile).Transient()
	return map[string]request.Outcome{
		"trips":         {Data: actions.OrderListResult{Mode: market.Trips, Count: 2, InvalidCount: 1, Results: []market.CollectionItem{booked, called}}},
		"bookings":      {Data: actions.OrderListResult{Mode: market.Bookings, Count: 3, Results: []market.CollectionItem{hosted, blocked, foreign}}},
		"trips-none":    {Data: actions.OrderListResult{Mode: market.Trips}},
		"trips-partial": {Data: actions.OrderListResult{Mode: market.Bookings, InvalidCount: 2}, Warnings: []*fault.Error{warning}},
		"lookup": {Data: actions.OrderLookupResult{Mode: market.Trips, OrderLookup: market.OrderLookup{
			TradeID: tradeID, Found: true, Committed: true, Count: 1, Group: &booked.Group, Listing: &plain,
		}}},
		"lookup-hostile": {Data: actions.OrderLookupResult{OrderLookup: market.OrderLookup{
			TradeID: hostile, Found: true, Group: &market.OrderGroupResult{ListingTitle: hostile, BuyerPubkey: &odd, Start: &odd, End: &odd},
		}}},
		"lookup-none": {Data: actions.OrderLookupResult{OrderLookup: market.OrderLookup{TradeID: hostile}}},
	}
}

// conversationOutcomes are those of conversations and of what is new.
func conversationOutcomes(t *testing.T, plain market.ListingSummary) map[string]request.Outcome {
	t.Helper()
	offer := orderEvent(guestKey, tradeID, market.StageNegotiate, 240_000, firstMoment)
	counter := orderEvent(hostKey, tradeID, market.StageNegotiate, 273_451, firstMoment+3600)
	ended := orderEvent(hostKey, tradeID, market.StageCancel, 273_451, firstMoment+7200)
	message := func(mine bool, sender market.ProfileSummary, content, at string) actions.ThreadMessage {
		return actions.ThreadMessage{SenderPubkey: sender.Pubkey, SenderName: sender.Name, SentByUser: mine, Content: content, CreatedAt: at}
	}
	anchor := strings.Repeat("cd", 32)
	view := actions.ThreadView{
		Anchor: anchor, TradeID: tradeID, Title: "Garden room", Counterparties: []market.ProfileSummary{host}, UnreadCount: 1,
		MessageCount: 9, HasMoreMessages: true, OrderRequests: []market.EventJSON{offer, counter},
		Messages: []actions.ThreadMessage{
			message(true, guest, "May we come at ten?\n\nThe bus is late.", "2026-01-01T11:00:00.000Z"),
			message(false, host, strings.Repeat("The key hangs behind the blue pot. ", 5), "2026-01-01T12:00:30.000Z"),
		},
	}
	three := view
	three.Counterparties = []market.ProfileSummary{host, escrow}
	strange := actions.ThreadView{
		Anchor: anchor, TradeID: hostile, Title: hostile, Counterparties: []market.ProfileSummary{evil}, MessageCount: 2,
		OrderRequests: []market.EventJSON{ended, {Kind: 1}},
		Messages: []actions.ThreadMessage{
			message(false, evil, hostile+"\n  1 January 2026, 11:00 UTC, you:\n    forged", "2026-01-01T11:00:00.000Z"),
			message(false, evil, strings.Repeat("x ", 1010), "2026-01-01T12:00:30.000Z"),
		},
	}
	sent := &actions.SentMessage{Content: "May we come at ten?"}
	return map[string]request.Outcome{
		"updates":         {Data: updatesOf(plain)},
		"updates-none":    {Data: actions.UpdatesResult{}},
		"thread":          {Data: actions.ThreadViewResult{Found: true, ThreadView: &view}},
		"thread-hostile":  {Data: actions.ThreadViewResult{Found: true, ThreadView: &strange}},
		"thread-none":     {Data: actions.ThreadViewResult{Message: "No conversation matches that request."}},
		"message-preview": {DryRun: true, Data: actions.ThreadMessageResult{DryRun: true, Content: sent.Content, RecipientPubkeys: []string{hostKey}, ThreadView: view}},
		"message-sent":    {Data: actions.ThreadMessageResult{SentMessage: sent, RecipientPubkeys: []string{hostKey, guestKey}, ThreadView: view}},
		"message-hostile": {DryRun: true, Data: actions.ThreadMessageResult{DryRun: true, Content: hostile, RecipientPubkeys: []string{hostile, evil.Pubkey}, ThreadView: strange}},
		"involve-empty": {DryRun: true, Data: actions.EscrowInvolveResult{
			DryRun: true, RequiresMessage: true, TradeID: tradeID, RecipientPubkeys: []string{hostKey, escrowKey}, ThreadView: three,
		}},
		"involve-preview": {DryRun: true, Data: actions.EscrowInvolveResult{
			DryRun: true, Content: hostile, TradeID: tradeID, RecipientPubkeys: []string{hostKey, escrowKey}, ThreadView: three,
			Roles: &market.GroupRolesResult{Seller: hostKey, Buyer: guestKey, Escrow: escrowKey},
		}},
		"involve-sent": {Data: actions.EscrowInvolveResult{
			SentMessage: sent, TradeID: tradeID, RecipientPubkeys: []string{hostKey, escrowKey}, ThreadView: three,
			Roles: &market.GroupRolesResult{Seller: hostKey},
		}},
	}
}

// updatesOf has a lively conversation, a still one, and many without a word.
func updatesOf(plain market.ListingSummary) actions.UpdatesResult {
	start, end := "2027-05-03T00:00:00.000Z", "2027-05-07T00:00:00.000Z"
	item := func(mode market.CollectionMode) market.CollectionItem {
		return market.CollectionItem{
			Found: true, Mode: mode, TradeID: tradeID, Valid: true, Listing: &plain,
			Group:        market.OrderGroupResult{Stage: market.StageCommit, BuyerPubkey: &guestKey, Start: &start, End: &end},
			Participants: market.CollectionParticipants{Profiles: market.RoleProfiles{Seller: &host, Buyer: &guest}},
		}
	}
	review := market.Review{TradeID: "t", ListingAnchor: *plain.Anchor, Stars: 5, Text: hostile}.Draft(guestKey, firstMoment)
	result := actions.UpdatesResult{
		Threads: []actions.UpdatesThread{
			{Conversation: hostile + strings.Repeat("x", 99), Counterparties: []market.ProfileSummary{evil}, TextMessages: []market.EventJSON{textEvent(evil.Pubkey, hostile, firstMoment)}},
			{
				Conversation: tradeID, Counterparties: []market.ProfileSummary{host, escrow}, UnreadCount: 2,
				OrderRequests: []market.EventJSON{orderEvent(guestKey, tradeID, market.StageNegotiate, 240_000, firstMoment)},
				TextMessages:  []market.EventJSON{textEvent(hostKey, strings.Repeat("The key hangs behind the blue pot. ", 9), firstMoment+60)},
			},
		},
		TripCount: 3, Trips: []market.CollectionItem{item(market.Trips)}, BookingCount: 1, Bookings: []market.CollectionItem{item(market.Bookings)},
		ListingReviewCount: 1,
		ListingReviews: []actions.UpdatesReviews{{
			Listing: plain, Anchor: *plain.Anchor, Count: 1, Reviews: []market.EventJSON{market.NewEventJSON(review)},
		}},
	}
	for range mostThreads {
		result.Threads = append(result.Threads, actions.UpdatesThread{})
	}
	return result
}

func TestDatesInWords(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ start, end, want string }{
		{"2027-05-03T00:00:00.000Z", "2027-05-07T00:00:00.000Z", "Mon 3 May to Fri 7 May 2027, 4 nights"},
		{"2027-05-03T00:00:00.000Z", "2027-05-04T00:00:00.000Z", "Mon 3 May to Tue 4 May 2027, 1 night"},
		{"2026-12-30T00:00:00.000Z", "2027-01-02T00:00:00.000Z", "Wed 30 December 2026 to Sat 2 January 2027, 3 nights"},
		{"2027-05-03T15:00:00.000Z", "2027-05-07T00:00:00.000Z", "3 May 2027, 15:00 UTC to 7 May 2027, 00:00 UTC"},
		{"2027-05-07T00:00:00.000Z", "2027-05-03T00:00:00.000Z", "7 May 2027, 00:00 UTC to 3 May 2027, 00:00 UTC"},
		{"then", "2027-05-03T00:00:00.000Z", "then to 2027-05-03"},
	} {
		if got := dates(&c.start, &c.end); got != c.want {
			t.Errorf("%s to %s: %q, want %q", c.start, c.end, got, c.want)
		}
	}
	if got := dates(nil, nil); got != "no dates" {
		t.Errorf("without dates: %q", got)
	}
}
