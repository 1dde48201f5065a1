package store

import (
	"bytes"
	"context"
	"database/sql"
	"slices"
)

// VerifiedEvents remembers events whose signature was found good, so that each is
// verified once in its life. A key stands for an event with its signature; keys must
// be hashes, because pruning relies on their being spread evenly.
type VerifiedEvents struct {
	store *Store
	// limit is about how many events are remembered, the newest.
	limit int
	// keysPerSweep is how many remembered keys pay for pruning one slice.
	keysPerSweep int
}

const (
	// maxVerifiedEvents makes a table of some 60 MB.
	maxVerifiedEvents = 1_000_000
	// keysPerStatement bounds one query or transaction, so that others get a turn.
	keysPerStatement = 4096
	// defaultKeysPerSweep lets the table outgrow its limit by an eighth.
	defaultKeysPerSweep = 512
	// slices is how many parts the table is pruned in, by the first byte of the key.
	slicesOfTable = 256
)

// slots counts from 0 to ?2-1. Binding all keys of a call as one blob and cutting it
// up in SQL is several times faster than binding them one by one.
const slots = "WITH RECURSIVE slot(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM slot WHERE n + 1 < ?2) "

const (
	knownSlots = slots +
		"SELECT n FROM slot WHERE EXISTS (SELECT 1 FROM hostrd_verified_events WHERE key = substr(?1, n * 32 + 1, 32))"
	rememberSlots = slots +
		"INSERT INTO hostrd_verified_events (key, verified_at) " +
		"SELECT substr(?1, n * 32 + 1, 32), unixepoch() FROM slot WHERE true " +
		"ON CONFLICT (key) DO UPDATE SET verified_at = excluded.verified_at"
	pruneSlice = "DELETE FROM hostrd_verified_events WHERE key IN (" +
		"SELECT key FROM hostrd_verified_events WHERE key BETWEEN ?1 AND ?2 " +
		"ORDER BY verified_at DESC LIMIT -1 OFFSET ?3)"
)

// Known tells for each key, in order, whether it is remembered.
func (v *VerifiedEvents) Known(ctx context.Context, keys [][32]byte) ([]bool, error) {
	known := make([]bool, len(keys))
	err := v.store.read(ctx, "reading verified events from", func(ctx context.Context, db *sql.DB) error {
		for start := 0; start < len(keys); start += keysPerStatement {
			end := min(start+keysPerStatement, len(keys))
			if err := markKnown(ctx, db, keys[start:end], known[start:end]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return known, nil
}

func markKnown(ctx context.Context, db *sql.DB, keys [][32]byte, known []bool) error {
	rows, err := db.QueryContext(ctx, knownSlots, joined(keys), len(keys))
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var slot int
		if err := rows.Scan(&slot); err != nil {
			return err
		}
		known[slot] = true
	}
	return rows.Err()
}

// Remember adds the keys, or makes them new again. Beyond about a million events the
// oldest are forgotten.
func (v *VerifiedEvents) Remember(ctx context.Context, keys [][32]byte) error {
	for batch := range slices.Chunk(keys, keysPerStatement) {
		err := v.store.write(ctx, "writing verified events to", func(ctx context.Context, tx *sql.Tx) error {
			return v.remember(ctx, tx, batch)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// remember also prunes slices of the table, one for each keysPerSweep keys: the slice
// of a key just added. Keys are hashes, so every slice gets its turn.
func (v *VerifiedEvents) remember(ctx context.Context, tx *sql.Tx, keys [][32]byte) error {
	// In order of the tree, neighbours share pages.
	inOrder := slices.SortedFunc(slices.Values(keys), func(a, b [32]byte) int { return bytes.Compare(a[:], b[:]) })
	if _, err := tx.ExecContext(ctx, rememberSlots, joined(inOrder), len(keys)); err != nil {
		return err
	}
	for i := 0; i < len(keys); i += v.keysPerSweep {
		first := [32]byte{keys[i][0]}
		last := [32]byte(bytes.Repeat([]byte{0xff}, 32))
		last[0] = keys[i][0]
		if _, err := tx.ExecContext(ctx, pruneSlice, first[:], last[:], v.limit/slicesOfTable); err != nil {
			return err
		}
	}
	return nil
}

func joined(keys [][32]byte) []byte {
	blob := make([]byte, 0, len(keys)*32)
	for i := range keys {
		blob = append(blob, keys[i][:]...)
	}
	return blob
}
