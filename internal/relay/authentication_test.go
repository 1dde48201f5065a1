package relay

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nbd-wtf/go-nostr"
)

func TestAuthEvent(t *testing.T) {
	t.Parallel()
	// The vector of spec 82 §8.1 (the key is the number one).
	clock := newManualClock()
	client := newTestClient(t, Config{HostrRelay: "wss://relay.example.org", Account: newAccount(t, aliceKey), Clock: clock})
	socket := &socket{connection: newConnection(client, client.hostrRelay), ctx: testContext(t)}
	event, err := socket.signAuthentication("abc123")
	if err != nil {
		t.Fatal(err)
	}
	if event.ID != "a8db9423e62d874b09643c18eef79b18c0d271f3125e4192dcf2671fc1d44ab7" {
		t.Errorf("id is %s of %v", event.ID, event)
	}
	if ok, err := event.CheckSignature(); !ok || err != nil {
		t.Errorf("the signature is wrong: %v", err)
	}
}

func TestOtherEventThanTheAuthIsNotSent(t *testing.T) {
	t.Parallel()
	for name, hook := range map[string]func(*nostr.Event){
		"kind":   func(event *nostr.Event) { event.Kind = 1 },
		"author": func(event *nostr.Event) {},
	} {
		relay := startRelay(t, script{challenge: "c"})
		account := newAccount(t, aliceKey)
		account.hook = func(_ context.Context, event *nostr.Event) error { hook(event); return nil }
		if name == "author" {
			account.key = bobKey
		}
		client := newTestClient(t, Config{HostrRelay: relay.url, Account: account})
		if err := client.Authenticate(testContext(t)); err == nil || !strings.Contains(err.Error(), "another event") {
			t.Errorf("%s: the error is %v", name, err)
		}
		if sent := relay.framesOf("AUTH"); len(sent) != 0 {
			t.Errorf("%s: it was sent", name)
		}
	}
}

// The scenarios of spec 82 §8.4 as far as one client shows them.

func TestSignInAndStartUpAtTheSameTimeIsOneAuth(t *testing.T) {
	t.Parallel()
	relay := startRelay(t, script{challenge: "challenge"})
	client := newTestClient(t, Config{HostrRelay: relay.url, Account: newAccount(t, aliceKey)})
	done := make(chan error, 10)
	for range 10 {
		go func() { done <- client.Authenticate(context.Background()) }()
	}
	for range 10 {
		if err := receive(t, done); err != nil {
			t.Error(err)
		}
	}
	if auth := relay.framesOf("AUTH"); len(auth) != 1 {
		t.Errorf("%d AUTH frames", len(auth))
	}
}

func TestSignInThenPublish(t *testing.T) {
	t.Parallel()
	for name, event := range map[string]nostr.Event{
		"a listing":                     signed(t, aliceKey, 30402, 1, "", nostr.Tag{"d", "x"}),
		"a gift wrap of a one-time key": signed(t, carolKey, 1059, 1, ""),
	} {
		relay := startRelay(t, script{challenge: "challenge"})
		client := newTestClient(t, Config{HostrRelay: relay.url, Account: newAccount(t, aliceKey)})
		if err := client.Authenticate(testContext(t)); err != nil {
			t.Fatal(err)
		}
		mustPublish(t, client, event, PublishOptions{})
		if labels := strings.Join(relay.labels(), " "); labels != "1:AUTH 1:EVENT" {
			t.Errorf("%s: frames are %s", name, labels)
		}
	}
}

func TestTwoAccountsHaveTwoConnections(t *testing.T) {
	t.Parallel()
	relay := startRelay(t, script{challenge: "challenge"})
	verifier := newTestVerifier(t)
	alice := newTestClient(t, Config{HostrRelay: relay.url, Account: newAccount(t, aliceKey), Verifier: verifier})
	bob := newTestClient(t, Config{HostrRelay: relay.url, Account: newAccount(t, bobKey), Verifier: verifier})
	for _, client := range []*Client{alice, bob} {
		if err := client.Authenticate(testContext(t)); err != nil {
			t.Fatal(err)
		}
	}
	auth := relay.framesOf("AUTH")
	if len(auth) != 2 || auth[0].connection == auth[1].connection || auth[0].event.PubKey == auth[1].event.PubKey {
		t.Fatalf("AUTH frames are %+v", auth)
	}
	alice.Close()
	relay.await(t, "the end of the first connection", func() bool { return relay.sessions[auth[0].connection-1].conn == nil })
	mustPublish(t, bob, signed(t, bobKey, 0, 1, "{}"), PublishOptions{})
	if relay.connections() != 2 {
		t.Errorf("%d connections: the logout of one account cost the other its own", relay.connections())
	}
}

