package signer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"hostr-daemon/internal/relay"
	"hostr-daemon/internal/sandbox"
	"hostr-daemon/internal/sandbox/signerapp"
)

// TestNothingHangsOrForgesUnderChaos lets relay and signer misbehave at random while
// many callers ask; each call ends in time, and what is signed is what was asked for.
func TestNothingHangsOrForgesUnderChaos(t *testing.T) {
	t.Parallel()
	s := newScene(t, signerapp.Options{TransportKey: transportKey})
	s.knownAccount(t)
	ctx, stop := context.WithCancel(testContext(t))
	var trouble, callers sync.WaitGroup
	trouble.Go(func() { makeTrouble(ctx, s) })
	for caller := range 6 {
		callers.Go(func() {
			for round := range 8 {
				askUnderChaos(t, s.remote, fmt.Sprint(caller, "/", round))
			}
		})
	}
	callers.Wait()
	stop()
	trouble.Wait()
	s.market.Relay.Heal()
	s.app.Behave(signerapp.Behaviour{})
	s.app.Approve()
	s.app.Offline()
	if err := s.app.Online(testContext(t)); err != nil { // Not while it connects.
		t.Fatal(err)
	}
	if err := s.remote.SignEvent(testContext(t), note("after")); err != nil {
		t.Errorf("afterwards: %v", err)
	}
	if pending := s.remote.Pending(); len(pending) != 0 {
		t.Errorf("left over: %+v", pending)
	}
}

// askUnderChaos may fail, but only in a known way.
func askUnderChaos(t *testing.T, remote *Remote, text string) {
	ctx, cancel := context.WithTimeout(testContext(t), 250*time.Millisecond)
	defer cancel()
	event := note(text)
	err := remote.SignEvent(ctx, event)
	var unanswered *Unanswered
	var rejected *Rejected
	var refused *Refused
	var wrong *WrongAnswer
	switch {
	case err == nil:
		if verify(event) != nil || event.Content != text || event.PubKey != remote.PublicKey() {
			t.Errorf("%s: signed %v", text, event)
		}
	case errors.As(err, &unanswered) || errors.As(err, &rejected) || errors.As(err, &refused) || errors.As(err, &wrong):
	default:
		t.Errorf("%s: %v", text, err)
	}
}

// makeTrouble changes relay and signer every few milliseconds.
func makeTrouble(ctx context.Context, s *scene) {
	faults := []sandbox.Faults{
		{}, {NoOK: true}, {DropBeforeOK: true, Times: 1}, {RefuseEvents: "blocked: no", Times: 2}, {RefuseEvents: "mute: nobody", Times: 2},
		{Closed: "error: busy", Times: 1}, {DelayMillis: 20}, {ShortFrames: true}, {Garbage: true},
	}
	behaviours := []signerapp.Behaviour{
		{}, {Repeats: 2}, {StrangeFirst: true, NIP04: true}, {Refuse: "no"}, {Tamper: signerapp.TamperContent}, {Silent: true},
		{Tamper: signerapp.TamperAuthor}, {DelayMillis: 30, Contradict: true}, {Hold: true}, {ApprovalURL: "https://approve.example"},
	}
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		s.market.Relay.Break(faults[rand.IntN(len(faults))])
		s.app.Behave(behaviours[rand.IntN(len(behaviours))])
		if rand.IntN(20) == 0 {
			s.market.Relay.Drop()
		}
		if rand.IntN(4) == 0 {
			s.app.Approve()
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// TestManySessions opens and closes the connections of many accounts; goleak sees
// what they leave behind.
func TestManySessions(t *testing.T) {
	t.Parallel()
	market := startMarket(t)
	app := newApp(t, signerapp.Options{})
	guest := newClient(t, market.RelayURL, nil, zerolog.Nop())
	connection := connect(t, guest, app, zerolog.Nop(), market.RelayURL)
	verifier := relay.NewVerifier(nil, zerolog.Nop())
	t.Cleanup(verifier.Close)
	var opened []session
	for range 20 {
		client, err := relay.NewClient(relay.Config{HostrRelay: market.RelayURL, Verifier: verifier})
		if err != nil {
			t.Fatal(err)
		}
		opened = append(opened, session{client: client, remote: newRemote(t, Config{Connection: connection, Client: client})})
	}
	var calls []<-chan error
	for _, s := range opened {
		calls = append(calls, started(func() error { return s.remote.Ping(testContext(t)) }))
	}
	for _, call := range calls {
		if err := receive(t, call); err != nil {
			t.Error(err)
		}
	}
	for _, s := range opened {
		s.remote.Close()
		s.client.Close()
	}
}
