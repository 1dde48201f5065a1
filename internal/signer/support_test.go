package signer

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nbd-wtf/go-nostr"
	"github.com/rs/zerolog"

	"hostr-daemon/internal/relay"
	"hostr-daemon/internal/sandbox"
	"hostr-daemon/internal/sandbox/signerapp"
)

// patience is how long a test waits for what must happen soon.
const patience = 30 * time.Second

// Keys of nobody.
var (
	accountKey   = strings.Repeat("0", 63) + "1"
	transportKey = strings.Repeat("0", 63) + "2"
	strangerKey  = strings.Repeat("0", 63) + "3"
)

var testApp = App{Name: "Hostr (Test)", URL: "https://ai.hostr.test", Image: "https://hostr.test/logo.png"}

func publicKey(t testing.TB, key string) string {
	t.Helper()
	parsed, err := ParsePrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return parsed.PublicKey()
}

func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	t.Cleanup(cancel)
	return ctx
}

func startMarket(t testing.TB) *sandbox.Market {
	t.Helper()
	market, err := sandbox.Start(testContext(t), sandbox.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = market.Close() })
	return market
}

// journal collects log lines.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(line []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(line)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

// lines returns the lines with the event.
func (j *journal) lines(t testing.TB, event string) []map[string]any {
	t.Helper()
	var found []map[string]any
	for line := range strings.Lines(j.String()) {
		var fields map[string]any
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Fatalf("log line %q: %v", line, err)
		}
		if fields["event"] == event {
			found = append(found, fields)
		}
	}
	return found
}

// scene is a relay, the daemon's client to it and a signer app, connected.
type scene struct {
	market  *sandbox.Market
	client  *relay.Client
	app     *signerapp.App
	remote  *Remote
	journal *journal
	pending *pendingFeed
}

// pendingFeed collects what OnPending tells.
type pendingFeed struct {
	mu   sync.Mutex
	seen []PendingRequest
}

func (f *pendingFeed) add(p PendingRequest) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen = append(f.seen, p)
}

func (f *pendingFeed) all() []PendingRequest {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]PendingRequest(nil), f.seen...)
}

func newClient(t testing.TB, relayURL string, account relay.Account, logger zerolog.Logger) *relay.Client {
	t.Helper()
	verifier := relay.NewVerifier(nil, zerolog.Nop())
	t.Cleanup(verifier.Close)
	client, err := relay.NewClient(relay.Config{HostrRelay: relayURL, Verifier: verifier, Account: account, Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func newApp(t testing.TB, options signerapp.Options) *signerapp.App {
	t.Helper()
	if options.PrivateKey == "" {
		options.PrivateKey = accountKey
	}
	app, err := signerapp.New(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(app.Close)
	return app
}

// connect does the Nostr Connect handshake on the relays.
func connect(t testing.TB, client *relay.Client, app *signerapp.App, logger zerolog.Logger, relays ...string) Connection {
	t.Helper()
	invitation, err := NewInvitation(relays, testApp, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return answerInvitation(t, client, app, invitation, ListenConfig{Logger: logger})
}

func answerInvitation(t testing.TB, client *relay.Client, app *signerapp.App, invitation Invitation, config ListenConfig) Connection {
	t.Helper()
	ctx := testContext(t)
	listener := startListening(ctx, client, invitation, config)
	listener.awaitReady(t)
	if err := app.Scan(ctx, invitation.URI()); err != nil {
		t.Fatal(err)
	}
	heard := receive(t, listener.heard)
	if heard.err != nil {
		t.Fatalf("listen: %v", heard.err)
	}
	return heard.connection
}

type heard struct {
	connection Connection
	err        error
}

// listener is a Listen that runs beside the test.
type listener struct {
	ready chan struct{}
	heard chan heard
}

func startListening(ctx context.Context, client *relay.Client, invitation Invitation, config ListenConfig) *listener {
	l := &listener{ready: make(chan struct{}), heard: make(chan heard, 1)}
	config.Ready = func() { close(l.ready) }
	go func() {
		connection, err := Listen(ctx, client, invitation, config)
		l.heard <- heard{connection, err}
	}()
	return l
}

func (l *listener) awaitReady(t testing.TB) { t.Helper(); receive(t, l.ready) }

// newScene connects a signer app over a market of its own.
func newScene(t testing.TB, options signerapp.Options) *scene {
	t.Helper()
	s := &scene{market: startMarket(t), journal: &journal{}, pending: &pendingFeed{}}
	logger := zerolog.New(s.journal)
	s.client = newClient(t, s.market.RelayURL, nil, logger)
	s.app = newApp(t, options)
	connection := connect(t, s.client, s.app, logger, s.market.RelayURL)
	s.remote = newRemote(t, Config{Connection: connection, Client: s.client, Logger: logger, OnPending: s.pending.add})
	return s
}

func newRemote(t testing.TB, config Config) *Remote {
	t.Helper()
	remote, err := NewRemote(context.Background(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(remote.Close)
	return remote
}

// knownAccount makes the remote signer know its account, so that later requests are
// all there are.
func (s *scene) knownAccount(t testing.TB) {
	t.Helper()
	if _, err := s.remote.GetPublicKey(testContext(t)); err != nil {
		t.Fatal(err)
	}
}

func note(content string) *nostr.Event {
	return &nostr.Event{Kind: 1, CreatedAt: 1_767_225_600, Content: content, Tags: nostr.Tags{{"t", "test"}, {}}}
}

// started is a call that runs beside the test.
func started(call func() error) <-chan error {
	done := make(chan error, 1)
	go func() { done <- call() }()
	return done
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

// awaitHeld waits until the app holds that many requests.
func (s *scene) awaitHeld(t testing.TB, count int) {
	t.Helper()
	if err := s.app.WaitFor(testContext(t), func(_ []signerapp.Request, held int) bool { return held == count }); err != nil {
		t.Fatal(err)
	}
}

// awaitRequests waits until that many requests have come in, repeated ones counted.
func (s *scene) awaitRequests(t testing.TB, count int) {
	t.Helper()
	if err := s.app.WaitFor(testContext(t), func(all []signerapp.Request, _ int) bool { return len(all) >= count }); err != nil {
		t.Fatal(err)
	}
}

// keyOf returns the private key of a small number.
func keyOf(number int) string { return fmt.Sprintf("%064x", number) }

// deadline is a context whose time is over when the test says so.
type deadline struct {
	context.Context
	over chan struct{}
}

func newDeadline(t testing.TB) deadline {
	t.Helper()
	return deadline{testContext(t), make(chan struct{})}
}

func (d deadline) expire() { close(d.over) }

func (d deadline) Done() <-chan struct{} { return d.over }

func (d deadline) Err() error {
	select {
	case <-d.over:
		return context.DeadlineExceeded
	default:
		return nil
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
