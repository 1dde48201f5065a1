package relay

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/btcsuite/btcd/btcec/v2"
	"github.com/btcsuite/btcd/btcec/v2/schnorr"
	"github.com/nbd-wtf/go-nostr"
	"github.com/rs/zerolog"
)

// mapMemory is a Memory that forgets nothing until it is told to fail.
type mapMemory struct {
	mu     sync.Mutex
	keys   map[[32]byte]bool
	err    error
	asked  int
	writes int
}

func newMapMemory() *mapMemory { return &mapMemory{keys: map[[32]byte]bool{}} }

func (m *mapMemory) Known(_ context.Context, keys [][32]byte) ([]bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked += len(keys)
	known := make([]bool, len(keys))
	for i, key := range keys {
		known[i] = m.keys[key]
	}
	return known, m.err
}

func (m *mapMemory) Remember(_ context.Context, keys [][32]byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return m.err
	}
	m.writes++
	for _, key := range keys {
		m.keys[key] = true
	}
	return nil
}

// verifyAll passes events through a sequence and returns the genuine ones in order.
func verifyAll(t testing.TB, v *Verifier, events []*nostr.Event) []*nostr.Event {
	var genuine []*nostr.Event
	done := make(chan struct{})
	s := newSequence(v, func(event *nostr.Event, _ int, good bool) {
		if good {
			genuine = append(genuine, event)
		}
	})
	for _, event := range events {
		s.add(event, 1)
	}
	s.after(func() { close(done) })
	receive(t, done)
	return genuine
}

func pointers(events []nostr.Event) []*nostr.Event {
	list := make([]*nostr.Event, len(events))
	for i := range events {
		list[i] = &events[i]
	}
	return list
}

func quiet() zerolog.Logger { return zerolog.New(io.Discard) }

func TestOrderIsKept(t *testing.T) {
	t.Parallel()
	v := newTestVerifier(t)
	events := notes(t, 80)
	for i := range events {
		if i%7 == 0 {
			events[i].Sig = strings.Repeat("0", 128)
		}
	}
	var want []string
	for i, event := range events {
		if i%7 != 0 {
			want = append(want, event.Content)
		}
	}
	if got := contents(verifyAll(t, v, pointers(events))); !slices.Equal(got, want) {
		t.Errorf("the order is %q", got)
	}
}

func TestSignaturesAreCheckedOnce(t *testing.T) {
	t.Parallel()
	memory := newMapMemory()
	events := pointers(notes(t, 40))
	first := NewVerifier(memory, quiet())
	for range 3 {
		if got := verifyAll(t, first, events); len(got) != 40 {
			t.Fatalf("%d events passed", len(got))
		}
	}
	if stats := first.Stats(); stats.Verified != 40 || stats.Remembered != 80 || stats.Refused != 0 || stats.Checking <= 0 {
		t.Errorf("the first run: %+v", stats)
	}
	first.Close()

	second := NewVerifier(memory, quiet())
	defer second.Close()
	if got := verifyAll(t, second, events); len(got) != 40 {
		t.Fatalf("%d events passed after the restart", len(got))
	}
	if stats := second.Stats(); stats.Verified != 0 || stats.Remembered != 40 || stats.Checking != 0 {
		t.Errorf("after the restart: %+v", stats)
	}
}

func TestMemoryKey(t *testing.T) {
	t.Parallel()
	event := notes(t, 1)[0]
	id, _ := hex.DecodeString(event.ID)
	signature, _ := hex.DecodeString(event.Sig)
	if key, ok := checkForm(&event); !ok || key != sha256.Sum256(append(id, signature...)) {
		t.Errorf("the key is %x, %v", key, ok)
	}
}

func TestRememberedEventStillNeedsItsOwnContent(t *testing.T) {
	t.Parallel()
	v := newTestVerifier(t)
	genuine := notes(t, 1)[0]
	forged := genuine
	forged.Content = "forged"
	got := verifyAll(t, v, []*nostr.Event{&forged, &genuine, &forged, &genuine})
	if texts := contents(got); !slices.Equal(texts, []string{"note 1", "note 1"}) {
		t.Errorf("passed are %q", texts)
	}
}

