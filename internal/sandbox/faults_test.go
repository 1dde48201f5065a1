package sandbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/google/go-cmp/cmp"
	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/sandbox"
)

// received is what a client got for one REQ, up to EOSE, CLOSED or the end of
// the connection.
type received struct {
	events []nostr.Event // those of the subscription that can be read
	labels []string      // of every frame, in order; "?" for unreadable ones
	closed []json.RawMessage
	notice string
	eose   bool
	err    error
}

func (c *client) ask(ctx context.Context, t testing.TB, filter nostr.Filter) (got received) {
	t.Helper()
	c.send(ctx, t, "REQ", "sub", filter)
	for {
		var text []byte
		if _, text, got.err = c.conn.Read(ctx); got.err != nil {
			return got
		}
		var frame []json.RawMessage
		if json.Unmarshal(text, &frame) != nil || word(frame, 0) == "" {
			got.labels = append(got.labels, "?")
			continue
		}
		got.labels = append(got.labels, word(frame, 0))
		switch {
		case word(frame, 0) == "EVENT" && word(frame, 1) == "sub" && len(frame) == 3:
			var event nostr.Event
			if json.Unmarshal(frame[2], &event) == nil {
				got.events = append(got.events, event)
			}
		case word(frame, 0) == "EOSE" && word(frame, 1) == "sub":
			got.eose = true
			return got
		case word(frame, 0) == "CLOSED" && word(frame, 1) == "sub":
			got.closed = frame
			return got
		case word(frame, 0) == "NOTICE":
			got.notice = word(frame, 1)
		}
	}
}

// genuine keeps what a careful client would.
func (r received) genuine(filter nostr.Filter) []string {
	var kept []string
	for _, event := range r.events {
		if len(event.PubKey) != 64 || len(event.Sig) != 128 || !filter.Matches(&event) || !event.CheckID() {
			continue
		}
		if valid, err := event.CheckSignature(); !valid || err != nil || slices.Contains(kept, event.ID) {
			continue
		}
		kept = append(kept, event.ID)
	}
	return kept
}

