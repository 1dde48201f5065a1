package relaylists_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nbd-wtf/go-nostr"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"hostr-daemon/internal/relay"
	"hostr-daemon/internal/relaylists"
	"hostr-daemon/internal/sandbox"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction(sandbox.KhatruGoroutine))
}

const (
	atHome = "wss://home.example.org"
	abroad = "wss://abroad.example.org"
)

func TestLoadTakesTheNewestOfAllRelays(t *testing.T) {
	t.Parallel()
	who := newPerson(t)
	older, newer := who.lists(t, 100, nostr.Tag{"r", atHome}), who.lists(t, 200, nostr.Tag{"r", abroad, "write"})
	emptied := who.lists(t, 300)
	for name, test := range map[string]struct {
		stored [][]nostr.Event
		want   relaylists.List
	}{
		"on the Hostr relay":   {[][]nostr.Event{{older}, nil}, relaylists.List{Read: []string{atHome}, Write: []string{atHome}}},
		"newer elsewhere":      {[][]nostr.Event{{older}, {newer}}, relaylists.List{Write: []string{abroad}}},
		"older elsewhere":      {[][]nostr.Event{{newer}, {older}}, relaylists.List{Write: []string{abroad}}},
		"nowhere":              {[][]nostr.Event{nil, nil}, relaylists.List{}},
		"emptied by its owner": {[][]nostr.Event{{newer}, {emptied}}, relaylists.List{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var urls []string
			for _, events := range test.stored {
				urls = append(urls, relayWith(t, events...).RelayURL)
			}
			lists := newHouse().session(t, urls...)
			list, found, err := lists.Load(patient(t), who.pubkey)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, list); diff != "" || found != (len(list.Write) > 0) {
				t.Errorf("found %t (-want +got):\n%s", found, diff)
			}
			if cached, known := lists.Cached(who.pubkey); known != found || !cmp.Equal(cached, list) {
				t.Errorf("cached is %v, %t", cached, known)
			}
		})
	}
}

func TestHint(t *testing.T) {
	t.Parallel()
	who, other := newPerson(t), newPerson(t)
	market := relayWith(t, who.lists(t, 100, nostr.Tag{"r", atHome, "read"}, nostr.Tag{"r", abroad}),
		other.lists(t, 100, nostr.Tag{"r", atHome, "read"}))
	lists := newHouse().session(t, market.RelayURL)
	if hint := lists.Hint(who.pubkey); hint != "" {
		t.Errorf("a list nobody has loaded gives the hint %q", hint)
	}
	for pubkey, want := range map[string]string{who.pubkey: abroad, other.pubkey: ""} {
		if _, found, err := lists.Load(patient(t), pubkey); !found || err != nil {
			t.Fatalf("found %t, %v", found, err)
		}
		if hint := lists.Hint(pubkey); hint != want {
			t.Errorf("hint %q, want %q", hint, want)
		}
	}
	if write := lists.WriteRelays(who.pubkey); !cmp.Equal(write, []string{abroad}) {
		t.Errorf("write relays %v", write)
	}
	if write := lists.WriteRelays(newPerson(t).pubkey); write != nil {
		t.Errorf("write relays of somebody unknown: %v", write)
	}
}

// What one session has learned the others know, for five minutes without asking.
func TestSessionsShareTheCache(t *testing.T) {
	t.Parallel()
	who := newPerson(t)
	market := relayWith(t, who.lists(t, 100, nostr.Tag{"r", atHome}))
	house := newHouse()
	wantWrite := func(lists *relaylists.Lists, want string, asked int) {
		t.Helper()
		list, found, err := lists.Load(patient(t), who.pubkey)
		if err != nil || !found || list.Write[0] != want {
			t.Fatalf("%v, %t, %v; want %s", list, found, err, want)
		}
		if requests := market.Relay.Counters().REQs; requests != asked {
			t.Errorf("the relay was asked %d times, want %d", requests, asked)
		}
	}
	first, second := house.session(t, market.RelayURL), house.session(t, market.RelayURL)
	wantWrite(first, atHome, 1)
	if err := market.Relay.Insert(patient(t), who.lists(t, 200, nostr.Tag{"r", abroad})); err != nil {
		t.Fatal(err)
	}
	wantWrite(second, atHome, 1)
	house.pass(5 * time.Minute)
	wantWrite(second, abroad, 2)
	wantWrite(first, abroad, 2)
}

