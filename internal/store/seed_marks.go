package store

import (
	"context"
	"database/sql"
	"errors"
)

// SeedMarks is where an account's seed mark rests: it spares a remote signer a
// decryption at every start (package seeds).
type SeedMarks struct {
	store  *Store
	pubkey string
}

// SeedMarks returns the place of an account's mark.
func (s *Store) SeedMarks(pubkey string) *SeedMarks {
	return &SeedMarks{store: s, pubkey: pubkey}
}

// Mark returns what SetMark stored last, "" when there is nothing.
func (m *SeedMarks) Mark(ctx context.Context) (string, error) {
	var mark string
	err := m.store.read(ctx, "reading the seed mark from", func(ctx context.Context, db *sql.DB) error {
		err := db.QueryRowContext(ctx, "SELECT mark FROM hostrd_seed_marks WHERE pubkey = ?", m.pubkey).Scan(&mark)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		return err
	})
	return mark, err
}

// SetMark stores a mark in place of the one before.
func (m *SeedMarks) SetMark(ctx context.Context, mark string) error {
	return m.store.write(ctx, "writing the seed mark to", func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "INSERT INTO hostrd_seed_marks (pubkey, mark) VALUES (?, ?) ON CONFLICT (pubkey) DO UPDATE SET mark = excluded.mark", m.pubkey, mark)
		return err
	})
}
