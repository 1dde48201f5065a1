package market

import (
	"slices"

	"github.com/nbd-wtf/go-nostr"
)

// EventJSON is a Nostr event as results of actions show it (spec 40 §7.3):
// exactly the keys of NIP-01, with a null signature while unsigned.
type EventJSON struct {
	ID        string          `json:"id"`
	PubKey    string          `json:"pubkey"`
	CreatedAt nostr.Timestamp `json:"created_at"`
	Kind      int             `json:"kind"`
	Tags      nostr.Tags      `json:"tags"`
	Content   string          `json:"content"`
	Sig       *string         `json:"sig"`
}

// NewEventJSON returns the result form of an event. It shares the event's tags.
func NewEventJSON(event *nostr.Event) EventJSON {
	shown := EventJSON{
		ID:        event.ID,
		PubKey:    event.PubKey,
		CreatedAt: event.CreatedAt,
		Kind:      event.Kind,
		Tags:      arraysOnly(event.Tags),
		Content:   event.Content,
	}
	if event.Sig != "" {
		shown.Sig = &event.Sig
	}
	return shown
}

// arraysOnly returns the tags without nil slices, which would encode as null.
func arraysOnly(tags nostr.Tags) nostr.Tags {
	isNil := func(tag nostr.Tag) bool { return tag == nil }
	if tags != nil && !slices.ContainsFunc(tags, isNil) {
		return tags
	}
	arrays := append(nostr.Tags{}, tags...)
	for i, tag := range arrays {
		arrays[i] = append(nostr.Tag{}, tag...)
	}
	return arrays
}
