package signer

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/nbd-wtf/go-nostr"
	"github.com/rs/zerolog"

	"hostr-daemon/internal/sandbox"
	"hostr-daemon/internal/sandbox/signerapp"
)

// wantOneRequest checks that all that has come in for the method is one request,
// carried by as many events.
func wantOneRequest(t *testing.T, app *signerapp.App, method string, atLeast int) {
	t.Helper()
	ids, events, count := map[string]bool{}, map[string]bool{}, 0
	for _, request := range app.Requests() {
		if request.Method == method {
			ids[request.ID], events[request.EventID] = true, true
			count++
		}
	}
	if len(ids) != 1 || len(events) != count || count < atLeast {
		t.Errorf("%s: %d ids in %d events, %d times; want one id in at least %d events", method, len(ids), len(events), count, atLeast)
	}
}

func TestRelayDropsMidRequest(t *testing.T) {
	t.Parallel()
	for name, interrupt := range map[string]func(testing.TB, *sandbox.Market){
		"cut off": func(_ testing.TB, market *sandbox.Market) { market.Relay.Drop() },
		"restarted": func(t testing.TB, market *sandbox.Market) {
			market.Relay.Stop()
			resume(t, market)
		},
		"restarted twice": func(t testing.TB, market *sandbox.Market) {
			market.Relay.Stop()
			resume(t, market)
			market.Relay.Drop()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, signerapp.Options{})
			s.knownAccount(t)
			// The first time the signer's answer is lost.
			s.app.Behave(signerapp.Behaviour{Silent: true, Times: 1})
			event := note("x")
			signing := started(func() error { return s.remote.SignEvent(testContext(t), event) })
			s.awaitRequests(t, 2)
			interrupt(t, s.market)
			if err := receive(t, signing); err != nil {
				t.Fatal(err)
			}
			if err := verify(event); err != nil {
				t.Error(err)
			}
			wantOneRequest(t, s.app, methodSignEvent, 2)
		})
	}
}

