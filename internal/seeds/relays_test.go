package seeds

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/relay"
)

func newForgetful(d *device) Relays { return forgetful{d.newClient()} }

func (forgetful) Query(context.Context, nostr.Filter, relay.QueryOptions) (relay.Answer, error) {
	return relay.Answer{Complete: true}, nil
}

// meeting lets its guests go on when all are there.
type meeting struct {
	t       testing.TB
	mu      sync.Mutex
	missing int
	all     chan struct{}
}

func newMeeting(t testing.TB, guests int) *meeting {
	return &meeting{t: t, missing: guests, all: make(chan struct{})}
}

func (m *meeting) attend() {
	m.mu.Lock()
	if m.missing--; m.missing == 0 {
		close(m.all)
	}
	m.mu.Unlock()
	receive(m.t, m.all)
}

// meetingRelays has several devices publish at the same moment, and look only after
// all have.
type meetingRelays struct {
	Relays
	before, after *meeting
}

func (r meetingRelays) Publish(ctx context.Context, event nostr.Event, options relay.PublishOptions) ([]relay.Receipt, error) {
	r.before.attend()
	defer r.after.attend()
	return r.Relays.Publish(ctx, event, options)
}

// holding answers every query with the same events, as no relay with replaceable
// events should: several versions, in any order.
type holding struct {
	Relays
	events []*nostr.Event
}

func (h holding) Query(context.Context, nostr.Filter, relay.QueryOptions) (relay.Answer, error) {
	return relay.Answer{Events: h.events, Complete: true}, nil
}

// changing answers one query after the other, the last answer for ever, and counts
// what is published.
type changing struct {
	answers   []relay.Answer
	published int
}

func (c *changing) Query(context.Context, nostr.Filter, relay.QueryOptions) (relay.Answer, error) {
	answer := c.answers[0]
	if len(c.answers) > 1 {
		c.answers = c.answers[1:]
	}
	return answer, nil
}

func (c *changing) Publish(context.Context, nostr.Event, relay.PublishOptions) ([]relay.Receipt, error) {
	c.published++
	return nil, nil
}

// What the relay says after the signer has worked, and after the publication.
func TestAnswersThatChange(t *testing.T) {
	t.Parallel()
	d := newDevice(t, nil, true)
	none, cutOff := relay.Answer{Complete: true}, relay.Answer{}
	foreign := d.publishContent(strings.Repeat("AgAA", 40), 1_700_000_003)
	unread := relay.Answer{Complete: true, Events: []*nostr.Event{&foreign}}
	for _, test := range []struct {
		name      string
		answers   []relay.Answer
		published int
		want      string
	}{
		{"silent before the publication", []relay.Answer{none, cutOff}, 0, "could not be looked up"},
		{"foreign before the publication", []relay.Answer{none, unread}, 0, "cannot be read, so nothing was done"},
		{"silent after the publication", []relay.Answer{none, none, cutOff}, 1, "could not be published to the Hostr relay: The answer may be incomplete"},
		{"foreign after the publication", []relay.Answer{none, none, unread}, 1, "the backup it shows cannot be read"},
		{"empty after the publication", []relay.Answer{none, none, none}, 1, "does not show it"},
	} {
		relays := &changing{answers: test.answers}
		d.mustFail(d.startWith(relays), test.want)
		if relays.published != test.published {
			t.Errorf("%s: published %d times", test.name, relays.published)
		}
	}
}

func TestNewestReadableBackupCounts(t *testing.T) {
	t.Parallel()
	d := newDevice(t, nil, true)
	old := d.publishSeed(`{"seed":"`+strings.Repeat("01", 32)+`"}`, 1_700_000_000)
	good := d.publishSeed(`{"seed":"`+someSeed+`"}`, 1_700_000_001)
	bad := d.publishSeed(`{"seed":"`+someSeed[1:]+`"}`, 1_700_000_002)
	foreign := d.publishContent(strings.Repeat("AgAA", 40), 1_700_000_003)
	for _, events := range [][]*nostr.Event{{&old, &good, &bad, &foreign}, {&foreign, &bad, &good, &old}, {&bad, &old, &foreign, &good}} {
		d.store = &secretStore{}
		if !d.mustSeed(d.startWith(holding{events: events})).Equal(parsed(t, someSeed)) {
			t.Error("the newest readable backup is not in use")
		}
	}
}

func FuzzDecodeBackup(f *testing.F) {
	for _, seed := range []string{
		`{"v":1,"seed":"` + someSeed + `"}`, `{"seed":" ` + strings.ToUpper(someSeed) + ` "}`, `{"seed":null}`, `null`, `[]`, ``,
		`{"seed":"a","seed":"` + someSeed + `"}`, `{"v":1,"seed":"` + someSeed + `"} x`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, plaintext string) {
		seed, err := decodeBackup(plaintext)
		if err != nil {
			if !seed.IsZero() || err.Error() != errBackupFormat.Error() {
				t.Fatalf("error %v", err)
			}
			return
		}
		again, err := decodeBackup(encodeBackup(seed))
		if err != nil || !again.Equal(seed) {
			t.Fatal("what was read cannot be written and read again")
		}
	})
}
