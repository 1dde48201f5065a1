package actions

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/market"
	"hostr-daemon/internal/threads"
)

const (
	// updatesSize is how many bytes of JSON hostr.updates may have, profiles and trades not
	// counted; half of it is for the threads. Anybody can write to anybody, and whoever
	// reads the line holds all of it in memory.
	updatesSize = 16 << 20
	// threadSize is the same for the messages of one thread, and for its orders.
	threadSize = 4 << 20
)

// sizeBudget is how many bytes of JSON may still be shown.
type sizeBudget struct {
	left int
	// cut is true when something was left out.
	cut bool
}

// take reports whether a value fits, and counts it then.
func (b *sizeBudget) take(value any) bool {
	text, err := json.Marshal(value)
	if err != nil || len(text) >= b.left {
		b.cut = true
		return false
	}
	b.left -= len(text) + 1
	return true
}

// part is a budget of its own of what is left, of so many bytes at most; spent returns
// what it has used.
func (b *sizeBudget) part(most int) (part *sizeBudget, spent func()) {
	part = &sizeBudget{left: min(b.left, most)}
	before := part.left
	return part, func() { b.left, b.cut = b.left-(before-part.left), b.cut || part.cut }
}

// firstFitting returns the first values that fit, lastFitting the last ones.
func firstFitting[T any](b *sizeBudget, values []T) []T {
	for i, value := range values {
		if !b.take(value) {
			return values[:i]
		}
	}
	return values
}

func lastFitting[T any](b *sizeBudget, values []T) []T {
	for i, value := range slices.Backward(values) {
		if !b.take(value) {
			return values[i+1:]
		}
	}
	return values
}

// fittingThreads returns the threads as hostr.updates shows them, in their order. Where
// they are too much together, those that the account has written in come first, then those
// of the latest activity; in a thread the newest orders and texts do.
func fittingThreads(b *sizeBudget, all []*market.Thread, people threads.People, me string, now nostr.Timestamp) []UpdatesThread {
	shown := make(map[string]UpdatesThread, len(all))
	for _, thread := range byImportance(all, me, now) {
		entry := newUpdatesThread(thread, people)
		whole := entry
		entry.OrderRequests, entry.TextMessages, entry.Events = []market.EventJSON{}, []market.EventJSON{}, []market.EventJSON{}
		if !b.take(entry) {
			continue
		}
		part, spent := b.part(threadSize)
		entry.OrderRequests = lastFitting(part, whole.OrderRequests)
		entry.TextMessages = lastFitting(part, whole.TextMessages)
		entry.Events = lastFitting(part, whole.Events)
		spent()
		shown[thread.Anchor] = entry
	}
	fitting := make([]UpdatesThread, 0, len(shown))
	for _, thread := range all {
		if entry, ok := shown[thread.Anchor]; ok {
			fitting = append(fitting, entry)
		}
	}
	return fitting
}

// byImportance returns the threads, the most important first. What is dated in the future
// counts as oldest.
func byImportance(all []*market.Thread, me string, now nostr.Timestamp) []*market.Thread {
	wrote := make(map[string]bool, len(all))
	for _, thread := range all {
		wrote[thread.Anchor] = slices.ContainsFunc(thread.Events(), func(rumor market.Rumor) bool { return rumor.Event.PubKey == me })
	}
	activity := func(thread *market.Thread) nostr.Timestamp {
		if at := thread.LastActivity(); at <= now+60 {
			return at
		}
		return 0
	}
	ordered := slices.Clone(all)
	slices.SortStableFunc(ordered, func(a, b *market.Thread) int {
		if wrote[a.Anchor] != wrote[b.Anchor] {
			if wrote[a.Anchor] {
				return -1
			}
			return 1
		}
		return cmp.Compare(activity(b), activity(a))
	})
	return ordered
}

// tooLarge warns that a result is not whole, nil when it is.
func tooLarge(cut bool) *fault.Error {
	if !cut {
		return nil
	}
	return fault.New(fault.PartialResult,
		"There is more than can be shown at once: older messages, and conversations in which the account has not written, were left out. The counts are those of all.").
		WithHint("hostr.thread.view shows one conversation with its newest messages.")
}
