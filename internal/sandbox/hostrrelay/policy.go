package hostrrelay

import (
	"fmt"
	"time"

	"github.com/nbd-wtf/go-nostr"
)

// maxFuture is how far ahead of the clock an event may be dated.
const maxFuture = 1800 * time.Second

// Kinds the Hostr relay lets through (spec 82 §8.5).
func allowedKinds() set[int] {
	return setOf([]int{
		0, 4, 5, 7, 8, 13, 14, 16, 1059, 1326, 1327, 1328, 1329, 9734, 9735,
		10008, 10017, 10050, 13194, 17388, 17389, 22242,
		23194, 23195, 23196, 23197, 24133,
		30009, 30010, 30302, 30303, 30402, 31555, 32122,
	})
}

// openKinds may be written without AUTH and under any author.
func openKinds() set[int] {
	return setOf([]int{13194, 23194, 23195, 23196, 23197, 24133})
}

// foreignAuthorKinds may be written under another author than the one the
// connection is authenticated as: gift wraps and what trade keys sign.
func foreignAuthorKinds() set[int] {
	return setOf([]int{1059, 32122, 1326})
}

// directMessageKinds are shown to their author and first recipient only.
func directMessageKinds() set[int] {
	return setOf([]int{4, 44, 1059})
}

// Policy holds the rules of the deployed Hostr relay (spec 82 §8.5).
type Policy struct {
	now                                     func() time.Time
	allowed, open, foreignAuthor, directMsg set[int]
}

// NewPolicy returns the rules with the given clock.
func NewPolicy(now func() time.Time) *Policy {
	return &Policy{
		now:           now,
		allowed:       allowedKinds(),
		open:          openKinds(),
		foreignAuthor: foreignAuthorKinds(),
		directMsg:     directMessageKinds(),
	}
}

// Refusal returns why an event is refused on a connection authenticated as
// authed ("" when it is not), or "" when the event may pass. The kind is looked
// at first.
func (p *Policy) Refusal(event *nostr.Event, authed string) string {
	if !p.allowed.accepts(event.Kind) {
		return fmt.Sprintf("unsupported-kind: events of kind %d are not accepted here", event.Kind)
	}
	if !p.open.accepts(event.Kind) {
		if authed == "" {
			return "auth-required: authenticate before you publish"
		}
		if authed != event.PubKey && !p.foreignAuthor.accepts(event.Kind) {
			return "auth-required: the author of the event is not the authenticated pubkey"
		}
	}
	if event.CreatedAt.Time().After(p.now().Add(maxFuture)) {
		return fmt.Sprintf("invalid: created_at is more than %d seconds ahead", int(maxFuture.Seconds()))
	}
	if nostr.IsAddressableKind(event.Kind) || nostr.IsReplaceableKind(event.Kind) {
		for _, tag := range event.Tags {
			if len(tag) == 1 && tag[0] == "d" {
				return "invalid: the d tag has no value"
			}
		}
	}
	return ""
}

// Visible reports whether a reader authenticated as authed may see the event:
// direct messages go to their author and to the pubkey of their first p tag.
func (p *Policy) Visible(event *nostr.Event, authed string) bool {
	if !p.directMsg.accepts(event.Kind) {
		return true
	}
	if authed == "" {
		return false
	}
	if authed == event.PubKey {
		return true
	}
	first := event.Tags.Find("p")
	return len(first) >= 2 && first[1] == authed
}
