package market

import "github.com/nbd-wtf/go-nostr"

// NextCreatedAt returns the time of an event that replaces a draft or an older
// version: now, but always later than the previous one (spec 82 §7.1).
func NextCreatedAt(previous, now nostr.Timestamp) nostr.Timestamp {
	if previous <= 0 || now > previous {
		return now
	}
	return previous + 1
}