// TestRequestsAreSentAgainAfterADrop looks at the frames: each pending request goes out
// once more, as another event with the same id, behind its subscription. The clock
// stands still: only the drop can be the reason.
func TestRequestsAreSentAgainAfterADrop(t *testing.T) {
	t.Parallel()
	s := newScene(t, signerapp.Options{})
	s.app.Offline()
	s.remote.Close()
	remote := newRemote(t, Config{Connection: s.remote.connection, Client: s.client, Clock: newManualClock()})
	ctx, cancel := context.WithCancel(testContext(t))
	defer cancel()
	var calls []<-chan error
	for _, peer := range []string{accountKey, transportKey, strangerKey} {
		calls = append(calls, started(func() error {
			_, err := remote.NIP44Encrypt(ctx, publicKey(t, peer), "x")
			return err
		}))
	}
	await := func(events int) {
		t.Helper()
		if _, err := s.market.Relay.WaitFor(ctx, func(c sandbox.Counters) bool { return c.EVENTs >= events }); err != nil {
			t.Fatal(err)
		}
	}
	const handshake = 1
	await(handshake + 3)
	eventually(t, "the relay has confirmed them", remote.idle)
	s.market.Relay.Drop()
	await(handshake + 6)
	ids := requestsOf(t, s.market, remote, remote.connection.PrivateKey.PublicKey())
	if len(ids) != 3 {
		t.Errorf("the requests are %v", ids)
	}
	for id, events := range ids {
		if len(events) != 2 || events[0] == events[1] {
			t.Errorf("request %s went out as %v", id, events)
		}
	}
	cancel()
	for _, call := range calls {
		if err := receive(t, call); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
}

// requestsOf returns the events of an author that the relay has been sent, by request
// id, and checks that on their connection a REQ came first.
func requestsOf(t *testing.T, market *sandbox.Market, remote *Remote, author string) map[string][]string {
	t.Helper()
	ids, subscribed := map[string][]string{}, map[int]bool{}
	for _, frame := range market.Relay.Frames() {
		if frame.Label == "REQ" && strings.Contains(frame.Text, remote.connection.RemotePubkey) {
			subscribed[frame.Connection] = true
		}
		var elements []json.RawMessage
		var event nostr.Event
		if frame.Label != "EVENT" || json.Unmarshal([]byte(frame.Text), &elements) != nil ||
			json.Unmarshal(elements[1], &event) != nil || event.PubKey != author {
			continue
		}
		text, err := remote.channel.open(event.Content) // The key is the same in both directions.
		if err != nil {
			t.Fatal(err)
		}
		request, err := parseResponse(text)
		if err != nil || !subscribed[frame.Connection] {
			t.Errorf("%s: %v, subscribed %t", text, err, subscribed[frame.Connection])
		}
		ids[request.ID] = append(ids[request.ID], event.ID)
	}
	return ids
}

// TestPersonApprovesAfterADrop: the signer holds the request and is asked again for
// the same one, by its id.
func TestPersonApprovesAfterADrop(t *testing.T) {
	t.Parallel()
	s := newScene(t, signerapp.Options{})
	s.knownAccount(t)
	s.app.Behave(signerapp.Behaviour{Hold: true})
	signing := started(func() error { return s.remote.SignEvent(testContext(t), note("x")) })
	s.awaitHeld(t, 1)
	s.market.Relay.Drop()
	s.awaitRequests(t, 3)
	if count := s.app.Approve(); count != 1 {
		t.Errorf("the person was asked %d times", count)
	}
	if err := receive(t, signing); err != nil {
		t.Error(err)
	}
	wantOneRequest(t, s.app, methodSignEvent, 2)
	if seen := s.pending.all(); len(seen) != 2 { // get_public_key and this one.
		t.Errorf("told of %+v", seen)
	}
}

// TestSignerOfflineAndBack: what a sleeping phone has missed reaches it once it is
// awake, and no person is asked twice.
func TestSignerOfflineAndBack(t *testing.T) {
	t.Parallel()
	s := newScene(t, signerapp.Options{})
	clock := newManualClock()
	remote := newRemote(t, Config{Connection: s.remote.connection, Client: s.client, Clock: clock, Account: s.app.PublicKey()})
	s.app.Offline()
	signing := started(func() error { return remote.SignEvent(testContext(t), note("x")) })
	clock.fire(t, repeatFirst)
	clock.fire(t, 2*repeatFirst)
	eventually(t, "the relay has confirmed it", remote.idle)
	s.app.Behave(signerapp.Behaviour{Hold: true, IgnoreRepeats: true})
	if err := s.app.Online(testContext(t)); err != nil {
		t.Fatal(err)
	}
	clock.fire(t, 4*repeatFirst)
	s.awaitHeld(t, 1)
	eventually(t, "the relay has confirmed it", remote.idle)
	clock.fire(t, repeatLongest)
	s.awaitRequests(t, 2)
	s.app.Approve()
	if err := receive(t, signing); err != nil {
		t.Error(err)
	}
	wantOneRequest(t, s.app, methodSignEvent, 2)
}

// problem returns what keeps the first relay from carrying a request.
func (r *Remote) problem() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, q := range r.byID {
		return q.deliveries[0].problem
	}
	return ""
}

// idle reports whether nothing is being sent right now.
func (r *Remote) idle() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, q := range r.byID {
		for _, d := range q.deliveries {
			if d.busy {
				return false
			}
		}
	}
	return true
}

// TestApprovalPageIsWaitedFor: once the signer has shown a page it is not asked again.
func TestApprovalPageIsWaitedFor(t *testing.T) {
	t.Parallel()
	s := newScene(t, signerapp.Options{})
	clock := newManualClock()
	remote := newRemote(t, Config{Connection: s.remote.connection, Client: s.client, Clock: clock, Logger: zerolog.New(s.journal)})
	s.app.Behave(signerapp.Behaviour{Hold: true, ApprovalURL: "https://approve.example"})
	pinging := started(func() error { return remote.Ping(testContext(t)) })
	s.awaitHeld(t, 1)
	eventually(t, "the page is known", func() bool { return len(s.journal.lines(t, "signer.approval_page")) == 1 })
	clock.fire(t, repeatFirst)
	s.app.Approve()
	if err := receive(t, pinging); err != nil {
		t.Error(err)
	}
	if requests := s.app.Requests(); len(requests) != 1 {
		t.Errorf("asked %d times", len(requests))
	}
}

