package sandbox_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nbd-wtf/go-nostr"
	"github.com/nbd-wtf/go-nostr/nip42"

	"hostr-daemon/internal/sandbox"
)

// login answers the challenge the relay sends on connect.
func (c *client) login(ctx context.Context, t testing.TB, url string, person sandbox.Person) {
	t.Helper()
	challenge := word(c.next(ctx, t, "AUTH"), 1)
	event := nip42.CreateUnsignedAuthEvent(challenge, person.PublicKey, url)
	sign(t, &event, person)
	c.send(ctx, t, "AUTH", event)
	if frame := c.next(ctx, t, "OK"); string(frame[2]) != "true" {
		t.Fatalf("AUTH as %s: %s", person.Name, frame)
	}
}

// publish sends an event and returns the answer.
func (c *client) publish(ctx context.Context, t testing.TB, event nostr.Event) (ok bool, reason string) {
	t.Helper()
	c.send(ctx, t, "EVENT", event)
	for {
		frame := c.next(ctx, t, "OK")
		if word(frame, 1) == event.ID {
			return string(frame[2]) == "true", word(frame, 3)
		}
	}
}

func sign(t testing.TB, event *nostr.Event, person sandbox.Person) {
	t.Helper()
	if err := event.Sign(person.PrivateKey); err != nil {
		t.Fatal(err)
	}
}

func signed(t testing.TB, person sandbox.Person, kind int, tags ...nostr.Tag) nostr.Event {
	t.Helper()
	event := nostr.Event{Kind: kind, CreatedAt: nostr.Now(), Tags: tags, Content: "{}"}
	sign(t, &event, person)
	return event
}

func TestRelayAsksForAuthentication(t *testing.T) {
	t.Parallel()
	market := small(t)
	host, other := market.Hosts[0], market.Hosts[1]
	ctx := patient(t)
	stranger, member := dial(t, market.RelayURL), dial(t, market.RelayURL)
	member.login(ctx, t, market.RelayURL, host)
	future := nostr.Event{Kind: 0, CreatedAt: nostr.Now() + 3600, Content: "{}", Tags: nostr.Tags{}}
	sign(t, &future, host)

	for _, c := range []struct {
		name   string
		client *client
		event  nostr.Event
		want   string // prefix of the refusal, "" for accepted
	}{
		{"refused kind", stranger, signed(t, host, 1), "unsupported-kind: "},
		{"refused kind of a member", member, signed(t, host, 10002), "unsupported-kind: "},
		{"listing of a stranger", stranger, signed(t, host, 30402, nostr.Tag{"d", "x"}), "auth-required: "},
		{"listing of a member", member, signed(t, host, 30402, nostr.Tag{"d", "x"}), ""},
		{"listing of another", member, signed(t, other, 30402, nostr.Tag{"d", "x"}), "auth-required: "},
		{"gift wrap by a one-time key", member, signed(t, other, 1059, nostr.Tag{"p", host.PublicKey}), ""},
		{"order by a trade key", member, signed(t, other, 32122, nostr.Tag{"d", "x"}), ""},
		{"transition by a trade key", member, signed(t, other, 1326), ""},
		{"signer request of a stranger", stranger, signed(t, other, 24133, nostr.Tag{"p", host.PublicKey}), ""},
		{"wallet request of a stranger", stranger, signed(t, other, 23194), ""},
		{"profile from the future", member, future, "invalid: "},
		{"bare d tag", member, signed(t, host, 30402, nostr.Tag{"d"}), "invalid: "},
	} {
		ok, reason := c.client.publish(ctx, t, c.event)
		if ok != (c.want == "") || !strings.HasPrefix(reason, c.want) {
			t.Errorf("%s: %t %q, want %q…", c.name, ok, reason, c.want)
		}
	}
}

func TestRelayShowsDirectMessagesToTheirPeopleOnly(t *testing.T) {
	t.Parallel()
	market := small(t)
	sender, receiver, third := market.Hosts[0], market.Hosts[1], market.Guests[0]
	ctx := patient(t)
	writer := dial(t, market.RelayURL)
	writer.login(ctx, t, market.RelayURL, sender)
	message := signed(t, sender, 4, nostr.Tag{"p", receiver.PublicKey}, nostr.Tag{"p", third.PublicKey})
	if ok, reason := writer.publish(ctx, t, message); !ok {
		t.Fatal(reason)
	}
	for _, c := range []struct {
		reader *sandbox.Person
		want   int
	}{{nil, 0}, {&sender, 1}, {&receiver, 1}, {&third, 0}} {
		client := dial(t, market.RelayURL)
		if c.reader != nil {
			client.login(ctx, t, market.RelayURL, *c.reader)
		}
		if found := client.query(ctx, t, "inbox", nostr.Filter{Kinds: []int{4, 1059}}); len(found) != c.want {
			t.Errorf("reader %+v sees %d messages, want %d", c.reader, len(found), c.want)
		}
	}
}