func TestAuthRequiredForARequest(t *testing.T) {
	t.Parallel()
	relay := startRelay(t, script{challenge: "c", onREQ: func(s *relaySession, e *nostr.ReqEnvelope) bool {
		s.relay.mu.Lock()
		known := s.authenticated != ""
		s.relay.mu.Unlock()
		if !known {
			s.sendf(`["CLOSED",%q,"auth-required"]`, e.SubscriptionID)
		}
		return !known
	}})
	relay.store(notes(t, 1)...)
	client := newTestClient(t, Config{HostrRelay: relay.url, Account: newAccount(t, aliceKey)})
	answer := mustQuery(t, client, allNotes, QueryOptions{})
	wantContents(t, answer.Events, "note 1")
	wantEnd(t, answer, relay.url, EndEOSE, "")
	requests := relay.framesOf("REQ")
	if len(requests) != 2 || requests[0].id != requests[1].id {
		t.Errorf("requests are %+v, want the same id twice", requests)
	}
	if labels := strings.Join(relay.labels()[:3], " "); labels != "1:REQ 1:AUTH 1:REQ" {
		t.Errorf("frames are %s", labels)
	}

	stranger := newTestClient(t, Config{HostrRelay: relay.url})
	wantEnd(t, mustQuery(t, stranger, allNotes, QueryOptions{}), relay.url, EndClosed, "auth-required")
}

func TestAuthRequiredAgainEndsTheRequest(t *testing.T) {
	t.Parallel()
	relay := startRelay(t, script{challenge: "c", onREQ: func(s *relaySession, e *nostr.ReqEnvelope) bool {
		s.sendf(`["CLOSED",%q,"auth-required: only friends"]`, e.SubscriptionID)
		return true
	}})
	client := newTestClient(t, Config{HostrRelay: relay.url, Account: newAccount(t, aliceKey)})
	wantEnd(t, mustQuery(t, client, allNotes, QueryOptions{}), relay.url, EndClosed, "auth-required: only friends")
	if labels := strings.Join(relay.labels(), " "); labels != "1:REQ 1:AUTH 1:REQ" {
		t.Errorf("frames are %s", labels)
	}
}

func TestAuthRequiredWithoutAChallenge(t *testing.T) {
	t.Parallel()
	relay := startRelay(t, script{onREQ: func(s *relaySession, e *nostr.ReqEnvelope) bool {
		s.sendf(`["CLOSED",%q,"auth-required: but how"]`, e.SubscriptionID)
		return true
	}})
	client := newTestClient(t, Config{HostrRelay: relay.url, Account: newAccount(t, aliceKey)})
	wantEnd(t, mustQuery(t, client, allNotes, QueryOptions{}), relay.url, EndClosed, "auth-required: but how")
}

func TestFailedAuthEndsTheRequestButNotTheOthers(t *testing.T) {
	t.Parallel()
	relay := startRelay(t, script{challenge: "c", private: []int{4}, onREQ: func(s *relaySession, e *nostr.ReqEnvelope) bool {
		if slices.Contains(e.Filters[0].Kinds, 4) {
			s.sendf(`["CLOSED",%q,"auth-required: private"]`, e.SubscriptionID)
			return true
		}
		return false
	}})
	account := newAccount(t, aliceKey)
	account.hook = func(context.Context, *nostr.Event) error { return errors.New("refused by its owner") }
	client := newTestClient(t, Config{HostrRelay: relay.url, Account: account})
	wantEnd(t, mustQuery(t, client, nostr.Filter{Kinds: []int{4}}, QueryOptions{}), relay.url, EndClosed, "auth-required: private")
	wantEnd(t, mustQuery(t, client, allNotes, QueryOptions{}), relay.url, EndEOSE, "")
}

