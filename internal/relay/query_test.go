package relay

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/fault"
)

var allNotes = nostr.Filter{Kinds: []int{1}}

func TestQueryReturnsStoredEventsInOrder(t *testing.T) {
	t.Parallel()
	relay := startRelay(t, script{})
	relay.store(notes(t, 3)...)
	client := newTestClient(t, Config{HostrRelay: relay.url})
	answer := mustQuery(t, client, allNotes, QueryOptions{})
	wantContents(t, answer.Events, "note 3", "note 2", "note 1")
	wantEnd(t, answer, relay.url, EndEOSE, "")
	if answer.Warning() != nil || answer.Relays[0].Events != 3 {
		t.Errorf("answer is %+v with warning %v", answer.Relays, answer.Warning())
	}
	request := relay.awaitFrames(t, "REQ", 1)[0]
	if closed := relay.awaitFrames(t, "CLOSE", 1)[0]; closed.id != request.id || len(closed.id) > 64 {
		t.Errorf("CLOSE is for %q, the REQ was %q", closed.id, request.id)
	}
	mustQuery(t, client, allNotes, QueryOptions{})
	if relay.connections() != 1 {
		t.Errorf("%d connections, want one for both queries", relay.connections())
	}
}

func TestRelayWithoutEOSEGivesAPartialAnswer(t *testing.T) {
	t.Parallel()
	served := make(chan struct{})
	relay := startRelay(t, script{onREQ: func(s *relaySession, e *nostr.ReqEnvelope) bool {
		s.sendStored(e)
		s.sendf(`["NOTICE","that was all"]`)
		s.sendf(`["AUTH","marks the end"]`)
		close(served)
		return true
	}})
	relay.store(notes(t, 2)...)
	clock := newManualClock()
	client := newTestClient(t, Config{HostrRelay: relay.url, Clock: clock})
	done := startQuery(testContext(t), client, allNotes, QueryOptions{Timeout: 7 * time.Second})
	receive(t, served)
	awaitEvents(t, client, 2)
	clock.fire(t, 7*time.Second)
	answer := within(t, done)
	wantContents(t, answer.Events, "note 2", "note 1")
	wantEnd(t, answer, relay.url, EndTimeout, "no EOSE")
	warning := answer.Warning()
	if warning == nil || warning.Code != fault.PartialResult || !warning.Retryable ||
		!strings.Contains(warning.Message, relay.url) {
		t.Errorf("warning is %+v", warning)
	}
}

// awaitEvents waits until the verifier has passed the given number of events.
func awaitEvents(t testing.TB, client *Client, count uint64) {
	t.Helper()
	eventually(t, "the events are verified", func() bool {
		stats := client.verifier.Stats()
		return stats.Verified+stats.Remembered+stats.Refused >= count
	})
}

// closedPort returns the URL of a port nobody listens on.
func closedPort(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return "ws://" + listener.Addr().String()
}

func TestUnreachableRelayIsNoError(t *testing.T) {
	t.Parallel()
	url := closedPort(t)
	client := newTestClient(t, Config{HostrRelay: url})
	answer := mustQuery(t, client, allNotes, QueryOptions{})
	wantEnd(t, answer, url, EndUnreachable, "refused")
	if len(answer.Events) != 0 {
		t.Errorf("events are %v", answer.Events)
	}
}

func TestQueryTriesAgainTwoSecondsAfterAFailure(t *testing.T) {
	t.Parallel()
	relay := startRelay(t, script{})
	relay.store(notes(t, 1)...)
	relay.refuse(true)
	clock := newManualClock()
	client := newTestClient(t, Config{HostrRelay: relay.url, Clock: clock})
	wantEnd(t, mustQuery(t, client, allNotes, QueryOptions{}), relay.url, EndUnreachable, "503")
	relay.refuse(false)
	done := startQuery(testContext(t), client, allNotes, QueryOptions{})
	clock.fire(t, dialPause)
	wantEnd(t, within(t, done), relay.url, EndEOSE, "")
}