// TestFaultsInTheAnswerToAREQ shows what a client meets, and that a careful one
// still finds the genuine events.
func TestFaultsInTheAnswerToAREQ(t *testing.T) {
	t.Parallel()
	market := small(t)
	filter := listings(0)
	for _, c := range []struct {
		name   string
		faults sandbox.Faults
		check  func(t *testing.T, got received)
	}{
		{"none", sandbox.Faults{}, func(t *testing.T, got received) {
			if len(got.events) != 12 {
				t.Errorf("%d events, want 12", len(got.events))
			}
		}},
		{"notice", sandbox.Faults{Notice: "going down soon"}, func(t *testing.T, got received) {
			if got.notice != "going down soon" {
				t.Errorf("notice %q", got.notice)
			}
		}},
		{"garbage", sandbox.Faults{Garbage: true}, func(t *testing.T, got received) {
			if unreadable := slices.Index(got.labels, "?"); unreadable < 0 || len(got.labels) < 12+25 {
				t.Errorf("frames %v", got.labels)
			}
		}},
		{"oversized", sandbox.Faults{OversizedBytes: 3 << 20}, func(t *testing.T, got received) {
			if len(got.events) != 13 || len(got.events[0].Content) != 3<<20 {
				t.Errorf("%d events", len(got.events))
			}
		}},
		{"foreign", sandbox.Faults{Foreign: true}, func(t *testing.T, got received) {
			// A note, the profiles of two hosts and that of the escrow operator.
			if len(got.events) != 12+4 || filter.Matches(&got.events[0]) {
				t.Errorf("%d events", len(got.events))
			}
		}},
		{"forged", sandbox.Faults{Forged: true}, func(t *testing.T, got received) {
			if len(got.events) != 12*5 || got.events[0].ID != got.events[4].ID {
				t.Errorf("%d events", len(got.events))
			}
		}},
		{"duplicates", sandbox.Faults{Duplicates: 2}, func(t *testing.T, got received) {
			if len(got.events) != 12*3 || got.events[0].ID != got.events[2].ID {
				t.Errorf("%d events", len(got.events))
			}
		}},
		{"all at once", sandbox.Faults{Garbage: true, Foreign: true, Forged: true, Duplicates: 1, Notice: "x"}, func(t *testing.T, got received) {
			if len(got.events) < 12*6+4 {
				t.Errorf("%d events", len(got.events))
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			market.Relay.Break(c.faults)
			got := dial(t, market.RelayURL).ask(patient(t), t, filter)
			if got.err != nil || !got.eose {
				t.Fatalf("EOSE %t, error %v", got.eose, got.err)
			}
			c.check(t, got)
			if difference := cmp.Diff(seededIDs(market), got.genuine(filter)); difference != "" {
				t.Errorf("genuine events (-seed +got):\n%s", difference)
			}
		})
	}
}

// TestForeignListingsAreOfTheRightKind asks for one place and meets listings of others.
func TestForeignListingsAreOfTheRightKind(t *testing.T) {
	t.Parallel()
	market := small(t)
	filter := listings(0)
	filter.Tags["d"] = []string{market.Listings[0].DTag}
	market.Relay.Break(sandbox.Faults{Foreign: true})
	got := dial(t, market.RelayURL).ask(patient(t), t, filter)
	foreignListings := 0
	for _, event := range got.events {
		if event.Kind == 30402 && !filter.Matches(&event) {
			foreignListings++
		}
	}
	if foreignListings < 3 || !slices.Equal(got.genuine(filter), seededIDs(market)[:1]) {
		t.Errorf("%d foreign listings, genuine are %v", foreignListings, got.genuine(filter))
	}
}

func TestNoEOSELeavesTheQueryOpen(t *testing.T) {
	t.Parallel()
	market := small(t)
	market.Relay.Break(sandbox.Faults{NoEOSE: true, Times: 1})
	ctx := patient(t)
	client := dial(t, market.RelayURL)
	client.send(ctx, t, "REQ", "open", listings(0))
	client.send(ctx, t, "REQ", "second", listings(1))
	// The second query is healthy again; the first must not have ended before it.
	for {
		frame := client.next(ctx, t, "EOSE")
		if word(frame, 1) == "open" {
			t.Fatal("the query has ended")
		}
		if word(frame, 1) == "second" {
			return
		}
	}
}

func TestClosedAnswersWithItsReasonAlone(t *testing.T) {
	t.Parallel()
	market := small(t)
	for _, c := range []struct {
		faults sandbox.Faults
		want   string
	}{
		{sandbox.Faults{Closed: "auth-required: who are you?"}, `["CLOSED","sub","auth-required: who are you?"]`},
		{sandbox.Faults{Closed: "rate-limited: slow down", ShortFrames: true}, `["CLOSED","sub"]`},
	} {
		market.Relay.Break(c.faults)
		got := dial(t, market.RelayURL).ask(patient(t), t, listings(0))
		text, err := json.Marshal(got.closed)
		if err != nil || string(text) != c.want || len(got.events) != 0 {
			t.Errorf("%s with %d events, want %s", text, len(got.events), c.want)
		}
	}
}

func TestDropCutsTheConnection(t *testing.T) {
	t.Parallel()
	market := small(t)
	for name, c := range map[string]struct {
		faults sandbox.Faults
		events int
	}{
		"on request":   {sandbox.Faults{DropOnRequest: true, Times: 1}, 0},
		"after events": {sandbox.Faults{DropAfterEvents: 5, Times: 1}, 5},
	} {
		market.Relay.Break(c.faults)
		got := dial(t, market.RelayURL).ask(patient(t), t, listings(0))
		if got.err == nil || len(got.events) != c.events {
			t.Errorf("%s: %d events, error %v", name, len(got.events), got.err)
		}
		if again := dial(t, market.RelayURL).ask(patient(t), t, listings(0)); again.err != nil || len(again.events) != 12 {
			t.Errorf("%s: the next query gets %d events, error %v", name, len(again.events), again.err)
		}
	}
}

func TestDelayHoldsFramesBack(t *testing.T) {
	t.Parallel()
	market := small(t)
	client := dial(t, market.RelayURL)
	market.Relay.Break(sandbox.Faults{DelayMillis: 20})
	began := time.Now()
	got := client.ask(patient(t), t, listings(0))
	if took := time.Since(began); got.err != nil || len(got.events) != 12 || took < 13*20*time.Millisecond {
		t.Errorf("%d events after %s, error %v", len(got.events), took, got.err)
	}
}

func TestFaultsOfPublishing(t *testing.T) {
	t.Parallel()
	market := small(t)
	host := market.Hosts[0]
	ctx := patient(t)
	stored := func(event nostr.Event) bool {
		found, err := market.Relay.Query(ctx, nostr.Filter{IDs: []string{event.ID}})
		if err != nil {
			t.Fatal(err)
		}
		return len(found) == 1
	}
	member := func() *client {
		client := dial(t, market.RelayURL)
		client.login(ctx, t, market.RelayURL, host)
		return client
	}
	listing := func(d string) nostr.Event { return signed(t, host, 30402, nostr.Tag{"d", d}) }

	client := member()
	market.Relay.Break(sandbox.Faults{RefuseEvents: "rate-limited: not now"})
	refused := listing("refused")
	if ok, reason := client.publish(ctx, t, refused); ok || reason != "rate-limited: not now" || stored(refused) {
		t.Errorf("refused: %t %q, stored %t", ok, reason, stored(refused))
	}
	market.Relay.Break(sandbox.Faults{ShortFrames: true})
	client.send(ctx, t, "EVENT", listing("short"))
	if frame := client.next(ctx, t, "OK"); len(frame) != 3 || string(frame[2]) != "true" {
		t.Errorf("short OK: %s", frame)
	}
	market.Relay.Break(sandbox.Faults{NoOK: true, Times: 1})
	silent, answered := listing("silent"), listing("answered")
	client.send(ctx, t, "EVENT", silent)
	client.send(ctx, t, "EVENT", answered)
	if frame := client.next(ctx, t, "OK"); word(frame, 1) != answered.ID {
		t.Errorf("the OK for %s came, it should be held back", word(frame, 1))
	}
	market.Relay.Break(sandbox.Faults{DropBeforeOK: true, Times: 1})
	lost := listing("lost")
	client.send(ctx, t, "EVENT", lost)
	if _, text, err := client.conn.Read(ctx); err == nil {
		t.Errorf("the connection is not cut, it brought %s", text)
	}
	if !stored(lost) {
		t.Error("the event of the cut connection is not stored")
	}
}

func TestNoChallengeStaysSilent(t *testing.T) {
	t.Parallel()
	market := small(t)
	market.Relay.Break(sandbox.Faults{NoChallenge: true, Times: 1})
	got := dial(t, market.RelayURL).ask(patient(t), t, listings(0))
	if slices.Contains(got.labels, "AUTH") {
		t.Errorf("a challenge came: %v", got.labels)
	}
	if got := dial(t, market.RelayURL).ask(patient(t), t, listings(0)); !slices.Contains(got.labels, "AUTH") {
		t.Errorf("no challenge on the healthy connection: %v", got.labels)
	}
}

func TestRelayRefusesConnections(t *testing.T) {
	t.Parallel()
	market := small(t)
	ctx := patient(t)
	market.Relay.Break(sandbox.Faults{RefuseConnections: true, Times: 1})
	if conn, _, err := websocket.Dial(ctx, market.RelayURL, nil); err == nil {
		_ = conn.CloseNow()
		t.Error("the connection was accepted")
	}
	market.Relay.Break(sandbox.Faults{HandshakeStatus: http.StatusServiceUnavailable, Times: 1})
	_, response, err := websocket.Dial(ctx, market.RelayURL, nil)
	if err == nil || response == nil || response.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("handshake: %v, %v", response, err)
	}
	dial(t, market.RelayURL)
	if _, err := market.Relay.WaitFor(ctx, func(c sandbox.Counters) bool { return c.Refused == 2 && c.Connections == 1 }); err != nil {
		t.Error(err)
	}
}

