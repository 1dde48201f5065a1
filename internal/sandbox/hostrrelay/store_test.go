package hostrrelay

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nbd-wtf/go-nostr"
)

// event makes an unsigned event; the store does not check signatures.
func event(id string, kind int, author string, created int, tags ...nostr.Tag) nostr.Event {
	return nostr.Event{ID: id, Kind: kind, PubKey: author, CreatedAt: nostr.Timestamp(created), Tags: tags}
}

func ids(events []*nostr.Event) string {
	var all []string
	for _, event := range events {
		all = append(all, event.ID)
	}
	return strings.Join(all, " ")
}

func TestStoreKeepsTheNewestVersion(t *testing.T) {
	t.Parallel()
	store := NewStore()
	steps := []struct {
		event nostr.Event
		want  string
	}{
		{event("b", 30402, "host", 100, nostr.Tag{"d", "room"}), "b"},
		{event("c", 30402, "host", 99, nostr.Tag{"d", "room"}), "b"},  // older
		{event("d", 30402, "host", 100, nostr.Tag{"d", "room"}), "b"}, // same time, higher id
		{event("a", 30402, "host", 100, nostr.Tag{"d", "room"}), "a"}, // same time, lower id
		{event("e", 30402, "host", 101, nostr.Tag{"d", "room"}), "e"},
		{event("f", 30402, "host", 100, nostr.Tag{"d", "villa"}), "e f"},
		{event("g", 30402, "other", 102, nostr.Tag{"d", "room"}), "g e f"},
		{event("h", 30402, "host", 103), "h g e f"}, // no d is an address too
		{event("i", 30402, "host", 104, nostr.Tag{"d", ""}), "i g e f"},
	}
	for _, step := range steps {
		if err := store.Save(&step.event); err != nil {
			t.Fatalf("save %s: %v", step.event.ID, err)
		}
		if got := ids(store.Query(nostr.Filter{Kinds: []int{30402}}, nil)); got != step.want {
			t.Errorf("after %s: %q, want %q", step.event.ID, got, step.want)
		}
	}
	if err := store.Save(&steps[8].event); !errors.Is(err, ErrDuplicate) {
		t.Errorf("saving an event twice: %v", err)
	}
	if got := store.Len(); got != 4 {
		t.Errorf("%d events are stored, want 4", got)
	}
}

func TestStoreDeletesWhatTheAuthorNames(t *testing.T) {
	t.Parallel()
	store := NewStore()
	room := event("room1", 30402, "host", 100, nostr.Tag{"d", "room"})
	note := event("note1", 1059, "host", 100)
	foreign := event("note2", 1059, "other", 100)
	store.Insert([]nostr.Event{room, note, foreign})

	request := event("del", 5, "host", 200,
		nostr.Tag{"e", "note1"}, nostr.Tag{"e", "note2"}, nostr.Tag{"a", "30402:host:room"},
		nostr.Tag{"a", "30402:other:room"}, nostr.Tag{"a", "nonsense"}, nostr.Tag{"e"})
	if err := store.Save(&request); err != nil {
		t.Fatal(err)
	}
	if got := ids(store.Query(nostr.Filter{}, nil)); got != "del note2" {
		t.Errorf("left are %q, want the deletion and the foreign note", got)
	}
	for _, gone := range []nostr.Event{note, room, event("room2", 30402, "host", 200, nostr.Tag{"d", "room"})} {
		if err := store.Save(&gone); !errors.Is(err, ErrDeleted) || !store.Deleted(&gone) {
			t.Errorf("%s can be stored again: %v", gone.ID, err)
		}
	}
	later := event("room3", 30402, "host", 201, nostr.Tag{"d", "room"})
	if err := store.Save(&later); err != nil {
		t.Errorf("a version after the deletion is refused: %v", err)
	}
}

// TestStoreFindsWhatAScanFinds compares the index with go-nostr's own matching
// over random events and filters.
func TestStoreFindsWhatAScanFinds(t *testing.T) {
	t.Parallel()
	d := rand.New(rand.NewPCG(1, 2))
	letters := []string{"t", "g", "S", "d", "p", "title"}
	word := func() string { return string(rune('a' + d.IntN(5))) }
	var all []nostr.Event
	for i := range 400 {
		made := event(fmt.Sprintf("%04d", d.IntN(1_000_000)*1000+i), []int{1059, 30402, 0, 4}[d.IntN(4)], word(), d.IntN(50))
		for range d.IntN(6) {
			made.Tags = append(made.Tags, nostr.Tag{letters[d.IntN(len(letters))], word()})
		}
		all = append(all, made)
	}
	store := NewStore()
	store.Insert(all)
	var kept []nostr.Event // what is left of the replaceable ones, by the store's own account
	for _, stored := range store.Query(nostr.Filter{}, nil) {
		kept = append(kept, *stored)
	}
	if len(kept) != store.Len() || len(kept) < 100 {
		t.Fatalf("an empty filter finds %d of %d events", len(kept), store.Len())
	}
	for range 500 {
		filter := randomFilter(d, kept, letters, word)
		var want []*nostr.Event
		for i := range kept {
			if filter.Matches(&kept[i]) {
				want = append(want, &kept[i])
			}
		}
		slices.SortStableFunc(want, func(a, b *nostr.Event) int { return oldestFirst(b, a) })
		if filter.Limit > 0 {
			want = want[:min(len(want), filter.Limit)]
		}
		if difference := cmp.Diff(ids(want), ids(store.Query(filter, nil))); difference != "" {
			t.Fatalf("filter %s (-scan +index):\n%s", filter, difference)
		}
	}
}

func randomFilter(d *rand.Rand, kept []nostr.Event, letters []string, word func() string) nostr.Filter {
	some := func() []string {
		values := []string{}
		for range d.IntN(4) {
			values = append(values, word())
		}
		return values
	}
	var filter nostr.Filter
	if d.IntN(3) > 0 {
		filter.Kinds = []int{30402, []int{0, 1059, 4, 7}[d.IntN(4)]}
	}
	if d.IntN(3) == 0 {
		filter.Authors = some()
	}
	if d.IntN(8) == 0 {
		filter.IDs = []string{kept[d.IntN(len(kept))].ID, kept[d.IntN(len(kept))].ID, "nobody"}
	}
	for range d.IntN(3) {
		if filter.Tags == nil {
			filter.Tags = nostr.TagMap{}
		}
		filter.Tags[letters[d.IntN(len(letters))]] = some()
	}
	if d.IntN(3) == 0 {
		since := nostr.Timestamp(d.IntN(50))
		until := since + nostr.Timestamp(d.IntN(30))
		filter.Since, filter.Until = &since, &until
	}
	filter.Limit = d.IntN(3) * d.IntN(20)
	return filter
}

func TestStoreCountsOnlyVisibleEventsAgainstTheLimit(t *testing.T) {
	t.Parallel()
	store := NewStore()
	store.Insert([]nostr.Event{event("a", 4, "x", 3), event("b", 4, "x", 2), event("c", 4, "x", 1)})
	visible := func(event *nostr.Event) bool { return event.ID != "a" }
	if got := ids(store.Query(nostr.Filter{Limit: 2}, visible)); got != "b c" {
		t.Errorf("found %q, want the two visible ones", got)
	}
}
