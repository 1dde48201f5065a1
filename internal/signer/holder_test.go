package signer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/nbd-wtf/go-nostr"
	"github.com/rs/zerolog"

	"hostr-daemon/internal/relay"
	"hostr-daemon/internal/sandbox"
	"hostr-daemon/internal/sandbox/signerapp"
)

func newHolder(t testing.TB, account string, remote bool) *Holder {
	t.Helper()
	holder, err := NewHolder(account, remote)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(holder.Close)
	return holder
}

func TestHolder(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	holder := newHolder(t, publicKey(t, accountKey), false)
	if holder.IsRemote() || !newHolder(t, publicKey(t, accountKey), true).IsRemote() || holder.PublicKey() != publicKey(t, accountKey) {
		t.Error("it says something else than it was told")
	}
	if err := holder.SignEvent(ctx, note("x")); !errors.Is(err, ErrNoSigner) {
		t.Errorf("without a signer: %v", err)
	}
	first, second := newLocal(t, accountKey), newLocal(t, accountKey)
	for range 2 { // The same one again does not close it.
		if err := holder.Set(first); err != nil {
			t.Fatal(err)
		}
	}
	checkCryptography(t, holder, newLocal(t, strangerKey))
	if err := holder.Set(second); err != nil || holder.Signer() != second {
		t.Fatal(err)
	}
	if err := first.SignEvent(ctx, note("x")); !errors.Is(err, ErrClosed) {
		t.Errorf("the replaced one: %v", err)
	}
	stranger := newLocal(t, strangerKey)
	var wrong *WrongAccount
	if err := holder.Set(stranger); !errors.As(err, &wrong) || holder.Signer() != second {
		t.Errorf("another account's: %v", err)
	}
	if err := stranger.SignEvent(ctx, note("x")); !errors.Is(err, ErrClosed) {
		t.Errorf("the refused one: %v", err)
	}
	if err := holder.Set(nil); err != nil || holder.Signer() != nil {
		t.Errorf("taking it out: %v", err)
	}
	holder.Close()
	if err := holder.SignEvent(ctx, note("x")); !errors.Is(err, ErrClosed) {
		t.Errorf("closed: %v", err)
	}
	if err := holder.Set(newLocal(t, accountKey)); !errors.Is(err, ErrClosed) {
		t.Errorf("setting on a closed one: %v", err)
	}
	if _, err := NewHolder("me", true); err == nil {
		t.Error("an account that is none")
	}
}

// TestReplacedSigner: what waits at the old signer is asked for at the new one.
func TestReplacedSigner(t *testing.T) {
	t.Parallel()
	s := newScene(t, signerapp.Options{})
	s.knownAccount(t)
	holder := newHolder(t, s.app.PublicKey(), true)
	if err := holder.Set(s.remote); err != nil {
		t.Fatal(err)
	}
	s.app.Behave(signerapp.Behaviour{Hold: true, Times: 1})
	signing := started(func() error { return holder.SignEvent(testContext(t), note("x")) })
	s.awaitHeld(t, 1)
	next := newRemote(t, Config{Connection: s.remote.connection, Client: s.client, Account: s.app.PublicKey()})
	if err := holder.Set(next); err != nil {
		t.Fatal(err)
	}
	if err := receive(t, signing); err != nil {
		t.Error(err)
	}
	s.app.Behave(signerapp.Behaviour{Hold: true})
	signing = started(func() error { return holder.SignEvent(testContext(t), note("y")) })
	s.awaitHeld(t, 2)
	if err := holder.Set(nil); err != nil {
		t.Fatal(err)
	}
	if err := receive(t, signing); !errors.Is(err, ErrNoSigner) {
		t.Errorf("taken out: %v", err)
	}
}

// session is an account's relay client whose AUTH is signed over that very client.
type session struct {
	client *relay.Client
	holder *Holder
	remote *Remote
}

