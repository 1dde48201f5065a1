package market

import (
	"slices"
	"strings"

	"github.com/nbd-wtf/go-nostr"
)

// ConversationParticipants returns who takes part in a message or an order: its
// author as given and every p tag, trimmed and lower-cased; sorted, each once
// (spec 60 §2).
func ConversationParticipants(pubkey string, tags nostr.Tags) []string {
	participants := []string{pubkey}
	for _, tag := range tags {
		if len(tag) >= 2 && tag[0] == "p" {
			participants = append(participants, strings.ToLower(strings.TrimSpace(tag[1])))
		}
	}
	return sortedUnique(participants)
}

// ConversationTag returns the label of a message's conversation, trimmed: the trade
// id on messages about a trade, "" where there is none (spec 60 §2).
func ConversationTag(tags nostr.Tags) string {
	label, _ := firstValue(tags, tagConversation)
	return strings.TrimSpace(label)
}

// ThreadAnchor returns the id of the thread of these participants under this
// conversation tag, 64 hex digits; with a trade id as tag it is the id of the order
// group as well. Order, repetition and empty participants do not matter (spec 60 §2).
func ThreadAnchor(participants []string, tag string) string {
	preimage := append(appendTexts([]byte{'['}, sortedUnique(participants)), ',')
	preimage = append(appendQuoted(preimage, strings.TrimSpace(tag)), ']')
	return sha256Hex(string(preimage))
}

// sortedUnique returns the texts that are not empty, sorted, each once.
func sortedUnique(texts []string) []string {
	kept := slices.DeleteFunc(slices.Clone(texts), func(text string) bool { return text == "" })
	slices.Sort(kept)
	return slices.Compact(kept)
}
