package terminal

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"hostr-daemon/internal/actions"
	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/market"
	"hostr-daemon/internal/money"
	"hostr-daemon/internal/request"
)

func resultText(t *testing.T, call Call, data any) string {
	t.Helper()
	var page bytes.Buffer
	if err := Result(&page, call, request.Outcome{Data: data}); err != nil {
		t.Fatal(err)
	}
	return strings.Join(strings.Fields(page.String()), " ")
}

// An order below zero cannot be read, so its amount is the one that was given.
func TestOfferBelowZeroIsNoted(t *testing.T) {
	t.Parallel()
	event, amount := orderEvent(guestKey, tradeID, market.StageNegotiate, 240_000, firstMoment), money.Satoshis(-5).Result()
	event.Content = strings.ReplaceAll(event.Content, "240000", "-5")
	text := resultText(t, Call{}, actions.FirstOfferResult{DryRun: true, Event: event, TradeID: tradeID, Amount: &amount})
	if !strings.Contains(text, "Note: the amount is below zero.") {
		t.Error(text)
	}
}

// What a person may not have meant is noted beside a preview, and never beside what was
// sent.
func TestOfferNotes(t *testing.T) {
	t.Parallel()
	dollars := money.Price{Amount: money.Amount{Denomination: "USD", Value: money.Satoshis(6000).Value, Decimals: 2}, Frequency: money.Daily}
	sats := money.Price{Amount: money.Satoshis(60_000), Frequency: money.Daily}
	plain := func() market.ListingSummary {
		return market.ListingSummary{PubKey: hostKey, Active: true, Prices: []money.PriceResult{sats.Result()}}
	}
	// The order is for 3 to 7 May 2027.
	before := time.Date(2027, time.May, 3, 23, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		change func(event *market.EventJSON, listing *market.ListingSummary, call *Call)
		want   string
	}{
		"nothing":     {func(*market.EventJSON, *market.ListingSummary, *Call) {}, ""},
		"past":        {func(_ *market.EventJSON, _ *market.ListingSummary, call *Call) { call.Now = before.AddDate(0, 0, 1) }, "begins in the past"},
		"own listing": {func(_ *market.EventJSON, _ *market.ListingSummary, call *Call) { call.Pubkey = hostKey }, "your own listing"},
		"inactive":    {func(_ *market.EventJSON, listing *market.ListingSummary, _ *Call) { listing.Active = false }, "not active"},
		"currency": {func(_ *market.EventJSON, listing *market.ListingSummary, _ *Call) {
			listing.Prices = []money.PriceResult{dollars.Result()}
		}, "asks for USD, and this offers BTC"},
		"end first": {func(event *market.EventJSON, _ *market.ListingSummary, _ *Call) {
			event.Content = strings.ReplaceAll(event.Content, "2027-05-07", "2027-05-01")
		}, "ends before it begins"},
		"no nights": {func(event *market.EventJSON, _ *market.ListingSummary, _ *Call) {
			event.Content = strings.ReplaceAll(event.Content, "2027-05-07", "2027-05-03")
		}, "ends when it begins"},
		"zero": {func(event *market.EventJSON, _ *market.ListingSummary, _ *Call) {
			event.Content = strings.ReplaceAll(event.Content, "240000", "0")
		}, "amount is zero"},
	} {
		event, listing, call := orderEvent(guestKey, tradeID, market.StageNegotiate, 240_000, firstMoment), plain(), Call{Pubkey: guestKey, Now: before}
		c.change(&event, &listing, &call)
		text := resultText(t, call, actions.FirstOfferResult{DryRun: true, Event: event, TradeID: tradeID, Listing: &listing})
		if strings.Contains(text, "Note: ") != (c.want != "") || !strings.Contains(text, c.want) {
			t.Errorf("%s: %s, want a note %q", name, text, c.want)
		}
		if text := resultText(t, call, actions.FirstOfferResult{Event: event, TradeID: tradeID}); strings.Contains(text, "Note: ") {
			t.Errorf("%s, sent: %s", name, text)
		}
	}
}

func TestAcceptingTellsThatNothingIsBooked(t *testing.T) {
	t.Parallel()
	result := actions.CounterOfferResult{Event: orderEvent(guestKey, tradeID, market.StageNegotiate, 1, firstMoment), TradeID: tradeID}
	if text := resultText(t, Call{Action: "hostr.orders.negotiateAccept"}, result); !strings.Contains(text, "Accepting books nothing: the guest pays next") {
		t.Error(text)
	}
	if text := resultText(t, Call{Action: "hostr.orders.negotiateOffer"}, result); strings.Contains(text, "Accepting") {
		t.Error(text)
	}
}

// Who is refused for want of an account is told which there are.
func TestUnauthorized(t *testing.T) {
	t.Parallel()
	const npub = "npub10xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqpkge6d"
	const pubkey = "79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798"
	refusal := fault.New(fault.AuthRequired, "the signer does not answer")
	for name, c := range map[string]struct {
		call          Call
		message, hint string
	}{
		"nobody named":     {Call{Action: "a.b", Accounts: []string{npub}}, "a.b needs an account, and none is named", "signed in here: --as " + npub},
		"somebody else":    {Call{As: "x", Pubkey: "x", Accounts: []string{npub, npub}}, refusal.Message, npub + " or --as " + npub},
		"nobody there":     {Call{As: "x", Pubkey: "x", Accounts: []string{}}, refusal.Message, "nobody is signed in here; to sign in"},
		"not known":        {Call{As: "x", Pubkey: "x"}, refusal.Message, "to sign in: hostr-daemon"},
		"who is signed in": {Call{As: pubkey, Pubkey: pubkey, Accounts: []string{npub}}, refusal.Message, ""},
	} {
		told := c.call.Unauthorized(refusal)
		if told.Code != fault.AuthRequired || !strings.Contains(told.Message, c.message) || !strings.Contains(told.Hint, c.hint) || (told.Hint == "") != (c.hint == "") {
			t.Errorf("%s: %v, hint %q", name, told, told.Hint)
		}
	}
}
