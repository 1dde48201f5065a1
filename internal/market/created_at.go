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

// maxLead is how far ahead of the clock, in seconds, something of our own may be dated
// to come after what it answers.
const maxLead = 60

// FollowingCreatedAt returns the time of an order or a message that comes after others,
// of which it is given the times: now, but later than each of them. What is dated further
// ahead than a minute does not count, so that nobody can drag us into the future.
func FollowingCreatedAt(now nostr.Timestamp, others ...nostr.Timestamp) nostr.Timestamp {
	following := now
	for _, other := range others {
		if other < now+maxLead {
			following = max(following, other+1)
		}
	}
	return following
}
