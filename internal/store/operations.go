package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
)

// Operation is a row of the operations table (spec 11 §6.2): the state of a swap or
// an order that moves in steps.
type Operation struct {
	Namespace, ID string
	// Data is the state object; it may hold secrets.
	Data json.RawMessage
}

// UnfinishedOperations returns an account's operations in the namespaces, in their
// order and by id, whose state does not say isTerminal: true. The copy of that flag
// in a column is not trusted: another writer may have left it behind. Rows that hold
// no JSON object are skipped.
func (s *Store) UnfinishedOperations(ctx context.Context, pubkey string, namespaces ...string) ([]Operation, error) {
	var unfinished []Operation
	err := s.read(ctx, "reading operations from", func(ctx context.Context, db *sql.DB) error {
		unfinished = nil
		for _, namespace := range namespaces {
			found, err := unfinishedIn(ctx, db, pubkey, namespace)
			if err != nil {
				return err
			}
			unfinished = append(unfinished, found...)
		}
		return nil
	})
	return unfinished, err
}

// PutOperation writes an account's operation in place of the one of the same
// namespace and id. Data has to be a JSON object; the columns state, is_terminal and
// updated_at become copies of its keys.
func (s *Store) PutOperation(ctx context.Context, pubkey string, operation Operation) error {
	const replace = "INSERT OR REPLACE INTO operations (pubkey, namespace, id, state, is_terminal, updated_at, data) VALUES (?, ?, ?, ?, ?, ?, ?)"
	var copies struct {
		State      *string `json:"state"`
		IsTerminal bool    `json:"isTerminal"`
		UpdatedAt  *string `json:"updatedAt"`
	}
	if err := json.Unmarshal(operation.Data, &copies); err != nil {
		return fmt.Errorf("reading the state of %s %s: %w", operation.Namespace, operation.ID, err)
	}
	return s.write(ctx, "writing an operation to", func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, replace, pubkey, operation.Namespace, operation.ID,
			copies.State, copies.IsTerminal, copies.UpdatedAt, string(operation.Data))
		return err
	})
}

func unfinishedIn(ctx context.Context, db *sql.DB, pubkey, namespace string) ([]Operation, error) {
	rows, err := db.QueryContext(ctx, "SELECT id, data FROM operations WHERE pubkey = ? AND namespace = ? ORDER BY id", pubkey, namespace)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var unfinished []Operation
	for rows.Next() {
		operation := Operation{Namespace: namespace}
		var data string
		if err := rows.Scan(&operation.ID, &data); err != nil {
			return nil, err
		}
		operation.Data = json.RawMessage(data)
		if isUnfinished(operation.Data) {
			unfinished = append(unfinished, operation)
		}
	}
	return unfinished, rows.Err()
}

func isUnfinished(data json.RawMessage) bool {
	var state struct {
		IsTerminal json.RawMessage `json:"isTerminal"`
	}
	if !strings.HasPrefix(strings.TrimSpace(string(data)), "{") || json.Unmarshal(data, &state) != nil {
		return false
	}
	return string(state.IsTerminal) != "true"
}