func TestQueryDoesNotWaitForThePauseBeyondItsTime(t *testing.T) {
	t.Parallel()
	relay := startRelay(t, script{})
	relay.refuse(true)
	clock := newManualClock()
	client := newTestClient(t, Config{HostrRelay: relay.url, Clock: clock})
	mustQuery(t, client, allNotes, QueryOptions{})
	done := startQuery(testContext(t), client, allNotes, QueryOptions{Timeout: time.Second})
	clock.fire(t, time.Second)
	wantEnd(t, within(t, done), relay.url, EndUnreachable, "")
}

func TestHostileFramesAreDropped(t *testing.T) {
	t.Parallel()
	genuine := signed(t, aliceKey, 1, 5, "genuine")
	forged := genuine
	forged.Content = "forged"
	otherSignature := genuine
	otherSignature.Sig = signed(t, bobKey, 1, 5, "genuine").Sig
	shortKey, longKey, shortID := genuine, genuine, genuine
	shortKey.PubKey, longKey.PubKey, shortID.ID = genuine.PubKey[:62], genuine.PubKey+"00", "ab"
	upperCase := genuine
	upperCase.Sig = strings.ToUpper(genuine.Sig)
	foreign := signed(t, aliceKey, 7, 5, "of another kind")
	relay := startRelay(t, script{onREQ: func(s *relaySession, e *nostr.ReqEnvelope) bool {
		id := e.SubscriptionID
		for _, garbage := range []string{
			`["EVENT","x`, `[`, ``, `null`, `{}`, `[]`, `[1]`, `["EVENT"]`, `["EVENT","` + id + `"]`,
			`["EVENT","` + id + `",null]`, `["EVENT","` + id + `",{}]`, `["EVENT","` + id + `",{"id":"ab"}]`,
			`["EVENT","` + id + `",[]]`, `["EVENT","` + id + `",{"kind":"1"}]`, `["EOSE"]`, `["EOSE",7]`,
			`["CLOSED"]`, `["OK"]`, `["OK","x"]`, `["AUTH"]`, `["AUTH",{}]`, `["NOTICE"]`, `["COUNT","` + id + `",{"count":1}]`,
			`["UNKNOWN","x"]`, "\x00\xff", `["NOTICE","` + strings.Repeat("n", 5000) + `"]`, strings.Repeat("[", 100_000),
		} {
			s.send(garbage)
		}
		for _, event := range []nostr.Event{forged, otherSignature, shortKey, longKey, shortID, upperCase, foreign} {
			s.sendEvent(id, event)
		}
		s.sendEvent("unknown", genuine)
		s.sendEvent(id, genuine)
		s.sendEvent(id, genuine)
		s.sendf(`["EOSE",%q]`, id)
		return true
	}})
	client := newTestClient(t, Config{HostrRelay: relay.url})
	answer := mustQuery(t, client, allNotes, QueryOptions{})
	wantContents(t, answer.Events, "genuine")
	wantEnd(t, answer, relay.url, EndEOSE, "")
	if stats := client.verifier.Stats(); stats.Verified != 1 || stats.Refused != 6 {
		t.Errorf("stats are %+v, want each signature checked once and 6 events refused", stats)
	}
}

func TestOversizedFrameEndsTheConnectionAndIsRepeatedOnce(t *testing.T) {
	t.Parallel()
	oversized := `["NOTICE","` + strings.Repeat("x", 1<<20) + `"]`
	relay := startRelay(t, script{onREQ: func(s *relaySession, e *nostr.ReqEnvelope) bool {
		s.sendStored(e)
		s.send(oversized)
		return true
	}})
	relay.store(notes(t, 1)...)
	client := newTestClient(t, Config{HostrRelay: relay.url})
	if client.dialer.frameLimit != 32<<20 {
		t.Errorf("the limit is %d bytes, want 32 MiB", client.dialer.frameLimit)
	}
	client.dialer.frameLimit = 1 << 20 // The real one takes seconds under the race detector.
	answer := mustQuery(t, client, allNotes, QueryOptions{})
	wantContents(t, answer.Events, "note 1")
	wantEnd(t, answer, relay.url, EndDropped, "larger than 1 MiB")
	if sent := len(relay.framesOf("REQ")); sent != 2 {
		t.Errorf("the REQ was sent %d times, want 2", sent)
	}
}

