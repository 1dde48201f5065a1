package sessions_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/inbox"
	"hostr-daemon/internal/market"
	"hostr-daemon/internal/sandbox"
	"hostr-daemon/internal/sandbox/relayproxy"
	"hostr-daemon/internal/sessions"
	"hostr-daemon/internal/store"
)

// TestLogoutLeavesNoCacheKey signs out while the inbox begins, which makes the key.
func TestLogoutLeavesNoCacheKey(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	database, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "messages.sqlite3"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = database.Close() })
	b.change = func(config *sessions.Config) {
		config.MessageCache = func(pubkey string) inbox.Memory { return database.MessageCache(pubkey) }
	}
	registry := b.daemon()
	guest := b.market.Guests[4]
	for range 8 {
		signInWithKey(t, registry, guest)
		session, err := registry.Session(within(t), guest.PublicKey)
		if err != nil {
			t.Fatal(err)
		}
		services, err := session.Services(within(t))
		if err != nil {
			t.Fatal(err)
		}
		begun := make(chan struct{})
		go func() {
			defer close(begun)
			_ = services.Threads.Await(within(t), time.Millisecond) // may find the session closed
		}()
		if err := registry.Logout(within(t), guest.PublicKey); err != nil {
			t.Fatal(err)
		}
		<-begun
		entries, err := b.secrets().Keys(within(t))
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			if strings.Contains(entry, guest.PublicKey) && strings.Contains(entry, "message_cache") {
				t.Fatalf("%s is left", entry)
			}
		}
	}
}

// TestLogoutLetsMessagesThrough signs out while a message is on its way.
func TestLogoutLetsMessagesThrough(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	registry := b.daemon()
	registry.SetSendLimit(patience)
	guest, host := b.market.Guests[0], b.market.Hosts[0]
	signInWithKey(t, registry, guest)
	session, err := registry.Session(within(t), guest.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	services, err := session.Services(within(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := session.AwaitHydration(within(t)); err != nil {
		t.Fatal(err)
	}
	b.market.Relay.Break(sandbox.Faults{DelayMillis: 200})
	before := b.market.Relay.Counters().EVENTs
	thread := market.NewThread(guest.PublicKey, []string{host.PublicKey}, "")
	sent := make(chan error, 1)
	go func() {
		_, err := services.Threads.Send(within(t), thread, "hello", patience)
		sent <- err
	}()
	if _, err := b.market.Relay.WaitFor(within(t), func(counters relayproxy.Counters) bool { return counters.EVENTs >= before+2 }); err != nil {
		t.Fatal(err)
	}
	if err := registry.Logout(within(t), guest.PublicKey); err != nil {
		t.Fatal(err)
	}
	if err := <-sent; err != nil {
		t.Errorf("the message: %v", err)
	}
}

// TestNoSeedWithoutProfile looks at the messages of an account without a profile, which
// has no seed made.
func TestNoSeedWithoutProfile(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	registry := b.daemon()
	guest := b.market.Guests[4]
	if guest.Profile != nil {
		t.Fatal("the guest has a profile")
	}
	signInWithKey(t, registry, guest)
	session, err := registry.Session(within(t), guest.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	if err := session.AwaitHydration(within(t)); err != nil {
		t.Fatal(err)
	}
	services, err := session.Services(within(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := services.Threads.Await(within(t), patience); err != nil {
		t.Fatal(err)
	}
	if _, err := services.Threads.Updates(within(t), 10, patience); err != nil {
		t.Fatal(err)
	}
	seeds, err := b.market.Relay.Query(within(t), nostr.Filter{Kinds: []int{17389}, Authors: []string{guest.PublicKey}})
	if err != nil || len(seeds) != 0 {
		t.Errorf("%d backups of a seed were published, %v", len(seeds), err)
	}
}
