package market_test

import (
	"strings"
	"testing"

	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/market"
	"hostr-daemon/internal/money"
)

func TestNegotiationPolicy(t *testing.T) {
	t.Parallel()
	// The price of two nights is 200 000 sat. Offers are "g 100" for one of 100 000
	// sat by the guest, h for the host, x for a cancellation, ? for no amount.
	for name, test := range map[string]struct {
		offers   string
		role     market.Role
		fixed    bool
		want     string // actions
		min, max int64  // bounds of a counter offer in sat, 0 for none
	}{
		"nothing yet":                       {"", market.RoleBuyer, false, "", 0, 0},
		"cancelled":                         {"g 100, gx 100", market.RoleBuyer, false, "", 0, 0},
		"the guest waits":                   {"g 100", market.RoleBuyer, false, "cancel", 0, 0},
		"the guest offers the price":        {"g 200", market.RoleBuyer, false, "cancel pay", 0, 0},
		"the guest offers more":             {"g 201", market.RoleBuyer, true, "cancel pay", 0, 0},
		"the host answers":                  {"g 100, h 150", market.RoleBuyer, false, "cancel offer pay", 100_001, 150_000},
		"the host answers, fixed price":     {"g 100, h 150", market.RoleBuyer, true, "cancel pay", 0, 0},
		"the host accepts":                  {"g 100, h 100", market.RoleBuyer, false, "cancel pay", 0, 0},
		"the host asks the price":           {"g 100, h 200", market.RoleBuyer, false, "cancel pay", 0, 0},
		"the host asks for less":            {"g 150, h 100", market.RoleBuyer, false, "cancel pay", 0, 0},
		"the host names no amount":          {"g 100, h ?", market.RoleBuyer, false, "cancel", 0, 0},
		"the guest has named none":          {"g ?, h 100", market.RoleBuyer, false, "cancel offer pay", 0, 100_000},
		"the host begins":                   {"h 150", market.RoleBuyer, false, "cancel offer pay", 0, 150_000},
		"the host may accept":               {"g 100", market.RoleSeller, false, "cancel accept offer", 100_001, 200_000},
		"at a fixed price as well":          {"g 100", market.RoleSeller, true, "cancel accept", 0, 0},
		"between his offer and the guest's": {"g 100, h 180, g 120", market.RoleSeller, false, "cancel accept offer", 120_001, 180_000},
		"nothing in between":                {"g 100, h 120, g 120", market.RoleSeller, false, "cancel accept", 0, 0},
		"the host waits":                    {"g 100, h 180", market.RoleSeller, false, "cancel", 0, 0},
		"the price needs no acceptance":     {"g 200", market.RoleSeller, false, "cancel", 0, 0},
		"the guest names no amount":         {"g ?", market.RoleSeller, false, "cancel", 0, 0},
		"in another currency":               {"g USD", market.RoleSeller, false, "cancel offer", 0, 0},
	} {
		listing := listingOf(t, events().listing)
		listing.Negotiable = !test.fixed
		identity := map[market.Role]string{market.RoleBuyer: guest, market.RoleSeller: host}[test.role]
		got, err := market.NegotiationPolicy(offersOf(t, test.offers), listing, test.role, identity)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var actions []string
		for _, action := range got.Actions {
			actions = append(actions, string(action))
		}
		if strings.Join(actions, " ") != test.want || got.Actions == nil {
			t.Errorf("%s: %v, want %s", name, actions, test.want)
		}
		if test.offers == "g USD" {
			continue
		}
		if !isSatoshis(got.CounterMin, test.min) || !isSatoshis(got.CounterMax, test.max) {
			t.Errorf("%s: bounds %v to %v, want %d to %d", name, got.CounterMin, got.CounterMax, test.min, test.max)
		}
	}
}

// isSatoshis compares with a count, 0 for no amount.
func isSatoshis(amount *money.Amount, count int64) bool {
	if amount == nil {
		return count == 0
	}
	return count != 0 && amount.Equal(money.Satoshis(count))
}

func offersOf(t *testing.T, text string) []market.Order {
	t.Helper()
	var orders []market.Order
	for offer := range strings.SplitSeq(text, ", ") {
		if offer == "" {
			continue
		}
		party, value, _ := strings.Cut(offer, " ")
		terms := orderTerms{author: trader, stage: market.StageNegotiate, tags: parties(host, trader)}
		if strings.HasPrefix(party, "h") {
			terms.author = host
		}
		if strings.HasSuffix(party, "x") {
			terms.stage = market.StageCancel
		}
		switch value {
		case "?":
		case "USD":
			terms.amount = &money.Amount{Denomination: "USD", Decimals: 6}
		default:
			amount, err := money.ParseAmount(value+"000", "BTC", 0)
			if err != nil {
				t.Fatal(err)
			}
			amount.Decimals = 8
			terms.amount = &amount
		}
		orders = append(orders, terms.order(t))
	}
	return orders
}

func TestNegotiationPubkey(t *testing.T) {
	t.Parallel()
	listing := listingOf(t, events().listing)
	byHost := offersOf(t, "h 100")
	named := byHost[0]
	named.Recipient = trader
	for name, test := range map[string]struct {
		orders []market.Order
		role   market.Role
		want   string
	}{
		"the host's identity":      {offersOf(t, "g 100"), market.RoleSeller, guest},
		"the guest's trade key":    {offersOf(t, "g 100, h 120"), market.RoleBuyer, trader},
		"the recipient":            {[]market.Order{named}, market.RoleBuyer, trader},
		"the identity, none named": {byHost, market.RoleBuyer, guest},
		"the identity, no orders":  {nil, market.RoleBuyer, guest},
	} {
		got, err := market.NegotiationPolicy(test.orders, listing, test.role, guest)
		if err != nil || got.OurPubkey != test.want || (got.Latest == nil) != (test.orders == nil) {
			t.Errorf("%s: %s (%v)", name, got.OurPubkey, err)
		}
	}
	unpriced := listingOf(t, &nostr.Event{PubKey: host, Kind: market.KindListing})
	if _, err := market.NegotiationPolicy(byHost, unpriced, market.RoleBuyer, guest); err == nil {
		t.Error("a listing without prices has a price")
	}
}
