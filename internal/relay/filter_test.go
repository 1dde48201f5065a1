package relay

import (
	"slices"
	"testing"
	"time"

	"github.com/nbd-wtf/go-nostr"
)

func TestPrepareFilterJoinsTagNames(t *testing.T) {
	t.Parallel()
	given := nostr.Filter{Kinds: []int{1}, Tags: nostr.TagMap{"#t": {"a"}, "t": {"b"}, "p": {"c"}}}
	prepared, empty := prepareFilter(given)
	if empty || len(prepared.Tags) != 2 || !slices.Equal(prepared.Tags["t"], []string{"a", "b"}) {
		t.Errorf("prepared is %v (empty: %v)", prepared.Tags, empty)
	}
	given.Kinds[0], given.Tags["p"][0] = 2, "changed"
	if prepared.Kinds[0] != 1 || prepared.Tags["p"][0] != "c" {
		t.Error("the caller's lists are shared")
	}
}

func TestQueryKey(t *testing.T) {
	t.Parallel()
	since := nostr.Timestamp(1)
	base := func() nostr.Filter {
		filter, _ := prepareFilter(nostr.Filter{
			Kinds: []int{1}, Since: &since, Limit: 5, Tags: nostr.TagMap{"a": {"1"}, "b": {"2"}, "c": {"3"}, "d": {"4"}},
		})
		return filter
	}
	relays := []string{"wss://h"}
	key := queryKey(base(), relays, time.Second)
	for range 20 {
		if queryKey(base(), relays, time.Second) != key {
			t.Fatal("equal queries have different keys")
		}
	}
	changes := map[string]func(*nostr.Filter){
		"kinds": func(f *nostr.Filter) { f.Kinds = []int{2} }, "limit": func(f *nostr.Filter) { f.Limit = 6 },
		"since": func(f *nostr.Filter) { f.Since = nil }, "until": func(f *nostr.Filter) { f.Until = &since },
		"tags": func(f *nostr.Filter) { f.Tags["a"] = []string{"2"} }, "ids": func(f *nostr.Filter) { f.IDs = []string{"x"} },
		"authors": func(f *nostr.Filter) { f.Authors = []string{"x"} }, "search": func(f *nostr.Filter) { f.Search = "x" },
	}
	for name, change := range changes {
		filter := base()
		change(&filter)
		if queryKey(filter, relays, time.Second) == key {
			t.Errorf("other %s, same key", name)
		}
	}
	if queryKey(base(), []string{"wss://i"}, time.Second) == key || queryKey(base(), relays, 2*time.Second) == key {
		t.Error("other relays or another timeout, same key")
	}
}
