package relay

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nbd-wtf/go-nostr"
	"github.com/rs/zerolog"
)

// Keys of nobody: the numbers one to three.
var (
	aliceKey = strings.Repeat("0", 63) + "1"
	bobKey   = strings.Repeat("0", 63) + "2"
	carolKey = strings.Repeat("0", 63) + "3"
)

func publicKey(t testing.TB, key string) string {
	t.Helper()
	public, err := nostr.GetPublicKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return public
}

func signed(t testing.TB, key string, kind int, createdAt int64, content string, tags ...nostr.Tag) nostr.Event {
	t.Helper()
	event := nostr.Event{Kind: kind, CreatedAt: nostr.Timestamp(createdAt), Content: content, Tags: tags}
	if err := event.Sign(key); err != nil {
		t.Fatal(err)
	}
	return event
}

// notes returns events of kind 1 dated 1..count.
func notes(t testing.TB, count int) []nostr.Event {
	t.Helper()
	events := make([]nostr.Event, count)
	for i := range events {
		events[i] = signed(t, aliceKey, 1, int64(i+1), fmt.Sprintf("note %d", i+1))
	}
	return events
}

// keyAccount signs with a key held here; the hook may answer first.
type keyAccount struct {
	key    string
	public string
	remote bool
	hook   func(ctx context.Context, event *nostr.Event) error
	signed atomic.Int32
}

func newAccount(t testing.TB, key string) *keyAccount {
	return &keyAccount{key: key, public: publicKey(t, key)}
}

func (a *keyAccount) PublicKey() string { return a.public }
func (a *keyAccount) IsRemote() bool    { return a.remote }
func (a *keyAccount) SignEvent(ctx context.Context, event *nostr.Event) error {
	a.signed.Add(1)
	if a.hook != nil {
		if err := a.hook(ctx, event); err != nil {
			return err
		}
	}
	return event.Sign(a.key)
}

func newTestVerifier(t testing.TB) *Verifier {
	v := NewVerifier(nil, zerolog.New(io.Discard))
	t.Cleanup(v.Close)
	return v
}

// newTestClient fills in what a test leaves out.
func newTestClient(t testing.TB, config Config) *Client {
	t.Helper()
	if config.Verifier == nil {
		config.Verifier = newTestVerifier(t)
	}
	if config.Jitter == nil {
		config.Jitter = func() float64 { return 0.5 }
	}
	client, err := NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// testContext ends before the test's patience does.
func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	t.Cleanup(cancel)
	return ctx
}

// result is what a query gave, for queries that run beside the test.
type result struct {
	answer Answer
	err    error
}

func startQuery(ctx context.Context, c *Client, filter nostr.Filter, options QueryOptions) <-chan result {
	done := make(chan result, 1)
	go func() {
		answer, err := c.Query(ctx, filter, options)
		done <- result{answer, err}
	}()
	return done
}

func mustQuery(t testing.TB, c *Client, filter nostr.Filter, options QueryOptions) Answer {
	t.Helper()
	return within(t, startQuery(testContext(t), c, filter, options))
}

func within(t testing.TB, done <-chan result) Answer {
	t.Helper()
	got := receive(t, done)
	if got.err != nil {
		t.Fatalf("query: %v", got.err)
	}
	return got.answer
}

func receive[T any](t testing.TB, from <-chan T) T {
	t.Helper()
	select {
	case value := <-from:
		return value
	case <-time.After(patience):
		t.Fatal("nothing came")
		panic("unreachable")
	}
}

// contents returns the contents of the events in order.
func contents(events []*nostr.Event) []string {
	texts := make([]string, len(events))
	for i, event := range events {
		texts[i] = event.Content
	}
	return texts
}

func wantContents(t testing.TB, events []*nostr.Event, want ...string) {
	t.Helper()
	if got := contents(events); !slices.Equal(got, want) {
		t.Errorf("events are %q, want %q", got, want)
	}
}

func wantEnd(t testing.TB, answer Answer, relay string, end End, reason string) {
	t.Helper()
	at := slices.IndexFunc(answer.Relays, func(o RelayOutcome) bool { return o.URL == relay })
	if at < 0 {
		t.Fatalf("%s is not among the relays of %+v", relay, answer.Relays)
	}
	if got := answer.Relays[at]; got.End != end || !strings.Contains(got.Reason, reason) {
		t.Errorf("%s ended with %q (%q), want %q (%q)", relay, got.End, got.Reason, end, reason)
	}
	if complete := end == EndEOSE; len(answer.Relays) == 1 && answer.Complete != complete {
		t.Errorf("complete is %v", answer.Complete)
	}
}

// eventually looks every millisecond whether something that announces itself on no
// channel has come true.
func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	deadline := time.After(patience)
	for !condition() {
		select {
		case <-ticker.C:
		case <-deadline:
			t.Fatalf("it never came about that %s", what)
		}
	}
}
