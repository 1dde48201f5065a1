package trades

import (
	"runtime"
	"testing"
	"time"

	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/market"
)

// busy returns a guest's service that knows so many bookings, whose orders are given
// as well.
func busy(b *testing.B, count int) (*process, []*nostr.Event) {
	b.Helper()
	host, guest, escrow := newPerson(b, commonRelay), newPerson(b, commonRelay), newPerson(b, commonRelay)
	guest.indexes.highest = count
	run, quiet := guest.quietly()
	at := host.offer(escrow)
	if err := run.learnKeys(patient(b)); err != nil {
		b.Fatal(err)
	}
	run.listings.load(patient(b), []market.Anchor{at.anchor})
	var orders []*nostr.Event
	for i := range count {
		keys, err := run.tradeKeys(i + 1)
		if err != nil {
			b.Fatal(err)
		}
		booked := booking{keys: keys, place: at, guest: run, escrow: escrow.public}
		booked.offer.ListingAnchor, booked.offer.TradeID = at.anchor.String(), keys.TradeID
		order := booked.commitment()
		if err := keys.Key.SignEvent(patient(b), order); err != nil {
			b.Fatal(err)
		}
		orders = append(orders, order)
	}
	quiet.goLive()
	return run, orders
}

const manyBookings = 1000

// Taking in and verifying a thousand bookings, without the relay.
func BenchmarkVerify(b *testing.B) {
	run, orders := busy(b, manyBookings)
	var before, after runtime.MemStats
	for b.Loop() {
		b.StopTimer()
		run.mu.Lock()
		run.trades, run.listed, run.feed.ids, run.proofs = map[string]*trade{}, nil, nil, newProofMemory()
		run.mu.Unlock()
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&before)
		b.StartTimer()
		for _, order := range orders {
			tradeID, err := tradeIDOf(order)
			if err != nil {
				b.Fatal(err)
			}
			run.Track(tradeID, "")
			run.take(order)
		}
		for groups, awaited := run.takeQueued(); len(groups) > 0; groups, awaited = run.takeQueued() {
			run.verifyGroups(b.Context(), groups)
			run.finish(awaited)
		}
	}
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(run)
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/manyBookings, "heap-B/booking")
}

func BenchmarkTrips(b *testing.B) {
	run, orders := busy(b, manyBookings)
	for _, order := range orders {
		tradeID, err := tradeIDOf(order)
		if err != nil {
			b.Fatal(err)
		}
		run.Track(tradeID, "")
		run.take(order)
	}
	for groups, awaited := run.takeQueued(); len(groups) > 0; groups, awaited = run.takeQueued() {
		run.verifyGroups(b.Context(), groups)
		run.finish(awaited)
	}
	for b.Loop() {
		list, err := run.list(b.Context(), time.Nanosecond, false)
		if err != nil || len(list.Items) != manyBookings {
			b.Fatalf("%d trips, %v", len(list.Items), err)
		}
	}
}
