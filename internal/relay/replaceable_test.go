package relay

import (
	"slices"
	"testing"

	"github.com/nbd-wtf/go-nostr"
)

func TestNewest(t *testing.T) {
	t.Parallel()
	event := func(id, author string, kind int, createdAt nostr.Timestamp, d ...string) *nostr.Event {
		made := &nostr.Event{ID: id, PubKey: author, Kind: kind, CreatedAt: createdAt}
		if len(d) > 0 {
			made.Tags = nostr.Tags{{"t", "x"}, {"d", d[0]}}
		}
		return made
	}
	kept := Newest([]*nostr.Event{
		event("a", "alice", 30402, 1, "x"),
		event("b", "alice", 30402, 3, "x"),
		event("c", "alice", 30402, 2, "x"),
		event("d", "alice", 30402, 1, "y"),
		event("e", "alice", 30402, 1),
		event("f", "bob", 30402, 1, "x"),
		event("h", "alice", 0, 5),
		event("g", "alice", 0, 5),
		event("i", "alice", 1, 1),
		event("j", "alice", 1, 1),
		event("i", "alice", 1, 1),
		event("k", "alice", 10002, 1, "x"),
		event("l", "alice", 10002, 2, "y"),
		event("m", "alice", 24133, 1, "x"),
		event("n", "alice", 24133, 1, "x"),
	})
	var ids []string
	for _, event := range kept {
		ids = append(ids, event.ID)
	}
	if want := []string{"b", "d", "e", "f", "g", "i", "j", "l", "m", "n"}; !slices.Equal(ids, want) {
		t.Errorf("kept %q, want %q", ids, want)
	}
	if got := Newest(nil); len(got) != 0 {
		t.Errorf("of none it keeps %v", got)
	}
}
