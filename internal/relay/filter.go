package relay

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/nbd-wtf/go-nostr"
)

// maxAuthors is how many authors one filter of a REQ names at most (spec 82 §4).
const maxAuthors = 100

// prepareFilter returns a private copy with tag names free of "#" and equal names
// joined. empty is true when a list of the filter came out empty or its limit is
// zero: such a filter matches nothing and is never sent, since a relay would
// answer it as if the list had not been there (spec 82 §10.2).
func prepareFilter(filter nostr.Filter) (prepared nostr.Filter, empty bool) {
	prepared = filter.Clone()
	prepared.Tags = nil
	for _, name := range sortedKeys(filter.Tags) {
		if prepared.Tags == nil {
			prepared.Tags = nostr.TagMap{}
		}
		bare := strings.TrimPrefix(name, "#")
		prepared.Tags[bare] = append(prepared.Tags[bare], filter.Tags[name]...)
	}
	empty = isEmptyList(filter.IDs) || isEmptyList(filter.Kinds) || isEmptyList(filter.Authors) ||
		filter.LimitZero || filter.Limit < 0
	for _, values := range prepared.Tags {
		empty = empty || len(values) == 0
	}
	return prepared, empty
}

func isEmptyList[T any](list []T) bool { return list != nil && len(list) == 0 }

func sortedKeys(tags nostr.TagMap) []string {
	keys := make([]string, 0, len(tags))
	for key := range tags {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// splitAuthors returns the filters of the one REQ that asks for filter.
func splitAuthors(filter nostr.Filter) nostr.Filters {
	if len(filter.Authors) <= maxAuthors {
		return nostr.Filters{filter}
	}
	var filters nostr.Filters
	for authors := range slices.Chunk(filter.Authors, maxAuthors) {
		part := filter
		part.Authors = authors
		filters = append(filters, part)
	}
	return filters
}

// queryKey is equal for queries that share one run (spec 82 §4 step 3).
func queryKey(filter nostr.Filter, relays []string, timeout time.Duration) string {
	key, err := json.Marshal(struct {
		Filter  nostr.Filter
		Tags    map[string][]string
		Relays  []string
		Timeout time.Duration
	}{withoutTags(filter), filter.Tags, relays, timeout})
	if err != nil {
		return "" // Nothing in it can fail to encode; an empty key is never shared.
	}
	return string(key)
}

// withoutTags leaves the tags out because the filter's own encoder writes them in
// random order.
func withoutTags(filter nostr.Filter) nostr.Filter {
	filter.Tags = nil
	return filter
}