// A relay that was cut off proves nothing: what is known stays known.
func TestIncompleteAnswer(t *testing.T) {
	t.Parallel()
	who := newPerson(t)
	market, refusing := relayWith(t, who.lists(t, 100, nostr.Tag{"r", atHome})), relayWith(t)
	refusal := sandbox.Faults{Closed: "blocked: not for you"}
	refusing.Relay.Break(refusal)
	house := newHouse()
	lists := house.session(t, market.RelayURL, refusing.RelayURL)
	if _, found, err := lists.Load(patient(t), who.pubkey); !found || err != nil {
		t.Fatalf("one relay has the list, but: found %t, %v", found, err)
	}
	house.pass(5 * time.Minute)
	market.Relay.Break(refusal)
	for _, passed := range []time.Duration{0, 29 * time.Second, time.Second} {
		house.pass(passed)
		if list, found, err := lists.Load(patient(t), who.pubkey); !found || err != nil || list.Write[0] != atHome {
			t.Errorf("%s later: %v, %t, %v", passed, list, found, err)
		}
	}
	if requests := market.Relay.Counters().REQs; requests != 3 {
		t.Errorf("the relay was asked %d times, want 3: a failed look-up is left alone for half a minute", requests)
	}
	if _, found, err := lists.Load(patient(t), newPerson(t).pubkey); found || err != nil {
		t.Errorf("a stranger's list: found %t, %v", found, err)
	}
}

// A list that every relay has lost is lost.
func TestCompleteAnswerWithoutAList(t *testing.T) {
	t.Parallel()
	who := newPerson(t)
	event := who.lists(t, 100, nostr.Tag{"r", atHome})
	house := newHouse()
	full, empty := relayWith(t, event), relayWith(t)
	if _, found, err := house.session(t, full.RelayURL).Load(patient(t), who.pubkey); !found || err != nil {
		t.Fatalf("found %t, %v", found, err)
	}
	house.pass(5 * time.Minute)
	lists := house.session(t, empty.RelayURL)
	if _, known := lists.Cached(who.pubkey); !known {
		t.Error("an old list is not known any more")
	}
	if _, found, err := lists.Load(patient(t), who.pubkey); found || err != nil {
		t.Errorf("found %t, %v", found, err)
	}
	if _, known := lists.Cached(who.pubkey); known {
		t.Error("a list no relay has is still known")
	}
}

// An older version that comes later does not replace what is known.
func TestOlderVersionDoesNotReplace(t *testing.T) {
	t.Parallel()
	who := newPerson(t)
	house := newHouse()
	one, two := who.lists(t, 200, nostr.Tag{"r", atHome}), who.lists(t, 200, nostr.Tag{"r", abroad})
	want := atHome
	if two.ID < one.ID {
		want = abroad
	}
	for _, event := range []nostr.Event{one, who.lists(t, 100, nostr.Tag{"r", abroad}), two, one} {
		lists := house.session(t, relayWith(t, event).RelayURL)
		if _, found, err := lists.Load(patient(t), who.pubkey); !found || err != nil {
			t.Fatalf("found %t, %v", found, err)
		}
		house.pass(5 * time.Minute)
	}
	if hint := house.session(t).Hint(who.pubkey); hint != want {
		t.Errorf("the hint is %s, want %s", hint, want)
	}
}

func TestEqualLoadsAreOne(t *testing.T) {
	t.Parallel()
	who := newPerson(t)
	market := relayWith(t, who.lists(t, 100, nostr.Tag{"r", atHome}))
	market.Relay.Break(sandbox.Faults{HalfOpen: true})
	lists := newHouse().session(t, market.RelayURL)
	ctx := patient(t)
	outcomes := make(chan error, 20)
	var asking sync.WaitGroup
	asking.Add(cap(outcomes))
	for range cap(outcomes) {
		go func() {
			asking.Done()
			list, found, err := lists.Load(ctx, who.pubkey)
			if err == nil && (!found || list.Write[0] != atHome) {
				err = fmt.Errorf("found %v, %t", list, found)
			}
			outcomes <- err
		}()
	}
	asking.Wait()
	market.Relay.Heal()
	for range cap(outcomes) {
		select {
		case err := <-outcomes:
			if err != nil {
				t.Error(err)
			}
		case <-ctx.Done():
			t.Fatal("a load never ends")
		}
	}
	requests := 0
	for _, frame := range market.Relay.Frames() {
		if frame.Label == "REQ" && strings.Contains(frame.Text, who.pubkey) {
			requests++
		}
	}
	if requests != 1 {
		t.Errorf("%d requests for 20 equal loads", requests)
	}
}

