package market_test

import (
	"encoding/json"
	"math/big"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/market"
	"hostr-daemon/internal/money"
)

// smallestUnits reads an amount whose value counts smallest units.
func smallestUnits(t *testing.T, raw json.RawMessage) *money.Amount {
	t.Helper()
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	var fields struct {
		Denomination, Value string
		Decimals            int
	}
	if err := json.Unmarshal(raw, &fields); err != nil {
		t.Fatal(err)
	}
	value, ok := new(big.Int).SetString(fields.Value, 10)
	if !ok {
		t.Fatal(fields.Value)
	}
	return &money.Amount{Denomination: fields.Denomination, Value: value, Decimals: fields.Decimals}
}

func TestExpectedAmountOfVectors(t *testing.T) {
	t.Parallel()
	for i, vector := range readGroupVectors(t).ExpectedAmount {
		price := smallestUnits(t, vector.ListPrice)
		negotiable := "false"
		if vector.Negotiable {
			negotiable = "true"
		}
		listing := listingOf(t, &nostr.Event{PubKey: host, Kind: market.KindListing, Tags: nostr.Tags{
			{"d", "cabin"}, {"negotiable", negotiable}, {"price", price.Text(), price.Denomination},
		}})
		order := orderTerms{author: trader, stage: market.StageCommit, amount: smallestUnits(t, vector.Amount)}.order(t)
		if vector.Authorized {
			order.CommitAuthorization = signed(hostKey,
				market.DraftCommitAuthorization(host, order.ListingAnchor, order.TradeID, order.OrderContent, 1000))
		}
		want := market.ExpectedAmount{
			Amount: *smallestUnits(t, vector.Expected), Price: *price, OffPrice: vector.Off, BelowPrice: vector.Below,
			SellerCommitted: vector.OK, NegotiationAllowed: vector.Allowed,
		}
		got, err := order.ExpectedAmount(listing)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, comparers...); diff != "" || string(got.Failure()) != vector.Failure {
			t.Errorf("vector %d: failure %q, %s", i, got.Failure(), diff)
		}
	}
}

func TestExpectedAmountNeedsThisSignature(t *testing.T) {
	t.Parallel()
	listing := listingOf(t, events().listing)
	lower := money.Satoshis(150000)
	agreed := orderTerms{author: trader, stage: market.StageCommit, amount: &lower}.order(t)
	authorize := func(key string, order market.Order) *nostr.Event {
		return signed(key, market.DraftCommitAuthorization(publicKey(key), order.ListingAnchor, order.TradeID, order.OrderContent, 1000))
	}
	for name, test := range map[string]struct {
		change func(*market.Order)
		want   money.Amount
	}{
		"as agreed":             {func(*market.Order) {}, lower},
		"without signature":     {func(o *market.Order) { o.CommitAuthorization = nil }, money.Satoshis(200000)},
		"signed by the guest":   {func(o *market.Order) { o.CommitAuthorization = authorize(tradeKey, *o) }, money.Satoshis(200000)},
		"at a yet lower amount": {func(o *market.Order) { o.Amount = pointer(money.Satoshis(1)) }, money.Satoshis(200000)},
		"for one night more":    {func(o *market.Order) { o.End = pointer(date("2027-04-08")) }, money.Satoshis(300000)},
	} {
		order := agreed
		order.CommitAuthorization = authorize(hostKey, agreed)
		test.change(&order)
		got, err := order.ExpectedAmount(listing)
		if err != nil || !got.Amount.Equal(test.want) {
			t.Errorf("%s: %s (%v)", name, got.Amount, err)
		}
	}
}

func TestExpectedAmountOfUnpricedListing(t *testing.T) {
	t.Parallel()
	listing := listingOf(t, &nostr.Event{PubKey: host, Kind: market.KindListing})
	order := orderTerms{author: trader, stage: market.StageCommit}.order(t)
	if _, err := order.ExpectedAmount(listing); err == nil {
		t.Error("a listing without prices has a price")
	}
	weekly := listingOf(t, &nostr.Event{PubKey: host, Kind: market.KindListing, Tags: nostr.Tags{{"price", "1", "BTC", "week"}}})
	if got, err := order.ExpectedAmount(weekly); err != nil || !got.Amount.IsZero() {
		t.Errorf("two nights at a weekly price: %s (%v)", got.Amount, err)
	}
}