func TestAnswerThatIsTooLargeIsCutOff(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("x", 400<<10)
	relay := startRelay(t, script{})
	for i := range 5 {
		relay.store(signed(t, aliceKey, 1, int64(i), big))
	}
	client := newTestClient(t, Config{HostrRelay: relay.url})
	if client.answerBytes != 128<<20 {
		t.Errorf("the limit is %d bytes, want 128 MiB", client.answerBytes)
	}
	client.answerBytes = 1 << 20
	answer := mustQuery(t, client, allNotes, QueryOptions{})
	wantEnd(t, answer, relay.url, EndDropped, "larger than 1 MiB")
	if len(answer.Events) != 2 {
		t.Errorf("%d events, want the two that fit", len(answer.Events))
	}
	relay.awaitFrames(t, "CLOSE", 1)
}

func TestEqualQueriesAreOneRequest(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	relay := startRelay(t, script{onREQ: func(s *relaySession, e *nostr.ReqEnvelope) bool {
		<-release
		return false
	}})
	relay.store(notes(t, 2)...)
	client := newTestClient(t, Config{HostrRelay: relay.url})
	ctx, giveUp := context.WithCancelCause(testContext(t))
	tags := nostr.TagMap{"t": {"x"}, "#p": {"y"}, "e": {"z"}}
	first := startQuery(ctx, client, nostr.Filter{Kinds: []int{1}, Tags: tags}, QueryOptions{})
	relay.awaitFrames(t, "REQ", 1)
	var others []<-chan result
	for range 10 {
		others = append(others, startQuery(testContext(t), client, nostr.Filter{Kinds: []int{1}, Tags: tags}, QueryOptions{}))
	}
	awaitCallers(t, client, 11)
	reason := errors.New("had enough")
	giveUp(reason)
	if got := receive(t, first); got.err != reason {
		t.Errorf("the caller that gave up got %v", got.err)
	}
	close(release)
	for _, other := range others {
		wantEnd(t, within(t, other), relay.url, EndEOSE, "")
	}
	if sent := len(relay.framesOf("REQ")); sent != 1 {
		t.Errorf("%d REQs for equal queries", sent)
	}
}

// awaitCallers waits until that many callers share one run.
func awaitCallers(t testing.TB, client *Client, count int) {
	t.Helper()
	eventually(t, "the callers have come together", func() bool {
		client.mu.Lock()
		defer client.mu.Unlock()
		for _, run := range client.running {
			if run.callers == count {
				return true
			}
		}
		return false
	})
}

func TestQueriesThatDifferAreNotShared(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	relay := startRelay(t, script{onREQ: func(*relaySession, *nostr.ReqEnvelope) bool {
		<-release
		return false
	}})
	client := newTestClient(t, Config{HostrRelay: relay.url})
	first := startQuery(testContext(t), client, allNotes, QueryOptions{Timeout: 8 * time.Second})
	second := startQuery(testContext(t), client, allNotes, QueryOptions{Timeout: 9 * time.Second})
	close(release)
	within(t, first)
	within(t, second)
	if sent := len(relay.framesOf("REQ")); sent != 2 {
		t.Errorf("%d REQs, want 2", sent)
	}
}

func TestAbandonedQueryIsClosedAtTheRelay(t *testing.T) {
	t.Parallel()
	relay := startRelay(t, script{onREQ: func(*relaySession, *nostr.ReqEnvelope) bool { return true }})
	client := newTestClient(t, Config{HostrRelay: relay.url})
	ctx, cancel := context.WithCancel(testContext(t))
	done := startQuery(ctx, client, allNotes, QueryOptions{})
	relay.awaitFrames(t, "REQ", 1)
	cancel()
	if got := receive(t, done); !errors.Is(got.err, context.Canceled) {
		t.Errorf("the error is %v", got.err)
	}
	relay.awaitFrames(t, "CLOSE", 1)
}

func TestDeadlineOfTheCallerGivesAPartialAnswer(t *testing.T) {
	t.Parallel()
	relay := startRelay(t, script{onREQ: func(s *relaySession, e *nostr.ReqEnvelope) bool {
		s.sendStored(e)
		return true
	}})
	relay.store(notes(t, 1)...)
	client := newTestClient(t, Config{HostrRelay: relay.url})
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	answer, err := client.Query(ctx, allNotes, QueryOptions{})
	if err != nil {
		t.Fatal(err)
	}
	wantEnd(t, answer, relay.url, EndTimeout, "")
}

