package relay

import (
	"strconv"

	"github.com/nbd-wtf/go-nostr"
)

// Newest keeps of each replaceable or addressable event the newest version, the
// lowest id on a tie (NIP-01, spec 82 §6), and of other kinds one event per id.
// The order of what is kept stays as it was.
func Newest(events []*nostr.Event) []*nostr.Event {
	winners := make(map[string]*nostr.Event, len(events))
	for _, event := range events {
		address := replaceableAddress(event)
		if held, ok := winners[address]; !ok || supersedes(event, held) {
			winners[address] = event
		}
	}
	kept := make([]*nostr.Event, 0, len(winners))
	for _, event := range events {
		address := replaceableAddress(event)
		if winners[address] == event {
			kept = append(kept, event)
			delete(winners, address)
		}
	}
	return kept
}

func supersedes(event, held *nostr.Event) bool {
	if event.CreatedAt != held.CreatedAt {
		return event.CreatedAt > held.CreatedAt
	}
	return event.ID < held.ID
}

// replaceableAddress names what a newer version would replace; an event of a
// regular kind is its own address.
func replaceableAddress(event *nostr.Event) string {
	switch {
	case nostr.IsReplaceableKind(event.Kind):
		return strconv.Itoa(event.Kind) + ":" + event.PubKey
	case nostr.IsAddressableKind(event.Kind):
		return strconv.Itoa(event.Kind) + ":" + event.PubKey + ":" + event.Tags.GetD()
	default:
		return event.ID
	}
}
