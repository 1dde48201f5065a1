package market_test

import (
	"strings"
	"testing"

	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/market"
	"hostr-daemon/internal/money"
)

func TestCommitAuthorization(t *testing.T) {
	t.Parallel()
	vectors := readTradeVectors(t)
	order := readOrder(t, eventOf(t, vectors.NegotiateOrder))
	order.CommitAuthorization = eventOf(t, vectors.CommitAuthorization)
	if err := order.CheckCommitAuthorization(); err != nil {
		t.Fatal(err)
	}
	later := order.Start.AddDate(0, 0, 1)
	less := money.Satoshis(199999)
	for name, test := range map[string]struct {
		change  func(*market.Order)
		problem string
	}{
		"none":      {func(o *market.Order) { o.CommitAuthorization = nil }, "no authorization"},
		"no trade":  {func(o *market.Order) { o.TradeID = "" }, "no trade id"},
		"amount":    {func(o *market.Order) { o.Amount = &less }, "other terms"},
		"no amount": {func(o *market.Order) { o.Amount = nil }, "other terms"},
		"start":     {func(o *market.Order) { o.Start = &later }, "other terms"},
		"quantity":  {func(o *market.Order) { o.Quantity = 2 }, "other terms"},
		"recipient": {func(o *market.Order) { o.Recipient = author }, "other terms"},
		"trade":     {func(o *market.Order) { o.TradeID += "0" }, "another trade"},
		"listing":   {func(o *market.Order) { o.ListingAnchor += "0" }, "another listing"},
		"seller":    {func(o *market.Order) { o.ListingAnchor = "30402:" + author + ":lake-cabin-1" }, "owner"},
		"no anchor": {func(o *market.Order) { o.ListingAnchor = "lake" }, "owner"},
	} {
		changed := order
		test.change(&changed)
		if err := changed.CheckCommitAuthorization(); err == nil || !strings.Contains(err.Error(), test.problem) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCommitAuthorizationContent(t *testing.T) {
	t.Parallel()
	vectors := readTradeVectors(t)
	order := readOrder(t, eventOf(t, vectors.NegotiateOrder))
	hash := `"commitHash":"` + order.CommitHash() + `"`
	for name, test := range map[string]struct {
		content string
		problem string // "" = authorizes
	}{
		"form of the NIPs":     {`{"version":1,` + hash + `,"role":"seller"}`, ""},
		"hash alone":           {`{` + hash + `}`, ""},
		"fields as a set":      {`{` + hash + `,"committedFields":["start","end","end","quantity","recipient","amount"]}`, ""},
		"other version":        {`{"version":2,` + hash + `}`, ""},
		"fewer fields":         {`{` + hash + `,"committedFields":["start","end","quantity","recipient"]}`, "other fields"},
		"no fields":            {`{` + hash + `,"committedFields":[]}`, "other fields"},
		"more fields":          {`{` + hash + `,"committedFields":["amount","end","quantity","recipient","start","stage"]}`, "other fields"},
		"algorithm":            {`{` + hash + `,"hashAlg":"sha1"}`, "sha1"},
		"role":                 {`{` + hash + `,"role":"buyer"}`, "not a seller's"},
		"no hash":              {`{}`, "cannot be read"},
		"unreadable version":   {`{"version":"1",` + hash + `}`, "cannot be read"},
		"unreadable fields":    {`{` + hash + `,"committedFields":"amount"}`, "cannot be read"},
		"no object":            {`[]`, "cannot be read"},
		"algorithm in capital": {`{` + hash + `,"hashAlg":"SHA256"}`, "SHA256"},
	} {
		event := &nostr.Event{
			Kind: 1, CreatedAt: 1, Content: test.content, // the kind does not count
			Tags: nostr.Tags{{"a", order.ListingAnchor}, {"d", order.TradeID}},
		}
		order := order
		order.CommitAuthorization = signedBy(t, event, vectors.Parties.Seller.PrivateKey)
		err := order.CheckCommitAuthorization()
		if (err == nil) != (test.problem == "") || err != nil && !strings.Contains(err.Error(), test.problem) {
			t.Errorf("%s: %v", name, err)
		}
		order.CommitAuthorization = signedBy(t, event, vectors.Parties.Buyer.PrivateKey)
		if err := order.CheckCommitAuthorization(); err == nil {
			t.Errorf("%s: signed by the buyer", name)
		}
	}
}

func FuzzAuthorizationContent(f *testing.F) {
	vectors := readTradeVectors(f)
	f.Add(eventOf(f, vectors.CommitAuthorization).Content)
	f.Add(eventOf(f, vectors.TradeKeyAuthorization.Event).Content)
	f.Fuzz(func(t *testing.T, content string) {
		if read, err := market.DecodeCommitAuthorization(&nostr.Event{Content: content}); err == nil && read.Event.Content != content {
			t.Fatal("the event changed")
		}
		event := &nostr.Event{Kind: market.KindTradeKeyAuthorization, Content: content}
		read, err := market.DecodeTradeKeyAuthorization(event)
		if err != nil {
			return
		}
		again, err := market.DecodeTradeKeyAuthorization(market.DraftTradeKeyAuthorization(read.TradeKeyTerms, 1))
		if err != nil || again.TradeKeyTerms != read.TradeKeyTerms {
			t.Fatalf("%q becomes %+v: %v", content, again.TradeKeyTerms, err)
		}
	})
}