func TestLoadEndsWithItsContext(t *testing.T) {
	t.Parallel()
	market := relayWith(t)
	market.Relay.Break(sandbox.Faults{NoEOSE: true})
	lists := newHouse().session(t, market.RelayURL)
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(patient(t))
	failed := make(chan error, 1)
	who := newPerson(t).pubkey
	go func() {
		_, _, err := lists.Load(ctx, who)
		failed <- err
	}()
	if _, err := market.Relay.WaitFor(patient(t), func(c sandbox.Counters) bool { return c.REQs == 1 }); err != nil {
		t.Fatal(err)
	}
	cancel(enough)
	select {
	case err := <-failed:
		if !errors.Is(err, enough) {
			t.Errorf("%v, want the cause", err)
		}
	case <-patient(t).Done():
		t.Error("the load goes on")
	}
}

func TestCacheIsBounded(t *testing.T) {
	t.Parallel()
	house := newHouse()
	lists := relaylists.New(anyonesList{}, nil, house.cache)
	for i := range relaylists.RememberedLists + 10 {
		if _, found, err := lists.Load(t.Context(), fmt.Sprintf("%064x", i)); !found || err != nil {
			t.Fatalf("found %t, %v", found, err)
		}
	}
	for i, want := range map[int]bool{0: false, 9: false, 10: true, relaylists.RememberedLists: true} {
		if _, known := lists.Cached(fmt.Sprintf("%064x", i)); known != want {
			t.Errorf("list %d is known: %t, want %t", i, known, want)
		}
	}
}

// What is handed out belongs to the caller.
func TestListsAreCopies(t *testing.T) {
	t.Parallel()
	house := newHouse()
	lists := relaylists.New(anyonesList{}, nil, house.cache)
	pubkey := strings.Repeat("a", 64)
	list, _, err := lists.Load(t.Context(), pubkey)
	if err != nil {
		t.Fatal(err)
	}
	list.Write[0] = "spoiled"
	lists.WriteRelays(pubkey)[0] = "spoiled"
	if hint := lists.Hint(pubkey); hint != atHome {
		t.Errorf("the hint became %q", hint)
	}
}

// anyonesList gives everybody the same list, without signatures.
type anyonesList struct{}

func (anyonesList) Query(_ context.Context, filter nostr.Filter, _ relay.QueryOptions) (relay.Answer, error) {
	event := &nostr.Event{ID: "1", PubKey: filter.Authors[0], Kind: 10002, CreatedAt: 1, Tags: nostr.Tags{{"r", atHome}}}
	return relay.Answer{Events: []*nostr.Event{event}, Complete: true}, nil
}

func BenchmarkHint(b *testing.B) {
	house := newHouse()
	lists := relaylists.New(anyonesList{}, nil, house.cache)
	pubkey := strings.Repeat("a", 64)
	if _, _, err := lists.Load(b.Context(), pubkey); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if lists.Hint(pubkey) == "" {
			b.Fatal("no hint")
		}
	}
}

// house is one process: a clock, and a cache that its sessions share.
type house struct {
	mu    sync.Mutex
	time  time.Time
	cache *relaylists.Cache
}

func newHouse() *house {
	h := &house{time: time.Unix(1_767_225_600, 0)}
	h.cache = relaylists.NewCache(h.now)
	return h
}

func (h *house) now() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.time
}

func (h *house) pass(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.time = h.time.Add(d)
}

// session opens a session on a relay client of its own.
func (h *house) session(t testing.TB, bootstrap ...string) *relaylists.Lists {
	t.Helper()
	verifier := relay.NewVerifier(nil, zerolog.Nop())
	client, err := relay.NewClient(relay.Config{Bootstrap: bootstrap, Verifier: verifier, Logger: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		client.Close()
		verifier.Close()
	})
	return relaylists.New(client, bootstrap, h.cache)
}

// person is somebody with a key, who writes relay lists.
type person struct{ key, pubkey string }

func newPerson(t testing.TB) person {
	t.Helper()
	key := nostr.GeneratePrivateKey()
	pubkey, err := nostr.GetPublicKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return person{key, pubkey}
}

func (p person) lists(t testing.TB, createdAt nostr.Timestamp, tags ...nostr.Tag) nostr.Event {
	t.Helper()
	event := nostr.Event{Kind: nostr.KindRelayListMetadata, CreatedAt: createdAt, Tags: tags}
	if err := event.Sign(p.key); err != nil {
		t.Fatal(err)
	}
	return event
}

// relayWith starts a relay that holds the events.
func relayWith(t testing.TB, events ...nostr.Event) *sandbox.Market {
	t.Helper()
	started, err := sandbox.Start(patient(t), sandbox.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := started.Close(); err != nil {
			t.Errorf("closing the market: %v", err)
		}
	})
	if err := started.Relay.Insert(patient(t), events...); err != nil {
		t.Fatal(err)
	}
	return started
}

// patient bounds every wait of these tests.
func patient(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}
