package sessions_test

import (
	"context"
	"errors"
	"testing"

	"hostr-daemon/internal/sandbox"
	"hostr-daemon/internal/sandbox/signerapp"
	"hostr-daemon/internal/secrets"
	"hostr-daemon/internal/sessions"
)

// TestStatusTriesOnce has a signer that is silent: opening and status together cost
// one attempt, so that the answer comes after five seconds and not after ten.
func TestStatusTriesOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	guest := b.market.Guests[0]
	phone := b.phone(guest)
	first := b.daemon()
	b.signIn(first, phone, bridgeSession)
	first.Close()
	phone.Behave(signerapp.Behaviour{Silent: true})
	session, err := b.daemon().Opened(within(t), guest.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	status, err := session.Status(within(t))
	if err != nil || status.ActivePubkey != guest.PublicKey || status.SignerOnline || status.Reconnect == nil {
		t.Errorf("with a silent signer: %+v %v", status, err)
	}
	if asked := phone.Count("get_public_key"); asked != 2 {
		t.Errorf("the signer was asked %d times in all, want once at the sign-in and once now", asked)
	}
}

// TestFailedListenerStartsAgain has a signer that refuses once to tell its account
// while nobody waits: showing the code again is enough to go on.
func TestFailedListenerStartsAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	registry := b.daemon()
	phone := b.phone(b.market.Guests[0])
	phone.Behave(signerapp.Behaviour{Methods: []string{"get_public_key"}, Refuse: "busy", Times: 1})
	pending, err := registry.Connect(bridgeSession, false)
	if err != nil {
		t.Fatal(err)
	}
	pending.Listen(within(t))
	if err := phone.Scan(within(t), pending.URI()); err != nil {
		t.Fatal(err)
	}
	await(t, pending.Ended())
	if _, ok := pending.Collect(); ok {
		t.Fatal("a failure was collected as a success")
	}
	pending.Listen(within(t))
	if signedIn, err := pending.Wait(within(t)); err != nil || signedIn.Pubkey != phone.PublicKey() {
		t.Errorf("the second listener gave %+v, %v", signedIn, err)
	}
}

// TestCancelledWaitUsesNothingUp cancels a wait whose result is there already: the
// next one gets it.
func TestCancelledWaitUsesNothingUp(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	registry := b.daemon()
	phone := b.phone(b.market.Guests[0])
	pending, err := registry.StartLogin("login-1", false)
	if err != nil {
		t.Fatal(err)
	}
	pending.Listen(within(t))
	if err := phone.Scan(within(t), pending.URI()); err != nil {
		t.Fatal(err)
	}
	await(t, pending.Ended())
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for range 20 {
		if _, err := pending.Wait(cancelled); !errors.Is(err, context.Canceled) {
			t.Fatalf("a cancelled wait gave %v", err)
		}
	}
	again, ok := registry.Login("login-1")
	if !ok {
		t.Fatal("the sign-in is used up")
	}
	if signedIn, err := again.Wait(within(t)); err != nil || signedIn.Pubkey != phone.PublicKey() {
		t.Errorf("collected %+v, %v", signedIn, err)
	}
}

// TestOpeningAfterSignIn has a request open a session whose account has just signed
// in: the fresh signer stays.
func TestOpeningAfterSignIn(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	registry := b.daemon()
	guest := b.market.Guests[0]
	if _, err := registry.SignInWithKey(within(t), secrets.NewSecret(guest.NSec)); err != nil {
		t.Fatal(err)
	}
	session, err := registry.Session(within(t), guest.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	account := session.Account()
	if err := session.Load(within(t)); err != nil {
		t.Fatal(err)
	}
	if session.Account() != account {
		t.Error("opening replaced the signed-in account")
	}
}

func await(t *testing.T, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-within(t).Done():
		t.Fatal("it does not end")
	}
}

// TestProfilePublishedDuringStartUp has a first profile published while the start-up
// is looking for it: having found none does not end the run.
func TestProfilePublishedDuringStartUp(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	registry := b.daemon()
	guest := b.market.Guests[4]
	if guest.Profile != nil {
		t.Fatal("the guest has a profile")
	}
	b.market.Relay.Break(sandbox.Faults{HalfOpen: true})
	defer b.market.Relay.Heal()
	if _, err := registry.SignInWithKey(within(t), secrets.NewSecret(guest.NSec)); err != nil {
		t.Fatal(err)
	}
	session, err := registry.Session(within(t), guest.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	session.Hydrate()
	session.ProfilePublished()
	if session.EndHydration(sessions.ErrNoProfile) {
		t.Error("the run ended without a second look")
	}
	if !session.EndHydration(sessions.ErrNoProfile) {
		t.Error("the run goes on without a reason")
	}
}