func TestHalfOpenAnswersNothingUntilHealed(t *testing.T) {
	t.Parallel()
	market := small(t)
	ctx := patient(t)
	client := dial(t, market.RelayURL)
	client.next(ctx, t, "AUTH")
	market.Relay.Break(sandbox.Faults{HalfOpen: true})
	client.send(ctx, t, "REQ", "sub", listings(0))

	// A ping and a handshake get no answer within their limits.
	short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	answered := make(chan string, 1)
	go func() {
		_, text, err := client.conn.Read(ctx)
		if err != nil {
			text = []byte(err.Error())
		}
		answered <- string(text)
	}()
	if err := client.conn.Ping(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("ping: %v", err)
	}
	if conn, _, err := websocket.Dial(short, market.RelayURL, nil); err == nil {
		_ = conn.CloseNow()
		t.Error("a handshake was answered")
	}
	select {
	case frame := <-answered:
		t.Fatalf("a frame came: %s", frame)
	default:
	}
	market.Relay.Heal()
	if frame := <-answered; !strings.HasPrefix(frame, `["EVENT","sub",`) {
		t.Errorf("after healing came %s", frame)
	}
}

func TestRelayGoesDownAndComesBack(t *testing.T) {
	t.Parallel()
	market := small(t)
	ctx := patient(t)
	client := dial(t, market.RelayURL)
	client.next(ctx, t, "AUTH")
	market.Relay.Stop()
	if _, _, err := client.conn.Read(ctx); err == nil {
		t.Error("the connection outlives the relay")
	}
	if _, _, err := websocket.Dial(ctx, market.RelayURL, nil); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("dialing a stopped relay: %v", err)
	}
	if !market.Relay.Stopped() {
		t.Error("the relay does not say that it is stopped")
	}
	added := signed(t, market.Hosts[0], 30402, nostr.Tag{"d", "meanwhile"}, nostr.Tag{"t", "accommodation"})
	if err := market.Relay.Insert(ctx, added); err != nil {
		t.Fatal(err)
	}
	if err := market.Relay.Resume(); err != nil {
		t.Fatal(err)
	}
	if got := dial(t, market.RelayURL).ask(ctx, t, listings(0)); got.err != nil || len(got.events) != 13 {
		t.Errorf("%d events after the return, error %v", len(got.events), got.err)
	}
}

