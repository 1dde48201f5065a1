package sessions_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/sandbox"
	"hostr-daemon/internal/sandbox/signerapp"
	"hostr-daemon/internal/sessions"
)

// restoredAtOnce is how many accounts a restart finds.
const restoredAtOnce = 100

// BenchmarkRestore has as many accounts with remote signers come back after a restart,
// all asked for at the same time. The signers and the relay share the process, and so
// its time and its memory before the restart, which is taken off.
func BenchmarkRestore(b *testing.B) {
	market := newBench(b)
	first := market.daemon()
	phones := make([]*signerapp.App, restoredAtOnce)
	for i := range phones {
		key := nostr.GeneratePrivateKey()
		phones[i] = market.phone(sandbox.Person{PrivateKey: key})
		market.signIn(first, phones[i], fmt.Sprint("bridge session ", i))
	}
	first.Close()
	var memory, requests, sockets float64
	for b.Loop() {
		b.StopTimer()
		before, asked, open := liveBytes(), countRequests(phones), market.market.Relay.Counters().Open
		registry := market.daemon()
		b.StartTimer()
		restoreAll(b, registry, phones)
		b.StopTimer()
		authenticated(b, phones)
		memory += liveBytes() - before
		requests += countRequests(phones) - asked
		sockets += float64(market.market.Relay.Counters().Open - open)
		registry.Close()
		b.StartTimer()
	}
	each := float64(b.N * restoredAtOnce)
	b.ReportMetric(memory/each/1024, "KiB/session")
	b.ReportMetric(requests/each, "requests/session")
	b.ReportMetric(sockets/each, "sockets/session")
}

// restoreAll asks for every account's status, as their first requests do.
func restoreAll(b *testing.B, registry *sessions.Registry, phones []*signerapp.App) {
	b.Helper()
	done := make(chan error, len(phones))
	for _, phone := range phones {
		go func() {
			session, err := registry.Opened(within(b), phone.PublicKey())
			if err == nil {
				var status sessions.Status
				if status, err = session.Status(within(b)); err == nil && !status.SignerOnline {
					err = fmt.Errorf("the signer of %s is not back", phone.PublicKey())
				}
			}
			done <- err
		}()
	}
	for range phones {
		if err := <-done; err != nil {
			b.Fatal(err)
		}
	}
}

// authenticated waits until each signer has been asked for its last AUTH too.
func authenticated(b *testing.B, phones []*signerapp.App) {
	b.Helper()
	for _, phone := range phones {
		err := phone.WaitFor(within(b), func(requests []signerapp.Request, _ int) bool {
			last := requests[len(requests)-1]
			return last.Method == "sign_event" && strings.Contains(last.Params[0], "22242")
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}

func countRequests(phones []*signerapp.App) (all float64) {
	for _, phone := range phones {
		all += float64(len(phone.Requests()))
	}
	return all
}

// liveBytes is what is in use after a collection.
func liveBytes() float64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return float64(stats.HeapInuse + stats.StackInuse)
}
