package store

import (
	"context"
	"database/sql"
	"errors"
	"time"
)

// GeocoderAnswers keeps what the geocoder answered, so that it is not asked again
// after a restart. Answers grow old, and the oldest go when there are too many.
type GeocoderAnswers struct {
	store *Store
	// maxAge is in seconds, maxBytes counts the answers alone.
	maxAge, maxRows, maxBytes int64
}

const (
	geocoderAnswerAge  = 30 * 24 * time.Hour
	maxGeocoderAnswers = 4096
	maxGeocoderBytes   = 64 << 20
	// maxGeocoderAnswer is the largest answer kept, in bytes.
	maxGeocoderAnswer = 4 << 20
)

// A time far ahead is one of a clock that went wrong; it is as good as far back.
const (
	recallAnswer = "SELECT answer FROM hostrd_geocoder_answers " +
		"WHERE key = ?1 AND abs(unixepoch() - kept_at) < ?2 AND typeof(answer) = 'blob'"
	keepAnswer = "INSERT INTO hostrd_geocoder_answers (key, kept_at, answer) VALUES (?1, unixepoch(), ?2) " +
		"ON CONFLICT (key) DO UPDATE SET kept_at = excluded.kept_at, answer = excluded.answer"
	dropOldAnswers = "DELETE FROM hostrd_geocoder_answers WHERE abs(unixepoch() - kept_at) >= ?1"
	dropExcess     = "DELETE FROM hostrd_geocoder_answers WHERE rowid IN (SELECT rowid FROM (" +
		"SELECT rowid, row_number() OVER newest AS place, sum(length(answer)) OVER newest AS bytes " +
		"FROM hostrd_geocoder_answers WINDOW newest AS (ORDER BY kept_at DESC, rowid DESC ROWS UNBOUNDED PRECEDING)" +
		") WHERE place > ?1 OR bytes > ?2)"
)

// GeocoderAnswers returns the memory of the geocoder's answers.
func (s *Store) GeocoderAnswers() *GeocoderAnswers {
	return &GeocoderAnswers{
		store: s, maxAge: int64(geocoderAnswerAge / time.Second), maxRows: maxGeocoderAnswers, maxBytes: maxGeocoderBytes,
	}
}

// Recall returns what Keep stored under the key within the last thirty days, nil when
// there is nothing.
func (g *GeocoderAnswers) Recall(ctx context.Context, key [32]byte) ([]byte, error) {
	var answer []byte
	err := g.store.read(ctx, "reading a geocoder's answer from", func(ctx context.Context, db *sql.DB) error {
		err := db.QueryRowContext(ctx, recallAnswer, key[:], g.maxAge).Scan(&answer)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		return err
	})
	return answer, err
}

// Keep stores an answer in place of the one before. One above four megabytes is not
// kept; beyond 4096 answers or 64 megabytes the oldest are forgotten.
func (g *GeocoderAnswers) Keep(ctx context.Context, key [32]byte, answer []byte) error {
	if len(answer) > maxGeocoderAnswer {
		return nil
	}
	return g.store.write(ctx, "writing a geocoder's answer to", func(ctx context.Context, tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, keepAnswer, key[:], answer); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, dropOldAnswers, g.maxAge); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, dropExcess, g.maxRows, g.maxBytes)
		return err
	})
}
