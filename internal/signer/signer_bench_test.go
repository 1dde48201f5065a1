package signer

import (
	"context"
	"fmt"
	"testing"

	"hostr-daemon/internal/sandbox/signerapp"
)

func BenchmarkLocalSign(b *testing.B) {
	local := newLocal(b, accountKey)
	b.ReportAllocs()
	for b.Loop() {
		if err := local.SignEvent(context.Background(), note("x")); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLocalNIP44(b *testing.B) {
	local := newLocal(b, accountKey)
	peer := publicKey(b, strangerKey)
	b.ReportAllocs()
	for b.Loop() {
		payload, err := local.NIP44Encrypt(context.Background(), peer, "a short message")
		if err != nil {
			b.Fatal(err)
		}
		if _, err := local.NIP44Decrypt(context.Background(), peer, payload); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRemoteSign is one signature after the other over a relay on loopback.
func BenchmarkRemoteSign(b *testing.B) {
	s := newScene(b, signerapp.Options{})
	s.knownAccount(b)
	b.ReportAllocs()
	for b.Loop() {
		if err := s.remote.SignEvent(testContext(b), note("x")); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRemoteSignInParallel has 200 in flight.
func BenchmarkRemoteSignInParallel(b *testing.B) {
	s := newScene(b, signerapp.Options{})
	s.knownAccount(b)
	for round := 0; b.Loop(); round++ {
		var calls []<-chan error
		for i := range 200 {
			calls = append(calls, started(func() error { return s.remote.SignEvent(testContext(b), note(fmt.Sprint(round, i))) }))
		}
		for _, call := range calls {
			if err := receive(b, call); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkSignIn is a whole sign-in, from the code to the AUTH, and what it takes at
// the signer and the relay.
func BenchmarkSignIn(b *testing.B) {
	market := startMarket(b)
	var cost signInCost
	for b.Loop() {
		app := newApp(b, signerapp.Options{})
		s := signIn(b, market, app)
		if cost == (signInCost{}) {
			cost = countSignIn(market, app)
		}
		s.holder.Close()
		s.client.Close()
		app.Close()
	}
	b.ReportMetric(float64(cost.requests), "requests/sign-in")
	b.ReportMetric(float64(cost.eventsSent+cost.subscriptions+cost.auths), "frames-sent/sign-in")
	b.ReportMetric(float64(cost.eventsReceived), "events-received/sign-in")
}
