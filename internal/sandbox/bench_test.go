package sandbox_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/sandbox"
)

func BenchmarkStart(b *testing.B) {
	for _, listings := range []int{200, 10_000} {
		b.Run(strconv.Itoa(listings), func(b *testing.B) {
			for b.Loop() {
				market, err := sandbox.Start(context.Background(), sandbox.Options{Listings: listings, Seed: 1})
				if err != nil {
					b.Fatal(err)
				}
				if err := market.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkQuery reads 500 of 10,000 listings over the WebSocket, as search does.
func BenchmarkQuery(b *testing.B) {
	market, err := sandbox.Start(context.Background(), sandbox.Options{Listings: 10_000, Seed: 1})
	if err != nil {
		b.Fatal(err)
	}
	defer market.Close()
	cells := make([]string, 500)
	for i := range cells {
		cells[i] = market.Listings[i].Event.Tags.Find("g")[1]
	}
	base := nostr.TagMap{"t": {"accommodation"}}
	filters := map[string]nostr.Filter{
		"newest":   {Kinds: []int{30402}, Tags: base, Limit: 500},
		"features": {Kinds: []int{30402}, Tags: nostr.TagMap{"t": base["t"], "S": {"kitchen+wireless_internet"}}, Limit: 500},
		"cells":    {Kinds: []int{30402}, Tags: nostr.TagMap{"t": base["t"], "g": cells}, Limit: 500},
	}
	for name, filter := range filters {
		b.Run(name, func(b *testing.B) {
			client := dial(b, market.RelayURL)
			for i := 0; b.Loop(); i++ {
				ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
				events := client.query(ctx, b, fmt.Sprint("query", i), filter)
				cancel()
				if len(events) != 500 {
					b.Fatalf("got %d events, want 500", len(events))
				}
			}
		})
	}
}
