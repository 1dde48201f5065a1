package profiles_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nbd-wtf/go-nostr"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"hostr-daemon/internal/market"
	"hostr-daemon/internal/profiles"
	"hostr-daemon/internal/relay"
	"hostr-daemon/internal/sandbox"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction(sandbox.KhatruGoroutine))
}

// patience bounds every wait of these tests.
const patience = time.Minute

func patient(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
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

// unreachable is a relay URL nobody listens on.
const unreachable = "ws://127.0.0.1:1"

// person is somebody with a key, who writes profiles.
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

// writes returns a signed kind 0 of the person.
func (p person) writes(t testing.TB, createdAt nostr.Timestamp, content string) nostr.Event {
	t.Helper()
	event := nostr.Event{Kind: nostr.KindProfileMetadata, CreatedAt: createdAt, Content: content, Tags: nostr.Tags{}}
	if err := event.Sign(p.key); err != nil {
		t.Fatal(err)
	}
	return event
}

func decoded(t testing.TB, event nostr.Event) *market.Profile {
	t.Helper()
	profile, err := market.DecodeProfile(&event)
	if err != nil {
		t.Fatal(err)
	}
	return profile
}

// house is one process: a cache, and the sessions that share it.
type house struct {
	t     testing.TB
	clock *clock
	cache *profiles.Cache
}

func newHouse(t testing.TB) *house {
	clock := newClock()
	return &house{t: t, clock: clock, cache: profiles.NewCache(clock.Now)}
}

// session opens a session on a relay client of its own. close may be called early.
func (h *house) session(hostr string, public ...string) (service *profiles.Service, end func()) {
	h.t.Helper()
	verifier := relay.NewVerifier(nil, zerolog.Nop())
	bootstrap := append([]string{hostr}, public...)
	client, err := relay.NewClient(relay.Config{
		HostrRelay: hostr, Bootstrap: bootstrap, Verifier: verifier, Logger: zerolog.Nop(), Clock: h.clock,
	})
	if err != nil {
		h.t.Fatal(err)
	}
	service = profiles.New(client, hostr, bootstrap, h.cache)
	end = sync.OnceFunc(func() {
		service.Close()
		client.Close()
		verifier.Close()
	})
	h.t.Cleanup(end)
	return service, end
}

// clock stands still until a test moves it.
type clock struct {
	mu      sync.Mutex
	now     time.Time
	timers  map[*timer]struct{}
	changed chan struct{}
}

type timer struct {
	due  time.Time
	span time.Duration
	run  func()
}

func newClock() *clock {
	return &clock{now: time.Unix(1_767_225_600, 0), timers: map[*timer]struct{}{}, changed: make(chan struct{})}
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) AfterFunc(d time.Duration, run func()) func() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	added := &timer{due: c.now.Add(d), span: d, run: run}
	c.timers[added] = struct{}{}
	close(c.changed)
	c.changed = make(chan struct{})
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		_, waiting := c.timers[added]
		delete(c.timers, added)
		return waiting
	}
}

// pass lets time pass and runs what has become due.
func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	c.now = c.now.Add(d)
	var due []func()
	for timer := range c.timers {
		if !timer.due.After(c.now) {
			due = append(due, timer.run)
			delete(c.timers, timer)
		}
	}
	c.mu.Unlock()
	for _, run := range due {
		go run()
	}
}

// await returns once somebody waits for a span of so long.
func (c *clock) await(ctx context.Context, t testing.TB, span time.Duration) {
	t.Helper()
	for {
		c.mu.Lock()
		changed, found := c.changed, false
		for timer := range c.timers {
			found = found || timer.span == span
		}
		c.mu.Unlock()
		if found {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatalf("nobody waits for %s", span)
		}
	}
}

// outcome is what a look-up gave.
type outcome struct {
	profiles.Found
	err error
}

// lookups runs so many look-ups at the same time.
func lookups(ctx context.Context, service *profiles.Service, pubkey string, count int) <-chan outcome {
	outcomes := make(chan outcome, count)
	for range count {
		go func() {
			found, err := service.Lookup(ctx, pubkey)
			outcomes <- outcome{found, err}
		}()
	}
	return outcomes
}

func receive[T any](ctx context.Context, t testing.TB, from <-chan T) T {
	t.Helper()
	select {
	case value := <-from:
		return value
	case <-ctx.Done():
		t.Fatal("nothing came")
		panic("unreachable")
	}
}

// wantName checks the name of a found profile; "" wants none to be found.
func wantName(t testing.TB, got outcome, name string) {
	t.Helper()
	switch {
	case got.err != nil:
		t.Fatalf("look-up: %v", got.err)
	case name == "" && got.Profile != nil:
		t.Fatalf("found %q, want no profile", got.Profile.Name)
	case name != "" && got.Profile == nil:
		t.Fatalf("found nothing (warning %v), want %q", got.Warning, name)
	case name != "" && got.Profile.Name != name:
		t.Fatalf("found %q, want %q", got.Profile.Name, name)
	}
}

func find(t testing.TB, service *profiles.Service, pubkey string) outcome {
	t.Helper()
	found, err := service.Lookup(patient(t), pubkey)
	return outcome{found, err}
}

// profileREQs counts the requests for somebody's profile that a relay has seen.
func profileREQs(market *sandbox.Market, pubkey string) int {
	count := 0
	for _, frame := range market.Relay.Frames() {
		if frame.Label == "REQ" && strings.Contains(frame.Text, pubkey) {
			count++
		}
	}
	return count
}

// awaitREQ returns once the relay has seen count requests for the profile.
func awaitREQ(ctx context.Context, t testing.TB, market *sandbox.Market, pubkey string, count int) {
	t.Helper()
	_, err := market.Relay.WaitFor(ctx, func(sandbox.Counters) bool { return profileREQs(market, pubkey) >= count })
	if err != nil {
		t.Fatal(err)
	}
}

func urls(markets ...*sandbox.Market) []string {
	var urls []string
	for _, market := range markets {
		urls = append(urls, market.RelayURL)
	}
	return urls
}
