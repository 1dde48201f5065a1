package signer

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nbd-wtf/go-nostr"
	"github.com/rs/zerolog"

	"hostr-daemon/internal/relay"
	"hostr-daemon/internal/sandbox/signerapp"
)

func TestEqualRequestsAreOne(t *testing.T) {
	t.Parallel()
	s := newScene(t, signerapp.Options{})
	s.knownAccount(t)
	peer := newLocal(t, strangerKey)
	payload, err := peer.NIP44Encrypt(testContext(t), s.app.PublicKey(), "x")
	if err != nil {
		t.Fatal(err)
	}
	s.app.Behave(signerapp.Behaviour{Hold: true})
	for method, call := range map[string]func(context.Context) error{
		methodGetPublicKey: func(ctx context.Context) error { _, err := s.remote.GetPublicKey(ctx); return err },
		methodPing:         s.remote.Ping,
		methodSignEvent:    func(ctx context.Context) error { return s.remote.SignEvent(ctx, note("x")) },
		methodNIP44Encrypt: func(ctx context.Context) error {
			_, err := s.remote.NIP44Encrypt(ctx, peer.PublicKey(), "x")
			return err
		},
		methodNIP44Decrypt: func(ctx context.Context) error {
			_, err := s.remote.NIP44Decrypt(ctx, peer.PublicKey(), payload)
			return err
		},
	} {
		before := s.app.Count(method)
		ctx, cancel := context.WithCancel(testContext(t))
		first := started(func() error { return call(ctx) })
		s.awaitHeld(t, 1)
		var others []<-chan error
		for range 10 {
			others = append(others, started(func() error { return call(testContext(t)) }))
		}
		eventually(t, "all have joined", func() bool { return s.waiters() == 11 })
		cancel()
		if err := receive(t, first); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: the cancelled one: %v", method, err)
		}
		s.app.Approve()
		for _, other := range others {
			if err := receive(t, other); err != nil {
				t.Errorf("%s: %v", method, err)
			}
		}
		if asked := s.app.Count(method) - before; asked != 1 {
			t.Errorf("%s was asked %d times", method, asked)
		}
	}
}

// waiters returns how many callers wait for an answer.
func (s *scene) waiters() (count int) {
	s.remote.mu.Lock()
	defer s.remote.mu.Unlock()
	for _, q := range s.remote.byID {
		count += q.waiters
	}
	return count
}

// TestLastCallerEndsTheRequest: nothing is left of a request nobody waits for, and
// the same question is a new request.
func TestLastCallerEndsTheRequest(t *testing.T) {
	t.Parallel()
	s := newScene(t, signerapp.Options{})
	s.app.Behave(signerapp.Behaviour{Hold: true})
	for round := 1; round <= 2; round++ {
		ctx, cancel := context.WithCancel(testContext(t))
		pinging := started(func() error { return s.remote.Ping(ctx) })
		s.awaitHeld(t, round)
		if pending := s.remote.Pending(); len(pending) != 1 || pending[0].Method != methodPing {
			t.Errorf("pending %v", pending)
		}
		cancel()
		if err := receive(t, pinging); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if pending := s.remote.Pending(); len(pending) != 0 {
			t.Errorf("still pending %v", pending)
		}
	}
	if asked := s.app.Count(methodPing); asked != 2 {
		t.Errorf("asked %d times", asked)
	}
}

func TestManyRequestsAtOnce(t *testing.T) {
	t.Parallel()
	const count = 200
	s := newScene(t, signerapp.Options{TransportKey: transportKey})
	s.knownAccount(t)
	s.app.Behave(signerapp.Behaviour{Hold: true}) // All are in flight before the first is answered.
	var calls []<-chan error
	for i := range count {
		calls = append(calls, started(func() error {
			event := note(fmt.Sprint(i))
			if err := s.remote.SignEvent(testContext(t), event); err != nil {
				return err
			}
			if event.Content != fmt.Sprint(i) {
				return errors.New("got another's event")
			}
			return verify(event)
		}))
	}
	s.awaitHeld(t, count)
	if pending := s.remote.Pending(); len(pending) != count {
		t.Errorf("%d are pending", len(pending))
	}
	s.app.Approve()
	for _, call := range calls {
		if err := receive(t, call); err != nil {
			t.Error(err)
		}
	}
	if told := len(s.pending.all()); told != count+1 {
		t.Errorf("told of %d", told)
	}
}

