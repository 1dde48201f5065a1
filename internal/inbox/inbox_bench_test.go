package inbox

import (
	"context"
	"crypto/rand"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/nbd-wtf/go-nostr"
	"github.com/rs/zerolog"

	"hostr-daemon/internal/giftwrap"
	"hostr-daemon/internal/sandbox"
	"hostr-daemon/internal/store"
)

// correspondents is how many people have written what is fetched in benchmarks.
const correspondents = 40

// benchmarked is a person with many messages on the relay.
func benchmarked(b *testing.B, count int) (*person, []nostr.Event) {
	b.Helper()
	at, err := sandbox.Start(context.Background(), sandbox.Options{Hosts: 1, Guests: 1})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = at.Close() })
	me := newPerson(b, at)
	me.verified = me.store.VerifiedEvents()
	keys := make([]string, correspondents)
	for i := range keys {
		keys[i] = randomKey(b)
	}
	wraps := make([]nostr.Event, count)
	onAllCores(count, func(i int) {
		from := newLocal(b, keys[i%len(keys)])
		now := nostr.Now()
		rumor := textDraft(fmt.Sprint("message ", i), "trade", me.public).Event(from.PublicKey(), now-nostr.Timestamp(i))
		wrap, err := giftwrap.Wrap(context.Background(), from, rumor, me.public, now, rand.Reader)
		if err != nil {
			panic(err)
		}
		wraps[i] = *wrap
	})
	if err := at.Relay.Insert(context.Background(), wraps...); err != nil {
		b.Fatal(err)
	}
	return me, wraps
}

func onAllCores(count int, work func(i int)) {
	var working sync.WaitGroup
	cores := runtime.GOMAXPROCS(0)
	for core := range cores {
		working.Go(func() {
			for i := core; i < count; i += cores {
				work(i)
			}
		})
	}
	working.Wait()
}

// hydrate runs a process until its history is there and returns how to end it.
func (p *person) hydrate(b *testing.B, count int) *process {
	b.Helper()
	run := p.newProcess()
	if err := run.Await(context.Background(), 10*time.Minute); err != nil {
		b.Fatal(err)
	}
	if got := run.seen.count(); got != count {
		b.Fatalf("%d messages of %d", got, count)
	}
	return run
}

// BenchmarkHydrate compares the first fetch of an inbox, with a local key, and the
// next one, from the cache, with the bare cost of verifying and decrypting.
func BenchmarkHydrate(b *testing.B) {
	for _, count := range []int{1000, 10_000} {
		me, wraps := benchmarked(b, count)
		b.Run(fmt.Sprint("bare/", count), func(b *testing.B) {
			for b.Loop() {
				onAllCores(count, func(i int) {
					if genuine, err := wraps[i].CheckSignature(); !genuine || err != nil || !wraps[i].CheckID() {
						panic("a wrap is not genuine")
					}
					if _, _, err := giftwrap.Unwrap(context.Background(), me.local, &wraps[i]); err != nil {
						panic(err)
					}
				})
			}
		})
		b.Run(fmt.Sprint("first/", count), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				me.keys = &keyPlace{}
				b.StartTimer()
				run := me.hydrate(b, count)
				b.StopTimer()
				run.stop()
				b.StartTimer()
			}
		})
		b.Run(fmt.Sprint("again/", count), func(b *testing.B) {
			me.hydrate(b, count).stop()
			me.app.count("nip44_decrypt")
			for b.Loop() {
				run := me.hydrate(b, count)
				b.StopTimer()
				run.stop()
				b.StartTimer()
			}
			b.ReportMetric(float64(me.app.count("nip44_decrypt")), "decryptions")
		})
		b.Run(fmt.Sprint("held/", count), func(b *testing.B) {
			var bytes uint64
			for b.Loop() {
				before := heapInUse()
				run := me.hydrate(b, count)
				bytes = heapInUse() - before
				runtime.KeepAlive(run)
				run.stop()
			}
			b.ReportMetric(float64(bytes)/float64(count), "heap-B/message")
		})
	}
}

func heapInUse() uint64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// BenchmarkHydrateRemote is the same with a signer that takes 20 ms for each request:
// two for each message, eight at a time.
func BenchmarkHydrateRemote(b *testing.B) {
	const count = 1000
	me, _ := benchmarked(b, count)
	me.app.remote = true
	me.app.refuseWith(func(ctx context.Context, _, _ string) error {
		select {
		case <-time.After(20 * time.Millisecond):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	for b.Loop() {
		me.keys = &keyPlace{}
		me.hydrate(b, count).stop()
	}
}

// BenchmarkCacheLoad is the cache alone.
func BenchmarkCacheLoad(b *testing.B) {
	const count = 10_000
	me := newPerson(b, commonRelay)
	c := newCache(Config{Memory: me.store.MessageCache(me.public), Keys: me.keys, Random: rand.Reader, Logger: zerolog.Nop()}, me.public)
	c.load(context.Background())
	for i := range count {
		draft := textDraft(fmt.Sprint("message ", i), "trade", me.public)
		c.rumor(fmt.Sprintf("%064x", i), draft.Event(me.public, nostr.Timestamp(i)))
	}
	c.finish()
	for b.Loop() {
		if found := c.load(context.Background()); len(found.rumors) != count {
			b.Fatalf("%d messages", len(found.rumors))
		}
	}
}

var _ Memory = (*store.MessageCache)(nil)