func TestDropCutsAllConnectionsAndNoMore(t *testing.T) {
	t.Parallel()
	market := small(t)
	ctx := patient(t)
	first := dial(t, market.RelayURL)
	first.next(ctx, t, "AUTH")
	market.Relay.Drop()
	if counters := market.Relay.Counters(); counters.Open != 0 {
		t.Errorf("%d connections are open", counters.Open)
	}
	if got := dial(t, market.RelayURL).ask(ctx, t, listings(1)); got.err != nil {
		t.Error(got.err)
	}
}

func TestCountersAndFramesTellWhatCameIn(t *testing.T) {
	t.Parallel()
	market := small(t)
	ctx := patient(t)
	waited := make(chan sandbox.Counters, 1)
	go func() {
		counters, _ := market.Relay.WaitFor(ctx, func(c sandbox.Counters) bool { return c.CLOSEs == 2 && c.AUTHs == 1 })
		waited <- counters
	}()
	client := dial(t, market.RelayURL)
	client.login(ctx, t, market.RelayURL, market.Hosts[0])
	client.query(ctx, t, "one", listings(5))
	client.query(ctx, t, "two", listings(2))
	want := sandbox.Counters{Connections: 1, Open: 1, REQs: 2, CLOSEs: 2, AUTHs: 1, SentEvents: 7, SentEOSEs: 2}
	if difference := cmp.Diff(want, <-waited); difference != "" {
		t.Errorf("counters (-want +got):\n%s", difference)
	}
	var labels []string
	for _, frame := range market.Relay.Frames() {
		labels = append(labels, frame.Label)
	}
	if got := strings.Join(labels, " "); got != "AUTH REQ CLOSE REQ CLOSE" {
		t.Errorf("frames %s", got)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := market.Relay.WaitFor(ended, func(sandbox.Counters) bool { return false }); !errors.Is(err, context.Canceled) {
		t.Errorf("a wait in vain ends with %v", err)
	}
}

func TestRelayDescribesItself(t *testing.T) {
	t.Parallel()
	market := small(t)
	request, err := http.NewRequestWithContext(patient(t), http.MethodGet, "http"+strings.TrimPrefix(market.RelayURL, "ws"), nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept", "application/nostr+json")
	response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var document struct{ Name string }
	if err := json.NewDecoder(response.Body).Decode(&document); err != nil || document.Name != "Hostr sandbox relay" {
		t.Errorf("NIP-11 document %+v, %v", document, err)
	}
}
