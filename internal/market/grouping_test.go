package market_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/market"
	"hostr-daemon/internal/money"
)

// history is a trade between honest people, made by the builders that publish.
type history struct {
	t             *testing.T
	random        *rand.Rand
	at            nostr.Timestamp
	authorization string // of the trade key
	orders        []market.Order
	events        []string // for messages
}

// histories is how many are played per test: many orders in them carry three
// signatures that verification checks.
const histories = 25

func newHistory(t *testing.T, seed uint64) *history {
	authorization, _ := guestAuthorization(guestKey)
	return &history{t: t, random: rand.New(rand.NewPCG(seed, 1)), at: 1000, authorization: authorization}
}

func (h *history) maybe() bool { return h.random.IntN(2) == 0 }

func (h *history) now() nostr.Timestamp {
	h.at += nostr.Timestamp(h.random.IntN(3))
	return h.at
}

func (h *history) add(name string, event *nostr.Event) market.Order {
	order := orderOf(h.t, event)
	h.orders, h.events = append(h.orders, order), append(h.events, name)
	return order
}

func (h *history) planned(parties market.TradeParties) nostr.Tags {
	participants := parties.Participants()
	for i := range participants {
		if participants[i].Hidden() {
			participants[i].Authorization = h.authorization
		}
	}
	tags, err := market.PlanParticipants(participants, func(_, text string) (string, error) { return text, nil })
	if err != nil {
		h.t.Fatal(err)
	}
	return tags
}

// commit lets the guest offer, the host answer and the guest book, which is the
// first that is public.
func (h *history) commit() market.Order {
	offered := money.Satoshis(150_000)
	offer := orderOf(h.t, market.FirstOffer{
		ListingAnchor: listingAnchor(), TradeID: testTradeID, TradeKey: trader, Start: date("2027-04-05"), End: date("2027-04-07"),
		Amount: offered, Participants: h.planned(market.TradeParties{Seller: host, Buyer: trader, BuyerIdentity: guest}),
	}.Event(h.now()))
	if h.maybe() {
		counter := market.CounterOffer{Previous: offer, Author: host, Amount: offered,
			Participants: h.planned(market.TradeParties{Seller: host, Buyer: trader})}
		counter.Authorization = signed(hostKey, counter.DraftAuthorization(h.now()))
		offer = orderOf(h.t, counter.Event(h.now()))
	}
	return h.add("commit", market.Commit{Negotiated: offer, TradeKey: trader, Proof: *escrowProof(),
		Participants: h.planned(market.TradeParties{Seller: host, Buyer: trader, BuyerIdentity: guest, Escrow: escrow})}.Event(h.now()))
}

// play goes on at random after the commit; confirmed makes sure that the escrow
// confirms.
func (h *history) play(confirmed bool) {
	commit := h.commit()
	blank := func(author string) market.BlankOrder {
		return market.BlankOrder{Author: author, ListingAnchor: commit.ListingAnchor, TradeID: commit.TradeID,
			Participants: h.planned(market.TradeParties{Seller: host, Buyer: trader, Escrow: escrow})}
	}
	var steps []func()
	if confirmed || h.maybe() {
		steps = append(steps, func() { h.add("escrow confirms", blank(escrow).Confirm(h.now())) })
	}
	if h.maybe() {
		steps = append(steps, func() { h.add("guest cancels", market.CancelOwnOrder(commit, h.now())) })
	}
	if h.maybe() {
		steps = append(steps, func() {
			accept := market.BlankOrder{Author: host, ListingAnchor: commit.ListingAnchor, TradeID: commit.TradeID,
				Participants: h.planned(market.TradeParties{Seller: host, Buyer: trader})}
			own := h.add("host accepts", accept.Confirm(h.now()))
			if h.maybe() {
				h.add("host cancels his acceptance", market.CancelOwnOrder(own, h.now()))
			}
		})
	} else if h.maybe() {
		steps = append(steps, func() { h.add("host cancels", blank(host).Cancel(commit.Start, commit.End, h.now())) })
	}
	h.random.Shuffle(len(steps), func(i, j int) { steps[i], steps[j] = steps[j], steps[i] })
	for _, step := range steps {
		step()
	}
}

// arrivals are the orders as they may come in: in any order, some of them twice.
func (h *history) arrivals() []market.Order {
	arrivals := append(slices.Clone(h.orders), h.orders[h.random.IntN(len(h.orders))])
	h.random.Shuffle(len(arrivals), func(i, j int) { arrivals[i], arrivals[j] = arrivals[j], arrivals[i] })
	return arrivals
}

