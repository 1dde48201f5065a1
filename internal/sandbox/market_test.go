package sandbox_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nbd-wtf/go-nostr"
	"go.uber.org/goleak"

	"hostr-daemon/internal/sandbox"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction(sandbox.KhatruGoroutine))
}

// start brings a market up for one test.
func start(t testing.TB, options sandbox.Options) *sandbox.Market {
	t.Helper()
	market, err := sandbox.Start(patient(t), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := market.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return market
}

// small is a market of twelve listings and few people.
func small(t testing.TB) *sandbox.Market {
	t.Helper()
	return start(t, sandbox.Options{Listings: 12, Hosts: 2, Guests: 2, Seed: 1})
}

func patient(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func listings(limit int) nostr.Filter {
	return nostr.Filter{Kinds: []int{30402}, Tags: nostr.TagMap{"t": {"accommodation"}}, Limit: limit}
}

func ids(events []nostr.Event) []string {
	all := make([]string, len(events))
	for i, event := range events {
		all[i] = event.ID
	}
	return all
}

func seededIDs(market *sandbox.Market) []string {
	all := make([]string, len(market.Listings))
	for i, listing := range market.Listings {
		all[i] = listing.Event.ID
	}
	return all
}

func TestRelayServesTheSeed(t *testing.T) {
	t.Parallel()
	market := start(t, sandbox.Options{Listings: 30, Seed: 7, Odd: true})
	ctx := patient(t)
	client := dial(t, market.RelayURL)

	found := client.query(ctx, t, "listings", listings(0))
	var want []string
	for _, odd := range slices.Backward(market.Odd) {
		if odd.Accommodation {
			want = append(want, odd.Event.ID)
		}
	}
	want = append(want, seededIDs(market)...)
	if difference := cmp.Diff(want, ids(found)); difference != "" {
		t.Errorf("listings, newest first (-seed +relay):\n%s", difference)
	}
	for _, event := range found {
		if valid, err := event.CheckSignature(); !event.CheckID() || !valid || err != nil {
			t.Errorf("event %s is not genuine: %v", event.ID, err)
		}
	}
	first := client.query(ctx, t, "first", listings(3))
	if difference := cmp.Diff(want[:3], ids(first)); difference != "" {
		t.Errorf("limit 3 (-want +got):\n%s", difference)
	}
	host := market.Hosts[1]
	profiles := client.query(ctx, t, "profile", nostr.Filter{Kinds: []int{0}, Authors: []string{host.PublicKey}})
	if len(profiles) != 1 || profiles[0].ID != host.Profile.ID {
		t.Errorf("profile of %s: %v", host.Name, profiles)
	}
	stored, err := market.Relay.Query(ctx, nostr.Filter{Kinds: []int{0}})
	if err != nil || len(stored) != len(market.Hosts)+len(market.Guests)+1-1 {
		t.Errorf("%d profiles are stored (%v); one guest must be without", len(stored), err)
	}
}

func TestImagesOfListingsAreOnBlossom(t *testing.T) {
	t.Parallel()
	market := small(t)
	for _, listing := range market.Listings {
		for tag := range listing.Event.Tags.FindAll("image") {
			name := filepath.Base(tag[1])
			data, descriptor, found := market.Blossom.Get(name[:64])
			if !found || descriptor.URL != tag[1] || descriptor.Type != "image/png" || len(data) == 0 {
				t.Errorf("%s is not served: %+v", tag[1], descriptor)
			}
		}
	}
}

func TestWriteConfigPointsAtTheMarket(t *testing.T) {
	t.Parallel()
	market := start(t, sandbox.Options{})
	path := filepath.Join(t.TempDir(), "market.json")
	if err := market.WriteConfig(path); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"hostrRelay":             market.RelayURL,
		"bootstrapRelays":        []any{},
		"bootstrapBlossom":       []any{market.BlossomURL},
		"bootstrapEscrowPubkeys": []any{market.Escrow.PublicKey},
		"geocoderUrl":            market.GeocoderURL,
		"evmConfig":              map[string]any{},
	}
	if difference := cmp.Diff(want, got); difference != "" {
		t.Errorf("config (-want +got):\n%s", difference)
	}
}

func TestStartReportsATakenPort(t *testing.T) {
	t.Parallel()
	market := start(t, sandbox.Options{})
	var port int
	if _, err := fmt.Sscanf(market.RelayURL, "ws://127.0.0.1:%d", &port); err != nil {
		t.Fatal(err)
	}
	second, err := sandbox.Start(patient(t), sandbox.Options{RelayPort: port})
	if err == nil {
		_ = second.Close()
		t.Fatal("two relays listen on one port")
	}
}

func TestCloseWithOpenConnections(t *testing.T) {
	t.Parallel()
	market := small(t)
	ctx := patient(t)
	clients := []*client{dial(t, market.RelayURL), dial(t, market.RelayURL)}
	clients[0].query(ctx, t, "all", listings(0))
	market.Relay.Break(sandbox.Faults{HalfOpen: true})
	if err := market.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	if _, _, err := clients[1].conn.Read(ctx); err == nil {
		_, _, err = clients[1].conn.Read(ctx) // the challenge was under way
		if err == nil {
			t.Error("a connection outlives the market")
		}
	}
}
