package giftwrap_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/giftwrap"
	"hostr-daemon/internal/market"
)

func TestUnwrapVectors(t *testing.T) {
	t.Parallel()
	read := readVectors(t)
	wraps := read.wraps(t)
	for _, vector := range read.GiftWraps {
		key := read.Keys[vector.Recipient].Sec
		rumor, err := receive(t, account(t, key[63:]), wraps, vector.Name)
		if vector.Expect.Result != "accept" {
			if !errors.Is(err, giftwrap.ErrRejected) && !errors.Is(err, market.ErrNotRumor) {
				t.Errorf("%s: %v, want: %s", vector.Name, err, vector.Expect.Reason)
			}
			continue
		}
		if err != nil || rumor.Event.ID != vector.Expect.RumorID {
			t.Errorf("%s: %v, %+v", vector.Name, err, rumor.Event)
		}
	}
}

// TestScenario replays the vectors' messages to the guest.
func TestScenario(t *testing.T) {
	t.Parallel()
	read := readVectors(t)
	wraps, guest := read.wraps(t), account(t, read.Keys[read.Scenario.Account].Sec[63:])
	tradeKey := read.Keys["guestTradeKey"].Pub
	threads := market.NewThreads(guest.PublicKey(), func(pubkey, _ string) bool { return pubkey == tradeKey })
	feed := func(name string) {
		if rumor, err := receive(t, guest, wraps, name); err == nil {
			threads.Add(rumor)
		}
	}
	for _, name := range read.Scenario.Feed {
		feed(name)
	}
	want := read.Scenario.AfterHistory
	if len(threads.Inbox()) != want.EventCount || len(threads.All()) != len(want.Threads) {
		t.Fatalf("%d messages in %d threads", len(threads.Inbox()), len(threads.All()))
	}
	before := threads.All()
	threads.Live(nostr.Now())
	for i, thread := range threads.All() {
		got := expectedThread{
			Anchor: thread.Anchor, Conversation: thread.Tag,
			CounterpartyPubkeys: thread.Counterparties, ParticipantPubkeys: thread.Participants,
			EventIDs: ids(thread.Events()), OrderRequestIDs: orderIDs(thread.OrderRequests()), TextMessageIDs: ids(thread.TextMessages()),
			UnreadBeforeLive: before[i].Unread(), UnreadAfterLive: thread.Unread(),
		}
		if diff := cmp.Diff(want.Threads[i], got); diff != "" {
			t.Errorf("thread %d: %s", i, diff)
		}
	}
	for _, step := range read.Scenario.ThenLive {
		feed(step.Feed)
		thread := threads.ByAnchor(step.Expect.Anchor)
		if thread == nil || thread.Unread() != step.Expect.Unread {
			t.Fatalf("%s: %+v", step.Feed, thread)
		}
		if diff := cmp.Diff(step.Expect.OrderRequestIDs, orderIDs(thread.OrderRequests())); diff != "" && step.Expect.OrderRequestIDs != nil {
			t.Errorf("%s: %s", step.Feed, diff)
		}
		if diff := cmp.Diff(step.Expect.TextMessageIDs, ids(thread.TextMessages())); diff != "" && step.Expect.TextMessageIDs != nil {
			t.Errorf("%s: %s", step.Feed, diff)
		}
	}
}

func receive(t testing.TB, me giftwrap.Account, wraps map[string]*nostr.Event, name string) (market.Rumor, error) {
	t.Helper()
	wrap, known := wraps[name]
	if !known {
		t.Fatalf("no vector %s", name)
	}
	sender, event, err := giftwrap.Unwrap(context.Background(), me, wrap)
	if err != nil {
		return market.Rumor{}, err
	}
	if sender != event.PubKey || event.Sig != "" || !event.CheckID() {
		t.Errorf("%s: sender %s, %v", name, sender, event)
	}
	return market.ReadRumor(event)
}

func ids(rumors []market.Rumor) []string {
	list := []string{}
	for _, rumor := range rumors {
		list = append(list, rumor.Event.ID)
	}
	return list
}

func orderIDs(requests []market.OrderRequest) []string {
	list := []string{}
	for _, request := range requests {
		list = append(list, request.Order.Event.ID)
	}
	return list
}