func TestQueryIsSentAgainAfterADrop(t *testing.T) {
	t.Parallel()
	var requests atomic.Int32
	relay := startRelay(t, script{onREQ: func(s *relaySession, e *nostr.ReqEnvelope) bool {
		if requests.Add(1) > 1 {
			return false
		}
		s.sendStored(e)
		s.drop()
		return true
	}})
	relay.store(notes(t, 3)...)
	clock := newManualClock()
	client := newTestClient(t, Config{HostrRelay: relay.url, Clock: clock})
	done := startQuery(testContext(t), client, allNotes, QueryOptions{})
	clock.fire(t, 500*time.Millisecond)
	answer := within(t, done)
	if len(answer.Events) != 3 {
		t.Errorf("events are %q, want each note once", contents(answer.Events))
	}
	wantEnd(t, answer, relay.url, EndEOSE, "")
	requestsSeen := relay.framesOf("REQ")
	if len(requestsSeen) != 2 || requestsSeen[1].connection != 2 {
		t.Errorf("requests are %+v", requestsSeen)
	}
}

func TestQueryOfALostRelayIsPartial(t *testing.T) {
	t.Parallel()
	var relay *scriptedRelay
	relay = startRelay(t, script{onREQ: func(s *relaySession, e *nostr.ReqEnvelope) bool {
		s.relay.refuse(true)
		s.drop()
		return true
	}})
	clock := newManualClock()
	client := newTestClient(t, Config{HostrRelay: relay.url, Clock: clock})
	done := startQuery(testContext(t), client, allNotes, QueryOptions{Timeout: 3 * time.Second})
	clock.fire(t, 500*time.Millisecond)
	clock.fire(t, time.Second)
	clock.fire(t, 3*time.Second)
	wantEnd(t, within(t, done), relay.url, EndDropped, "")
}

func TestClosedReasons(t *testing.T) {
	t.Parallel()
	for _, reason := range []string{
		"blocked: not you", "restricted: members only", "invalid: bad filter", "pow: 20 bits", "duplicate: had it",
		"unsupported: no search", "mute: nobody listens", "shadowbanned: you", "something: else", "no prefix", "",
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			relay := startRelay(t, script{onREQ: func(s *relaySession, e *nostr.ReqEnvelope) bool {
				s.sendStored(e)
				if reason == "" {
					s.sendf(`["CLOSED",%q]`, e.SubscriptionID)
				} else {
					s.sendf(`["CLOSED",%q,%q]`, e.SubscriptionID, reason)
				}
				return true
			}})
			relay.store(notes(t, 1)...)
			client := newTestClient(t, Config{HostrRelay: relay.url})
			answer := mustQuery(t, client, allNotes, QueryOptions{})
			wantContents(t, answer.Events, "note 1")
			wantEnd(t, answer, relay.url, EndClosed, reason)
			mustQuery(t, client, nostr.Filter{Kinds: []int{2}}, QueryOptions{})
			if len(relay.framesOf("REQ")) != 2 || len(relay.framesOf("CLOSE")) != 0 {
				t.Errorf("frames are %v: a closed REQ needs no CLOSE", relay.labels())
			}
		})
	}
}

func TestClosedForNowIsAskedAgain(t *testing.T) {
	t.Parallel()
	for _, reason := range []string{"rate-limited: slow down", "error: database is busy"} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			var requests atomic.Int32
			relay := startRelay(t, script{onREQ: func(s *relaySession, e *nostr.ReqEnvelope) bool {
				if requests.Add(1) > 2 {
					return false
				}
				s.sendf(`["CLOSED",%q,%q]`, e.SubscriptionID, reason)
				return true
			}})
			clock := newManualClock()
			client := newTestClient(t, Config{HostrRelay: relay.url, Clock: clock})
			done := startQuery(testContext(t), client, allNotes, QueryOptions{})
			clock.fire(t, 500*time.Millisecond)
			clock.fire(t, time.Second)
			wantEnd(t, within(t, done), relay.url, EndEOSE, "")
		})
	}
}

