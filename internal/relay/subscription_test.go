package relay

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nbd-wtf/go-nostr"
)

func mustSubscribe(t testing.TB, client *Client, filter nostr.Filter, options SubscribeOptions) *Subscription {
	t.Helper()
	subscription, err := client.Subscribe(context.Background(), filter, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(subscription.Close)
	return subscription
}

func wantNext(t testing.TB, subscription *Subscription, content string) {
	t.Helper()
	if event := receive(t, subscription.Events()); event == nil || event.Content != content {
		t.Errorf("the next event is %v, want %q", event, content)
	}
}

func TestStoredThenLive(t *testing.T) {
	t.Parallel()
	relay := startRelay(t, script{})
	relay.store(notes(t, 2)...)
	client := newTestClient(t, Config{HostrRelay: relay.url})
	until := nostr.Timestamp(100)
	subscription := mustSubscribe(t, client, nostr.Filter{Kinds: []int{1}, Until: &until}, SubscribeOptions{})
	wantNext(t, subscription, "note 2")
	wantNext(t, subscription, "note 1")
	receive(t, subscription.Stored())
	if !subscription.Complete() {
		t.Error("the stored events are not complete")
	}
	session := relay.session(1)
	id := relay.framesOf("REQ")[0].id
	session.sendEvent(id, signed(t, aliceKey, 1, 200, "after EOSE until is not compared"))
	session.sendEvent(id, signed(t, aliceKey, 2, 200, "of another kind"))
	session.sendEvent(id, signed(t, aliceKey, 1, 3, "live"))
	wantNext(t, subscription, "after EOSE until is not compared")
	wantNext(t, subscription, "live")
	subscription.Close()
	relay.awaitFrames(t, "CLOSE", 1)
	if _, open := <-subscription.Events(); open {
		t.Error("events come after Close")
	}
}

func TestSubscriptionEndsWithItsContext(t *testing.T) {
	t.Parallel()
	relay := startRelay(t, script{})
	client := newTestClient(t, Config{HostrRelay: relay.url})
	ctx, cancel := context.WithCancel(context.Background())
	subscription, err := client.Subscribe(ctx, allNotes, SubscribeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	receive(t, subscription.Stored())
	cancel()
	relay.awaitFrames(t, "CLOSE", 1)
	if event := receive(t, subscription.Events()); event != nil {
		t.Errorf("it delivered %v", event)
	}
}

func TestSubscriptionWaitsForItsRelay(t *testing.T) {
	t.Parallel()
	relay := startRelay(t, script{})
	relay.refuse(true)
	relay.store(notes(t, 1)...)
	clock := newManualClock()
	client := newTestClient(t, Config{HostrRelay: relay.url, Clock: clock})
	subscription := mustSubscribe(t, client, allNotes, SubscribeOptions{})
	for _, delay := range []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second} {
		clock.fire(t, delay)
	}
	awaitTimer(t, clock, 8*time.Second)
	select {
	case <-subscription.Stored():
		t.Error("an unreachable relay counts as having sent its events")
	default:
	}
	relay.refuse(false)
	clock.fire(t, 8*time.Second)
	wantNext(t, subscription, "note 1")
	receive(t, subscription.Stored())
}

func TestSocketThatLivedStartsTheBackoffAnew(t *testing.T) {
	t.Parallel()
	relay := startRelay(t, script{})
	clock := newManualClock()
	client := newTestClient(t, Config{HostrRelay: relay.url, Clock: clock})
	mustSubscribe(t, client, allNotes, SubscribeOptions{})
	for connection, delay := range []time.Duration{500 * time.Millisecond, time.Second} {
		relay.awaitFrames(t, "REQ", connection+1)
		lose(t, relay, client)
		clock.fire(t, delay)
	}
	relay.awaitFrames(t, "REQ", 3)
	clock.jump(t, settled)
	lose(t, relay, client)
	clock.fire(t, 500*time.Millisecond)
	relay.awaitFrames(t, "REQ", 4)
}

func TestIdleConnectionIsNotDialledAgainUntilNeeded(t *testing.T) {
	t.Parallel()
	relay := startRelay(t, script{})
	clock := newManualClock()
	client := newTestClient(t, Config{HostrRelay: relay.url, Clock: clock})
	mustQuery(t, client, allNotes, QueryOptions{})
	clock.jump(t, settled)
	lose(t, relay, client)
	clock.jump(t, time.Hour)
	if relay.connections() != 1 {
		t.Error("an idle connection was dialled again")
	}
	mustQuery(t, client, allNotes, QueryOptions{})
	if relay.connections() != 2 {
		t.Errorf("%d connections", relay.connections())
	}
}

func TestEventsOfAnOutageArriveOnce(t *testing.T) {
	t.Parallel()
	relay := startRelay(t, script{})
	clock := newManualClock()
	client := newTestClient(t, Config{HostrRelay: relay.url, Clock: clock})
	relay.store(signed(t, carolKey, 1059, 500_000, "before"))
	subscription := mustSubscribe(t, client, nostr.Filter{Kinds: []int{1059}}, SubscribeOptions{})
	wantNext(t, subscription, "before")
	receive(t, subscription.Stored())
	lose(t, relay, client)
	relay.store(signed(t, carolKey, 1059, 500_000-2*86_400, "dated two days back"))
	clock.fire(t, 500*time.Millisecond)
	wantNext(t, subscription, "dated two days back")
	receive(t, subscription.Restored())
	relay.publish(signed(t, carolKey, 1059, 500_001, "live again"))
	wantNext(t, subscription, "live again")
}

func TestRestoredIsToldWithoutEOSE(t *testing.T) {
	t.Parallel()
	relay := startRelay(t, script{onREQ: func(s *relaySession, _ *nostr.ReqEnvelope) bool { return s.number > 1 }})
	clock := newManualClock()
	client := newTestClient(t, Config{HostrRelay: relay.url, Clock: clock})
	subscription := mustSubscribe(t, client, allNotes, SubscribeOptions{})
	receive(t, subscription.Stored())
	lose(t, relay, client)
	clock.fire(t, 500*time.Millisecond)
	relay.awaitFrames(t, "REQ", 2)
	clock.fire(t, restoreLimit)
	receive(t, subscription.Restored())
}

func TestForgedCopyDoesNotHideALiveEvent(t *testing.T) {
	t.Parallel()
	genuine := signed(t, aliceKey, 1, 1, "genuine")
	forged := genuine
	forged.Content = "forged"
	relay := startRelay(t, script{})
	client := newTestClient(t, Config{HostrRelay: relay.url})
	subscription := mustSubscribe(t, client, allNotes, SubscribeOptions{})
	receive(t, subscription.Stored())
	session, id := relay.session(1), relay.framesOf("REQ")[0].id
	for range 3 {
		session.sendEvent(id, forged)
		session.sendEvent(id, genuine)
	}
	session.sendEvent(id, signed(t, aliceKey, 1, 2, "next"))
	wantNext(t, subscription, "genuine")
	wantNext(t, subscription, "next")
}

func TestLiveRequestClosedForGood(t *testing.T) {
	t.Parallel()
	relay := startRelay(t, script{onREQ: func(s *relaySession, e *nostr.ReqEnvelope) bool {
		s.sendf(`["CLOSED",%q,"restricted: members only"]`, e.SubscriptionID)
		return true
	}})
	client := newTestClient(t, Config{HostrRelay: relay.url})
	subscription := mustSubscribe(t, client, allNotes, SubscribeOptions{})
	want := Refusal{RelayURL: relay.url, Reason: "restricted: members only", Final: true}
	if got := receive(t, subscription.Refusals()); got != want {
		t.Errorf("the refusal is %+v", got)
	}
	receive(t, subscription.Stored())
	if subscription.Complete() {
		t.Error("a refused subscription counts as complete")
	}
}

func TestLiveRequestClosedForNow(t *testing.T) {
	t.Parallel()
	var requests atomic.Int32
	relay := startRelay(t, script{onREQ: func(s *relaySession, e *nostr.ReqEnvelope) bool {
		if requests.Add(1) > 2 {
			return false
		}
		s.sendf(`["CLOSED",%q,"rate-limited: slow down"]`, e.SubscriptionID)
		return true
	}})
	relay.store(notes(t, 1)...)
	clock := newManualClock()
	client := newTestClient(t, Config{HostrRelay: relay.url, Clock: clock})
	subscription := mustSubscribe(t, client, allNotes, SubscribeOptions{})
	for _, delay := range []time.Duration{500 * time.Millisecond, time.Second} {
		clock.fire(t, delay)
	}
	wantNext(t, subscription, "note 1")
}

func TestLiveRequestClosedForWantOfAnAuth(t *testing.T) {
	t.Parallel()
	relay := startRelay(t, demandingREQ())
	relay.store(notes(t, 1)...)
	client := newTestClient(t, Config{HostrRelay: relay.url, Account: newAccount(t, aliceKey)})
	subscription := mustSubscribe(t, client, allNotes, SubscribeOptions{})
	wantNext(t, subscription, "note 1")
}

func TestLiveRequestRestsUntilAnAuthSucceeds(t *testing.T) {
	t.Parallel()
	relay := startRelay(t, demandingREQ())
	relay.store(notes(t, 1)...)
	account := newAccount(t, aliceKey)
	account.hook = func(context.Context, *nostr.Event) error {
		if account.signed.Load() == 1 {
			return fmt.Errorf("not now")
		}
		return nil
	}
	client := newTestClient(t, Config{HostrRelay: relay.url, Account: account})
	subscription := mustSubscribe(t, client, allNotes, SubscribeOptions{})
	if got := receive(t, subscription.Refusals()); got.Final || got.Reason != "auth-required: sign in" {
		t.Errorf("the refusal is %+v", got)
	}
	if err := client.Authenticate(testContext(t)); err != nil {
		t.Fatal(err)
	}
	wantNext(t, subscription, "note 1")
}

func TestSlowConsumerPausesTheSubscriptionAndLosesNothing(t *testing.T) {
	t.Parallel()
	const total = 80
	relay := startRelay(t, script{})
	relay.store(notes(t, total)...)
	client := newTestClient(t, Config{HostrRelay: relay.url})
	if client.heldEvents != 10_000 || client.heldBytes != 32<<20 {
		t.Errorf("%d events or %d bytes may wait", client.heldEvents, client.heldBytes)
	}
	client.heldEvents = 20
	subscription := mustSubscribe(t, client, allNotes, SubscribeOptions{})
	relay.awaitFrames(t, "CLOSE", 1) // It is paused before anything was read.
	query := mustQuery(t, client, nostr.Filter{Kinds: []int{1}, Limit: 1}, QueryOptions{})
	wantEnd(t, query, relay.url, EndEOSE, "")
	seen := map[string]bool{}
	for len(seen) < total {
		event := receive(t, subscription.Events())
		if seen[event.ID] {
			t.Fatalf("%s came twice", event.ID)
		}
		seen[event.ID] = true
	}
	receive(t, subscription.Stored())
	receive(t, subscription.Restored())
	requests := relay.framesOf("REQ")
	if len(requests) < 3 || requests[0].id == requests[2].id {
		t.Errorf("the requests were %d", len(requests))
	}
}

func TestSlowConsumerIsAlsoBoundedInBytes(t *testing.T) {
	t.Parallel()
	relay := startRelay(t, script{})
	relay.store(notes(t, 20)...)
	client := newTestClient(t, Config{HostrRelay: relay.url})
	client.heldBytes = 1 // One event at a time.
	subscription := mustSubscribe(t, client, allNotes, SubscribeOptions{})
	seen := map[string]bool{}
	for len(seen) < 20 {
		seen[receive(t, subscription.Events()).ID] = true
	}
	receive(t, subscription.Stored())
}

func TestSubscriptionAtSeveralRelays(t *testing.T) {
	t.Parallel()
	one, two := startRelay(t, script{}), startRelay(t, script{})
	shared := signed(t, aliceKey, 1, 1, "on both")
	one.store(shared)
	two.store(shared)
	client := newTestClient(t, Config{HostrRelay: one.url})
	subscription := mustSubscribe(t, client, allNotes, SubscribeOptions{Relays: []string{one.url, two.url}})
	wantNext(t, subscription, "on both")
	receive(t, subscription.Stored())
	two.publish(signed(t, aliceKey, 1, 2, "on the second"))
	wantNext(t, subscription, "on the second")
}

func TestSubscriptionThatIsNotSent(t *testing.T) {
	t.Parallel()
	relay := startRelay(t, script{})
	client := newTestClient(t, Config{HostrRelay: relay.url})
	empty := mustSubscribe(t, client, nostr.Filter{Authors: []string{}}, SubscribeOptions{})
	receive(t, empty.Stored())
	if relay.connections() != 0 {
		t.Error("a subscription for nobody was sent")
	}
	if _, err := client.Subscribe(testContext(t), nostr.Filter{LimitZero: true}, SubscribeOptions{}); err == nil {
		t.Error("a limit of 0 was accepted")
	}
	if _, err := newTestClient(t, Config{}).Subscribe(testContext(t), allNotes, SubscribeOptions{}); err == nil {
		t.Error("a subscription without a relay was accepted")
	}
}

func TestSubscriptionIsSentBeforeWhatFollows(t *testing.T) {
	t.Parallel()
	relay := startRelay(t, script{})
	client := newTestClient(t, Config{HostrRelay: relay.url})
	if err := client.Connect(testContext(t), relay.url); err != nil {
		t.Fatal(err)
	}
	subscription := mustSubscribe(t, client, nostr.Filter{Kinds: []int{24133}}, SubscribeOptions{})
	mustPublish(t, client, signed(t, carolKey, 24133, 1, "request"), PublishOptions{})
	wantNext(t, subscription, "request")
}

func TestLiveRequestsLeaveRoomForQueries(t *testing.T) {
	t.Parallel()
	relay := startRelay(t, script{})
	client := newTestClient(t, Config{HostrRelay: relay.url})
	for i := range maxRequests + 5 {
		mustSubscribe(t, client, nostr.Filter{Kinds: []int{100 + i}}, SubscribeOptions{})
	}
	relay.awaitFrames(t, "REQ", maxRequests+5)
	wantEnd(t, mustQuery(t, client, allNotes, QueryOptions{}), relay.url, EndEOSE, "")
}
