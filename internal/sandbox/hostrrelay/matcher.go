package hostrrelay

import "github.com/nbd-wtf/go-nostr"

// matcher is a filter made ready for many events: go-nostr compares each tag
// with each of the up to 500 values of a location filter.
type matcher struct {
	ids, authors set[string]
	kinds        set[int]
	tags         map[string]set[string]
	since, until *nostr.Timestamp
}

// set holds the accepted values; nil accepts anything, as an absent filter key does.
type set[T comparable] map[T]struct{}

func newMatcher(filter nostr.Filter) matcher {
	tags := make(map[string]set[string], len(filter.Tags))
	for name, values := range filter.Tags {
		tags[name] = setOf(values)
	}
	return matcher{
		ids:     setOf(filter.IDs),
		authors: setOf(filter.Authors),
		kinds:   setOf(filter.Kinds),
		tags:    tags,
		since:   filter.Since,
		until:   filter.Until,
	}
}

func (m matcher) event(event *nostr.Event) bool {
	if !m.ids.accepts(event.ID) || !m.kinds.accepts(event.Kind) || !m.authors.accepts(event.PubKey) {
		return false
	}
	if m.since != nil && event.CreatedAt < *m.since {
		return false
	}
	if m.until != nil && event.CreatedAt > *m.until {
		return false
	}
	for name, values := range m.tags {
		if values != nil && !hasTag(event, name, values) {
			return false
		}
	}
	return true
}

func hasTag(event *nostr.Event, name string, values set[string]) bool {
	for _, tag := range event.Tags {
		if len(tag) >= 2 && tag[0] == name && values.accepts(tag[1]) {
			return true
		}
	}
	return false
}

func (s set[T]) accepts(value T) bool {
	if s == nil {
		return true
	}
	_, found := s[value]
	return found
}

func setOf[T comparable](values []T) set[T] {
	if values == nil {
		return nil
	}
	accepted := make(set[T], len(values))
	for _, value := range values {
		accepted[value] = struct{}{}
	}
	return accepted
}
