package signer

import (
	"context"
	"crypto/rand"
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nbd-wtf/go-nostr"
	"github.com/nbd-wtf/go-nostr/nip44"
	"github.com/rs/zerolog"

	"hostr-daemon/internal/relay"
	"hostr-daemon/internal/sandbox"
	"hostr-daemon/internal/sandbox/signerapp"
	"hostr-daemon/internal/trace"
)

func newInvitation(t testing.TB, relays ...string) Invitation {
	t.Helper()
	invitation, err := NewInvitation(relays, testApp, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return invitation
}

func TestListenHearsTheSigner(t *testing.T) {
	t.Parallel()
	market := startMarket(t)
	for name, behaviour := range map[string]signerapp.Behaviour{
		"at once":                   {},
		"after wrong secrets":       {WrongSecretFirst: true},
		"in NIP-04":                 {NIP04: true},
		"in NIP-04, wrong at first": {NIP04: true, WrongSecretFirst: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			journal := &journal{}
			client := newClient(t, market.RelayURL, nil, zerolog.Nop())
			app := newApp(t, signerapp.Options{TransportKey: transportKey})
			app.Behave(behaviour)
			invitation := newInvitation(t, market.RelayURL)
			connection := answerInvitation(t, client, app, invitation, ListenConfig{Logger: zerolog.New(journal)})
			if connection.RemotePubkey != app.RemotePubkey() || connection.PrivateKey != invitation.client ||
				!cmp.Equal(connection.Relays, []string{market.RelayURL}) {
				t.Errorf("connection %v", connection)
			}
			checkHandshakeLog(t, journal, invitation, behaviour.WrongSecretFirst)
		})
	}
}

func checkHandshakeLog(t *testing.T, journal *journal, invitation Invitation, wrongFirst bool) {
	t.Helper()
	for event, key := range map[string]string{
		"nostr_connect.listen.start": "clientPubkey", "nostr_connect.event.accepted": "senderPubkey", "nostr_connect.listen.stop": "clientPubkey",
	} {
		if lines := journal.lines(t, event); len(lines) != 1 || lines[0][key] == "" {
			t.Errorf("%s: %v", event, lines)
		}
	}
	ignored := journal.lines(t, "nostr_connect.event.ignored")
	if wrongFirst != (len(ignored) == 2) {
		t.Errorf("ignored: %v", ignored)
	}
	if text := journal.String(); strings.Contains(text, *invitation.secret) || strings.Contains(text, invitation.client.Hex()) {
		t.Error("the log holds a secret")
	}
}

// strangersEvent is a kind 24133 event that somebody sends to the client key.
func strangersEvent(t testing.TB, to, content string) nostr.Event {
	t.Helper()
	event := nostr.Event{Kind: nostr.KindNostrConnect, CreatedAt: nostr.Now(), Tags: nostr.Tags{{"p", to}}, Content: content}
	if err := event.Sign(strangerKey); err != nil {
		t.Fatal(err)
	}
	return event
}

