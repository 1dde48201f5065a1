package conversation

import (
	"context"
	"encoding/json"
	"time"

	"github.com/nbd-wtf/go-nostr"
)

// How long something that one account did may take until another sees it, and how often
// the other looks.
const (
	sightTimeout = 30 * time.Second
	sightPause   = 100 * time.Millisecond
)

// sight asks in the name of an account until the answer fits, and shows the last one.
// What was answered last is returned in any case.
func sight[T any](ctx context.Context, t *talk, pubkey, action string, input any, fits func(T) bool) (last T, seen bool) {
	looking, cancel := context.WithTimeout(ctx, sightTimeout)
	defer cancel()
	for {
		var next T
		envelope, ok := t.askQuietly(ctx, pubkey, action, input)
		if !ok {
			return last, false
		}
		if !envelope.OK || json.Unmarshal(envelope.Data, &next) != nil {
			t.reveal()
			t.data(envelope, &next)
			return last, false
		}
		if last = next; fits(next) {
			t.reveal()
			return last, t.data(envelope, &next)
		}
		select {
		case <-time.After(sightPause):
		case <-looking.Done():
			t.reveal()
			return last, false
		}
	}
}

func (t *talk) askQuietly(ctx context.Context, pubkey, action string, input any) (Envelope, bool) {
	t.quiet = true
	defer func() { t.quiet = false }()
	request, ok := t.send("callAction", ActionParams{Action: action, Pubkey: pubkey, Input: input})
	if !ok {
		return Envelope{}, false
	}
	return t.envelope(ctx, request, action)
}

// nextSecond waits until what is made now is newer than what was made before: events
// count in seconds, and the newest offer is the one that holds.
func nextSecond(ctx context.Context, after nostr.Timestamp) {
	for nostr.Now() <= after && ctx.Err() == nil {
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}