func TestRateLimitThatLastsEndsTheQueryWithItsReason(t *testing.T) {
	t.Parallel()
	relay := startRelay(t, script{onREQ: func(s *relaySession, e *nostr.ReqEnvelope) bool {
		s.sendf(`["CLOSED",%q,"rate-limited: slow down"]`, e.SubscriptionID)
		return true
	}})
	clock := newManualClock()
	client := newTestClient(t, Config{HostrRelay: relay.url, Clock: clock})
	done := startQuery(testContext(t), client, allNotes, QueryOptions{Timeout: 1200 * time.Millisecond})
	clock.fire(t, 500*time.Millisecond)
	relay.awaitFrames(t, "REQ", 2)
	awaitTimer(t, clock, time.Second)
	clock.fire(t, 1200*time.Millisecond)
	wantEnd(t, within(t, done), relay.url, EndClosed, "rate-limited: slow down")
}

// awaitTimer waits until somebody waits for just this span.
func awaitTimer(t testing.TB, clock *manualClock, span time.Duration) {
	t.Helper()
	deadline := time.After(patience)
	for {
		clock.mu.Lock()
		found := slices.ContainsFunc(clock.timers, func(timer *manualTimer) bool { return timer.span == span })
		changed := clock.changed
		clock.mu.Unlock()
		if found {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			t.Fatalf("nobody waits for %v", span)
		}
	}
}

func TestSeveralRelaysAreOneAnswer(t *testing.T) {
	t.Parallel()
	events := notes(t, 3)
	one, two := startRelay(t, script{}), startRelay(t, script{})
	one.store(events[0], events[1])
	two.store(events[1], events[2])
	down := closedPort(t)
	client := newTestClient(t, Config{HostrRelay: one.url})
	answer := mustQuery(t, client, allNotes, QueryOptions{Relays: []string{one.url, "not a url", down, two.url + "/", one.url}})
	found := contents(answer.Events)
	slices.Sort(found)
	if !slices.Equal(found, []string{"note 1", "note 2", "note 3"}) {
		t.Errorf("events are %q", found)
	}
	wantEnd(t, answer, one.url, EndEOSE, "")
	wantEnd(t, answer, two.url, EndEOSE, "")
	wantEnd(t, answer, down, EndUnreachable, "")
	if answer.Complete || len(answer.Relays) != 3 {
		t.Errorf("answer is %+v", answer.Relays)
	}
}

func TestHostrOnlyKindsNeverReachOtherRelays(t *testing.T) {
	t.Parallel()
	hostr, public := startRelay(t, script{}), startRelay(t, script{})
	client := newTestClient(t, Config{HostrRelay: hostr.url})
	answer := mustQuery(t, client, nostr.Filter{Kinds: []int{0, 30402}}, QueryOptions{Relays: []string{public.url}})
	wantEnd(t, answer, hostr.url, EndEOSE, "")
	if public.connections() != 0 {
		t.Error("the public relay was contacted")
	}
}

func TestNothingToAsk(t *testing.T) {
	t.Parallel()
	client := newTestClient(t, Config{})
	for name, options := range map[string]QueryOptions{
		"no relay": {}, "only unusable ones": {Relays: []string{"http://h", ""}}, "only the blocked one": {Relays: []string{blockedRelay}},
	} {
		answer := mustQuery(t, client, allNotes, options)
		if answer.Complete || answer.Warning() == nil {
			t.Errorf("%s: the answer is %+v, want an incomplete one", name, answer)
		}
	}
}

func TestEmptyListsAreNotSent(t *testing.T) {
	t.Parallel()
	relay := startRelay(t, script{})
	client := newTestClient(t, Config{HostrRelay: relay.url})
	for name, filter := range map[string]nostr.Filter{
		"authors": {Authors: []string{}}, "ids": {IDs: []string{}}, "kinds": {Kinds: []int{}},
		"tag": {Tags: nostr.TagMap{"d": {}}}, "nil tag": {Tags: nostr.TagMap{"d": nil}}, "limit 0": {LimitZero: true},
	} {
		answer := mustQuery(t, client, filter, QueryOptions{})
		if !answer.Complete || len(answer.Events) != 0 {
			t.Errorf("%s: %+v", name, answer)
		}
	}
	if relay.connections() != 0 {
		t.Error("the relay was contacted")
	}
}

