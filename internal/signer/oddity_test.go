package signer

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/relay"
	"hostr-daemon/internal/sandbox"
	"hostr-daemon/internal/sandbox/signerapp"
)

// TestRemoteBearsOddAnswers: the signer is odd, the request succeeds all the same.
func TestRemoteBearsOddAnswers(t *testing.T) {
	t.Parallel()
	s := newScene(t, signerapp.Options{TransportKey: transportKey})
	ctx := testContext(t)
	for name, behaviour := range map[string]signerapp.Behaviour{
		"answers twice":             {Repeats: 3},
		"contradicts itself":        {Contradict: true},
		"says strange things first": {StrangeFirst: true},
		"answers in NIP-04":         {NIP04: true},
		"asks for approval":         {ApprovalURL: "https://approve.example/?token=canary"},
		"an empty error":            {Raw: `{"id":"$id","result":"` + publicKey(t, accountKey) + `","error":""}`},
		"a null error":              {Raw: `{"id":"$id","result":"` + publicKey(t, accountKey) + `","error":null,"more":{"x":1}}`},
		"in capitals":               {Result: " " + strings.ToUpper(publicKey(t, accountKey))},
		"all at once":               {StrangeFirst: true, NIP04: true, Repeats: 1, ApprovalURL: "https://approve.example"},
	} {
		s.app.Behave(behaviour)
		if account, err := s.remote.GetPublicKey(ctx); err != nil || account != publicKey(t, accountKey) {
			t.Errorf("%s: account %q, error %v", name, account, err)
		}
	}
	s.app.Behave(signerapp.Behaviour{Repeats: 2, StrangeFirst: true})
	for range 20 { // Late second answers meet other requests.
		if err := s.remote.SignEvent(ctx, note("x")); err != nil {
			t.Fatal(err)
		}
	}
	if pages := s.journal.lines(t, "signer.approval_page"); len(pages) != 2 || strings.Contains(s.journal.String(), "approve.example") {
		t.Errorf("lines about approval pages: %v", pages)
	}
}

// TestRemoteRefusesOtherEvents: what comes back is not what was asked for.
func TestRemoteRefusesOtherEvents(t *testing.T) {
	t.Parallel()
	s := newScene(t, signerapp.Options{})
	ctx := testContext(t)
	for tampering, problem := range map[signerapp.Tampering]string{
		signerapp.TamperContent: "content", signerapp.TamperCreatedAt: "created_at", signerapp.TamperTags: "tags",
		signerapp.TamperKind: "kind", signerapp.TamperAuthor: "author",
		signerapp.TamperSignature: "signature", signerapp.TamperID: "id is not that",
	} {
		s.app.Behave(signerapp.Behaviour{Tamper: tampering})
		event, before := note("asked"), note("asked")
		err := s.remote.SignEvent(ctx, event)
		var wrong *WrongAnswer
		if !errors.As(err, &wrong) || !strings.Contains(wrong.Problem, problem) {
			t.Errorf("%s: %v", tampering, err)
		}
		if diff := cmp.Diff(before, event); diff != "" {
			t.Errorf("%s: the event was changed:\n%s", tampering, diff)
		}
	}
}