// TestListenIgnores sends what anybody can send, and then the real answer.
func TestListenIgnores(t *testing.T) {
	t.Parallel()
	market := startMarket(t)
	journal := &journal{}
	client := newClient(t, market.RelayURL, nil, zerolog.Nop())
	ctx := trace.With(testContext(t), "trace-1")
	invitation := newInvitation(t, market.RelayURL)
	listener := startListening(ctx, client, invitation, ListenConfig{Logger: zerolog.New(journal)})
	listener.awaitReady(t)
	seal := func(text string) string {
		key, err := nip44.GenerateConversationKey(invitation.ClientPubkey(), strangerKey)
		if err != nil {
			t.Fatal(err)
		}
		sealed, err := nip44.Encrypt(text, key)
		if err != nil {
			t.Fatal(err)
		}
		return sealed
	}
	secret := *invitation.secret
	var want []string
	for _, sent := range []struct{ content, reason string }{
		{"hello", "decode_error"},
		{strings.Repeat("\n", 132), "decode_error"},
		{"AAAA?iv=AAAA", "decode_error"},
		{seal("x")[:130] + "AA==", "decode_error"},
		{seal("  "), "empty_decryption"},
		{seal("not json"), "non_object_response"},
		{seal(`["` + secret + `"]`), "non_object_response"},
		{seal("null"), "non_object_response"},
		{seal(`"` + secret + `"`), "non_object_response"},
		{seal(`{}`), "missing_result"},
		{seal(`{"result":null}`), "missing_result"},
		{seal(`{"result":"ack"}`), "result_mismatch"},
		{seal(`{"result":["` + secret + `"]}`), "result_mismatch"},
		{seal(`{"result":"` + secret + ` "}`), "result_mismatch"},
		{seal(`{"result":"` + strings.ToLower(secret) + `"}`), "result_mismatch"},
	} {
		event := strangersEvent(t, invitation.ClientPubkey(), sent.content)
		if _, err := client.Publish(ctx, event, relay.PublishOptions{}); err != nil {
			t.Fatal(err)
		}
		want = append(want, event.ID+" "+sent.reason)
	}
	// Neither the id nor the error of the real one is looked at.
	last := strangersEvent(t, invitation.ClientPubkey(), seal(`{"id":5,"error":"x","result":"`+secret+`"}`))
	if _, err := client.Publish(ctx, last, relay.PublishOptions{}); err != nil {
		t.Fatal(err)
	}
	heard := receive(t, listener.heard)
	if heard.err != nil || heard.connection.RemotePubkey != publicKey(t, strangerKey) {
		t.Fatalf("heard %+v", heard)
	}
	var got []string
	for _, line := range journal.lines(t, "nostr_connect.event.ignored") {
		got = append(got, line["eventId"].(string)+" "+line["reason"].(string))
		if line["traceId"] != "trace-1" || line["senderPubkey"] != publicKey(t, strangerKey) {
			t.Errorf("line %v", line)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ignored:\n%s", diff)
	}
}

func TestListenBoundsWhatStrangersLog(t *testing.T) {
	t.Parallel()
	journal := &journal{}
	l := &listening{invitation: newInvitation(t, "wss://relay.example"), log: zerolog.New(journal)}
	event := strangersEvent(t, l.invitation.ClientPubkey(), "x")
	for range 3 * maxIgnoredLines {
		if l.accepts(&event) {
			t.Fatal("accepted")
		}
	}
	if lines := journal.lines(t, "nostr_connect.event.ignored"); len(lines) != maxIgnoredLines {
		t.Errorf("%d lines", len(lines))
	}
}

// TestListenGivesUp: every event restarts the clock, also one that is ignored.
func TestListenGivesUp(t *testing.T) {
	t.Parallel()
	market := startMarket(t)
	clock := newManualClock()
	client := newClient(t, market.RelayURL, nil, zerolog.Nop())
	invitation := newInvitation(t, market.RelayURL)
	journal := &journal{}
	listener := startListening(testContext(t), client, invitation, ListenConfig{Logger: zerolog.New(journal), Clock: clock})
	listener.awaitReady(t)
	clock.mu.Lock()
	before := clock.changed
	clock.mu.Unlock()
	if _, err := client.Publish(testContext(t), strangersEvent(t, invitation.ClientPubkey(), "x"), relay.PublishOptions{}); err != nil {
		t.Fatal(err)
	}
	receive(t, before) // The clock was set anew.
	select {
	case heard := <-listener.heard:
		t.Fatalf("it ended early: %+v", heard)
	default:
	}
	clock.fire(t, idleTimeout)
	if heard := receive(t, listener.heard); !errors.Is(heard.err, ErrNoApproval) {
		t.Errorf("heard %+v", heard)
	}
	if len(journal.lines(t, "nostr_connect.listen.stop")) != 1 {
		t.Error("no line about the end")
	}
}

func TestListenEnds(t *testing.T) {
	t.Parallel()
	market := startMarket(t)
	client := newClient(t, market.RelayURL, nil, zerolog.Nop())
	reason := errors.New("the person went away")
	ctx, cancel := context.WithCancelCause(testContext(t))
	listener := startListening(ctx, client, newInvitation(t, market.RelayURL), ListenConfig{})
	listener.awaitReady(t)
	cancel(reason)
	if heard := receive(t, listener.heard); !errors.Is(heard.err, reason) {
		t.Errorf("cancelled: %v", heard.err)
	}
	listener = startListening(testContext(t), client, newInvitation(t, market.RelayURL), ListenConfig{})
	listener.awaitReady(t)
	client.Close()
	if heard := receive(t, listener.heard); !errors.Is(heard.err, relay.ErrClosed) {
		t.Errorf("the client was closed: %v", heard.err)
	}
	listener = startListening(testContext(t), client, newInvitation(t, market.RelayURL), ListenConfig{})
	if heard := receive(t, listener.heard); !errors.Is(heard.err, relay.ErrClosed) {
		t.Errorf("the client is closed: %v", heard.err)
	}
}

func TestListenTellsThatTheRelayRefuses(t *testing.T) {
	t.Parallel()
	market := startMarket(t)
	client := newClient(t, market.RelayURL, nil, zerolog.Nop())
	market.Relay.Break(sandbox.Faults{Closed: "blocked: go away"})
	listener := startListening(testContext(t), client, newInvitation(t, market.RelayURL), ListenConfig{})
	var refused *Refused
	if heard := receive(t, listener.heard); !errors.As(heard.err, &refused) || refused.Relays[0].Text != "blocked: go away" {
		t.Errorf("heard %+v", heard)
	}
}

// TestListenOutlivesTheRelay: a code that was shown stays good while the relay is
// down, also when it is down from the start.
func TestListenOutlivesTheRelay(t *testing.T) {
	t.Parallel()
	market := startMarket(t)
	client := newClient(t, market.RelayURL, nil, zerolog.Nop())
	market.Relay.Stop()
	clock := newManualClock()
	invitation := newInvitation(t, market.RelayURL)
	listener := startListening(testContext(t), client, invitation, ListenConfig{Clock: clock})
	clock.fire(t, standLimit)
	listener.awaitReady(t) // The code can be shown all the same.
	resume(t, market)
	awaitREQs(t, market, 1)
	market.Relay.Stop()
	resume(t, market)
	awaitREQs(t, market, 2)
	app := newApp(t, signerapp.Options{})
	if err := app.Scan(testContext(t), invitation.URI()); err != nil {
		t.Fatal(err)
	}
	if heard := receive(t, listener.heard); heard.err != nil {
		t.Error(heard.err)
	}
}

func resume(t testing.TB, market *sandbox.Market) {
	t.Helper()
	if err := market.Relay.Resume(); err != nil {
		t.Fatal(err)
	}
}

func awaitREQs(t testing.TB, market *sandbox.Market, count int) {
	t.Helper()
	if _, err := market.Relay.WaitFor(testContext(t), func(c sandbox.Counters) bool { return c.SentEOSEs >= count }); err != nil {
		t.Fatal(err)
	}
}

func TestInvitationsAreReadAsURLs(t *testing.T) {
	t.Parallel()
	parsed, err := url.Parse(newInvitation(t, "wss://relay.example").URI())
	if err != nil || parsed.Query().Get("relay") != "wss://relay.example" || parsed.Query().Get("name") != testApp.Name {
		t.Errorf("%v, %v", parsed, err)
	}
}