func TestHonestHistoriesAreValid(t *testing.T) {
	t.Parallel()
	automatic, manual := listingOf(t, events().listing), listingOf(t, events().manual)
	for seed := range uint64(histories) {
		confirmed := seed%2 == 0
		history := newHistory(t, seed)
		history.play(confirmed)
		listings := []*market.Listing{nil, &automatic}
		if confirmed {
			listings = append(listings, &manual)
		}
		arrivals := history.arrivals()
		whole, _ := market.NewOrderGroup(arrivals)
		for _, group := range append(market.GroupOrders(arrivals), whole) {
			for i, listing := range listings {
				chain := []market.ChainVerifier{nil, chainYes}[i%2]
				if got := group.Verify(listing, false, chain); !got.Valid {
					t.Errorf("seed %d, %v: %+v of %s", seed, history.events, got, stagesOf(group.Orders()))
				}
			}
		}
	}
}

// noise returns orders by strangers that try to meddle with the trade.
func (h *history) noise() []market.Order {
	people := []string{host, trader, escrow, guest, stranger, "", "nobody"}
	strangers := []string{stranger, guest, publicKey("6666666666666666666666666666666666666666666666666666666666666666")}
	stages := []market.Stage{market.StageNegotiate, market.StageCommit, market.StageCancel}
	roles := []string{"seller", "buyer", "escrow", ""}
	anchors := []string{"", "30402:" + stranger + ":x", "30402", "naddr1"}
	copied := h.orders[h.random.IntN(len(h.orders))]
	var noise []market.Order
	for range 1 + h.random.IntN(5) {
		terms := orderTerms{
			author: strangers[h.random.IntN(len(strangers))], stage: stages[h.random.IntN(3)],
			at: nostr.Timestamp(900 + h.random.IntN(300)), anchor: anchors[h.random.IntN(len(anchors))], proof: copied.Proof,
		}
		if h.maybe() {
			terms.tags = slices.Clone(copied.Event.Tags[2:])
		}
		for range h.random.IntN(5) {
			terms.tags = append(terms.tags, nostr.Tag{"p", people[h.random.IntN(len(people))], "", roles[h.random.IntN(len(roles))]})
		}
		noise = append(noise, terms.order(h.t))
	}
	return noise
}

// TestStrangersChangeNothing mixes strangers' orders into honest trades, keeping
// the order in which the honest ones arrive.
func TestStrangersChangeNothing(t *testing.T) {
	t.Parallel()
	listing := pointer(listingOf(t, events().listing))
	asGuest := market.TradeFacts{ListingOwner: host, Ours: guest, Controlled: []string{trader}}
	asHost := market.TradeFacts{ListingOwner: host, Ours: host, Children: []market.OrderChild{childOf(t, trader, guest, "")}}
	for seed := range uint64(histories) {
		history := newHistory(t, seed)
		history.play(false)
		honest := history.arrivals()
		mixed := slices.Clone(honest)
		for _, order := range history.noise() {
			// The guest's identity is no stranger to the guest, so it must not write.
			if order.Event.PubKey != guest {
				mixed = slices.Insert(mixed, history.random.IntN(len(mixed)+1), order)
			}
		}
		for _, facts := range []market.TradeFacts{asGuest, asHost} {
			trusted := facts.TrustedAuthors()
			if diff := cmp.Diff(summary(honest, trusted, listing), summary(mixed, trusted, listing)); diff != "" {
				t.Errorf("seed %d, %v: %s", seed, history.events, diff)
			}
		}
	}
}

// summary is what people see of a trade.
func summary(orders []market.Order, trusted []string, listing *market.Listing) []string {
	var lines []string
	var verified []market.VerifiedGroup
	for _, group := range market.GroupOrders(orders) {
		outcome := group.Verify(listing, false, chainYes)
		verified = append(verified, market.VerifiedGroup{Group: group, Verification: outcome})
		if authors := group.Orders(); slices.ContainsFunc(authors, func(order market.Order) bool {
			return slices.Contains([]string{host, trader, escrow}, order.Event.PubKey)
		}) {
			lines = append(lines, fmt.Sprint("group ", group.ID(), stagesOf(authors), outcome))
		}
	}
	chosen, _ := market.ChooseGroup(verified, trusted)
	lines = append(lines, fmt.Sprint("chosen ", chosen.Group.ID(), stagesOf(chosen.Group.Orders()), chosen.Verification))
	return append(lines, "public "+stagesOf(market.OrdersOfTrade(orders, trusted)))
}

