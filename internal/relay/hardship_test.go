package relay

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nbd-wtf/go-nostr"
)

func TestCloseDoesNotWaitForASilentPeer(t *testing.T) {
	t.Parallel()
	stopReading := make(chan struct{})
	relay := startRelay(t, script{onREQ: func(*relaySession, *nostr.ReqEnvelope) bool {
		<-stopReading
		return true
	}})
	t.Cleanup(func() { close(stopReading) })
	client := newTestClient(t, Config{HostrRelay: relay.url, Clock: newManualClock()})
	mustSubscribe(t, client, allNotes, SubscribeOptions{})
	relay.awaitFrames(t, "REQ", 1)
	closed := make(chan struct{})
	go func() { client.Close(); close(closed) }()
	receive(t, closed) // The clock stands still: no limit can have ended the wait.
}

func TestPeerThatDoesNotReadIsGivenUp(t *testing.T) {
	t.Parallel()
	stopReading := make(chan struct{})
	relay := startRelay(t, script{onEVENT: func(*relaySession, nostr.Event) bool {
		<-stopReading
		return true
	}})
	t.Cleanup(func() { close(stopReading) })
	clock := newManualClock()
	client := newTestClient(t, Config{HostrRelay: relay.url, Clock: clock})
	var pending []<-chan published
	for i := range 6 { // More than the buffers of the connection take.
		event := signed(t, aliceKey, 1, 1, fmt.Sprint(i, strings.Repeat("x", 1<<20)))
		pending = append(pending, startPublish(t, client, event, PublishOptions{Timeout: time.Hour}))
	}
	relay.awaitFrames(t, "EVENT", 1)
	eventually(t, "a write is stuck and the others wait", func() bool {
		connection, err := client.connection(relay.url)
		if err != nil {
			return false
		}
		connection.mu.Lock()
		defer connection.mu.Unlock()
		return connection.socket == nil || len(connection.socket.publishes) == len(pending)
	})
	clock.fire(t, writeLimit)
	for _, done := range pending {
		if got := receive(t, done); got.err == nil || got.receipts[0].OKReceived {
			t.Errorf("receipts are %+v, error %v", got.receipts, got.err)
		}
	}
}

// TestNothingHangsOrForgesUnderChaos lets a relay misbehave at random while many
// callers use one client, on a clock that runs fast.
func TestNothingHangsOrForgesUnderChaos(t *testing.T) {
	t.Parallel()
	relay := startRelay(t, chaos(t))
	relay.store(notes(t, 12)...)
	clock := newManualClock()
	stop := runFast(clock)
	defer stop()
	client := newTestClient(t, Config{HostrRelay: relay.url, Account: newAccount(t, aliceKey), Clock: clock})
	var callers sync.WaitGroup
	for caller := range 8 {
		callers.Go(func() { askRepeatedly(t, client, caller) })
	}
	events := notes(t, 12)
	callers.Go(func() {
		for _, event := range events {
			_, _ = client.Publish(context.Background(), event, PublishOptions{}) // It may fail, but not hang.
		}
	})
	for range 3 {
		callers.Go(func() { followRepeatedly(t, client) })
	}
	finished := make(chan struct{})
	go func() { callers.Wait(); close(finished) }()
	receive(t, finished)
}

// chaos answers each frame well about half of the time.
func chaos(t *testing.T) script {
	forged := signed(t, bobKey, 1, 3, "forged")
	forged.Content = "changed"
	return script{
		challenge: "c",
		onREQ: func(s *relaySession, e *nostr.ReqEnvelope) bool {
			s.sendEvent(e.SubscriptionID, forged)
			switch rand.IntN(12) {
			case 0:
				s.drop()
			case 1:
				s.sendf(`["CLOSED",%q,"error: busy"]`, e.SubscriptionID)
			case 2:
				s.sendf(`["CLOSED",%q,"auth-required: please"]`, e.SubscriptionID)
			case 3:
				s.sendf(`["CLOSED",%q]`, e.SubscriptionID)
			case 4:
				s.sendStored(e)
			case 5:
				s.sendf(`["EVENT","%s",{"id"`, e.SubscriptionID)
				s.sendf(`["AUTH","%d"]`, rand.IntN(3))
				return false
			default:
				return false
			}
			return true
		},
		onEVENT: func(s *relaySession, event nostr.Event) bool {
			switch rand.IntN(6) {
			case 0:
				s.drop()
			case 1:
				s.sendf(`["OK",%q,false,"auth-required: please"]`, event.ID)
			case 2:
			default:
				return false
			}
			return true
		},
		onAUTH: func(s *relaySession, event nostr.Event) bool {
			switch rand.IntN(8) {
			case 0:
				s.drop()
			case 1:
				s.sendf(`["OK",%q,false,"error: busy"]`, event.ID)
			default:
				return false
			}
			return true
		},
	}
}

// runFast moves the clock by a tenth of a second every millisecond.
func runFast(clock *manualClock) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		ticker := time.NewTicker(time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				clock.advance(100 * time.Millisecond)
			case <-ctx.Done():
				return
			}
		}
	})
	return func() { cancel(); running.Wait() }
}

func askRepeatedly(t *testing.T, client *Client, caller int) {
	for round := range 10 {
		since := nostr.Timestamp(caller % 4)
		answer, err := client.Query(context.Background(), nostr.Filter{Kinds: []int{1}, Since: &since, Limit: 40 + round}, QueryOptions{})
		if err != nil {
			t.Errorf("query: %v", err)
		}
		checkGenuine(t, answer.Events)
	}
}

func checkGenuine(t *testing.T, events []*nostr.Event) {
	seen := map[string]bool{}
	for _, event := range events {
		if seen[event.ID] || event.Content == "changed" {
			t.Errorf("the answer holds %v, repeated or forged", event)
		}
		seen[event.ID] = true
	}
}

func followRepeatedly(t *testing.T, client *Client) {
	for range 5 {
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		subscription, err := client.Subscribe(ctx, allNotes, SubscribeOptions{})
		if err != nil {
			t.Errorf("subscribe: %v", err)
			cancel()
			return
		}
		var events []*nostr.Event
		for event := range subscription.Events() {
			events = append(events, event)
		}
		cancel()
		checkGenuine(t, events)
	}
}
