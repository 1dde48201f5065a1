package signer

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nbd-wtf/go-nostr"
	"github.com/rs/zerolog"

	"hostr-daemon/internal/relay"
	"hostr-daemon/internal/trace"
)

const (
	idleTimeout = 600 * time.Second
	// listenSince is how far back the handshake looks for answers: a relay may have
	// kept one from before.
	listenSince = 300 * time.Second
	// maxIgnoredLines bounds what strangers can write into the log of one handshake.
	maxIgnoredLines = 50
)

// ListenConfig is what Listen needs beside the invitation.
type ListenConfig struct {
	Logger zerolog.Logger
	// Clock is the machine's when nil.
	Clock relay.Clock
	// IdleTimeout is how long to wait without any event, 600 s when zero.
	IdleTimeout time.Duration
	// Ready, if not nil, is called once: when the relays have taken the subscription,
	// so that no answer can be missed, at the latest after two seconds. It is not
	// called when Listen ends before.
	Ready func()
}

// listening is one handshake under way.
type listening struct {
	ListenConfig
	invitation Invitation
	log        zerolog.Logger
	refusals   map[string]string // by relay
	ignored    int
}

// Listen waits on the invitation's relays until a signer proves with the secret that
// it has scanned the URI, and returns the connection to it (spec 20 §4.2). Events
// that prove nothing are ignored and logged with a reason.
//
// It returns the cause of a cancelled context, ErrNoApproval when no event at all
// came for the idle time, relay.ErrClosed, and a *Refused when no relay takes the
// subscription. The invitation can be listened to again.
func Listen(ctx context.Context, client *relay.Client, invitation Invitation, config ListenConfig) (Connection, error) {
	if config.Clock == nil {
		config.Clock = relay.SystemClock{}
	}
	config.IdleTimeout = cmp.Or(config.IdleTimeout, idleTimeout)
	since := nostr.Timestamp(config.Clock.Now().Add(-listenSince).Unix())
	subscription, err := client.Subscribe(ctx, nostr.Filter{
		Kinds: []int{nostr.KindNostrConnect},
		Tags:  nostr.TagMap{"p": {invitation.ClientPubkey()}},
		Since: &since,
	}, relay.SubscribeOptions{Relays: invitation.relays, BeforeAuth: true})
	if err != nil {
		return Connection{}, fmt.Errorf("listening for a signer: %w", err)
	}
	defer subscription.Close()
	l := &listening{ListenConfig: config, invitation: invitation, log: config.Logger, refusals: map[string]string{}}
	if id := trace.ID(ctx); id != "" {
		l.log = config.Logger.With().Str("traceId", id).Logger()
	}
	l.log.Info().Str("event", "nostr_connect.listen.start").
		Str("clientPubkey", invitation.ClientPubkey()).Int("relayCount", len(invitation.relays)).Send()
	defer func() {
		l.log.Info().Str("event", "nostr_connect.listen.stop").Str("clientPubkey", invitation.ClientPubkey()).Send()
	}()
	return l.run(ctx, subscription)
}

func (l *listening) run(ctx context.Context, subscription *relay.Subscription) (Connection, error) {
	stored := subscription.Stored()
	unready, stopUnready := timer(l.Clock, standLimit)
	defer stopUnready()
	idle, stopIdle := timer(l.Clock, l.IdleTimeout)
	defer func() { stopIdle() }()
	for {
		select {
		case event, open := <-subscription.Events():
			if !open {
				return Connection{}, ended(ctx)
			}
			stopIdle()
			idle, stopIdle = timer(l.Clock, l.IdleTimeout)
			if l.accepts(event) {
				return Connection{
					PrivateKey: l.invitation.client, RemotePubkey: event.PubKey, Relays: l.invitation.Relays(),
				}, nil
			}
		case <-stored:
			stored = nil
			l.tellReady()
		case <-unready:
			unready = nil
			l.tellReady()
		case refusal := <-subscription.Refusals():
			l.refusals[refusal.RelayURL] = cmp.Or(refusal.Reason, noReason)
			if len(l.refusals) == len(l.invitation.relays) {
				return Connection{}, l.refused()
			}
		case <-subscription.Restored():
			clear(l.refusals)
		case <-idle:
			return Connection{}, ErrNoApproval
		case <-ctx.Done():
			return Connection{}, context.Cause(ctx)
		}
	}
}

// ended tells why a subscription has ended.
func ended(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return relay.ErrClosed
}

func (l *listening) tellReady() {
	if l.Ready != nil {
		l.Ready()
		l.Ready = nil
	}
}

func (l *listening) refused() error {
	refused := &Refused{Method: "the sign-in request"}
	for _, url := range slices.Sorted(maps.Keys(l.refusals)) {
		refused.Relays = append(refused.Relays, RelayProblem{url, l.refusals[url]})
	}
	return refused
}

// accepts reports whether the event comes from somebody who knows the secret.
func (l *listening) accepts(event *nostr.Event) bool {
	reason, message := l.examine(event)
	if reason == "" {
		l.log.Info().Str("event", "nostr_connect.event.accepted").
			Str("eventId", event.ID).Str("senderPubkey", event.PubKey).Send()
		return true
	}
	if l.ignored++; l.ignored > maxIgnoredLines {
		return false
	}
	line := l.log.Info().Str("event", "nostr_connect.event.ignored").
		Str("eventId", event.ID).Str("senderPubkey", event.PubKey).Str("reason", reason)
	if message != "" {
		line.Str("message", message)
	}
	line.Send()
	return false
}

// examine returns why an event does not prove anything, or "" (spec 10 §7.1).
func (l *listening) examine(event *nostr.Event) (reason, message string) {
	defer func() { // The second line behind the guards of the payload.
		if problem := recover(); problem != nil {
			reason, message = "decode_error", fmt.Sprintf("panic: %T", problem)
		}
	}()
	channel, err := newChannel(l.invitation.client, event.PubKey)
	if err != nil {
		return "decode_error", err.Error()
	}
	text, err := channel.open(event.Content)
	if err != nil {
		return "decode_error", err.Error()
	}
	if strings.TrimSpace(text) == "" {
		return "empty_decryption", ""
	}
	var object map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &object) != nil || object == nil {
		return "non_object_response", ""
	}
	result := object["result"]
	if len(result) == 0 || string(result) == "null" {
		return "missing_result", ""
	}
	if secret, ok := (response{Result: result}).text(); !ok || !l.invitation.isSecret(secret) {
		return "result_mismatch", ""
	}
	return "", ""
}