func TestChooseGroup(t *testing.T) {
	t.Parallel()
	group := func(valid bool, orders ...orderTerms) market.VerifiedGroup {
		var made []market.Order
		for _, terms := range orders {
			made = append(made, terms.order(t))
		}
		return market.VerifiedGroup{Group: groupOf(t, made...), Verification: market.GroupVerification{Valid: valid}}
	}
	byTrader := orderTerms{author: trader, stage: market.StageCommit, tags: allParties(), at: 2000}
	byHost := orderTerms{author: host, stage: market.StageCommit, tags: parties(host, trader), at: 2001}
	later := byTrader
	later.at = 2002
	byEscrow := orderTerms{author: escrow, stage: market.StageCommit, tags: allParties(), at: 2000}
	foreign := group(true, orderTerms{author: stranger, stage: market.StageCancel, at: 9000}, orderTerms{author: guest, stage: market.StageCancel, at: 9000})
	for name, test := range map[string]struct {
		groups []market.VerifiedGroup
		want   int
	}{
		"a trusted author first": {[]market.VerifiedGroup{foreign, group(false, byTrader)}, 1},
		"then a valid one":       {[]market.VerifiedGroup{group(false, byHost, byEscrow), group(true, byTrader)}, 1},
		"then more orders":       {[]market.VerifiedGroup{group(true, byHost), group(true, byTrader, byEscrow)}, 1},
		"then the newest order":  {[]market.VerifiedGroup{group(true, byHost), group(true, byTrader)}, 0},
		"whosever it is":         {[]market.VerifiedGroup{group(true, byHost), group(true, later)}, 1},
	} {
		for range 2 { // in either order
			got, ok := market.ChooseGroup(test.groups, []string{host, trader})
			if want := test.groups[test.want]; !ok || stagesOf(got.Group.Orders()) != stagesOf(want.Group.Orders()) {
				t.Errorf("%s: %s, want %s", name, stagesOf(got.Group.Orders()), stagesOf(want.Group.Orders()))
			}
			slices.Reverse(test.groups)
			test.want = 1 - test.want
		}
	}
	if _, ok := market.ChooseGroup(nil, nil); ok {
		t.Error("a choice of nothing")
	}
}

func TestOrdersOfTrade(t *testing.T) {
	t.Parallel()
	commit := orderTerms{author: trader, stage: market.StageCommit, tags: allParties(), at: 2000}.order(t)
	cancel := orderTerms{author: trader, stage: market.StageCancel, tags: allParties(), at: 2005}.order(t)
	confirm := orderTerms{author: escrow, stage: market.StageCommit, tags: allParties(), at: 2001}.order(t)
	foreign := orderTerms{author: stranger, stage: market.StageCancel, tags: allParties(), at: 1500}.order(t)
	for name, test := range map[string]struct {
		orders  []market.Order
		trusted []string
		want    []market.Order
	}{
		"sorted, newest of each":      {[]market.Order{cancel, confirm, commit}, []string{trader}, []market.Order{confirm, cancel}},
		"without strangers":           {[]market.Order{foreign, commit, confirm}, []string{trader}, []market.Order{commit, confirm}},
		"strangers, if nobody else":   {[]market.Order{foreign}, []string{trader}, []market.Order{foreign}},
		"nobody trusted, all of them": {[]market.Order{commit, foreign}, nil, []market.Order{foreign, commit}},
		"none":                        {nil, []string{trader}, nil},
	} {
		if got, want := stagesOf(market.OrdersOfTrade(test.orders, test.trusted)), stagesOf(test.want); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

func TestListsTrip(t *testing.T) {
	t.Parallel()
	booked := orderTerms{author: trader, stage: market.StageCommit, tags: allParties()}.order(t)
	hosted := orderTerms{author: host, stage: market.StageCommit, tags: allParties()}.order(t)
	naming := nostr.Tags{{"p", host, "", "seller"}, {"p", guest, "", "buyer"}}
	claimed := orderTerms{author: host, stage: market.StageCommit, tags: naming}.order(t)
	strange := orderTerms{author: stranger, stage: market.StageCancel, tags: append(allParties(), naming...)}.order(t)
	signed := orderTerms{author: guest, stage: market.StageCommit, tags: naming}.order(t)
	withSeed := market.TradeFacts{Ours: guest, Controlled: []string{guest, trader}, ListingOwner: host}
	withoutSeed := market.TradeFacts{Ours: guest, Controlled: []string{guest}, ListingOwner: host}
	withSent, asEscrow := withSeed, market.TradeFacts{Ours: escrow, Controlled: []string{escrow}, IsEscrow: true}
	withSent.Sent = true
	for name, test := range map[string]struct {
		facts market.TradeFacts
		order market.Order
		want  bool
	}{
		"we have committed":                    {withSeed, booked, true},
		"the host has, and names our key":      {withSeed, hosted, true},
		"he may for all that is known":         {withoutSeed, hosted, false},
		"he names our identity":                {withSeed, claimed, false},
		"and we have sent an order":            {withSent, claimed, true},
		"a stranger names all keys":            {withSeed, strange, false},
		"even of a trade that we have begun":   {withSent, strange, false},
		"we have signed as ourselves":          {withoutSeed, signed, true},
		"an escrow is named by others":         {asEscrow, booked, true},
		"but has nothing to do with the other": {asEscrow, claimed, false},
	} {
		if got := groupOf(t, test.order).ListsTrip(test.facts); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
