package trades

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nbd-wtf/go-nostr"
	"github.com/rs/zerolog"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/market"
	"hostr-daemon/internal/sandbox"
)

func TestChunkSize(t *testing.T) {
	t.Parallel()
	for ids, want := range map[int]int{0: 100, 1: 100, 1600: 100, 1601: 200, 3200: 200, 3201: 400, maxTrades: 1600} {
		if got := chunkSize(ids); got != want {
			t.Errorf("%d ids: chunks of %d, want %d", ids, got, want)
		}
		if chunks := (ids + chunkSize(ids) - 1) / chunkSize(ids); chunks > maxChunks {
			t.Errorf("%d ids: %d chunks", ids, chunks)
		}
	}
}

// quietly returns a service whose inbox says what the test says.
func (p *person) quietly() (*process, *silentInbox) {
	p.t.Helper()
	quiet := &silentInbox{}
	run := &process{person: p, client: p.client()}
	run.Service = New(Config{Relays: run.client, Account: p.account, Inbox: quiet, Keys: p.seed, Indexes: p.indexes, Logger: zerolog.Nop()})
	run.Service.limits.debounce, run.Service.limits.debounceLongest = 10*time.Millisecond, 50*time.Millisecond
	run.Service.limits.retryFirst, run.Service.limits.retryLongest = 20*time.Millisecond, 50*time.Millisecond
	p.t.Cleanup(run.Service.Close)
	return run, quiet
}

// publicOrder is an order of the person for a listing of theirs.
func (p *person) publicOrder(tradeID string, stage market.Stage, at nostr.Timestamp) nostr.Event {
	p.t.Helper()
	content := market.OrderContent{Stage: stage, Quantity: 1}
	event := nostr.Event{
		PubKey: p.public, Kind: market.KindOrder, CreatedAt: at, Content: content.Encode(),
		Tags: nostr.Tags{{"a", "30402:" + p.public + ":x"}, {"d", tradeID}},
	}
	if err := p.local.SignEvent(patient(p.t), &event); err != nil {
		p.t.Fatal(err)
	}
	return event
}

// The list of trades grows before, while and after the first ones are asked for, over
// several REQs; orders older than all others are seen too.
func TestFeedGrows(t *testing.T) {
	t.Parallel()
	own := startRelay(t)
	host := newPerson(t, own)
	run, quiet := host.quietly()
	id := func(i int) string { return fmt.Sprintf("%064x", i) }
	const stored, trades = 110, 130
	var events []nostr.Event
	for i := range stored {
		events = append(events, host.publicOrder(id(i), market.StageCommit, nostr.Now()-nostr.Timestamp(i)))
	}
	if err := own.Relay.Insert(patient(t), events...); err != nil {
		t.Fatal(err)
	}
	run.Start()
	for i := range trades {
		run.Track(id(i), host.public)
	}
	quiet.goLive()
	run.settle()
	if list := run.hostings(); len(list.Items) != stored || list.Warning != nil {
		t.Errorf("%d hostings, warning %v", len(list.Items), list.Warning)
	}
	old := host.publicOrder(id(trades-1), market.StageCommit, nostr.Now()-1_000_000)
	host.publish(host.local, &old)
	eventually(t, "the late order with an early time is there", func() bool { return len(run.hostings().Items) == stored+1 })
	run.Track(id(trades), host.public)
	late := host.publicOrder(id(trades), market.StageCommit, nostr.Now())
	host.publish(host.local, &late)
	eventually(t, "the order of the new trade is there", func() bool { return len(run.hostings().Items) == stored+2 })
	eventually(t, "no more REQs are open than there are chunks", func() bool {
		counters := own.Relay.Counters()
		return counters.REQs-counters.CLOSEs <= 3
	})
}

func TestNoTradesAtAll(t *testing.T) {
	t.Parallel()
	run, quiet := newPerson(t, commonRelay).quietly()
	quiet.goLive()
	run.settle()
	if list := run.trips(); len(list.Items) != 0 || list.Warning != nil {
		t.Errorf("%+v", list)
	}
}

