package signer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"hostr-daemon/internal/sandbox/signerapp"
)

// TestNothingPrintsASecret formats every type, alone, inside others and behind
// unexported fields.
func TestNothingPrintsASecret(t *testing.T) {
	t.Parallel()
	invitation := newInvitation(t, "wss://relay.example")
	key := invitation.client
	local := newLocal(t, key.Hex())
	if _, err := local.NIP44Encrypt(context.Background(), publicKey(t, strangerKey), "x"); err != nil {
		t.Fatal(err)
	}
	derived, err := converse(key, publicKey(t, strangerKey))
	if err != nil {
		t.Fatal(err)
	}
	connection := Connection{PrivateKey: key, RemotePubkey: publicKey(t, accountKey), Relays: []string{"wss://relay.example"}}
	uri, err := ParseBunkerURI("bunker://" + publicKey(t, accountKey) + "?relay=wss://relay.example&secret=" + *invitation.secret)
	if err != nil {
		t.Fatal(err)
	}
	client := newClient(t, "wss://relay.example", nil, zerolog.Nop())
	remote := newRemote(t, Config{Connection: connection, Client: client})
	holder := newHolder(t, publicKey(t, key.Hex()), false)
	if err := holder.Set(local); err != nil {
		t.Fatal(err)
	}
	canaries := []string{key.Hex(), *invitation.secret, fmt.Sprintf("%x", derived.bytes()), fmt.Sprint(derived.bytes()), fmt.Sprintf("%x", key.Hex())}
	for name, value := range map[string]any{
		"PrivateKey": key, "Local": local, "Connection": connection, "BunkerURI": uri, "Invitation": invitation, "Remote": remote,
		"Holder": holder, "conversation": derived, "channel": remote.channel,
	} {
		for shape, shown := range map[string]any{
			"alone": value, "pointer": &value, "list": []any{value}, "map": map[string]any{"x": value},
			"field": struct{ Value any }{value}, "hidden": struct{ value any }{value},
		} {
			for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t"} {
				if shape == "hidden" && (name == "Remote" || name == "Holder") {
					continue // fmt walks into what lives, without its locks.
				}
				checkNoCanary(t, name+" "+shape+" "+verb, fmt.Sprintf(verb, shown), canaries)
			}
		}
		encoded, _ := json.Marshal(value) //nolint:errcheck // What cannot be encoded shows nothing.
		checkNoCanary(t, name+" as JSON", string(encoded), canaries)
		var lines strings.Builder
		logger := zerolog.New(&lines)
		logger.Info().Interface("value", value).Any("again", value).Send()
		slog.New(slog.NewJSONHandler(&lines, nil)).Info("x", "value", value)
		slog.New(slog.NewTextHandler(&lines, nil)).Info("x", "value", value)
		checkNoCanary(t, name+" in a log", lines.String(), canaries)
	}
}

func checkNoCanary(t *testing.T, where, text string, canaries []string) {
	t.Helper()
	lower := strings.ToLower(text)
	for _, canary := range canaries {
		if strings.Contains(lower, strings.ToLower(canary)) {
			t.Errorf("%s shows a secret", where)
		}
	}
}

// TestFailuresHoldNoSecret drives every failure and looks at errors and the log.
func TestFailuresHoldNoSecret(t *testing.T) {
	t.Parallel()
	s := newScene(t, signerapp.Options{})
	s.knownAccount(t)
	connection := s.remote.connection
	canary := "nsec1" + strings.Repeat("q", 58)
	texts := []string{}
	for _, behaviour := range []signerapp.Behaviour{
		{Refuse: "your key " + canary + " is not welcome, Bearer 0canary0"}, {Refuse: "bunker://x?secret=0canary0"},
		{Raw: `{"id":"$id","result":5,"error":{"secret":"0canary0"}}`}, {Result: canary}, {StrangeFirst: true, Refuse: "x"},
		{ApprovalURL: "https://approve.example/?token=0canary0", Refuse: "x"}, {Hold: true},
	} {
		s.app.Behave(behaviour)
		ctx := newDeadline(t)
		signing := started(func() error { return s.remote.SignEvent(ctx, note("plaintext-canary")) })
		if behaviour.Hold {
			s.awaitHeld(t, 1)
			ctx.expire()
		}
		err := receive(t, signing)
		if err == nil {
			t.Errorf("%+v: no error", behaviour)
		}
		for ; err != nil; err = errors.Unwrap(err) {
			texts = append(texts, fmt.Sprintf("%v %+v %#v", err, err, err))
		}
	}
	invitation := newInvitation(t, s.market.RelayURL)
	ctx, cancel := context.WithCancel(testContext(t))
	cancel()
	_, err := Listen(ctx, s.client, invitation, ListenConfig{Logger: zerolog.New(s.journal)})
	texts = append(texts, fmt.Sprint(err), s.journal.String())
	checkNoCanary(t, "an error or the log", strings.Join(texts, "\n"), []string{
		connection.PrivateKey.Hex(), invitation.client.Hex(), *invitation.secret, canary, "0canary0", "plaintext-canary", "approve.example",
	})
}

func TestForeignText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                       "",
		" no\r\n\tway\x00 ":      "no way",
		"é\xff!":                 "é!",
		"\u202eright to left":    "right to left",
		strings.Repeat("é", 400): strings.Repeat("é", 300) + "…",
	} {
		if got := foreignText(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}
