//go:build !race

// khatru has data races of its own (it reads its list of listeners without their
// lock whenever an EVENT meets a REQ), which the race detector would report here.

package relay

import (
	"context"
	"io"
	"log"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/fiatjaf/eventstore/slicestore"
	"github.com/fiatjaf/khatru"
	"github.com/nbd-wtf/go-nostr"
)

// startKhatru runs a real relay that, as the Hostr relay does, takes writes of
// authenticated accounts only and shows gift wraps to nobody else.
func startKhatru(t testing.TB, stored ...nostr.Event) string {
	t.Helper()
	store := &slicestore.SliceStore{}
	if err := store.Init(); err != nil {
		t.Fatal(err)
	}
	for _, event := range stored {
		if err := store.SaveEvent(context.Background(), &event); err != nil {
			t.Fatal(err)
		}
	}
	relay := khatru.NewRelay()
	relay.Log = log.New(io.Discard, "", 0)
	relay.StoreEvent = append(relay.StoreEvent, store.SaveEvent)
	relay.QueryEvents = append(relay.QueryEvents, store.QueryEvents)
	relay.DeleteEvent = append(relay.DeleteEvent, store.DeleteEvent)
	relay.ReplaceEvent = append(relay.ReplaceEvent, store.ReplaceEvent)
	relay.OnConnect = append(relay.OnConnect, khatru.RequestAuth)
	relay.RejectEvent = append(relay.RejectEvent, func(ctx context.Context, event *nostr.Event) (bool, string) {
		return khatru.GetAuthed(ctx) == "" && event.Kind != 24133, "auth-required: sign in to write"
	})
	relay.RejectFilter = append(relay.RejectFilter, func(ctx context.Context, filter nostr.Filter) (bool, string) {
		return khatru.GetAuthed(ctx) == "" && slices.Contains(filter.Kinds, 1059), "auth-required: sign in to read messages"
	})
	server := httptest.NewServer(relay)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
		store.Close()
	})
	return "ws" + strings.TrimPrefix(server.URL, "http")
}

func TestAgainstKhatru(t *testing.T) {
	t.Parallel()
	url := startKhatru(t)
	client := newTestClient(t, Config{HostrRelay: url, Account: newAccount(t, aliceKey)})
	ctx := testContext(t)

	inbox := mustSubscribe(t, client, nostr.Filter{Kinds: []int{1059}}, SubscribeOptions{})
	receive(t, inbox.Stored()) // After the AUTH its CLOSED asked for.

	for _, event := range listings(t, 40) {
		receipts, err := client.Publish(ctx, event, PublishOptions{})
		if err != nil || !receipts[0].BroadcastSuccessful {
			t.Fatalf("receipts %+v, error %v", receipts, err)
		}
	}
	wrap := signed(t, carolKey, 1059, 1_700_000_000, "wrap")
	mustPublish(t, client, wrap, PublishOptions{})
	wantNext(t, inbox, "wrap")

	stranger := newTestClient(t, Config{HostrRelay: url})
	answer := mustQuery(t, stranger, nostr.Filter{Kinds: []int{30402}, Tags: nostr.TagMap{"t": {"accommodation"}}}, QueryOptions{})
	wantEnd(t, answer, url, EndEOSE, "")
	if len(answer.Events) != 40 {
		t.Errorf("%d listings, want 40", len(answer.Events))
	}
	wantEnd(t, mustQuery(t, stranger, nostr.Filter{Kinds: []int{1059}}, QueryOptions{}), url, EndClosed, "auth-required")
	got := receive(t, startPublish(t, stranger, signed(t, bobKey, 0, 1, "{}"), PublishOptions{}))
	if got.err == nil || !strings.Contains(got.err.Error(), "auth-required: sign in to write") {
		t.Errorf("a stranger's publish: %v", got.err)
	}
}

// BenchmarkKhatruQuery500 is BenchmarkQuery500/warm against a real relay, which
// shares the processors with the client.
func BenchmarkKhatruQuery500(b *testing.B) {
	url := startKhatru(b, listings(b, 500)...)
	client := newTestClient(b, Config{HostrRelay: url})
	filter := nostr.Filter{Kinds: []int{30402}, Limit: 500}
	for b.Loop() {
		answer, err := client.Query(context.Background(), filter, QueryOptions{})
		if err != nil || len(answer.Events) != 500 || !answer.Complete {
			b.Fatalf("%d events, %+v, %v", len(answer.Events), answer.Relays, err)
		}
	}
}