// signIn does what a sign-in does at this level: the handshake and get_public_key
// without an identity, then the account's own client and its AUTH.
func signIn(t testing.TB, market *sandbox.Market, app *signerapp.App) session {
	t.Helper()
	guest := newClient(t, market.RelayURL, nil, zerolog.Nop())
	connection := connect(t, guest, app, zerolog.Nop(), market.RelayURL)
	remote, err := NewRemote(context.Background(), Config{Connection: connection, Client: guest})
	if err != nil {
		t.Fatal(err)
	}
	account, err := remote.GetPublicKey(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	remote.Close()
	guest.Close()
	return openSession(t, market, connection, account)
}

// openSession is also what a restart does.
func openSession(t testing.TB, market *sandbox.Market, connection Connection, account string) session {
	t.Helper()
	s := session{holder: newHolder(t, account, true)}
	s.client = newClient(t, market.RelayURL, s.holder, zerolog.Nop())
	s.remote = newRemote(t, Config{Connection: connection, Client: s.client, Account: account})
	if err := s.holder.Set(s.remote); err != nil {
		t.Fatal(err)
	}
	if err := s.client.Authenticate(testContext(t)); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestAuthenticationThroughTheSigner: AUTH is signed over the connection that waits
// for it, at first and after the connection was lost.
func TestAuthenticationThroughTheSigner(t *testing.T) {
	t.Parallel()
	market := startMarket(t)
	app := newApp(t, signerapp.Options{})
	s := signIn(t, market, app)
	profile := func(content string) error {
		event := nostr.Event{Kind: 0, CreatedAt: nostr.Now(), Content: content}
		if err := s.holder.SignEvent(testContext(t), &event); err != nil {
			return err
		}
		_, err := s.client.Publish(testContext(t), event, relay.PublishOptions{})
		return err
	}
	if err := profile(`{"name":"a"}`); err != nil {
		t.Fatal(err)
	}
	inbox, err := s.client.Subscribe(testContext(t), nostr.Filter{Kinds: []int{1059}, Tags: nostr.TagMap{"p": {app.PublicKey()}}}, relay.SubscribeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer inbox.Close()
	receive(t, inbox.Stored())
	market.Relay.Drop()
	receive(t, inbox.Restored()) // It comes after AUTH.
	if err := profile(`{"name":"b"}`); err != nil {
		t.Fatal(err)
	}
	checkAuthentications(t, market, 2)
	if asked := app.Count(methodSignEvent); asked != 4 {
		t.Errorf("the signer was asked to sign %d times", asked)
	}
	app.Behave(signerapp.Behaviour{Refuse: "Not authorized"})
	market.Relay.Drop()
	if err := profile(`{"name":"c"}`); !isRejected("Not authorized", true)(err) {
		t.Errorf("a refusing signer: %v", err)
	}
}

// checkAuthentications looks whether each AUTH came behind the subscription it was
// signed over, and before the inbox.
func checkAuthentications(t *testing.T, market *sandbox.Market, count int) {
	t.Helper()
	subscribed, authenticated := map[int]bool{}, map[int]bool{}
	for _, frame := range market.Relay.Frames() {
		switch {
		case frame.Label == "REQ" && strings.Contains(frame.Text, "24133"):
			subscribed[frame.Connection] = true
		case frame.Label == "AUTH":
			authenticated[frame.Connection] = true
			if !subscribed[frame.Connection] {
				t.Errorf("connection %d: AUTH before the signer's subscription", frame.Connection)
			}
		case frame.Label == "REQ" && strings.Contains(frame.Text, "1059") && !authenticated[frame.Connection]:
			t.Errorf("connection %d: the inbox before AUTH", frame.Connection)
		}
	}
	if len(authenticated) != count {
		t.Errorf("%d connections were authenticated, want %d", len(authenticated), count)
	}
}

// TestSignInMessages counts what a sign-in costs, against the least possible: the
// handshake, get_public_key, and one signature for AUTH.
func TestSignInMessages(t *testing.T) {
	t.Parallel()
	market := startMarket(t)
	app := newApp(t, signerapp.Options{})
	signIn(t, market, app)
	got := countSignIn(market, app)
	want := signInCost{requests: 2, eventsSent: 2, eventsReceived: 3, subscriptions: 3, auths: 1, connections: 2}
	if got != want {
		t.Errorf("a sign-in takes %+v, want %+v", got, want)
	}
}

// signInCost is what the daemon's side of a sign-in took.
type signInCost struct {
	requests                   int // at the signer
	eventsSent, eventsReceived int
	subscriptions              int
	auths, connections         int
}

// countSignIn leaves out the app's own connection, its REQ and its events.
func countSignIn(market *sandbox.Market, app *signerapp.App) signInCost {
	counters, answers := market.Relay.Counters(), app.Count("")+1
	return signInCost{
		requests: app.Count(""), eventsSent: counters.EVENTs - answers, eventsReceived: answers,
		subscriptions: counters.REQs - 1, auths: counters.AUTHs, connections: counters.Connections - 1,
	}
}

// TestThreeAccountsAtOnce: nobody signs for another.
func TestThreeAccountsAtOnce(t *testing.T) {
	t.Parallel()
	market := startMarket(t)
	sessions := map[string]session{}
	for number := range 3 {
		app := newApp(t, signerapp.Options{PrivateKey: keyOf(number + 10)})
		sessions[app.PublicKey()] = signIn(t, market, app)
	}
	var calls []<-chan error
	for account, s := range sessions {
		for i := range 20 {
			calls = append(calls, started(func() error {
				event := note(fmt.Sprint(i)) // The same text from everybody.
				if err := s.holder.SignEvent(testContext(t), event); err != nil {
					return err
				}
				if event.PubKey != account {
					return fmt.Errorf("%s signed for %s", event.PubKey, account)
				}
				return nil
			}))
		}
	}
	for _, call := range calls {
		if err := receive(t, call); err != nil {
			t.Error(err)
		}
	}
}