// TestRemoteTellsFailuresApart: each ends at once with an error of its own.
func TestRemoteTellsFailuresApart(t *testing.T) {
	t.Parallel()
	s := newScene(t, signerapp.Options{})
	s.knownAccount(t)
	peer := publicKey(t, strangerKey)
	sign := func(ctx context.Context) error { return s.remote.SignEvent(ctx, note("x")) }
	encrypt := func(ctx context.Context) error { _, err := s.remote.NIP44Encrypt(ctx, peer, "x"); return err }
	encryptOld := func(ctx context.Context) error { _, err := s.remote.NIP04Encrypt(ctx, peer, "x"); return err }
	publicKeyOf := func(ctx context.Context) error { _, err := s.remote.GetPublicKey(ctx); return err }
	for _, test := range []struct {
		name      string
		behaviour signerapp.Behaviour
		call      func(context.Context) error
		check     func(error) bool
	}{
		{"a refusal", signerapp.Behaviour{Refuse: "user said\nno"}, sign, isRejected("user said no", false)},
		{"not authorized", signerapp.Behaviour{Refuse: "Not Authorized!"}, encrypt, isRejected("Not Authorized!", true)},
		{"a refusal with a result", signerapp.Behaviour{Raw: `{"id":"$id","result":"ok","error":"denied"}`}, sign, isRejected("denied", false)},
		{"an error object", signerapp.Behaviour{Raw: `{"id":"$id","error":{"code":5}}`}, sign, isRejected(`{"code":5}`, false)},
		{"an empty error alone", signerapp.Behaviour{Raw: `{"id":"$id","error":""}`}, sign, isRejected(noReason, false)},
		{"a number", signerapp.Behaviour{Raw: `{"id":"$id","result":5}`}, publicKeyOf, isWrong("no text")},
		{"an object", signerapp.Behaviour{Raw: `{"id":"$id","result":{"pubkey":"x"}}`}, sign, isWrong("no text")},
		{"null", signerapp.Behaviour{Raw: `{"id":"$id","result":null,"error":null}`}, sign, isWrong("no text")},
		{"nothing", signerapp.Behaviour{Raw: `{"id":"$id"}`}, sign, isWrong("no text")},
		{"no event", signerapp.Behaviour{Result: "pong"}, sign, isWrong("no signed event")},
		{"no pubkey", signerapp.Behaviour{Result: strings.Repeat("f", 64)}, publicKeyOf, isWrong("no public key")},
		{"another account", signerapp.Behaviour{Result: peer}, publicKeyOf, func(err error) bool {
			var wrong *WrongAccount
			return errors.As(err, &wrong) && wrong.Got == peer && wrong.Want == publicKey(t, accountKey)
		}},
		{"no NIP-44 payload", signerapp.Behaviour{Result: "x"}, encrypt, isWrong("no encrypted payload")},
		{"no NIP-04 payload", signerapp.Behaviour{Result: "x"}, encryptOld, isWrong("no encrypted payload")},
		{"neither ack nor secret", signerapp.Behaviour{Result: "welcome"}, func(ctx context.Context) error {
			return s.remote.Connect(ctx, "secret")
		}, isWrong("neither ack")},
	} {
		s.app.Behave(test.behaviour)
		if err := test.call(testContext(t)); !test.check(err) {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

func isRejected(text string, notAuthorized bool) func(error) bool {
	return func(err error) bool {
		var rejected *Rejected
		return errors.As(err, &rejected) && rejected.Text == text && rejected.NotAuthorized() == notAuthorized
	}
}

func isWrong(problem string) func(error) bool {
	return func(err error) bool {
		var wrong *WrongAnswer
		return errors.As(err, &wrong) && strings.Contains(wrong.Problem, problem)
	}
}

// TestRevokedConnection is what the person sees who took the permission away.
func TestRevokedConnection(t *testing.T) {
	t.Parallel()
	s := newScene(t, signerapp.Options{})
	s.knownAccount(t)
	s.app.Revoke()
	if err := s.remote.SignEvent(testContext(t), note("x")); !isRejected("Not authorized", true)(err) {
		t.Error(err)
	}
}

func TestRemoteAsksNothingInVain(t *testing.T) {
	t.Parallel()
	s := newScene(t, signerapp.Options{})
	s.knownAccount(t)
	ctx := testContext(t)
	peer := publicKey(t, strangerKey)
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	for name, call := range map[string]func() error{
		"another author":           func() error { e := note("x"); e.PubKey = peer; return s.remote.SignEvent(ctx, e) },
		"not UTF-8":                func() error { return s.remote.SignEvent(ctx, note("\xff")) },
		"too large":                func() error { return s.remote.SignEvent(ctx, note(strings.Repeat(`"`, 20_000))) },
		"too large a text":         func() error { _, err := s.remote.NIP44Encrypt(ctx, peer, strings.Repeat("x", 65_535)); return err },
		"no text":                  func() error { _, err := s.remote.NIP44Encrypt(ctx, peer, ""); return err },
		"no peer":                  func() error { _, err := s.remote.NIP44Encrypt(ctx, "", "x"); return err },
		"a payload of line breaks": func() error { _, err := s.remote.NIP44Decrypt(ctx, peer, strings.Repeat("\n", 132)); return err },
		"half a NIP-04 payload":    func() error { _, err := s.remote.NIP04Decrypt(ctx, peer, "AAAA?iv=AAAA"); return err },
		"a cancelled call":         func() error { return s.remote.Ping(cancelled) },
	} {
		if err := call(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if asked := s.app.Count(""); asked != 1 { // The account was.
		t.Errorf("the signer was asked %d times", asked)
	}
}

// TestUnansweredAndCancelled: giving up leaves nothing that a late answer could break.
func TestUnansweredAndCancelled(t *testing.T) {
	t.Parallel()
	s := newScene(t, signerapp.Options{})
	s.knownAccount(t)
	s.app.Behave(signerapp.Behaviour{Hold: true})
	ctx, cancel := context.WithCancel(testContext(t))
	cancelled := started(func() error { return s.remote.SignEvent(ctx, note("cancelled")) })
	s.awaitHeld(t, 1)
	cancel()
	if err := receive(t, cancelled); !errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("cancelled: %v", err)
	}
	late := newDeadline(t)
	signing := started(func() error { return s.remote.SignEvent(late, note("late")) })
	s.awaitHeld(t, 2)
	eventually(t, "the relay has confirmed it", s.remote.idle)
	late.expire()
	err := receive(t, signing)
	var unanswered *Unanswered
	if !errors.As(err, &unanswered) || !unanswered.Delivered || !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		t.Errorf("late: %v", err)
	}
	if coded := fault.From(err); !coded.Retryable || coded.Code != fault.UnexpectedError || coded.Message != err.Error() {
		t.Errorf("for people: %+v", coded)
	}
	if pending := s.remote.Pending(); len(pending) != 0 {
		t.Errorf("still pending: %v", pending)
	}
	s.app.Approve()
	s.app.Behave(signerapp.Behaviour{})
	if err := s.remote.SignEvent(testContext(t), note("after")); err != nil {
		t.Errorf("after late answers: %v", err)
	}
}

func TestRelayRefusesTheRequest(t *testing.T) {
	t.Parallel()
	s := newScene(t, signerapp.Options{})
	s.knownAccount(t)
	s.market.Relay.Break(sandbox.Faults{RefuseEvents: "blocked: not you", Times: 1})
	err := s.remote.SignEvent(testContext(t), note("x"))
	var refused *Refused
	want := []RelayProblem{{s.market.RelayURL, "blocked: not you"}}
	if !errors.As(err, &refused) || !cmp.Equal(refused.Relays, want) || refused.Method != methodSignEvent {
		t.Errorf("error %v", err)
	}
	if !fault.From(err).Retryable {
		t.Error("it may not be tried again")
	}
	if err := s.remote.SignEvent(testContext(t), note("x")); err != nil {
		t.Errorf("the next one: %v", err)
	}
}

// TestNobodyListens: a relay that refuses ephemeral events without a listener says
// only that the signer is offline at the moment.
func TestNobodyListens(t *testing.T) {
	t.Parallel()
	s := newScene(t, signerapp.Options{})
	clock := newManualClock()
	remote := newRemote(t, Config{Connection: s.remote.connection, Client: s.client, Clock: clock})
	s.market.Relay.Break(sandbox.Faults{RefuseEvents: "mute: no one was listening for this", Times: 2})
	clock.fire(t, standLimit) // It is as long as the second wait.
	pinged := started(func() error { return remote.Ping(testContext(t)) })
	clock.fire(t, unheardFirst)
	clock.fire(t, 2*unheardFirst)
	if err := receive(t, pinged); err != nil {
		t.Error(err)
	}
	s.market.Relay.Break(sandbox.Faults{RefuseEvents: "mute: no one was listening for this"})
	ctx := newDeadline(t)
	pinged = started(func() error { return remote.Ping(ctx) })
	eventually(t, "the relay has refused it", func() bool { return remote.problem() == unheard })
	ctx.expire()
	if err := receive(t, pinged); err == nil || !strings.Contains(err.Error(), unheard) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("an absent signer: %v", err)
	}
}

// TestRelayWithoutOK: neither OK nor EOSE is needed.
func TestRelayWithoutOKAndEOSE(t *testing.T) {
	t.Parallel()
	s := newScene(t, signerapp.Options{})
	clock := newManualClock()
	s.market.Relay.Break(sandbox.Faults{NoOK: true, NoEOSE: true})
	remote := newRemote(t, Config{Connection: s.remote.connection, Client: s.client, Clock: clock})
	pinged := started(func() error { return remote.Ping(testContext(t)) })
	clock.fire(t, standLimit)
	if err := receive(t, pinged); err != nil {
		t.Error(err)
	}
}

// TestRelayRefusesTheSubscription: without it no answer can come, so requests fail at
// once; the relay is asked again.
func TestRelayRefusesTheSubscription(t *testing.T) {
	t.Parallel()
	s := newScene(t, signerapp.Options{})
	s.knownAccount(t)
	clock := newManualClock()
	s.market.Relay.Break(sandbox.Faults{Closed: "shutting down soon", Times: 1})
	remote := newRemote(t, Config{Connection: s.remote.connection, Client: s.client, Clock: clock})
	var refused *Refused
	if err := remote.Ping(testContext(t)); !errors.As(err, &refused) || refused.Relays[0].Text != "shutting down soon" {
		t.Errorf("error %v", err)
	}
	clock.fire(t, reopenFirst)
	awaitREQs(t, s.market, s.market.Relay.Counters().REQs)
	if err := remote.Ping(testContext(t)); err != nil {
		t.Errorf("after it was taken: %v", err)
	}
}

// TestStrangersAreNotHeard: whoever knows the client key can write to it, and break
// neither a request nor the process.
func TestStrangersAreNotHeard(t *testing.T) {
	t.Parallel()
	s := newScene(t, signerapp.Options{})
	s.app.Behave(signerapp.Behaviour{Hold: true})
	pinging := started(func() error { return s.remote.Ping(testContext(t)) })
	s.awaitHeld(t, 1)
	id := s.remote.Pending()[0].ID
	client := s.remote.connection.PrivateKey.PublicKey()
	stranger, err := ParsePrivateKey(strangerKey)
	if err != nil {
		t.Fatal(err)
	}
	channel, err := newChannel(stranger, client)
	if err != nil {
		t.Fatal(err)
	}
	forged, err := channel.seal(`{"id":"` + id + `","error":"forged"}`)
	if err != nil {
		t.Fatal(err)
	}
	for _, content := range []string{forged, strings.Repeat("\n", 132), "AAAA?iv=AAAA", ""} {
		event := strangersEvent(t, client, content)
		if _, err := s.client.Publish(testContext(t), event, relay.PublishOptions{}); err != nil {
			t.Fatal(err)
		}
		s.remote.receive(&event) // As if the relay had not looked at the filter.
	}
	s.app.Approve()
	if err := receive(t, pinging); err != nil {
		t.Error(err)
	}
}