func TestManyAuthorsAreSplitInOneRequest(t *testing.T) {
	t.Parallel()
	relay := startRelay(t, script{})
	relay.store(notes(t, 1)...)
	client := newTestClient(t, Config{HostrRelay: relay.url})
	authors := make([]string, 250)
	for i := range authors {
		authors[i] = fmt.Sprintf("%064x", i)
	}
	authors[201] = publicKey(t, aliceKey)
	answer := mustQuery(t, client, nostr.Filter{Authors: authors, Limit: 5}, QueryOptions{})
	wantContents(t, answer.Events, "note 1")
	request := relay.framesOf("REQ")[0]
	if len(request.filters) != 3 || len(request.filters[0].Authors) != 100 || len(request.filters[2].Authors) != 50 ||
		request.filters[2].Limit != 5 {
		t.Errorf("the REQ has %d filters: %v", len(request.filters), request.filters)
	}
}

func TestAThousandQueriesAtOnce(t *testing.T) {
	t.Parallel()
	relay := startRelay(t, script{})
	relay.store(notes(t, 10)...)
	client := newTestClient(t, Config{HostrRelay: relay.url})
	var pending []<-chan result
	for i := range 1000 {
		since := nostr.Timestamp(i % 500) // Each query twice, so that some share a run.
		pending = append(pending, startQuery(testContext(t), client, nostr.Filter{Kinds: []int{1}, Since: &since}, QueryOptions{Timeout: 2 * patience}))
	}
	for i, done := range pending {
		answer := within(t, done)
		wantEnd(t, answer, relay.url, EndEOSE, "")
		if want := min(10, max(0, 11-i%500)); len(answer.Events) != want {
			t.Fatalf("query %d found %d events, want %d", i, len(answer.Events), want)
		}
	}
	session := relay.session(1)
	relay.mu.Lock()
	defer relay.mu.Unlock()
	if session.mostOpen > maxRequests || len(relay.sessions) != 1 {
		t.Errorf("%d REQs were open at a time on %d connections", session.mostOpen, len(relay.sessions))
	}
}

func TestQueriesWaitForAPlaceAndKeepTheirDeadline(t *testing.T) {
	t.Parallel()
	relay := startRelay(t, script{onREQ: func(*relaySession, *nostr.ReqEnvelope) bool { return true }})
	clock := newManualClock()
	client := newTestClient(t, Config{HostrRelay: relay.url, Clock: clock})
	var pending []<-chan result
	for i := range maxRequests {
		pending = append(pending, startQuery(testContext(t), client, nostr.Filter{Kinds: []int{100 + i}}, QueryOptions{}))
	}
	relay.awaitFrames(t, "REQ", maxRequests)
	ctx, cancel := context.WithCancel(testContext(t))
	cancelled := startQuery(ctx, client, nostr.Filter{Kinds: []int{1}}, QueryOptions{Timeout: 6 * time.Second})
	late := startQuery(testContext(t), client, nostr.Filter{Kinds: []int{2}}, QueryOptions{Timeout: 7 * time.Second})
	awaitTimer(t, clock, 6*time.Second)
	cancel()
	if got := receive(t, cancelled); !errors.Is(got.err, context.Canceled) {
		t.Errorf("the cancelled query got %v", got.err)
	}
	clock.fire(t, 7*time.Second)
	wantEnd(t, within(t, late), relay.url, EndTimeout, "")
	if sent := len(relay.framesOf("REQ")); sent != maxRequests {
		t.Errorf("%d REQs were sent", sent)
	}
	clock.fire(t, 10*time.Second)
	for _, done := range pending {
		within(t, done)
	}
}

func TestSlowHandshakeDoesNotOutlastTheQuery(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close() // It takes the connection and says nothing.
	url := "ws://" + listener.Addr().String()
	clock := newManualClock()
	client := newTestClient(t, Config{HostrRelay: url, Clock: clock})
	done := startQuery(testContext(t), client, allNotes, QueryOptions{Timeout: 3 * time.Second})
	clock.fire(t, 3*time.Second)
	wantEnd(t, within(t, done), url, EndUnreachable, "")
}

