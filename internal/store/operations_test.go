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

func TestPutOperation(t *testing.T) {
	t.Parallel()
	opened, err := Open(t.Context(), filepath.Join(t.TempDir(), "test.sqlite3"))
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	for _, data := range []string{
		`{"id":"a","state":"offered","isTerminal":true,"updatedAt":"2027-01-02T03:04:05.678901Z"}`,
		`{"id":"a","isTerminal":false,"more":["kept"]}`,
	} {
		if err := opened.PutOperation(t.Context(), "me", Operation{Namespace: "order_trade", ID: "a", Data: []byte(data)}); err != nil {
			t.Fatal(err)
		}
		var state, updatedAt sql.NullString
		var terminal int
		var stored string
		err := opened.read(t.Context(), "reading", func(ctx context.Context, db *sql.DB) error {
			return db.QueryRowContext(ctx, "SELECT state, is_terminal, updated_at, data FROM operations WHERE pubkey = 'me' AND namespace = 'order_trade' AND id = 'a'").
				Scan(&state, &terminal, &updatedAt, &stored)
		})
		if err != nil {
			t.Fatal(err)
		}
		first := strings.Contains(data, "offered")
		if stored != data || state.Valid != first || updatedAt.Valid != first || (terminal == 1) != first {
			t.Errorf("%s is stored as %s with state %v, terminal %d, updated at %v", data, stored, state, terminal, updatedAt)
		}
	}
	if err := opened.PutOperation(t.Context(), "me", Operation{Namespace: "order_trade", ID: "b", Data: []byte("[]")}); err == nil {
		t.Error("a list is no state")
	}
}
