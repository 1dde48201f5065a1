package store

import (
	"bytes"
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func messagesOf(t *testing.T, cache *MessageCache) []CachedMessage {
	t.Helper()
	messages, err := cache.Messages(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(messages, func(a, b CachedMessage) int { return strings.Compare(a.WrapID, b.WrapID) })
	return messages
}

func TestMessageCache(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "test.sqlite3")
	opened, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	mine, theirs := opened.MessageCache("me"), opened.MessageCache("somebody else")
	if found := messagesOf(t, mine); len(found) > 0 {
		t.Fatalf("an empty cache holds %v", found)
	}
	large := bytes.Repeat([]byte{7}, 60<<10)
	for _, batch := range [][]CachedMessage{
		{{WrapID: "a"}, {WrapID: "b", Data: []byte("first")}},
		{{WrapID: "b", Data: []byte("second")}, {WrapID: "c", Data: large}},
		{},
	} {
		if err := mine.Remember(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
	}
	if err := theirs.Remember(t.Context(), []CachedMessage{{WrapID: "a", Data: []byte("theirs")}}); err != nil {
		t.Fatal(err)
	}
	if err := opened.Close(); err != nil {
		t.Fatal(err)
	}

	again, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	mine, theirs = again.MessageCache("me"), again.MessageCache("somebody else")
	want := []CachedMessage{{WrapID: "a"}, {WrapID: "b", Data: []byte("second")}, {WrapID: "c", Data: large}}
	if diff := cmp.Diff(want, messagesOf(t, mine)); diff != "" {
		t.Errorf("after a restart (-want +got):\n%s", diff)
	}
	if err := mine.Forget(t.Context()); err != nil {
		t.Fatal(err)
	}
	if found := messagesOf(t, mine); len(found) > 0 {
		t.Errorf("a forgotten cache holds %d messages", len(found))
	}
	if diff := cmp.Diff([]CachedMessage{{WrapID: "a", Data: []byte("theirs")}}, messagesOf(t, theirs)); diff != "" {
		t.Errorf("somebody else's (-want +got):\n%s", diff)
	}
}

func TestMessageCacheMarks(t *testing.T) {
	t.Parallel()
	opened := openStore(t, filepath.Join(t.TempDir(), "test.sqlite3"))
	cache := opened.MessageCache("me")
	check := func(wantCompleted, wantFull time.Time) {
		t.Helper()
		completed, full, err := cache.Marks(t.Context())
		if err != nil || !completed.Equal(wantCompleted) || !full.Equal(wantFull) {
			t.Errorf("marks %v, %v, %v; want %v, %v", completed, full, err, wantCompleted, wantFull)
		}
	}
	check(time.Time{}, time.Time{})
	first, second := time.Unix(1_780_000_000, 0), time.Unix(1_780_000_100, 0)
	for _, completed := range []time.Time{first, second} {
		if err := cache.SetMarks(t.Context(), completed, first); err != nil {
			t.Fatal(err)
		}
		check(completed, first)
	}
	if err := cache.Forget(t.Context()); err != nil {
		t.Fatal(err)
	}
	check(time.Time{}, time.Time{})
}

func TestMessageCacheFailures(t *testing.T) {
	t.Parallel()
	opened := openStore(t, filepath.Join(t.TempDir(), "test.sqlite3"))
	cache := opened.MessageCache("me")
	if err := opened.Close(); err != nil {
		t.Fatal(err)
	}
	_, readErr := cache.Messages(t.Context())
	_, _, marksErr := cache.Marks(t.Context())
	for what, err := range map[string]error{
		"read": readErr, "read marks": marksErr,
		"write":       cache.Remember(t.Context(), []CachedMessage{{WrapID: "a"}}),
		"write marks": cache.SetMarks(t.Context(), time.Now(), time.Now()),
		"forget":      cache.Forget(context.Background()),
	} {
		if err == nil || !strings.Contains(err.Error(), "closed") {
			t.Errorf("%s on a closed store: %v", what, err)
		}
	}
}