// A relay that stops answering says nothing of what happens meanwhile, whatever it said
// before.
func TestAnswersDoNotLastForEver(t *testing.T) {
	t.Parallel()
	for name, faults := range map[string]sandbox.Faults{"closed": {Closed: "error: busy"}, "cut off": {DropOnRequest: true}, "silent": {NoEOSE: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			own := startRelay(t)
			host := newPerson(t, own)
			run, quiet := host.quietly()
			run.limits.stored, run.listings.timeout = 20*time.Millisecond, 20*time.Millisecond
			run.Track("t", host.public)
			quiet.goLive()
			eventually(t, "the answer is whole", func() bool { return run.hostings().Warning == nil })
			own.Relay.Break(faults)
			wait := PublicWait{Limit: 50 * time.Millisecond, UntilAnswered: true, Done: func([]market.Order) bool { return false }}
			if found, err := run.WaitPublic(patient(t), "t", wait); err != nil || found.Complete {
				t.Errorf("what was asked now is complete %t, %v", found.Complete, err)
			}
			own.Relay.Drop()
			eventually(t, "lists warn", func() bool { return run.hostings().Warning != nil })
			own.Relay.Heal()
			own.Relay.Drop()
			eventually(t, "the answer is whole again", func() bool { return run.hostings().Warning == nil })
			wait.Limit = patience
			if found, err := run.WaitPublic(patient(t), "t", wait); err != nil || !found.Complete {
				t.Errorf("then complete %t, %v", found.Complete, err)
			}
		})
	}
}

// Whoever floods an account with orders drives out his own first, then those that
// nobody has answered, and never ours.
func TestFloodOfMessages(t *testing.T) {
	t.Parallel()
	own := startRelay(t)
	me, host, guest, flooder := newPerson(t, own), newPerson(t, own), newPerson(t, own), newPerson(t, own)
	run, quiet := me.quietly()
	run.limits.trades, run.limits.claims = 20, 10
	follows := func(tradeID string) bool {
		run.mu.Lock()
		defer run.mu.Unlock()
		return run.trades[tradeID] != nil && slices.Contains(run.feed.ids, tradeID) && run.feed.ids[run.trades[tradeID].place] == tradeID
	}
	quiet.get(rumorOf(t, guest.public, privateOrder(me.public, "aa", "offered"), "offered", me.public))
	quiet.get(rumorOf(t, me.public, privateOrder(host.public, "bb", "ours"), "ours", host.public))
	quiet.get(rumorOf(t, guest.public, privateOrder(me.public, "aa", "public"), "public", me.public))
	booked := me.publicOrder("public", market.StageCommit, nostr.Now())
	run.take(&booked)
	junk := func(sender string, count int) {
		for i := range count {
			id := fmt.Sprint(sender[:8], i)
			quiet.get(rumorOf(t, sender, privateOrder(me.public, "cc", id), id, me.public))
		}
	}
	junk(flooder.public, 50)
	for id, want := range map[string]bool{"offered": true, "ours": true, "public": true, fmt.Sprint(flooder.public[:8], 39): false, fmt.Sprint(flooder.public[:8], 40): true} {
		if follows(id) != want {
			t.Errorf("one sender: %s is followed: %t", id, !want)
		}
	}
	quiet.goLive()
	run.settle()
	if list := run.hostings(); list.Warning != nil {
		t.Errorf("one sender: warning %v", list.Warning)
	}
	for range 5 {
		junk(newPerson(t, own).public, 10)
	}
	quiet.get(rumorOf(t, guest.public, privateOrder(me.public, "aa", "later"), "later", me.public))
	for id, want := range map[string]bool{"offered": false, "ours": true, "public": true, "later": true} {
		if follows(id) != want {
			t.Errorf("many senders: %s is followed: %t", id, !want)
		}
	}
	run.mu.Lock()
	trades, ids := len(run.trades), len(run.feed.ids)
	run.mu.Unlock()
	if trades != 20 || ids != 20 {
		t.Errorf("%d trades, %d ids", trades, ids)
	}
	late := me.publicOrder("later", market.StageCommit, nostr.Now())
	me.publish(me.local, &late)
	eventually(t, "an order in a place that was taken over is seen", func() bool { return len(run.hostings().Items) == 2 })
	if list := run.hostings(); list.Warning == nil || !fault.Is(list.Warning, fault.PartialResult) {
		t.Errorf("warning %v", list.Warning)
	}
}

// A relay that does not answer makes a list with a warning, and is asked again.
func TestPartialAnswers(t *testing.T) {
	t.Parallel()
	for name, faults := range map[string]sandbox.Faults{
		"no EOSE": {NoEOSE: true}, "closed": {Closed: "error: tired"}, "cut off": {DropOnRequest: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			own := startRelay(t)
			host := newPerson(t, own)
			event := host.publicOrder("t", market.StageCommit, nostr.Now())
			if err := own.Relay.Insert(patient(t), event); err != nil {
				t.Fatal(err)
			}
			run, quiet := host.quietly()
			run.limits.stored, run.listings.timeout = 20*time.Millisecond, 20*time.Millisecond
			own.Relay.Break(faults)
			run.Track("t", host.public)
			quiet.goLive()
			run.settle()
			if list := run.hostings(); list.Warning == nil || !list.Warning.Retryable {
				t.Errorf("warning %v", list.Warning)
			}
			found, err := run.WaitPublic(patient(t), "t", PublicWait{Limit: 50 * time.Millisecond, UntilAnswered: true, Done: func([]market.Order) bool { return false }})
			if err != nil || found.Complete {
				t.Errorf("complete %t, %v", found.Complete, err)
			}
			own.Relay.Heal()
			own.Relay.Drop()
			eventually(t, "the answer is whole", func() bool {
				list := run.hostings()
				return len(list.Items) == 1 && list.Warning == nil
			})
		})
	}
}

func TestListSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	run, _ := newPerson(t, commonRelay).quietly()
	list, err := run.Trips(patient(t), time.Millisecond)
	if err != nil || list.Warning == nil || !strings.Contains(list.Warning.Message, "messages") {
		t.Errorf("%+v, %v", list, err)
	}
}

// rumorOf is a message from the sender to the recipients that carries an order.
func rumorOf(t testing.TB, sender string, order *nostr.Event, tradeID string, recipients ...string) market.Rumor {
	t.Helper()
	rumor, err := market.ReadRumor(market.NewOrderMessage(order, tradeID, recipients).Event(sender, nostr.Now()))
	if err != nil {
		t.Fatal(err)
	}
	return rumor
}

// privateOrder is an order of a negotiation, by any author for any listing.
func privateOrder(owner, author, tradeID string) *nostr.Event {
	content := market.OrderContent{Stage: market.StageNegotiate, Quantity: 1}
	event := &nostr.Event{PubKey: author, Kind: market.KindOrder, CreatedAt: 1, Content: content.Encode(),
		Tags: nostr.Tags{{"a", "30402:" + owner + ":x"}, {"d", tradeID}}}
	event.ID = event.GetID()
	return event
}

func TestDiscovery(t *testing.T) {
	t.Parallel()
	me := newPerson(t, commonRelay)
	host, other, stranger := newPerson(t, commonRelay), newPerson(t, commonRelay), newPerson(t, commonRelay)
	order := privateOrder
	run, quiet := me.quietly()
	quiet.get(rumorOf(t, stranger.public, order(stranger.public, other.public, "misfit"), "misfit", me.public))
	quiet.get(rumorOf(t, stranger.public, order("no pubkey", other.public, "odd"), "odd", me.public))
	quiet.get(rumorOf(t, stranger.public, order(host.public, other.public, strings.Repeat("x", maxTradeID+1)), "long", me.public))
	quiet.get(rumorOf(t, stranger.public, order(stranger.public, stranger.public, "claimed"), "claimed", me.public))
	quiet.get(rumorOf(t, host.public, order(host.public, host.public, "claimed"), "claimed", me.public))
	if got := slices.Sorted(slices.Values(run.feed.ids)); !slices.Equal(got, []string{"claimed"}) {
		t.Errorf("followed %q", got)
	}
	if trusted := run.TrustedAuthors("claimed"); !slices.Contains(trusted, stranger.public) || slices.Contains(trusted, host.public) {
		t.Errorf("the first claim does not count: %q", trusted)
	}
	quiet.get(rumorOf(t, me.public, order(host.public, other.public, "claimed"), "claimed", host.public))
	if trusted := run.TrustedAuthors("claimed"); slices.Contains(trusted, stranger.public) || !slices.Contains(trusted, host.public) {
		t.Errorf("what we have sent does not count: %q", trusted)
	}

	// As host, whoever signed what the one guest has sent.
	quiet.get(rumorOf(t, other.public, order(me.public, "aa", "hosted"), "hosted", me.public))
	if trusted := run.TrustedAuthors("hosted"); !slices.Contains(trusted, "aa") {
		t.Errorf("the guest's key does not count: %q", trusted)
	}
	quiet.get(rumorOf(t, stranger.public, order(me.public, "bb", "hosted"), "hosted", me.public))
	if trusted := run.TrustedAuthors("hosted"); !slices.Equal(trusted, []string{me.public}) {
		t.Errorf("two claim the trade: %q", trusted)
	}
}

// Strangers can publish any number of orders with a trade id of ours.
func TestGroupsOfOneTradeAreBounded(t *testing.T) {
	t.Parallel()
	host := newPerson(t, commonRelay)
	run, quiet := host.quietly()
	run.Track("t", host.public)
	order := host.publicOrder("t", market.StageCommit, nostr.Now())
	run.take(&order)
	for i := range 3 * maxGroups {
		strange := order
		strange.PubKey = fmt.Sprintf("%064x", i)
		strange.ID = strange.GetID()
		run.take(&strange)
	}
	quiet.goLive()
	run.settle()
	run.mu.Lock()
	groups := len(run.trades["t"].groups)
	run.mu.Unlock()
	list := run.hostings()
	if groups > maxGroups || len(list.Items) != 1 || list.Items[0].Group.Orders()[0].Event.ID != order.ID {
		t.Errorf("%d groups, %d items", groups, len(list.Items))
	}
}
