package store

import (
	"path/filepath"
	"testing"
)

func TestSeedMarks(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "test.sqlite3")
	opened, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	marks := opened.SeedMarks("me")
	if mark, err := marks.Mark(t.Context()); mark != "" || err != nil {
		t.Fatalf("before anything was stored: %q, %v", mark, err)
	}
	for _, mark := range []string{"first", "second"} {
		if err := marks.SetMark(t.Context(), mark); err != nil {
			t.Fatal(err)
		}
	}
	if err := opened.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if mark, err := again.SeedMarks("me").Mark(t.Context()); mark != "second" || err != nil {
		t.Errorf("after a restart: %q, %v", mark, err)
	}
	if mark, err := again.SeedMarks("somebody else").Mark(t.Context()); mark != "" || err != nil {
		t.Errorf("somebody else has the mark %q, %v", mark, err)
	}
}