func TestCloseWithEverythingInFlight(t *testing.T) {
	t.Parallel()
	silent := startRelay(t, script{
		onREQ:   func(*relaySession, *nostr.ReqEnvelope) bool { return true },
		onEVENT: func(*relaySession, nostr.Event) bool { return true },
	})
	client := newTestClient(t, Config{HostrRelay: silent.url})
	query := startQuery(testContext(t), client, allNotes, QueryOptions{})
	unconnected := startQuery(testContext(t), client, allNotes, QueryOptions{Relays: []string{closedPort(t)}})
	subscription, err := client.Subscribe(testContext(t), allNotes, SubscribeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	published := make(chan error, 1)
	event := signed(t, aliceKey, 1, 1, "x")
	go func() {
		_, err := client.Publish(testContext(t), event, PublishOptions{})
		published <- err
	}()
	silent.awaitFrames(t, "REQ", 2)
	silent.awaitFrames(t, "EVENT", 1)
	receive(t, unconnected)
	client.Close()
	if got := receive(t, query); !errors.Is(got.err, ErrClosed) {
		t.Errorf("the query got %v", got.err)
	}
	if err := receive(t, published); !errors.Is(err, ErrClosed) {
		t.Errorf("the publish got %v", err)
	}
	if _, open := <-subscription.Events(); open {
		t.Error("the subscription goes on")
	}
	if _, err := client.Query(testContext(t), allNotes, QueryOptions{}); !errors.Is(err, ErrClosed) {
		t.Errorf("a query after Close got %v", err)
	}
	if _, err := client.Subscribe(testContext(t), allNotes, SubscribeOptions{}); !errors.Is(err, ErrClosed) {
		t.Errorf("a subscription after Close got %v", err)
	}
}

func TestSilentPeerIsNoticedWithinTwentySeconds(t *testing.T) {
	t.Parallel()
	relay := startRelay(t, script{
		onREQ:  func(s *relaySession, _ *nostr.ReqEnvelope) bool { return s.number == 1 },
		onPing: func(s *relaySession) bool { return s.number == 1 },
	})
	clock := newManualClock()
	client := newTestClient(t, Config{HostrRelay: relay.url, Clock: clock})
	started := clock.Now()
	done := startQuery(testContext(t), client, allNotes, QueryOptions{Timeout: time.Hour})
	relay.awaitFrames(t, "REQ", 1)
	clock.fire(t, pingInterval)
	relay.awaitFrames(t, "PING", 1)
	clock.fire(t, pongLimit)
	relay.awaitFrames(t, "PING", 2)
	clock.fire(t, pongLimit)
	if spent := clock.Now().Sub(started); spent > 20*time.Second {
		t.Errorf("it took %v", spent)
	}
	clock.fire(t, 500*time.Millisecond)
	wantEnd(t, within(t, done), relay.url, EndEOSE, "")
}

func TestLivingPeerStaysConnected(t *testing.T) {
	t.Parallel()
	relay := startRelay(t, script{})
	clock := newManualClock()
	client := newTestClient(t, Config{HostrRelay: relay.url, Clock: clock})
	mustSubscribe(t, client, allNotes, SubscribeOptions{})
	relay.awaitFrames(t, "REQ", 1)
	for beat := range 5 {
		clock.fire(t, pingInterval)
		relay.awaitFrames(t, "PING", beat+1)
	}
	if relay.connections() != 1 {
		t.Errorf("%d connections", relay.connections())
	}
}

func TestRelayThatClosesPolitely(t *testing.T) {
	t.Parallel()
	relay := startRelay(t, script{onREQ: func(s *relaySession, e *nostr.ReqEnvelope) bool {
		if s.number > 1 {
			return false
		}
		s.closePolitely(websocket.StatusServiceRestart, "restarting")
		return true
	}})
	client := newTestClient(t, Config{HostrRelay: relay.url})
	wantEnd(t, mustQuery(t, client, allNotes, QueryOptions{}), relay.url, EndEOSE, "")
}