func TestClockStandsStillWhileTheAuthIsSigned(t *testing.T) {
	t.Parallel()
	relay := startRelay(t, demandingREQ())
	relay.store(notes(t, 1)...)
	account := newAccount(t, aliceKey)
	signing, approve := make(chan struct{}), make(chan struct{})
	account.hook = func(ctx context.Context, _ *nostr.Event) error {
		close(signing)
		select {
		case <-approve:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	clock := newManualClock()
	client := newTestClient(t, Config{HostrRelay: relay.url, Account: account, Clock: clock})
	done := startQuery(testContext(t), client, allNotes, QueryOptions{Timeout: 7 * time.Second})
	receive(t, signing)
	clock.jump(t, 20*time.Second) // The query's seven seconds are long over.
	close(approve)
	wantEnd(t, within(t, done), relay.url, EndEOSE, "")
}

// demandingREQ answers a REQ of a connection without AUTH with auth-required.
func demandingREQ() script {
	return script{challenge: "c", onREQ: func(s *relaySession, e *nostr.ReqEnvelope) bool {
		s.relay.mu.Lock()
		known := s.authenticated != ""
		s.relay.mu.Unlock()
		if !known {
			s.sendf(`["CLOSED",%q,"auth-required: sign in"]`, e.SubscriptionID)
		}
		return !known
	}}
}

func TestSignerThatNeverAnswersEndsTheAuth(t *testing.T) {
	t.Parallel()
	relay := startRelay(t, demandingREQ())
	account := newAccount(t, aliceKey)
	account.hook = func(ctx context.Context, _ *nostr.Event) error { <-ctx.Done(); return ctx.Err() }
	clock := newManualClock()
	client := newTestClient(t, Config{HostrRelay: relay.url, Account: account, Clock: clock})
	done := startQuery(testContext(t), client, allNotes, QueryOptions{})
	clock.fire(t, signLimit)
	wantEnd(t, within(t, done), relay.url, EndClosed, "auth-required: sign in")
}

func TestRelayThatNeverAnswersTheAuth(t *testing.T) {
	t.Parallel()
	relay := startRelay(t, script{challenge: "c", onAUTH: func(*relaySession, nostr.Event) bool { return true }})
	clock := newManualClock()
	client := newTestClient(t, Config{HostrRelay: relay.url, Account: newAccount(t, aliceKey), Clock: clock})
	done := make(chan error, 1)
	go func() { done <- client.Authenticate(context.Background()) }()
	relay.awaitFrames(t, "AUTH", 1)
	clock.fire(t, authOKLimit)
	if err := receive(t, done); !errors.Is(err, errAuthTime) {
		t.Errorf("the error is %v", err)
	}
}

func TestAuthenticateNeedsAnAccountAndARelay(t *testing.T) {
	t.Parallel()
	relay := startRelay(t, script{challenge: "c"})
	if err := newTestClient(t, Config{HostrRelay: relay.url}).Authenticate(testContext(t)); !errors.Is(err, errNoAccount) {
		t.Errorf("without an account: %v", err)
	}
	down := newTestClient(t, Config{HostrRelay: closedPort(t), Account: newAccount(t, aliceKey)})
	if err := down.Authenticate(testContext(t)); !errors.Is(err, errUnreachable) {
		t.Errorf("without a relay: %v", err)
	}
	boot := newTestClient(t, Config{Bootstrap: []string{closedPort(t), relay.url}, Account: newAccount(t, aliceKey)})
	if err := boot.Authenticate(testContext(t)); err != nil {
		t.Errorf("at the bootstrap relays: %v", err)
	}
}

// lose cuts every connection and waits until the client has noticed.
func lose(t testing.TB, relay *scriptedRelay, client *Client) {
	t.Helper()
	relay.dropAll()
	eventually(t, "the drop is noticed", func() bool { return !connected(client, relay.url) })
}

func TestOrderAfterAReconnect(t *testing.T) {
	t.Parallel()
	relay := startRelay(t, script{challenge: "c", private: []int{1059}})
	clock := newManualClock()
	client := newTestClient(t, Config{HostrRelay: relay.url, Account: newAccount(t, aliceKey), Clock: clock})
	if err := client.Authenticate(testContext(t)); err != nil {
		t.Fatal(err)
	}
	since := nostr.Timestamp(0)
	inbox := mustSubscribe(t, client, nostr.Filter{Kinds: []int{1059}, Since: &since}, SubscribeOptions{})
	receive(t, inbox.Stored())
	relay.publish(signed(t, carolKey, 1059, 950, "live"))
	wantNext(t, inbox, "live")

	lose(t, relay, client)
	relay.store(signed(t, carolKey, 1059, 1000, "meanwhile"), signed(t, carolKey, 1059, 900, "meanwhile, dated earlier"))
	clock.fire(t, 500*time.Millisecond)
	wantNext(t, inbox, "meanwhile")
	wantNext(t, inbox, "meanwhile, dated earlier")
	receive(t, inbox.Restored())
	mustPublish(t, client, signed(t, carolKey, 1059, 1001, "right after"), PublishOptions{})
	wantNext(t, inbox, "right after")

	var second []string
	for _, label := range relay.labels() {
		if strings.HasPrefix(label, "2:") {
			second = append(second, label)
		}
	}
	if got := strings.Join(second, " "); got != "2:AUTH 2:REQ 2:EVENT" {
		t.Errorf("frames on the second connection are %s", got)
	}
	requests := relay.framesOf("REQ")
	if got, want := requests[1].filters.String(), requests[0].filters.String(); got != want {
		t.Errorf("the filter is %s after the reconnect, it was %s", got, want)
	}
}

func TestOrderAfterAReconnectWithARemoteSigner(t *testing.T) {
	t.Parallel()
	relay := startRelay(t, script{challenge: "c"})
	clock := newManualClock()
	account := newAccount(t, aliceKey)
	account.remote = true
	answers := make(chan *nostr.Event, 1)
	var client *Client
	// The signer asks over the relay that waits for the AUTH, and the answer comes on
	// the subscription that is open before it.
	account.hook = func(ctx context.Context, _ *nostr.Event) error {
		request := signed(t, carolKey, 24133, 1, fmt.Sprintf("request %d", account.signed.Load()))
		if _, err := client.Publish(ctx, request, PublishOptions{}); err != nil {
			return err
		}
		select {
		case <-answers:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	client = newTestClient(t, Config{HostrRelay: relay.url, Account: account, Clock: clock})
	signer := mustSubscribe(t, client, nostr.Filter{Kinds: []int{24133}}, SubscribeOptions{BeforeAuth: true})
	go func() {
		for event := range signer.Events() {
			answers <- event
		}
	}()
	relay.awaitFrames(t, "REQ", 1)
	if err := client.Authenticate(testContext(t)); err != nil {
		t.Fatal(err)
	}
	mustSubscribe(t, client, allNotes, SubscribeOptions{})
	relay.awaitFrames(t, "REQ", 2)
	lose(t, relay, client)
	clock.fire(t, 500*time.Millisecond)
	relay.awaitFrames(t, "REQ", 4)
	var second []string
	for _, label := range relay.labels() {
		if strings.HasPrefix(label, "2:") {
			second = append(second, label)
		}
	}
	if got := strings.Join(second, " "); got != "2:REQ 2:EVENT 2:AUTH 2:REQ" {
		t.Errorf("frames on the second connection are %s", got)
	}
	if kinds := relay.framesOf("REQ")[2].filters[0].Kinds; !slices.Equal(kinds, []int{24133}) {
		t.Errorf("the first REQ is for %v", kinds)
	}
}

func TestDeadRemoteSignerDoesNotHoldUpReading(t *testing.T) {
	t.Parallel()
	relay := startRelay(t, script{challenge: "c"})
	relay.store(notes(t, 1)...)
	account := newAccount(t, aliceKey)
	account.remote = true
	client, clock := (*Client)(nil), newManualClock()
	account.hook = func(ctx context.Context, _ *nostr.Event) error { <-ctx.Done(); return ctx.Err() }
	client = newTestClient(t, Config{HostrRelay: relay.url, Account: account, Clock: clock})
	ctx, cancel := context.WithCancel(testContext(t))
	authenticated := make(chan error, 1)
	go func() { authenticated <- client.Authenticate(ctx) }()
	eventually(t, "the signer is asked", func() bool { return account.signed.Load() == 1 })
	done := startQuery(testContext(t), client, allNotes, QueryOptions{})
	clock.fire(t, openLimit)
	wantEnd(t, within(t, done), relay.url, EndEOSE, "")
	cancel()
	if err := receive(t, authenticated); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
}

func TestLateChallengeIsAnsweredAndTheInboxSentAgain(t *testing.T) {
	t.Parallel()
	relay := startRelay(t, script{private: []int{1059}, onConnect: func(s *relaySession) {
		if s.number == 2 {
			s.sendf(`["AUTH","in time"]`)
		}
	}})
	relay.store(signed(t, carolKey, 1059, 1, "private"))
	clock := newManualClock()
	client := newTestClient(t, Config{HostrRelay: relay.url, Account: newAccount(t, aliceKey), Clock: clock})
	authenticated := make(chan error, 1)
	go func() { authenticated <- client.Authenticate(context.Background()) }()
	clock.fire(t, challengeLimit)
	if err := receive(t, authenticated); err != nil {
		t.Fatalf("a relay without a challenge: %v", err)
	}
	inbox := mustSubscribe(t, client, nostr.Filter{Kinds: []int{1059}}, SubscribeOptions{})
	receive(t, inbox.Stored())
	relay.session(1).sendf(`["AUTH","late"]`)
	wantNext(t, inbox, "private")
	relay.session(1).sendf(`["AUTH","later still"]`)
	eventually(t, "the new challenge is known", func() bool { return challengeOf(client, relay.url) == "later still" })
	mustPublish(t, client, signed(t, aliceKey, 30402, 1, ""), PublishOptions{})
	lose(t, relay, client)
	clock.fire(t, 500*time.Millisecond)
	relay.awaitFrames(t, "REQ", 3)
	if labels := strings.Join(relay.labels(), " "); labels != "1:REQ 1:AUTH 1:REQ 1:AUTH 1:EVENT 2:AUTH 2:REQ" {
		t.Errorf("frames are %s", labels)
	}
}

func challengeOf(client *Client, url string) string {
	connection, err := client.connection(url)
	if err != nil {
		return ""
	}
	connection.mu.Lock()
	defer connection.mu.Unlock()
	return connection.socket.authentication.challenge
}