func TestPending(t *testing.T) {
	t.Parallel()
	s := newScene(t, signerapp.Options{})
	s.knownAccount(t)
	s.app.Behave(signerapp.Behaviour{Hold: true})
	ctx, cancel := context.WithCancel(testContext(t))
	defer cancel()
	for number, kind := range []int{0, 10017, 22242, 30402} {
		_ = started(func() error {
			return s.remote.SignEvent(ctx, &nostr.Event{Kind: kind, CreatedAt: 1})
		})
		s.awaitHeld(t, number+1)
	}
	_ = started(func() error { return s.remote.Ping(ctx) })
	s.awaitHeld(t, 5)
	background := map[int]bool{10017: true, 22242: true}
	pending := s.remote.Pending()
	if len(pending) != 5 {
		t.Fatalf("pending %+v", pending)
	}
	told := s.pending.all()[1:]
	for i, p := range pending {
		isSigning := p.Method == methodSignEvent
		if isSigning != (p.EventKind != nil) || isSigning && p.Background() != background[*p.EventKind] || !isSigning && p.Background() {
			t.Errorf("pending %+v", p)
		}
		if p.ID != told[i].ID || !p.CreatedAt.Equal(told[i].CreatedAt) || len(p.ID) != requestIDLength || time.Since(p.CreatedAt) > time.Minute {
			t.Errorf("pending %+v, told %+v", p, told[i])
		}
	}
	cancel()
	eventually(t, "nothing is pending", func() bool { return len(s.remote.Pending()) == 0 })
}

// TestEndsAtOnce: whatever ends the signer ends its requests.
func TestEndsAtOnce(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*scene, context.CancelFunc){
		"closed":               func(s *scene, _ context.CancelFunc) { s.remote.Close() },
		"its context ended":    func(_ *scene, cancel context.CancelFunc) { cancel() },
		"its client is closed": func(s *scene, _ context.CancelFunc) { s.client.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, signerapp.Options{})
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			var err error
			if s.remote, err = NewRemote(ctx, Config{Connection: s.remote.connection, Client: s.client}); err != nil {
				t.Fatal(err)
			}
			defer s.remote.Close()
			s.app.Behave(signerapp.Behaviour{Hold: true})
			pinging := started(func() error { return s.remote.Ping(testContext(t)) })
			s.awaitHeld(t, 1)
			end(s, cancel)
			if err := receive(t, pinging); !errors.Is(err, ErrClosed) {
				t.Errorf("under way: %v", err)
			}
			if err := s.remote.Ping(testContext(t)); !errors.Is(err, ErrClosed) {
				t.Errorf("afterwards: %v", err)
			}
			s.app.Approve() // Nobody is there to take the answer.
		})
	}
}

func TestNewRemoteChecksItsConfiguration(t *testing.T) {
	t.Parallel()
	client := newClient(t, "wss://relay.example", nil, zerolog.Nop())
	key, err := ParsePrivateKey(transportKey)
	if err != nil {
		t.Fatal(err)
	}
	good := Connection{PrivateKey: key, RemotePubkey: publicKey(t, accountKey), Relays: []string{"wss://relay.example"}}
	for name, change := range map[string]func(*Config){
		"no client":  func(c *Config) { c.Client = nil },
		"no key":     func(c *Config) { c.Connection.PrivateKey = PrivateKey{} },
		"no signer":  func(c *Config) { c.Connection.RemotePubkey = "" },
		"no relay":   func(c *Config) { c.Connection.Relays = []string{"https://relay.example"} },
		"no account": func(c *Config) { c.Account = "me" },
	} {
		config := Config{Connection: good, Client: client}
		change(&config)
		if remote, err := NewRemote(context.Background(), config); err == nil {
			t.Errorf("%s: no error", name)
			remote.Close()
		}
	}
}

// TestBunker is the way in by an address that the signer gives out.
func TestBunker(t *testing.T) {
	t.Parallel()
	market := startMarket(t)
	client := newClient(t, market.RelayURL, nil, zerolog.Nop())
	app := newApp(t, signerapp.Options{TransportKey: transportKey})
	for name, result := range map[string]string{"ack": "", "the secret": "secret"} {
		text, err := app.Serve(testContext(t), market.RelayURL)
		if err != nil {
			t.Fatal(err)
		}
		uri, err := ParseBunkerURI(text)
		if err != nil {
			t.Fatal(err)
		}
		connection, err := uri.Connection(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		app.Behave(signerapp.Behaviour{})
		if result != "" {
			app.Behave(signerapp.Behaviour{Result: uri.Secret(), Methods: []string{methodConnect}})
		}
		remote := newRemote(t, Config{Connection: connection, Client: client})
		if err := remote.Ping(testContext(t)); !isRejected("Not authorized", true)(err) {
			t.Errorf("%s: before connect: %v", name, err)
		}
		if err := remote.Connect(testContext(t), uri.Secret()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if account, err := remote.GetPublicKey(testContext(t)); err != nil || account != app.PublicKey() {
			t.Errorf("%s: %s, %v", name, account, err)
		}
	}
}

var _ relay.Clock = (*manualClock)(nil)