// TestRelayDownAtFirst: the request waits for the relay.
func TestRelayDownAtFirst(t *testing.T) {
	t.Parallel()
	s := newScene(t, signerapp.Options{})
	s.remote.Close()
	s.market.Relay.Stop()
	clock := newManualClock()
	remote := newRemote(t, Config{Connection: s.remote.connection, Client: s.client, Clock: clock})
	pinging := started(func() error { return remote.Ping(testContext(t)) })
	clock.fire(t, standLimit)
	resume(t, s.market)
	if err := receive(t, pinging); err != nil {
		t.Error(err)
	}
}

func TestUnreachableRelayIsNamed(t *testing.T) {
	t.Parallel()
	s := newScene(t, signerapp.Options{})
	s.market.Relay.Stop()
	clock := newManualClock()
	remote := newRemote(t, Config{Connection: s.remote.connection, Client: s.client, Clock: clock})
	ctx := newDeadline(t)
	pinging := started(func() error { return remote.Ping(ctx) })
	clock.fire(t, standLimit)
	eventually(t, "the relay was tried", func() bool { return remote.problem() != "" })
	ctx.expire()
	err := receive(t, pinging)
	var unanswered *Unanswered
	if !errors.As(err, &unanswered) || unanswered.Delivered || len(unanswered.Relays) != 1 || unanswered.Relays[0].RelayURL != s.market.RelayURL {
		t.Errorf("error %v", err)
	}
}

// TestSignerOnOtherRelays: the Hostr relay plays no part.
func TestSignerOnOtherRelays(t *testing.T) {
	t.Parallel()
	hostr, other := startMarket(t), startMarket(t)
	client := newClient(t, hostr.RelayURL, nil, zerolog.Nop())
	app := newApp(t, signerapp.Options{})
	connection := connect(t, client, app, zerolog.Nop(), other.RelayURL)
	remote := newRemote(t, Config{Connection: connection, Client: client})
	if err := remote.SignEvent(testContext(t), note("x")); err != nil {
		t.Error(err)
	}
	if counters := hostr.Relay.Counters(); counters.Connections != 0 {
		t.Errorf("the Hostr relay saw %+v", counters)
	}
}

// TestOneOfTwoRelays: a relay that is down or refuses holds nothing up.
func TestOneOfTwoRelays(t *testing.T) {
	t.Parallel()
	good, bad := startMarket(t), startMarket(t)
	client := newClient(t, good.RelayURL, nil, zerolog.Nop())
	app := newApp(t, signerapp.Options{})
	connection := connect(t, client, app, zerolog.Nop(), good.RelayURL, bad.RelayURL)
	for name, spoil := range map[string]func(){
		"both are well":             func() {},
		"one refuses events":        func() { bad.Relay.Break(sandbox.Faults{RefuseEvents: "blocked: no"}) },
		"one refuses subscriptions": func() { bad.Relay.Break(sandbox.Faults{Closed: "blocked: no"}) },
		"one is down":               func() { bad.Relay.Stop() },
	} {
		spoil()
		// A clock that stands still: nothing waits for the bad one.
		remote := newRemote(t, Config{Connection: connection, Client: client, Clock: newManualClock()})
		for range 3 {
			if err := remote.SignEvent(testContext(t), note(name)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		remote.Close()
		bad.Relay.Heal()
		if bad.Relay.Stopped() {
			resume(t, bad)
		}
	}
}

func TestBothRelaysRefuse(t *testing.T) {
	t.Parallel()
	first, second := startMarket(t), startMarket(t)
	client := newClient(t, first.RelayURL, nil, zerolog.Nop())
	app := newApp(t, signerapp.Options{})
	remote := newRemote(t, Config{Connection: connect(t, client, app, zerolog.Nop(), first.RelayURL, second.RelayURL), Client: client})
	if err := remote.Ping(testContext(t)); err != nil {
		t.Fatal(err)
	}
	first.Relay.Break(sandbox.Faults{RefuseEvents: "blocked: first"})
	second.Relay.Break(sandbox.Faults{RefuseEvents: "blocked: second"})
	var refused *Refused
	if err := remote.Ping(testContext(t)); !errors.As(err, &refused) || len(refused.Relays) != 2 {
		t.Errorf("error %v", err)
	}
}
