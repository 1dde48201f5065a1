package market_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/market"
)

func date(text string) time.Time {
	day, err := time.Parse(time.DateOnly, text)
	if err != nil {
		panic(err)
	}
	return day
}

func TestGroupsOfVectors(t *testing.T) {
	t.Parallel()
	vectors := readGroupVectors(t)
	listing := listingOf(t, vectors.event(t, vectors.PublicTrade.Listing))
	manual := listing
	manual.AutoAccept = false
	for _, want := range vectors.PublicTrade.Groups {
		name := strings.Join(want.Orders, ", ")
		orders := vectors.orders(t, want.Orders...)
		groups := market.GroupOrders(orders)
		if len(groups) != 1 {
			t.Errorf("%s: %d groups", name, len(groups))
			continue
		}
		group := groups[0]
		if group.ID() != want.GroupID || group.CommitConfirmed() != want.CommitConfirmation {
			t.Errorf("%s: id %s, commit confirmed %t", name, group.ID(), group.CommitConfirmed())
		}
		var title string
		if _, embedded := group.EmbeddedListing(); embedded {
			title = "Lake cabin"
		}
		expected := market.OrderGroupResult{
			GroupID: want.GroupID, TradeID: testTradeID, ListingAnchor: orders[0].ListingAnchor, ListingTitle: title,
			SellerPubkey: want.SellerPubkey, BuyerPubkey: want.BuyerPubkey, EscrowPubkey: &want.EscrowPubkey,
			Stage: market.Stage(want.Stage), Cancelled: want.Cancelled, Active: want.Active, Confirmed: want.Confirmed,
			Start: &want.Start, End: &want.End,
		}
		for _, order := range orders {
			expected.Orders = append(expected.Orders, market.NewEventJSON(order.Event))
		}
		if diff := cmp.Diff(expected, group.Result()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if got := group.VerifyWithoutChain(&listing, false); got.Valid != want.Valid {
			t.Errorf("%s: %+v", name, got)
		}
		if got := group.VerifyWithoutChain(&manual, false); got.Valid != want.ValidIfAutoAcceptFalse {
			t.Errorf("%s, not accepting automatically: %+v", name, got)
		}
		if got := group.Verify(&listing, false, nil); got.Valid != want.Valid || got.ConfirmedCommitted != want.CommitConfirmation {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestGroupResultKeys(t *testing.T) {
	t.Parallel()
	order := orderTerms{author: host, stage: market.StageCommit, undated: true, tags: parties(host)}.order(t)
	event := encode(t, market.NewEventJSON(order.Event))
	want := `{"groupId":"` + market.ThreadAnchor([]string{host}, testTradeID) + `","tradeId":"` + testTradeID +
		`","listingAnchor":"` + listingAnchor() + `","sellerPubkey":"` + host + `","buyerPubkey":null,"escrowPubkey":null,` +
		`"stage":"commit","cancelled":false,"active":true,"confirmed":true,"start":null,"end":null,"orders":[` + event + `]}`
	if got := encode(t, groupOf(t, order).Result()); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestGroupIDOfVectors(t *testing.T) {
	t.Parallel()
	for _, vector := range readGroupVectors(t).GroupID {
		var preimage [2]json.RawMessage
		var pubkeys []string
		var tradeID string
		if json.Unmarshal([]byte(vector.Preimage), &preimage) != nil || json.Unmarshal(preimage[0], &pubkeys) != nil ||
			json.Unmarshal(preimage[1], &tradeID) != nil {
			t.Fatal(vector.Preimage)
		}
		if got := market.ThreadAnchor(pubkeys, " "+tradeID+" "); got != vector.SHA256 {
			t.Errorf("%s: %s", vector.Name, got)
		}
	}
}

func TestRawGroupIDOfAnOrder(t *testing.T) {
	t.Parallel()
	order := orderTerms{author: trader, stage: market.StageCommit, tags: append(parties(host), nostr.Tag{"p", ""}, nostr.Tag{"p", escrow})}.order(t)
	if got := order.RawGroupID(); got != market.ThreadAnchor([]string{escrow, trader, host}, testTradeID) {
		t.Error(got)
	}
	order = orderTerms{author: trader, stage: market.StageCommit, tradeID: "none"}.order(t)
	if got := order.RawGroupID(); got != market.ThreadAnchor([]string{trader}, order.Event.ID) {
		t.Error(got)
	}
}

func TestGroupDates(t *testing.T) {
	t.Parallel()
	confirm := orderTerms{author: escrow, stage: market.StageCommit, undated: true, tags: allParties()}.order(t)
	commit := orderTerms{author: trader, stage: market.StageCommit, tags: allParties()}.order(t)
	for name, orders := range map[string][]market.Order{
		"the committed order has dates": {commit, confirm},
		"the committed order has none":  {confirm, commit},
	} {
		group := groupOf(t, orders...)
		if start, end := group.Start(), group.End(); start == nil || !start.Equal(date("2027-04-05")) || end == nil || !end.Equal(date("2027-04-07")) {
			t.Errorf("%s: %v to %v", name, start, end)
		}
	}
	if start := groupOf(t, confirm).Start(); start != nil {
		t.Errorf("a date from nowhere: %v", start)
	}
	group := groupOf(t, commit)
	if group.Completed(date("2027-04-07")) || !group.Completed(date("2027-04-08")) {
		t.Error("a stay is completed after its end")
	}
	cancelled := orderTerms{author: trader, stage: market.StageCancel, tags: allParties()}.order(t)
	if groupOf(t, cancelled).Completed(date("2028-01-01")) {
		t.Error("a cancelled stay was completed")
	}
}

func TestGroupReplacesOlderOrders(t *testing.T) {
	t.Parallel()
	older := orderTerms{author: trader, stage: market.StageCommit, at: 2000, tags: allParties()}.order(t)
	newer := orderTerms{author: trader, stage: market.StageCancel, at: 2001, tags: allParties()}.order(t)
	other := orderTerms{author: host, stage: market.StageCommit, at: 1000, tags: allParties()}.order(t)
	rival := orderTerms{author: trader, stage: market.StageNegotiate, at: 2000, tags: allParties()}.order(t)
	lower, higher := older, rival
	if rival.Event.ID < older.Event.ID {
		lower, higher = rival, older
	}
	for name, test := range map[string]struct{ arrivals, want []market.Order }{
		"newer last":           {[]market.Order{older, other, newer}, []market.Order{other, newer}},
		"older last":           {[]market.Order{newer, other, older}, []market.Order{newer, other}},
		"the same again":       {[]market.Order{older, other, older}, []market.Order{older, other}},
		"as old, lower id":     {[]market.Order{higher, other, lower}, []market.Order{other, lower}},
		"as old, greater id":   {[]market.Order{lower, other, higher}, []market.Order{lower, other}},
		"the list is not used": {[]market.Order{older, newer, other}, []market.Order{newer, other}},
	} {
		groups := market.GroupOrders(test.arrivals)
		if len(groups) != 1 {
			t.Fatalf("%s: %d groups", name, len(groups))
		}
		if got, want := stagesOf(groups[0].Orders()), stagesOf(test.want); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
		group, err := groupOf(t, test.arrivals[0]).With(test.arrivals[1])
		if err == nil {
			group, err = group.With(test.arrivals[2])
		}
		if got, want := stagesOf(group.Orders()), stagesOf(test.want); err != nil || got != want {
			t.Errorf("%s, one by one: %s, want %s (%v)", name, got, want, err)
		}
	}
}

func stagesOf(orders []market.Order) string {
	var stages []string
	for _, order := range orders {
		stages = append(stages, order.Event.PubKey[:4]+" "+string(order.Stage))
	}
	return strings.Join(stages, ", ")
}

func TestGroupRefusesOutsiders(t *testing.T) {
	t.Parallel()
	group := groupOf(t, orderTerms{author: trader, stage: market.StageCommit, tags: allParties()}.order(t))
	for name, test := range map[string]struct {
		order orderTerms
		want  error
	}{
		"a stranger":            {orderTerms{author: stranger, stage: market.StageCancel, tags: allParties()}, market.ErrOutsideGroup},
		"another trade":         {orderTerms{author: host, stage: market.StageCancel, tradeID: "other"}, market.ErrOutsideGroup},
		"without trade id":      {orderTerms{author: host, stage: market.StageCancel, tradeID: "none"}, market.ErrNoGroup},
		"with half an anchor":   {orderTerms{author: host, stage: market.StageCancel, anchor: "30402:" + host}, market.ErrNoGroup},
		"the host":              {orderTerms{author: host, stage: market.StageCancel}, nil},
		"the escrow he names":   {orderTerms{author: escrow, stage: market.StageCommit}, nil},
		"another anchor is his": {orderTerms{author: trader, stage: market.StageCommit, at: 3000, anchor: "30402:" + trader + ":x"}, nil},
	} {
		changed, err := group.With(test.order.order(t))
		if !errors.Is(err, test.want) || len(group.Orders()) != 1 || err != nil && len(changed.Orders()) != 1 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOrdersWithoutPlaceAreLeftOut(t *testing.T) {
	t.Parallel()
	homeless := []market.Order{
		orderTerms{author: host, stage: market.StageCommit, tradeID: "none"}.order(t),
		orderTerms{author: host, stage: market.StageCommit, anchor: "naddr1xyz"}.order(t),
	}
	if groups := market.GroupOrders(homeless); len(groups) != 0 {
		t.Errorf("%d groups", len(groups))
	}
	if _, ok := market.NewOrderGroup(homeless); ok {
		t.Error("a group of nothing")
	}
	if got := market.AvailabilityOf(homeless, market.DateRange{Start: date("2027-04-06"), End: date("2027-04-08")}); got.Available || got.OrderGroupCount != 2 {
		t.Errorf("%+v", got)
	}
}

func TestGroupRoles(t *testing.T) {
	t.Parallel()
	commit := orderTerms{author: trader, stage: market.StageCommit, tags: parties(host, trader), proof: escrowProof()}.order(t)
	group := groupOf(t, commit)
	if group.EscrowPubkey() != escrow || group.BuyerPubkey() != trader || group.SellerOrder() != nil || group.EscrowOrder() != nil {
		t.Errorf("escrow %s, buyer %s", group.EscrowPubkey(), group.BuyerPubkey())
	}
	own := groupOf(t, orderTerms{author: host, stage: market.StageCommit, tags: parties(host, trader, host)}.order(t))
	if own.EscrowOrder() != nil || own.BuyerOrder() != nil || own.SellerOrder() == nil || !own.Confirmed() {
		t.Error("a host who is his own escrow acts as the host only")
	}
}