// TestRelayPassesNewEventsOn publishes until the reader gets one: khatru may
// enter a listener a moment after its EOSE.
func TestRelayPassesNewEventsOn(t *testing.T) {
	t.Parallel()
	market := small(t)
	host := market.Hosts[0]
	ctx := patient(t)
	reader, writer := dial(t, market.RelayURL), dial(t, market.RelayURL)
	writer.login(ctx, t, market.RelayURL, host)
	reader.send(ctx, t, "REQ", "live", nostr.Filter{Kinds: []int{30402, 1059}, Tags: nostr.TagMap{"l": {"new"}}})
	reader.next(ctx, t, "EOSE")
	passed := make(chan nostr.Event, 1)
	go func() {
		defer close(passed)
		_, text, err := reader.conn.Read(ctx)
		var event nostr.Event
		var frame []json.RawMessage
		if err == nil && json.Unmarshal(text, &frame) == nil && word(frame, 0) == "EVENT" && json.Unmarshal(frame[2], &event) == nil {
			passed <- event
		}
	}()
	for i := 0; ; i++ {
		// The reader is nobody and must not be given the message.
		message := signed(t, host, 1059, nostr.Tag{"l", "new"}, nostr.Tag{"p", market.Guests[0].PublicKey})
		listing := signed(t, host, 30402, nostr.Tag{"l", "new"}, nostr.Tag{"d", fmt.Sprint("new-", i)})
		for _, event := range []nostr.Event{message, listing} {
			if ok, reason := writer.publish(ctx, t, event); !ok {
				t.Fatal(reason)
			}
		}
		select {
		case event := <-passed:
			if event.Kind != 30402 {
				t.Errorf("the reader got an event of kind %d, want a listing", event.Kind)
			}
			return
		default:
		}
	}
}

func TestRelayDeletesOnlyForTheAuthor(t *testing.T) {
	t.Parallel()
	market := small(t)
	target := market.Listings[0] // of host 0
	ctx := patient(t)
	request := signed(t, target.Host, 5, nostr.Tag{"e", target.Event.ID}, nostr.Tag{"a", target.Anchor})
	exists := func() bool {
		events, err := market.Relay.Query(ctx, nostr.Filter{IDs: []string{target.Event.ID}})
		if err != nil {
			t.Fatal(err)
		}
		return len(events) == 1
	}
	stranger := dial(t, market.RelayURL)
	if ok, reason := stranger.publish(ctx, t, request); ok || !strings.HasPrefix(reason, "auth-required: ") || !exists() {
		t.Errorf("a stranger's deletion: %t %q, the listing exists: %t", ok, reason, exists())
	}
	member := dial(t, market.RelayURL)
	member.login(ctx, t, market.RelayURL, target.Host)
	if ok, reason := member.publish(ctx, t, request); !ok || exists() {
		t.Errorf("the author's deletion: %t %q, the listing exists: %t", ok, reason, exists())
	}
	if ok, reason := member.publish(ctx, t, target.Event); ok || !strings.HasPrefix(reason, "blocked: ") {
		t.Errorf("the deleted listing again: %t %q", ok, reason)
	}
}

func TestRelayKeepsTheNewestVersion(t *testing.T) {
	t.Parallel()
	market := small(t)
	host := market.Hosts[0]
	ctx := patient(t)
	client := dial(t, market.RelayURL)
	client.login(ctx, t, market.RelayURL, host)
	now := nostr.Timestamp(time.Now().Unix())
	for _, created := range []nostr.Timestamp{now - 2, now, now - 1} {
		event := nostr.Event{Kind: 0, CreatedAt: created, Content: "{}", Tags: nostr.Tags{}}
		sign(t, &event, host)
		if ok, reason := client.publish(ctx, t, event); !ok {
			t.Fatalf("version %d: %s", created, reason)
		}
	}
	found := client.query(ctx, t, "profile", nostr.Filter{Kinds: []int{0}, Authors: []string{host.PublicKey}})
	if len(found) != 1 || found[0].CreatedAt != now {
		t.Errorf("found %v, want the version of %d", found, now)
	}
}

func TestRelayRefusesAForeignRelayInAUTH(t *testing.T) {
	t.Parallel()
	market := small(t)
	ctx := patient(t)
	client := dial(t, market.RelayURL)
	event := nip42.CreateUnsignedAuthEvent(word(client.next(ctx, t, "AUTH"), 1), market.Hosts[0].PublicKey, "wss://relay.example")
	sign(t, &event, market.Hosts[0])
	client.send(ctx, t, "AUTH", event)
	if frame := client.next(ctx, t, "OK"); string(frame[2]) != "false" {
		t.Errorf("AUTH for another relay: %s", frame)
	}
}
