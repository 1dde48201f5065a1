package relay

import "strings"

// closedReaction is what a CLOSED asks of us, by the prefix of its reason.
type closedReaction int

const (
	// giveUp ends the relay's part: the reason will not go away by asking again.
	giveUp closedReaction = iota
	// authenticateFirst means that the same REQ may pass after a NIP-42 AUTH.
	authenticateFirst
	// askLater means that the same REQ may pass after a pause.
	askLater
)

// closedReactions lists the prefixes of NIP-01 and NIP-42 and those relays add.
// A prefix that is not here gives up.
var closedReactions = map[string]closedReaction{
	"auth-required": authenticateFirst,
	"rate-limited":  askLater,
	"error":         askLater,
	"blocked":       giveUp,
	"duplicate":     giveUp,
	"invalid":       giveUp,
	"mute":          giveUp,
	"pow":           giveUp,
	"restricted":    giveUp,
	"shadowbanned":  giveUp,
	"unsupported":   giveUp,
}

func reactionTo(reason string) closedReaction {
	if wantsAuthentication(reason) {
		return authenticateFirst
	}
	prefix, _, _ := strings.Cut(reason, ":")
	return closedReactions[strings.TrimSpace(prefix)]
}

// wantsAuthentication tests the prefix alone: the colon is not needed (spec 82 §8.2).
func wantsAuthentication(reason string) bool {
	return strings.HasPrefix(strings.TrimSpace(reason), "auth-required")
}