func TestMemoryThatFails(t *testing.T) {
	t.Parallel()
	memory := newMapMemory()
	memory.err = errors.New("the disk is full")
	v := NewVerifier(memory, quiet())
	if got := verifyAll(t, v, pointers(notes(t, 5))); len(got) != 5 {
		t.Errorf("%d events passed", len(got))
	}
	v.Close()
}

func TestMemoryOfAnotherLengthIsNotBelieved(t *testing.T) {
	t.Parallel()
	v := NewVerifier(shortMemory{}, quiet())
	defer v.Close()
	forged := notes(t, 1)[0]
	forged.Sig = strings.Repeat("0", 128)
	if got := verifyAll(t, v, []*nostr.Event{&forged}); len(got) != 0 {
		t.Error("a forged event passed")
	}
}

type shortMemory struct{}

func (shortMemory) Known(context.Context, [][32]byte) ([]bool, error) { return nil, nil }
func (shortMemory) Remember(context.Context, [][32]byte) error        { return nil }

func TestHostileEvents(t *testing.T) {
	t.Parallel()
	v := newTestVerifier(t)
	good := signed(t, aliceKey, 1059, 1, strings.Repeat("\n", 132))
	rehash := func(change func(*nostr.Event)) *nostr.Event {
		event := good
		change(&event)
		event.ID = event.GetID()
		return &event
	}
	hostile := []*nostr.Event{
		{},
		rehash(func(e *nostr.Event) { e.PubKey = e.PubKey[:62] }),
		rehash(func(e *nostr.Event) { e.PubKey += "00" }),
		rehash(func(e *nostr.Event) { e.PubKey = strings.ToUpper(e.PubKey) }),
		rehash(func(e *nostr.Event) { e.PubKey = strings.Repeat("0", 64) }),
		rehash(func(e *nostr.Event) { e.PubKey = strings.Repeat("f", 64) }),
		rehash(func(e *nostr.Event) { e.Sig = e.Sig[:126] }),
		rehash(func(e *nostr.Event) { e.Sig += "00" }),
		rehash(func(e *nostr.Event) { e.Sig = strings.Repeat("f", 128) }),
		rehash(func(e *nostr.Event) { e.Sig = strings.ToUpper(e.Sig) }),
		rehash(func(e *nostr.Event) { e.Sig = "" }),
	}
	other := good
	other.ID = strings.ToUpper(good.ID)
	hostile = append(hostile, &other)
	if got := verifyAll(t, v, hostile); len(got) != 0 {
		t.Errorf("%d hostile events passed: %v", len(got), got)
	}
	if got := verifyAll(t, v, []*nostr.Event{&good}); len(got) != 1 {
		t.Error("the genuine event with 132 line breaks did not pass")
	}
}

// A library that takes missing bytes for zero would accept this signature (spec 82
// §10.5: libsecp256k1 does).
func TestShortKeyThatWouldVerify(t *testing.T) {
	t.Parallel()
	event, key := nostr.Event{Kind: 1, CreatedAt: 1, Tags: nostr.Tags{}}, ""
	for number := 1; !strings.HasSuffix(event.PubKey, "00"); number++ {
		key = fmt.Sprintf("%064x", number)
		event.PubKey = publicKey(t, key)
	}
	event.PubKey = event.PubKey[:62]
	secret, err := hex.DecodeString(key)
	if err != nil {
		t.Fatal(err)
	}
	private, _ := btcec.PrivKeyFromBytes(secret)
	hash := sha256.Sum256(event.Serialize())
	signature, err := schnorr.Sign(private, hash[:])
	if err != nil {
		t.Fatal(err)
	}
	event.ID, event.Sig = hex.EncodeToString(hash[:]), hex.EncodeToString(signature.Serialize())
	if got := verifyAll(t, newTestVerifier(t), []*nostr.Event{&event}); len(got) != 0 {
		t.Error("an event of a shortened key passed")
	}
}

