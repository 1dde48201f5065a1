package market_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/market"
)

func TestThreadAnchor(t *testing.T) {
	t.Parallel()
	for _, vector := range readMessageVectors(t).ConversationIDs {
		if got := market.ThreadAnchor(vector.Participants, vector.Tag); got != vector.ID {
			t.Errorf("%q of %v: got %s, want %s", vector.Tag, vector.Participants, got, vector.ID)
		}
	}
}

func TestConversationParticipants(t *testing.T) {
	t.Parallel()
	tags := nostr.Tags{{"p", " CC "}, {"p", "bb", "wss://relay", "buyer"}, {"p"}, {}, nil, {"p", " "}, {"e", "dd"}, {"p", "Bb"}}
	if diff := cmp.Diff([]string{"AA", "bb", "cc"}, market.ConversationParticipants("AA", tags)); diff != "" {
		t.Error(diff)
	}
	if got := market.ConversationParticipants("", nil); len(got) != 0 {
		t.Errorf("of nobody: %q", got)
	}
}

func TestConversationTag(t *testing.T) {
	t.Parallel()
	for want, tags := range map[string]nostr.Tags{
		"":      {{"conversation"}, {"d", "x"}},
		"first": {{"conversation"}, {"conversation", " first\n"}, {"conversation", "second"}},
	} {
		if got := market.ConversationTag(tags); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
