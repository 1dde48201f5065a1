package sessions_test

import (
	"context"
	"crypto/rand"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"hostr-daemon/internal/environment"
	"hostr-daemon/internal/listings"
	"hostr-daemon/internal/profiles"
	"hostr-daemon/internal/relay"
	"hostr-daemon/internal/relaylists"
	"hostr-daemon/internal/sandbox"
	"hostr-daemon/internal/sandbox/signerapp"
	"hostr-daemon/internal/secrets"
	"hostr-daemon/internal/seeds"
	"hostr-daemon/internal/sessions"
	"hostr-daemon/internal/store"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction(sandbox.KhatruGoroutine))
}

// patience bounds every wait of a test.
const patience = 30 * time.Second

// bench is a market with a state directory: what a daemon finds when it starts.
type bench struct {
	t      testing.TB
	market *sandbox.Market
	state  string
	// change, if set, makes the sessions of a daemon other than usual.
	change func(*sessions.Config)

	mu      sync.Mutex
	notices []any
}

func newBench(t testing.TB) *bench {
	t.Helper()
	market, err := sandbox.Start(t.Context(), sandbox.Options{Listings: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = market.Close() })
	return &bench{t: t, market: market, state: t.TempDir()}
}

// daemon starts sessions on the state directory, as a fresh process would.
func (b *bench) daemon() *sessions.Registry {
	b.t.Helper()
	facts, err := environment.Resolve("test")
	if err != nil {
		b.t.Fatal(err)
	}
	facts.HostrRelay, facts.BootstrapRelays = b.market.RelayURL, nil
	facts.EVM = environment.EVMConfig{} // no chains: sellers are tested on their own
	kept := b.secrets()
	database, err := store.Open(b.t.Context(), filepath.Join(b.state, "test.sqlite3"))
	if err != nil {
		b.t.Fatal(err)
	}
	verifier := relay.NewVerifier(nil, zerolog.Nop())
	config := sessions.Config{
		Environment: facts,
		Secrets:     kept,
		Swaps:       database,
		SeedMarks:   func(pubkey string) seeds.Memory { return database.SeedMarks(pubkey) },
		Verifier:    verifier,
		Cells:       listings.NewCells(nil),
		Profiles:    profiles.NewCache(time.Now),
		RelayLists:  relaylists.NewCache(time.Now),
		Notify: func(_ string, params any) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.notices = append(b.notices, params)
		},
		Journal:     zerolog.Nop(),
		Logger:      zerolog.Nop(),
		RelayLogger: zerolog.Nop(),
		Random:      rand.Reader,
		Now:         time.Now,
	}
	if b.change != nil {
		b.change(&config)
	}
	registry := sessions.New(config)
	b.t.Cleanup(func() {
		registry.Close()
		verifier.Close()
		_ = database.Close()
	})
	return registry
}

// secrets opens the place for private keys, as another program would.
func (b *bench) secrets() *secrets.Store {
	b.t.Helper()
	kept, err := secrets.Open(secrets.Options{StateDir: b.state, Environment: "test", AllowPlainFile: true, Getenv: func(string) string { return "" }})
	if err != nil {
		b.t.Fatal(err)
	}
	return kept
}

// phone is a signer app with one of the market's people in it.
func (b *bench) phone(person sandbox.Person) *signerapp.App {
	b.t.Helper()
	app, err := signerapp.New(signerapp.Options{PrivateKey: person.PrivateKey, Logger: zerolog.Nop()})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(app.Close)
	return app
}

func within(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// signIn connects a phone under a bridge's session id and returns the account.
func (b *bench) signIn(registry *sessions.Registry, phone *signerapp.App, bridgeSession string) sessions.SignedIn {
	b.t.Helper()
	ctx := within(b.t)
	pending, err := registry.Connect(bridgeSession, false)
	if err != nil {
		b.t.Fatal(err)
	}
	pending.Listen(within(b.t))
	if err := phone.Scan(ctx, pending.URI()); err != nil {
		b.t.Fatal(err)
	}
	signedIn, err := pending.Wait(ctx)
	if err != nil {
		b.t.Fatalf("signing in: %v", err)
	}
	return signedIn
}