func TestFairTurns(t *testing.T) {
	t.Parallel()
	v := newTestVerifier(t)
	long, short := pointers(notes(t, 100)), signed(t, bobKey, 1, 1, "live")
	order := make(chan string, 2)
	first := newSequence(v, func(*nostr.Event, int, bool) {})
	for _, event := range long {
		first.add(event, 1)
	}
	first.after(func() { order <- "history" })
	second := newSequence(v, func(*nostr.Event, int, bool) { order <- "live" })
	second.add(&short, 1)
	if got := receive(t, order); got != "live" {
		t.Errorf("a live event waited for the %s of another subscription", got)
	}
	receive(t, order)
}

func TestClosedSequenceDeliversNothing(t *testing.T) {
	t.Parallel()
	v := newTestVerifier(t)
	s := newSequence(v, func(*nostr.Event, int, bool) { t.Error("delivered") })
	s.close()
	for _, event := range pointers(notes(t, 3)) {
		s.add(event, 1)
	}
	s.after(func() { t.Error("marked") })
	verifyAll(t, v, pointers(notes(t, 3)))
}

func TestPanicInADeliveryCostsThatEventOnly(t *testing.T) {
	t.Parallel()
	v := newTestVerifier(t)
	done, count := make(chan struct{}), 0
	s := newSequence(v, func(event *nostr.Event, _ int, _ bool) {
		if count++; event.Content == "note 2" {
			panic("hostile")
		}
	})
	for _, event := range pointers(notes(t, 3)) {
		s.add(event, 1)
	}
	s.after(func() { close(done) })
	receive(t, done)
	if count != 3 {
		t.Errorf("%d deliveries", count)
	}
}

// listing returns an event about the size of a real listing.
func listing(t testing.TB, number int) nostr.Event {
	tags := nostr.Tags{{"d", fmt.Sprintf("listing-%d", number)}, {"title", "A quiet house by the lake"}, {"t", "accommodation"}}
	for i := range 12 {
		tags = append(tags, nostr.Tag{"g", fmt.Sprintf("%015x", number*12+i)})
	}
	for i := range 8 {
		tags = append(tags, nostr.Tag{"image", fmt.Sprintf("https://media.example.org/%064x.webp", i), "1600x1200"})
	}
	for i := range 20 {
		tags = append(tags, nostr.Tag{"spec", fmt.Sprintf("amenity_%d", i), "true"})
	}
	content := strings.Repeat("Three rooms, a garden, and the tram around the corner. ", 20)
	return signed(t, aliceKey, 30402, int64(1_700_000_000+number), content, tags...)
}

func listings(t testing.TB, count int) []nostr.Event {
	events := make([]nostr.Event, count)
	for i := range events {
		events[i] = listing(t, i)
	}
	return events
}

func BenchmarkVerify500(b *testing.B) {
	events := pointers(listings(b, 500))
	b.Run("cold", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			v := NewVerifier(nil, quiet())
			b.StartTimer()
			verifyAll(b, v, events)
			b.StopTimer()
			v.Close()
			b.StartTimer()
		}
	})
	b.Run("warm", func(b *testing.B) {
		v := NewVerifier(nil, quiet())
		defer v.Close()
		verifyAll(b, v, events)
		for b.Loop() {
			verifyAll(b, v, events)
		}
	})
	b.Run("restarted", func(b *testing.B) {
		memory := newMapMemory()
		first := NewVerifier(memory, quiet())
		verifyAll(b, first, events)
		first.Close()
		for b.Loop() {
			b.StopTimer()
			v := NewVerifier(memory, quiet())
			b.StartTimer()
			verifyAll(b, v, events)
			b.StopTimer()
			v.Close()
			b.StartTimer()
		}
	})
}

func BenchmarkParseFrame(b *testing.B) {
	event := listing(b, 1)
	id := "q1"
	data, err := nostr.EventEnvelope{SubscriptionID: &id, Event: event}.MarshalJSON()
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := parseFrame(data); err != nil {
			b.Fatal(err)
		}
	}
}
