package relayproxy

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/nbd-wtf/go-nostr"
)

func newTestStrangers(t *testing.T, foreign ...nostr.Event) *strangers {
	t.Helper()
	s, err := newStrangers(foreign)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// genuine is what a careful client asks of an event.
func genuine(event nostr.Event) bool {
	valid, err := event.CheckSignature()
	return event.CheckID() && valid && err == nil
}

func TestForgeriesAreNeverGenuine(t *testing.T) {
	t.Parallel()
	s := newTestStrangers(t)
	real := nostr.Event{Kind: 30402, CreatedAt: 100, Tags: nostr.Tags{{"d", "room"}}, Content: "A room"}
	if err := real.Sign(nostr.GeneratePrivateKey()); err != nil {
		t.Fatal(err)
	}
	forgeries := s.forgeries(real)
	sameID := 0
	for i, forgery := range forgeries {
		if genuine(forgery) {
			t.Errorf("forgery %d passes", i)
		}
		if forgery.ID == real.ID {
			sameID++
		}
	}
	if len(forgeries) != 4 || sameID != 2 {
		t.Errorf("%d forgeries, %d with the id of the real event; want 4 and 2", len(forgeries), sameID)
	}
	if !genuine(real) {
		t.Error("the real event was changed")
	}
}

func TestForeignEventsAreGenuineAndUnwanted(t *testing.T) {
	t.Parallel()
	listing := nostr.Event{Kind: 30402, CreatedAt: 100, Tags: nostr.Tags{{"d", "room"}}}
	if err := listing.Sign(nostr.GeneratePrivateKey()); err != nil {
		t.Fatal(err)
	}
	s := newTestStrangers(t, listing)
	for frame, want := range map[string]int{
		`["REQ","a",{"kinds":[30402]}]`:             1, // the note
		`["REQ","a",{"kinds":[0]}]`:                 2,
		`["REQ","a",{"kinds":[0]},{"kinds":[1]}]`:   1,
		`["REQ","a",{}]`:                            0, // everything is asked for
		`["REQ","a"]`:                               0,
		`["REQ"`:                                    0,
		`["REQ","a",{"kinds":[30402],"#d":["x"]}]`:  2,
		`["REQ","a",{"kinds":[30402],"since":200}]`: 2,
	} {
		got := s.notAskedFor([]byte(frame))
		if len(got) != want {
			t.Errorf("%s: %d events, want %d", frame, len(got), want)
		}
		for _, event := range got {
			if !genuine(event) {
				t.Errorf("%s: a foreign event is not genuine", frame)
			}
		}
	}
}

func TestGarbageHoldsNoGenuineEvent(t *testing.T) {
	t.Parallel()
	s := newTestStrangers(t)
	frames := s.garbage(`odd "id"`)
	if len(frames) < 25 {
		t.Errorf("only %d frames of garbage", len(frames))
	}
	for _, frame := range frames {
		head := readHead(frame.text)
		if head.label != "EVENT" || head.second != `odd "id"` {
			continue
		}
		var event nostr.Event
		if raw := element(frame.text, 2); raw != nil && json.Unmarshal(raw, &event) == nil && len(event.PubKey) == 64 && len(event.Sig) == 128 && genuine(event) {
			t.Errorf("a genuine event in the garbage: %s", frame.text)
		}
	}
}

func TestOversizedEventIsGenuineAndLarge(t *testing.T) {
	t.Parallel()
	s := newTestStrangers(t)
	frames := s.before(Faults{OversizedBytes: 1 << 20, Notice: "careful"}, "a", []byte(`["REQ","a",{}]`))
	if len(frames) != 2 || !bytes.Contains(frames[0].text, []byte("careful")) {
		t.Fatalf("%d frames", len(frames))
	}
	var event nostr.Event
	if err := json.Unmarshal(element(frames[1].text, 2), &event); err != nil {
		t.Fatal(err)
	}
	if len(frames[1].text) < 1<<20 || !genuine(event) {
		t.Error("the event must be genuine and large")
	}
}

func TestFlipped(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{"": "0", "a0": "a1", "a1": "a0", "af": "a0"} {
		if got := flipped(given); got != want || strings.EqualFold(got, given) {
			t.Errorf("flipped(%q) is %q, want %q", given, got, want)
		}
	}
}
