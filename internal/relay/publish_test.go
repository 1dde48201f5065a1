package relay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/fault"
)

// okScript answers every EVENT with the rest of an OK frame.
func okScript(rest string) script {
	return script{onEVENT: func(s *relaySession, event nostr.Event) bool {
		s.sendf(`["OK",%q,%s]`, event.ID, rest)
		return true
	}}
}

func TestPublishReceipts(t *testing.T) {
	t.Parallel()
	for rest, want := range map[string]Receipt{
		`true,""`:                      {OKReceived: true, BroadcastSuccessful: true},
		`true,"stored"`:                {OKReceived: true, BroadcastSuccessful: true, Message: "stored"},
		`true,"duplicate: had it"`:     {OKReceived: true, BroadcastSuccessful: true, Message: "duplicate: had it"},
		`true`:                         {OKReceived: true, BroadcastSuccessful: true},
		`false`:                        {OKReceived: true},
		`false,"blocked: not you"`:     {OKReceived: true, Message: "blocked: not you"},
		`false,"line\none\u0000"`:      {OKReceived: true, Message: "line one"},
		`"true","a text for a bool"`:   {OKReceived: true, Message: "a text for a bool"},
		`true,"stored",{"more":[1,2]}`: {OKReceived: true, BroadcastSuccessful: true, Message: "stored"},
	} {
		t.Run(rest, func(t *testing.T) {
			t.Parallel()
			relay := startRelay(t, okScript(rest))
			client := newTestClient(t, Config{HostrRelay: relay.url})
			receipts, err := client.Publish(testContext(t), signed(t, aliceKey, 1, 1, "x"), PublishOptions{})
			want.RelayURL = relay.url
			if len(receipts) != 1 || receipts[0] != want {
				t.Errorf("receipts are %+v, want %+v", receipts, want)
			}
			if (err == nil) != want.BroadcastSuccessful {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

func TestReceiptJSON(t *testing.T) {
	t.Parallel()
	got, err := json.Marshal(Receipt{RelayURL: "wss://h", OKReceived: true, Message: "m"})
	if err != nil || string(got) != `{"relayUrl":"wss://h","okReceived":true,"broadcastSuccessful":false,"message":"m"}` {
		t.Errorf("%s, %v", got, err)
	}
}

func TestOneRelayRefusesAndThePublishSucceeds(t *testing.T) {
	t.Parallel()
	good, bad := startRelay(t, script{}), startRelay(t, okScript(`false,"blocked: not you"`))
	client := newTestClient(t, Config{HostrRelay: good.url})
	receipts, err := client.Publish(testContext(t), signed(t, aliceKey, 1, 1, "x"),
		PublishOptions{Relays: []string{bad.url, good.url, bad.url + "/"}})
	if err != nil || len(receipts) != 2 || receipts[0].BroadcastSuccessful || !receipts[1].BroadcastSuccessful {
		t.Errorf("receipts are %+v, error %v", receipts, err)
	}
}

func TestAllRefuseIsAnErrorWithEveryAnswer(t *testing.T) {
	t.Parallel()
	one, two := startRelay(t, okScript(`false,"blocked: not you"`)), startRelay(t, okScript(`false,"pow: 20 bits"`))
	down := closedPort(t)
	client := newTestClient(t, Config{HostrRelay: one.url})
	event := signed(t, aliceKey, 1, 1, "x")
	receipts, err := client.Publish(testContext(t), event, PublishOptions{Relays: []string{one.url, two.url, down}})
	if len(receipts) != 3 || receipts[2].OKReceived || !strings.Contains(receipts[2].Message, "could not be reached") {
		t.Errorf("receipts are %+v", receipts)
	}
	failure := fault.From(err)
	if failure == nil || failure.Code != fault.UnexpectedError || failure.Retryable {
		t.Fatalf("the error is %#v", failure)
	}
	for _, part := range []string{"kind 1", event.ID, one.url, "blocked: not you", two.url, "pow: 20 bits", down} {
		if !strings.Contains(failure.Message, part) {
			t.Errorf("%q lacks %q", failure.Message, part)
		}
	}
}

func TestPublishWithoutAnyAnswerMayBeRetried(t *testing.T) {
	t.Parallel()
	relay := startRelay(t, script{onEVENT: func(*relaySession, nostr.Event) bool { return true }})
	clock := newManualClock()
	client := newTestClient(t, Config{HostrRelay: relay.url, Clock: clock})
	published := startPublish(t, client, signed(t, aliceKey, 1, 1, "x"), PublishOptions{Timeout: 7 * time.Second})
	relay.awaitFrames(t, "EVENT", 1)
	clock.fire(t, 7*time.Second)
	got := receive(t, published)
	if want := (Receipt{RelayURL: relay.url}); len(got.receipts) != 1 || got.receipts[0] != want {
		t.Errorf("receipts are %+v", got.receipts)
	}
	if failure := fault.From(got.err); failure == nil || !failure.Retryable {
		t.Errorf("the error is %+v", failure)
	}
}

type published struct {
	receipts []Receipt
	err      error
}

func startPublish(t testing.TB, client *Client, event nostr.Event, options PublishOptions) <-chan published {
	done := make(chan published, 1)
	ctx := testContext(t)
	go func() {
		receipts, err := client.Publish(ctx, event, options)
		done <- published{receipts, err}
	}()
	return done
}

func mustPublish(t testing.TB, client *Client, event nostr.Event, options PublishOptions) {
	t.Helper()
	if got := receive(t, startPublish(t, client, event, options)); got.err != nil {
		t.Fatalf("publish: %v", got.err)
	}
}

func TestCutBetweenEventAndOKIsNoSuccess(t *testing.T) {
	t.Parallel()
	relay := startRelay(t, script{onEVENT: func(s *relaySession, _ nostr.Event) bool {
		s.drop()
		return true
	}})
	client := newTestClient(t, Config{HostrRelay: relay.url})
	got := receive(t, startPublish(t, client, signed(t, aliceKey, 1, 1, "x"), PublishOptions{}))
	if len(got.receipts) != 1 || got.receipts[0].OKReceived || got.receipts[0].BroadcastSuccessful || got.err == nil {
		t.Errorf("receipts are %+v, error %v", got.receipts, got.err)
	}
}

func TestPublishOfWhatRelaysWouldRefuse(t *testing.T) {
	t.Parallel()
	relay := startRelay(t, script{})
	client := newTestClient(t, Config{HostrRelay: relay.url})
	unsigned := nostr.Event{Kind: 1, PubKey: publicKey(t, aliceKey)}
	changed := signed(t, aliceKey, 1, 1, "x")
	changed.Content = "y"
	for name, event := range map[string]nostr.Event{
		"unsigned": unsigned, "changed": changed, "content not UTF-8": signed(t, aliceKey, 1, 1, "\xff"),
		"tag not UTF-8": signed(t, aliceKey, 1, 1, "", nostr.Tag{"t", "\xff"}),
	} {
		if _, err := client.Publish(testContext(t), event, PublishOptions{}); err == nil {
			t.Errorf("%s: published", name)
		}
	}
	if relay.connections() != 0 {
		t.Error("the relay was contacted")
	}
}

func TestPublishTargets(t *testing.T) {
	t.Parallel()
	hostr, public := "wss://hostr.example.org", "wss://public.example.org"
	client := newTestClient(t, Config{HostrRelay: hostr, Bootstrap: []string{public, blockedRelay}})
	nowhere := newTestClient(t, Config{Bootstrap: []string{public}})
	for name, check := range map[string]struct {
		got  []string
		want string
	}{
		"no list":                       {client.publishRelays(1, nil), hostr},
		"empty list":                    {client.publishRelays(1, []string{}), hostr},
		"list":                          {client.publishRelays(1059, []string{public, hostr}), public + " " + hostr},
		"hostr-only kind":               {client.publishRelays(30402, nil), hostr},
		"hostr-only kind with a list":   {client.publishRelays(30402, []string{public, hostr}), hostr},
		"unusable list":                 {client.publishRelays(1, []string{"x", blockedRelay}), ""},
		"without a Hostr relay":         {nowhere.publishRelays(1, nil), public},
		"hostr-only kind, none to take": {nowhere.publishRelays(30402, []string{public}), ""},
	} {
		if got := strings.Join(check.got, " "); got != check.want {
			t.Errorf("%s: targets are %q, want %q", name, got, check.want)
		}
	}
	if _, err := nowhere.Publish(testContext(t), signed(t, aliceKey, 30402, 1, ""), PublishOptions{}); err == nil {
		t.Error("a publish without targets succeeded")
	}
}

// demanding answers an EVENT of a connection without AUTH with auth-required.
func demanding(challenge string) script {
	return script{challenge: challenge, onEVENT: func(s *relaySession, event nostr.Event) bool {
		s.relay.mu.Lock()
		known := s.authenticated != ""
		s.relay.mu.Unlock()
		if !known {
			s.sendf(`["OK",%q,false,"auth-required: sign in"]`, event.ID)
		}
		return !known
	}}
}

func TestRelayThatAlwaysWantsAnAuthIsAskedTwice(t *testing.T) {
	t.Parallel()
	relay := startRelay(t, script{challenge: "c", onEVENT: func(s *relaySession, event nostr.Event) bool {
		s.sendf(`["OK",%q,false,"auth-required: not the author"]`, event.ID)
		return true
	}})
	client := newTestClient(t, Config{HostrRelay: relay.url, Account: newAccount(t, aliceKey)})
	if err := client.Authenticate(testContext(t)); err != nil {
		t.Fatal(err)
	}
	got := receive(t, startPublish(t, client, signed(t, bobKey, 1, 1, "x"), PublishOptions{}))
	want := Receipt{RelayURL: relay.url, OKReceived: true, Message: "auth-required: not the author"}
	if len(got.receipts) != 1 || got.receipts[0] != want || got.err == nil {
		t.Errorf("receipts are %+v, error %v", got.receipts, got.err)
	}
	if labels := strings.Join(relay.labels(), " "); labels != "1:AUTH 1:EVENT 1:AUTH 1:EVENT" {
		t.Errorf("frames are %s", labels)
	}
}

func TestLazyAuthOnAnyRelay(t *testing.T) {
	t.Parallel()
	public := startRelay(t, demanding("c"))
	client := newTestClient(t, Config{HostrRelay: closedPort(t), Account: newAccount(t, aliceKey)})
	// A gift-wrap key signs the event: the AUTH is the account's all the same.
	mustPublish(t, client, signed(t, carolKey, 1059, 1, "x"), PublishOptions{Relays: []string{public.url}})
	if auth := public.framesOf("AUTH"); len(auth) != 1 || auth[0].event.PubKey != publicKey(t, aliceKey) {
		t.Errorf("AUTH frames are %+v", auth)
	}
	if labels := strings.Join(public.labels(), " "); labels != "1:EVENT 1:AUTH 1:EVENT" {
		t.Errorf("frames are %s", labels)
	}
}

func TestLazyAuthWithoutAnAccountReportsTheRelay(t *testing.T) {
	t.Parallel()
	relay := startRelay(t, demanding("c"))
	client := newTestClient(t, Config{HostrRelay: relay.url})
	got := receive(t, startPublish(t, client, signed(t, aliceKey, 1, 1, "x"), PublishOptions{}))
	if got.err == nil || got.receipts[0].Message != "auth-required: sign in" || !got.receipts[0].OKReceived {
		t.Errorf("receipts are %+v, error %v", got.receipts, got.err)
	}
}

func TestManyPublishesShareOneAuth(t *testing.T) {
	t.Parallel()
	relay := startRelay(t, demanding("c"))
	client := newTestClient(t, Config{HostrRelay: relay.url, Account: newAccount(t, aliceKey)})
	var pending []<-chan published
	for i := range 50 {
		pending = append(pending, startPublish(t, client, signed(t, aliceKey, 30402, 1, fmt.Sprint(i)), PublishOptions{}))
	}
	for _, done := range pending {
		if got := receive(t, done); got.err != nil {
			t.Error(got.err)
		}
	}
	if auth, events := len(relay.framesOf("AUTH")), len(relay.framesOf("EVENT")); auth != 1 || events != 50 {
		t.Errorf("%d AUTH and %d EVENT frames", auth, events)
	}
}

func TestManyRefusedPublishesShareOneAuth(t *testing.T) {
	t.Parallel()
	relay := startRelay(t, demanding("c"))
	client := newTestClient(t, Config{HostrRelay: closedPort(t), Account: newAccount(t, aliceKey)})
	var pending []<-chan published
	for i := range 50 {
		event := signed(t, aliceKey, 1, 1, fmt.Sprint(i))
		pending = append(pending, startPublish(t, client, event, PublishOptions{Relays: []string{relay.url}}))
	}
	for _, done := range pending {
		if got := receive(t, done); got.err != nil {
			t.Error(got.err)
		}
	}
	if auth := len(relay.framesOf("AUTH")); auth != 1 {
		t.Errorf("%d AUTH frames", auth)
	}
}

func TestTwoPublishesOfOneEvent(t *testing.T) {
	t.Parallel()
	relay := startRelay(t, script{})
	client := newTestClient(t, Config{HostrRelay: relay.url})
	event := signed(t, aliceKey, 1, 1, "x")
	one, two := startPublish(t, client, event, PublishOptions{}), startPublish(t, client, event, PublishOptions{})
	if a, b := receive(t, one), receive(t, two); a.err != nil || b.err != nil {
		t.Errorf("errors are %v and %v", a.err, b.err)
	}
}

func TestEachOfTwoPublishesGetsItsOwnRefusal(t *testing.T) {
	t.Parallel()
	var events atomic.Int32
	relay := startRelay(t, script{challenge: "c", onEVENT: func(s *relaySession, event nostr.Event) bool {
		switch events.Add(1) {
		case 1: // The first two frames are answered one after the other, the second late.
		case 2, 3:
			s.sendf(`["OK",%q,false,"auth-required: sign in"]`, event.ID)
		default:
			s.sendf(`["OK",%q,true,""]`, event.ID)
		}
		return true
	}})
	client := newTestClient(t, Config{HostrRelay: closedPort(t), Account: newAccount(t, aliceKey)})
	event, options := signed(t, aliceKey, 1, 1, "x"), PublishOptions{Relays: []string{relay.url}}
	one, two := startPublish(t, client, event, options), startPublish(t, client, event, options)
	if a, b := receive(t, one), receive(t, two); a.err != nil || b.err != nil {
		t.Errorf("errors are %v and %v", a.err, b.err)
	}
}

func TestRelayWithoutAChallengeDelaysTheFirstPublishOnly(t *testing.T) {
	t.Parallel()
	relay := startRelay(t, script{})
	clock := newManualClock()
	client := newTestClient(t, Config{HostrRelay: relay.url, Account: newAccount(t, aliceKey), Clock: clock})
	first := startPublish(t, client, signed(t, aliceKey, 30402, 1, "one"), PublishOptions{})
	clock.fire(t, challengeLimit)
	if got := receive(t, first); got.err != nil {
		t.Fatal(got.err)
	}
	before := clock.Now()
	mustPublish(t, client, signed(t, aliceKey, 30402, 1, "two"), PublishOptions{})
	relay.dropAll()
	eventually(t, "the drop is noticed", func() bool { return !connected(client, relay.url) })
	third := startPublish(t, client, signed(t, aliceKey, 30402, 1, "three"), PublishOptions{})
	clock.fire(t, 500*time.Millisecond)
	if got := receive(t, third); got.err != nil {
		t.Error(got.err)
	}
	if waited := clock.Now().Sub(before); waited > time.Second {
		t.Errorf("the next publishes waited %v for a challenge", waited)
	}
}

func connected(client *Client, url string) bool {
	client.mu.Lock()
	connection := client.connections[url]
	client.mu.Unlock()
	connection.mu.Lock()
	defer connection.mu.Unlock()
	return connection.socket != nil
}

func TestFailedAuthOfALocalKeyFailsThePublish(t *testing.T) {
	t.Parallel()
	relay := startRelay(t, script{challenge: "c", onAUTH: func(s *relaySession, event nostr.Event) bool {
		s.sendf(`["OK",%q,false,"restricted: not you"]`, event.ID)
		return true
	}})
	client := newTestClient(t, Config{HostrRelay: relay.url, Account: newAccount(t, aliceKey)})
	got := receive(t, startPublish(t, client, signed(t, aliceKey, 0, 1, "{}"), PublishOptions{}))
	if got.err == nil || !strings.Contains(got.err.Error(), "restricted: not you") {
		t.Errorf("the error is %v", got.err)
	}
	if sent := relay.framesOf("EVENT"); len(sent) != 0 {
		t.Errorf("%d events were sent", len(sent))
	}
}

func TestFailedAuthOfARemoteSignerLeavesItToTheRelay(t *testing.T) {
	t.Parallel()
	relay := startRelay(t, script{challenge: "c"})
	account := newAccount(t, aliceKey)
	account.remote = true
	account.hook = func(context.Context, *nostr.Event) error { return errors.New("the phone is off") }
	client := newTestClient(t, Config{HostrRelay: relay.url, Account: account})
	mustPublish(t, client, signed(t, aliceKey, 0, 1, "{}"), PublishOptions{})
	mustPublish(t, client, signed(t, aliceKey, 0, 2, "{}"), PublishOptions{})
	if account.signed.Load() != 1 {
		t.Errorf("the signer was asked %d times on one connection", account.signed.Load())
	}
}

func TestSignerTrafficNeedsNoAuth(t *testing.T) {
	t.Parallel()
	relay := startRelay(t, script{challenge: "c"})
	client := newTestClient(t, Config{HostrRelay: relay.url, Account: newAccount(t, aliceKey)})
	for _, kind := range noAuthKinds {
		mustPublish(t, client, signed(t, carolKey, kind, 1, ""), PublishOptions{})
	}
	if auth := relay.framesOf("AUTH"); len(auth) != 0 {
		t.Errorf("%d AUTH frames", len(auth))
	}
}

func TestUnreachableHostrRelayDoesNotStopTheOthers(t *testing.T) {
	t.Parallel()
	public, down := startRelay(t, script{}), closedPort(t)
	client := newTestClient(t, Config{HostrRelay: down, Account: newAccount(t, aliceKey)})
	got := receive(t, startPublish(t, client, signed(t, aliceKey, 1059, 1, ""), PublishOptions{Relays: []string{public.url, down}}))
	if got.err != nil || !got.receipts[0].BroadcastSuccessful || got.receipts[1].OKReceived ||
		!strings.Contains(got.receipts[1].Message, "could not be reached") {
		t.Errorf("receipts are %+v, error %v", got.receipts, got.err)
	}
}

func TestPublishStopsWithItsCaller(t *testing.T) {
	t.Parallel()
	relay := startRelay(t, script{onEVENT: func(*relaySession, nostr.Event) bool { return true }})
	client := newTestClient(t, Config{HostrRelay: relay.url})
	ctx, cancel := context.WithCancelCause(testContext(t))
	reason := errors.New("had enough")
	done := make(chan error, 1)
	event := signed(t, aliceKey, 1, 1, "x")
	go func() {
		_, err := client.Publish(ctx, event, PublishOptions{})
		done <- err
	}()
	relay.awaitFrames(t, "EVENT", 1)
	cancel(reason)
	if err := receive(t, done); err != reason {
		t.Errorf("the error is %v", err)
	}
}

func TestLateOKOfAGivenUpPublishIsHarmless(t *testing.T) {
	t.Parallel()
	var late atomic.Pointer[string]
	relay := startRelay(t, script{onEVENT: func(s *relaySession, event nostr.Event) bool {
		if held := late.Swap(&event.ID); held != nil {
			s.sendf(`["OK",%q,true,""]`, *held)
			return false
		}
		return true
	}})
	clock := newManualClock()
	client := newTestClient(t, Config{HostrRelay: relay.url, Clock: clock})
	first := startPublish(t, client, signed(t, aliceKey, 1, 1, "one"), PublishOptions{Timeout: 7 * time.Second})
	relay.awaitFrames(t, "EVENT", 1)
	clock.fire(t, 7*time.Second)
	if got := receive(t, first); got.err == nil {
		t.Error("the silent publish succeeded")
	}
	mustPublish(t, client, signed(t, aliceKey, 1, 1, "two"), PublishOptions{})
}
