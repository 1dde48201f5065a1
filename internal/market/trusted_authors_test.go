package market_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"hostr-daemon/internal/market"
)

func childOf(t *testing.T, author, sender, anchor string) market.OrderChild {
	t.Helper()
	return market.OrderChild{Order: orderTerms{author: author, stage: market.StageNegotiate, anchor: anchor}.order(t), Sender: sender}
}

func TestOrderChildFits(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		author, sender, anchor, ours string
		want                         bool
	}{
		"a guest's offer, seen by the host":    {trader, guest, "", host, true},
		"a host's offer, seen by the guest":    {host, host, "", guest, true},
		"own copy":                             {trader, guest, "", guest, true},
		"own copy of the other's":              {host, guest, "", guest, true},
		"a guest sends a host's offer":         {host, guest, "", host, false},
		"a host sends a guest's offer":         {stranger, host, "", guest, false},
		"a host sends our offer":               {trader, host, "", guest, false},
		"somebody else sends our offer":        {trader, stranger, "", guest, false},
		"somebody sends the host's offer":      {host, stranger, "", guest, false},
		"the listing cannot be told":           {trader, guest, "30402", host, false},
		"the sender says the listing were his": {stranger, stranger, "30402:" + stranger + ":x", host, true},
	} {
		controls := func(pubkey string) bool { return pubkey == test.ours || test.ours == guest && pubkey == trader }
		if got := childOf(t, test.author, test.sender, test.anchor).Fits(test.ours, controls); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestTrustedAuthors(t *testing.T) {
	t.Parallel()
	asGuest := market.TradeFacts{ListingOwner: host, Ours: guest, Controlled: []string{trader}}
	asHost := market.TradeFacts{ListingOwner: host, Ours: host, Controlled: []string{host}}
	for name, test := range map[string]struct {
		facts    market.TradeFacts
		children []market.OrderChild
		want     []string
	}{
		"a guest trusts the host and himself": {asGuest, nil, sorted(host, guest, trader)},
		"and nobody whom he hears of":         {asGuest, []market.OrderChild{childOf(t, stranger, stranger, "")}, sorted(host, guest, trader)},
		"a host alone":                        {asHost, nil, sorted(host)},
		"a host trusts his guest's keys": {asHost, []market.OrderChild{
			childOf(t, trader, guest, ""), childOf(t, host, host, ""), childOf(t, escrow, guest, ""),
		}, sorted(host, trader, escrow)},
		"two claim the trade": {asHost, []market.OrderChild{childOf(t, trader, guest, ""), childOf(t, stranger, stranger, "")}, sorted(host)},
		"a forged child is no claim": {asHost, []market.OrderChild{
			childOf(t, trader, guest, ""), childOf(t, host, stranger, ""), childOf(t, stranger, stranger, "30402:"+stranger+":x"),
		}, sorted(host, trader)},
	} {
		test.facts.Children = test.children
		if diff := cmp.Diff(test.want, test.facts.TrustedAuthors()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
