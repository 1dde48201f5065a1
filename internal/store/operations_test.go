package store

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

func TestUnfinishedOperations(t *testing.T) {
	t.Parallel()
	opened, err := Open(t.Context(), filepath.Join(t.TempDir(), "test.sqlite3"))
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	rows := []struct{ pubkey, namespace, id, data string }{
		{"me", "swap_in", "b", `{"id":"b","isTerminal":false}`},
		{"me", "swap_in", "a", `{"id":"a"}`},
		{"me", "swap_in", "done", `{"isTerminal":true}`},
		{"me", "swap_in", "text", `{"isTerminal":"true"}`},
		{"me", "swap_in", "broken", `{"isTerminal":`},
		{"me", "swap_in", "list", `[]`},
		{"me", "swap_out", "c", `{"isTerminal":null}`},
		{"me", "order_trade", "d", `{}`},
		{"somebody else", "swap_in", "e", `{}`},
	}
	err = opened.write(t.Context(), "filling", func(ctx context.Context, tx *sql.Tx) error {
		for _, row := range rows {
			if _, err := tx.ExecContext(ctx, "INSERT INTO operations (pubkey, namespace, id, is_terminal, data) VALUES (?, ?, ?, 1, ?)",
				row.pubkey, row.namespace, row.id, row.data); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	unfinished, err := opened.UnfinishedOperations(t.Context(), "me", "swap_out", "swap_in")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, operation := range unfinished {
		got = append(got, fmt.Sprintf("%s/%s", operation.Namespace, operation.ID))
	}
	if want := "swap_out/c swap_in/a swap_in/b swap_in/text"; strings.Join(got, " ") != want {
		t.Errorf("unfinished are %v, want %s", got, want)
	}
}
