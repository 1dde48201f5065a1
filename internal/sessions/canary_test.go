package sessions_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/nbd-wtf/go-nostr"
	"github.com/rs/zerolog"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/sandbox"
	"hostr-daemon/internal/sandbox/signerapp"
	"hostr-daemon/internal/secrets"
	"hostr-daemon/internal/sessions"
)

// told collects all that a daemon says: its logs at their loudest, and errors and
// values in every form that a program may print them in.
type told struct {
	t    *testing.T
	log  logText
	said strings.Builder
}

func (s *told) hear(values ...any) {
	for _, value := range values {
		fmt.Fprintf(&s.said, "%v %+v %#v %q\n", value, value, value, fmt.Sprint(value))
		if err, ok := value.(error); ok {
			coded := fault.From(err)
			details, encoding := json.Marshal(coded.Details)
			fmt.Fprintf(&s.said, "%s %s %s %v\n", coded.Message, coded.Hint, details, encoding)
		}
	}
}

func (s *told) mustNotHold(canaries map[string]string) {
	s.t.Helper()
	if len(s.log.String()) < 1000 {
		s.t.Fatal("the log is all but empty")
	}
	for name, canary := range canaries {
		if len(canary) < 20 {
			s.t.Fatalf("the %s has %d characters", name, len(canary))
		}
		if strings.Contains(s.log.String(), canary) {
			s.t.Errorf("the log holds the %s", name)
		}
		if strings.Contains(s.said.String(), canary) {
			s.t.Errorf("an error or a printed value holds the %s", name)
		}
	}
}

// TestNothingSecretIsSaid goes through the course of an account with all that can go
// wrong on it.
func TestNothingSecretIsSaid(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	guest, host := b.market.Guests[0], b.market.Hosts[0]
	said := &told{t: t}
	b.change = func(config *sessions.Config) {
		loud := zerolog.New(&said.log).Level(zerolog.TraceLevel)
		config.Journal, config.Logger, config.RelayLogger = loud, loud, loud
	}
	registry := b.daemon()
	phone := b.phone(guest)
	phone.Behave(signerapp.Behaviour{Methods: []string{"scan", "get_public_key"}, WrongSecretFirst: true, Refuse: "busy", Times: 2})
	pending, err := registry.Connect(bridgeSession, false)
	if err != nil {
		t.Fatal(err)
	}
	canaries := map[string]string{"code": pending.URI(), "nsec": host.NSec, "private key": host.PrivateKey}
	_, query, _ := strings.Cut(pending.URI(), "&secret=")
	canaries["secret of the code"], _, _ = strings.Cut(query, "&")
	pending.Listen(within(t))
	for phone.Scan(within(t), pending.URI()) != nil { // refused at first
	}
	signedIn, err := pending.Wait(within(t))
	for err != nil {
		said.hear(err)
		signedIn, err = pending.Wait(within(t))
	}
	signInWithKey(t, registry, host)
	_, err = registry.SignInWithKey(within(t), secrets.NewSecret(host.NSec[:62]+"q"))
	canaries["most of the nsec"] = host.NSec[:62]
	said.hear(err, signedIn, pending)
	for _, person := range []sandbox.Person{guest, host} {
		session, err := registry.Session(within(t), person.PublicKey)
		if err != nil {
			t.Fatal(err)
		}
		if err := session.AwaitHydration(within(t)); err != nil {
			t.Fatal(err)
		}
		said.hear(session.Account().Signer(), session.Account().Credential())
		seed, ok, err := secrets.ForSession(b.secrets(), person.PublicKey).Seed(within(t), person.PublicKey)
		if err != nil || !ok {
			t.Fatalf("the seed of %s: %t, %v", person.Name, ok, err)
		}
		canaries["seed of "+person.Name] = seed.Reveal()
	}
	identity, _, err := secrets.ForSession(b.secrets(), guest.PublicKey).Identity(within(t))
	if err != nil {
		t.Fatal(err)
	}
	canaries["client key"] = identity.Bunker.PrivateKey.Reveal()
	said.hear(identity)
	failLoudly(t, b, registry, phone, said)
	said.mustNotHold(canaries)
}

// failLoudly has the signer refuse, fall silent and be gone, and the stored sign-in
// become unreadable.
func failLoudly(t *testing.T, b *bench, registry *sessions.Registry, phone *signerapp.App, said *told) {
	t.Helper()
	session, err := registry.Session(within(t), phone.PublicKey())
	if err != nil {
		t.Fatal(err)
	}
	phone.Behave(signerapp.Behaviour{Refuse: "Not authorized"})
	event := nostr.Event{Kind: 1, CreatedAt: nostr.Now()}
	refused := session.Account().Signer().SignEvent(within(t), &event)
	said.hear(refused, session.Stale(refused), session.Restore(within(t)))
	_, err = session.Check(within(t), "Testing")
	said.hear(err)
	_, silence, err := registry.AskSigner(within(t), phone.PublicKey())
	said.hear(silence, err)
	entry := "hostr-session/" + phone.PublicKey() + "/auth"
	text, _, err := b.secrets().Read(within(t), entry)
	if err != nil {
		t.Fatal(err)
	}
	registry.Close()
	if err := b.secrets().Write(within(t), entry, strings.Replace(text, "remotePubkey", "remotePubKee", 1)); err != nil {
		t.Fatal(err)
	}
	again := b.daemon()
	session, err = again.Opened(within(t), phone.PublicKey())
	if err != nil {
		t.Fatal(err)
	}
	_, err = session.Check(within(t), "Testing")
	said.hear(err)
	if err == nil {
		t.Error("the stored sign-in is readable still")
	}
	said.hear(again.Logout(within(t), phone.PublicKey()))
}
