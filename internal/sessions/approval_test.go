package sessions_test

import (
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/sandbox/signerapp"
	"hostr-daemon/internal/sessions"
)

// TestSignerThatDoesNotTellItsAccount has a signer approve and then say nothing: the
// question is given up in time, and the approval is kept for the next try.
func TestSignerThatDoesNotTellItsAccount(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	registry := b.daemon()
	registry.SetAskTimeout(50 * time.Millisecond)
	phone := b.phone(b.market.Guests[0])
	phone.Behave(signerapp.Behaviour{Methods: []string{"get_public_key"}, Silent: true})
	pending, err := registry.Connect(bridgeSession, false)
	if err != nil {
		t.Fatal(err)
	}
	pending.Listen(within(t))
	if err := phone.Scan(within(t), pending.URI()); err != nil {
		t.Fatal(err)
	}
	_, err = pending.Wait(within(t))
	if problem := fault.From(err); problem == nil || problem.Code != fault.SessionConnectFailed || !problem.Retryable {
		t.Fatalf("a signer that says nothing: %v", err)
	}
	phone.Behave(signerapp.Behaviour{})
	registry.SetAskTimeout(patience)
	again, err := registry.Connect(bridgeSession, false)
	if err != nil {
		t.Fatal(err)
	}
	if again.URI() != pending.URI() {
		t.Error("the approval has to be given again")
	}
	if signedIn, err := again.Wait(within(t)); err != nil || signedIn.Pubkey != phone.PublicKey() {
		t.Errorf("the next try: %+v, %v", signedIn, err)
	}
}

// TestLogoutDuringASignIn signs the bridge's session out while the signer has approved
// and has not told its account yet: nobody gets signed in.
func TestLogoutDuringASignIn(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	registry := b.daemon()
	guest := b.market.Guests[0]
	phone := b.phone(guest)
	phone.Behave(signerapp.Behaviour{Methods: []string{"get_public_key"}, Hold: true})
	pending, err := registry.Connect(bridgeSession, false)
	if err != nil {
		t.Fatal(err)
	}
	pending.Listen(within(t))
	if err := phone.Scan(within(t), pending.URI()); err != nil {
		t.Fatal(err)
	}
	waitUntilHeld(t, phone)
	if err := registry.Logout(within(t), bridgeSession); err != nil {
		t.Fatal(err)
	}
	if _, err := pending.Wait(within(t)); !errors.Is(err, sessions.ErrReplaced) {
		t.Errorf("whoever waited got %v", err)
	}
	phone.Approve()
	if session, err := registry.Session(within(t), guest.PublicKey); err != nil || session.Account() != nil {
		t.Errorf("signed in as %v, %v", session.Account(), err)
	}
	registry.Close()
	if _, stored, err := b.secrets().Read(within(t), authEntry(guest)); stored || err != nil {
		t.Errorf("a sign-in is stored: %t, %v", stored, err)
	}
}

// TestLogoutWhileAnEventWaitsForApproval ends what waits for the person at once.
func TestLogoutWhileAnEventWaitsForApproval(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	registry := b.daemon()
	guest := b.market.Guests[0]
	phone := b.phone(guest)
	b.signIn(registry, phone, bridgeSession)
	session, err := registry.Session(within(t), guest.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	if err := session.AwaitHydration(within(t)); err != nil {
		t.Fatal(err)
	}
	phone.Behave(signerapp.Behaviour{Methods: []string{"sign_event"}, Hold: true})
	account := session.Account()
	signing := make(chan error, 1)
	go func() {
		event := nostr.Event{Kind: 30402, CreatedAt: nostr.Now()}
		signing <- account.Signer().SignEvent(within(t), &event)
	}()
	waitUntilHeld(t, phone)
	if err := registry.Logout(within(t), guest.PublicKey); err != nil {
		t.Fatal(err)
	}
	if err := session.Stale(<-signing); !fault.Is(err, fault.AuthRequired) {
		t.Errorf("the event that waited ended with %v", err)
	}
	phone.Approve()
	if _, err := session.Check(within(t), "Testing"); !fault.Is(err, fault.AuthRequired) {
		t.Errorf("after signing out: %v", err)
	}
}

// waitUntilHeld waits until the person has something to approve.
func waitUntilHeld(t *testing.T, phone *signerapp.App) {
	t.Helper()
	if err := phone.WaitFor(within(t), func(_ []signerapp.Request, held int) bool { return held > 0 }); err != nil {
		t.Fatal(err)
	}
}

// TestPendingSignInsShareConnections listens for many at once.
func TestPendingSignInsShareConnections(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	registry := b.daemon()
	const many = 40
	var last *sessions.PendingSignIn
	for i := range many {
		pending, err := registry.StartLogin(strconv.Itoa(i), false)
		if err != nil {
			t.Fatal(err)
		}
		pending.Listen(within(t))
		last = pending
	}
	if _, lines := registry.Held(); lines != 3 {
		t.Errorf("%d sign-ins have %d connections, want 3", many, lines)
	}
	phone := b.phone(b.market.Guests[0])
	if err := phone.Scan(within(t), last.URI()); err != nil {
		t.Fatal(err)
	}
	if signedIn, err := last.Wait(within(t)); err != nil || signedIn.Pubkey != phone.PublicKey() {
		t.Errorf("signed in as %+v, %v", signedIn, err)
	}
	registry.Close()
	if _, lines := registry.Held(); lines != 0 {
		t.Errorf("%d connections are left", lines)
	}
}

// TestIdleSessionsAreDropped has strangers' keys come and go; who is signed in stays.
func TestIdleSessionsAreDropped(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var later atomic.Int64
	b.change = func(config *sessions.Config) {
		config.Now = func() time.Time { return time.Now().Add(time.Duration(later.Load())) }
	}
	registry := b.daemon()
	guest := b.market.Guests[0]
	signInWithKey(t, registry, guest)
	const many = 500
	for i := range many {
		if _, err := registry.Opened(within(t), fmt.Sprintf("bridge session %d", i)); err != nil {
			t.Fatal(err)
		}
	}
	if sessions, _ := registry.Held(); sessions != many+1 {
		t.Fatalf("%d sessions at first", sessions)
	}
	later.Store(int64(time.Hour))
	session, err := registry.Opened(within(t), "bridge session 0")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := session.Services(within(t)); err != nil {
		t.Errorf("a session that was used: %v", err)
	}
	if sessions, _ := registry.Held(); sessions != 2 {
		t.Errorf("%d sessions after an hour, want that in use and that signed in", sessions)
	}
	account, err := registry.Opened(within(t), guest.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := account.Check(within(t), "Testing"); err != nil {
		t.Errorf("who is signed in: %v", err)
	}
}
