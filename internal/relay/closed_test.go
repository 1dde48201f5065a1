package relay

import "testing"

func TestReactionTo(t *testing.T) {
	t.Parallel()
	for reason, want := range map[string]closedReaction{
		"auth-required: sign in": authenticateFirst, "auth-required": authenticateFirst, "auth-required sign in": authenticateFirst,
		"rate-limited: slow down": askLater, "error: busy": askLater, "error": askLater,
		"error without a colon": giveUp, "": giveUp, "restricted: no": giveUp, "new-prefix: no": giveUp, "shadowbanned": giveUp,
	} {
		if got := reactionTo(reason); got != want {
			t.Errorf("%q: %v, want %v", reason, got, want)
		}
	}
}
