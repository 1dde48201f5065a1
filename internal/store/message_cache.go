package store

import (
	"context"
	"database/sql"
	"errors"
	"time"
)

// MessageCache keeps an account's private messages, encrypted by whoever writes them,
// so that each is decrypted by the signer once in the life of a sign-in (spec 60
// §11.1).
type MessageCache struct {
	store  *Store
	pubkey string
}

// CachedMessage is what is known of one gift wrap.
type CachedMessage struct {
	// WrapID is the wrap's event id, 64 hex digits.
	WrapID string
	// Data is the encrypted message; nil where the wrap cannot be decrypted.
	Data []byte
}

// MessageCache returns an account's cache.
func (s *Store) MessageCache(pubkey string) *MessageCache {
	return &MessageCache{store: s, pubkey: pubkey}
}

// Messages returns all that is remembered, in no order.
func (c *MessageCache) Messages(ctx context.Context) ([]CachedMessage, error) {
	var messages []CachedMessage
	err := c.store.read(ctx, "reading the message cache from", func(ctx context.Context, db *sql.DB) error {
		messages = nil // of an attempt before that met a lock
		rows, err := db.QueryContext(ctx, "SELECT wrap_id, data FROM hostrd_message_cache WHERE pubkey = ?", c.pubkey)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var message CachedMessage
			if err := rows.Scan(&message.WrapID, &message.Data); err != nil {
				return err
			}
			messages = append(messages, message)
		}
		return rows.Err()
	})
	if err != nil {
		return nil, err
	}
	return messages, nil
}

// Remember stores messages, all or none, in place of what was known of their wraps.
func (c *MessageCache) Remember(ctx context.Context, messages []CachedMessage) error {
	const insert = "INSERT INTO hostrd_message_cache (pubkey, wrap_id, state, data) VALUES (?, ?, ?, ?) " +
		"ON CONFLICT (pubkey, wrap_id) DO UPDATE SET state = excluded.state, data = excluded.data"
	return c.store.write(ctx, "writing to the message cache in", func(ctx context.Context, tx *sql.Tx) error {
		statement, err := tx.PrepareContext(ctx, insert)
		if err != nil {
			return err
		}
		defer statement.Close()
		for _, message := range messages {
			state, data := "undecryptable", any(nil)
			if message.Data != nil {
				state, data = "rumor", message.Data
			}
			if _, err := statement.ExecContext(ctx, c.pubkey, message.WrapID, state, data); err != nil {
				return err
			}
		}
		return nil
	})
}

// Marks returns when the account's messages were last fetched to the end, and when
// that was without a lower bound; zero times when never.
func (c *MessageCache) Marks(ctx context.Context) (completed, full time.Time, err error) {
	err = c.store.read(ctx, "reading the marks of the message cache from", func(ctx context.Context, db *sql.DB) error {
		var completedAt, fullAt int64
		row := db.QueryRowContext(ctx, "SELECT completed_at, full_at FROM hostrd_message_cache_marks WHERE pubkey = ?", c.pubkey)
		if err := row.Scan(&completedAt, &fullAt); errors.Is(err, sql.ErrNoRows) {
			return nil
		} else if err != nil {
			return err
		}
		completed, full = time.Unix(completedAt, 0), time.Unix(fullAt, 0)
		return nil
	})
	return completed, full, err
}

// SetMarks stores both times, in whole seconds.
func (c *MessageCache) SetMarks(ctx context.Context, completed, full time.Time) error {
	const upsert = "INSERT INTO hostrd_message_cache_marks (pubkey, completed_at, full_at) VALUES (?, ?, ?) " +
		"ON CONFLICT (pubkey) DO UPDATE SET completed_at = excluded.completed_at, full_at = excluded.full_at"
	return c.store.write(ctx, "writing the marks of the message cache to", func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, upsert, c.pubkey, completed.Unix(), full.Unix())
		return err
	})
}

// Forget removes everything of the account. The key of its rows has to be deleted
// before, so that a crash in between leaves nothing readable.
func (c *MessageCache) Forget(ctx context.Context) error {
	return c.store.write(ctx, "emptying the message cache in", func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "DELETE FROM hostrd_message_cache WHERE pubkey = ?", c.pubkey)
		if err == nil {
			_, err = tx.ExecContext(ctx, "DELETE FROM hostrd_message_cache_marks WHERE pubkey = ?", c.pubkey)
		}
		return err
	})
}
