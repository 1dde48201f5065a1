package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/mattn/go-sqlite3"

	"hostr-daemon/internal/fault"
)

// The tables of the old daemon, by the value of PRAGMA user_version that has them,
// and our own, by the version in hostrd_schema. The two numbers are independent: the
// old daemon ignores our tables, we leave its newer versions alone (spec 11 §6.1).
var (
	//go:embed upstream/*.sql
	upstreamFiles embed.FS
	//go:embed migrations/*.sql
	ownFiles embed.FS
)

// migrations reads numbered files, 0001 first.
func migrations(files embed.FS, directory string) ([]string, error) {
	entries, err := files.ReadDir(directory) // sorted by name
	if err != nil {
		return nil, err
	}
	var statements []string
	for i, entry := range entries {
		if !strings.HasPrefix(entry.Name(), fmt.Sprintf("%04d", i+1)) {
			return nil, fmt.Errorf("migration %s is out of order: %04d comes next", entry.Name(), i+1)
		}
		text, err := files.ReadFile(path.Join(directory, entry.Name()))
		if err != nil {
			return nil, err
		}
		statements = append(statements, string(text))
	}
	return statements, nil
}

// querier is a database or a transaction.
type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// migrate brings both sets of tables up to date.
func (s *Store) migrate(ctx context.Context) error {
	upstream, err := migrations(upstreamFiles, "upstream")
	if err != nil {
		return err
	}
	own, err := migrations(ownFiles, "migrations")
	if err != nil {
		return err
	}
	ownFrom, err := ownVersion(ctx, s.writer)
	if err != nil {
		return err
	}
	if ownFrom > len(own) {
		return s.tooNew(ownFrom, len(own))
	}
	// A transaction even when there is nothing to do: it shows now, not at the first
	// write, that the file cannot be written.
	if err := transact(ctx, s.writer, func(ctx context.Context, tx *sql.Tx) error {
		return migrateUpstream(ctx, tx, upstream)
	}); err != nil {
		return fmt.Errorf("creating the shared tables: %w", err)
	}
	for version := ownFrom + 1; version <= len(own); version++ {
		if err := transact(ctx, s.writer, func(ctx context.Context, tx *sql.Tx) error {
			return migrateOwn(ctx, tx, version, own[version-1])
		}); err != nil {
			return fmt.Errorf("migration %d of our own tables: %w", version, err)
		}
	}
	return nil
}

func (s *Store) tooNew(found, known int) error {
	return fault.New(fault.UnexpectedError,
		"The database %q was written by a newer hostr-daemon (its tables are version %d, this one knows up to %d): run that newer one, or use another --state-dir. Nothing was changed.",
		s.path, found, known)
}

func migrateUpstream(ctx context.Context, tx *sql.Tx, steps []string) error {
	from, err := upstreamVersion(ctx, tx)
	if err != nil || from >= len(steps) {
		return err
	}
	for _, step := range steps[max(from, 0):] {
		if _, err := tx.ExecContext(ctx, step); err != nil {
			return err
		}
	}
	_, err = tx.ExecContext(ctx, fmt.Sprintf("PRAGMA user_version = %d", len(steps)))
	return err
}

func migrateOwn(ctx context.Context, tx *sql.Tx, version int, step string) error {
	const journal = `CREATE TABLE IF NOT EXISTS hostrd_schema (
  version INTEGER NOT NULL PRIMARY KEY,
  applied_at TEXT NOT NULL
)`
	if _, err := tx.ExecContext(ctx, journal); err != nil {
		return err
	}
	current, err := ownVersion(ctx, tx)
	if err != nil || current >= version {
		return err
	}
	if _, err := tx.ExecContext(ctx, step); err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, "INSERT INTO hostrd_schema (version, applied_at) VALUES (?, strftime('%Y-%m-%dT%H:%M:%SZ', 'now'))", version)
	return err
}

func upstreamVersion(ctx context.Context, q querier) (version int, err error) {
	err = q.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version)
	return version, err
}

func ownVersion(ctx context.Context, q querier) (version int, err error) {
	var exists bool
	const table = "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'hostrd_schema')"
	if err := q.QueryRowContext(ctx, table).Scan(&exists); err != nil || !exists {
		return 0, err
	}
	err = q.QueryRowContext(ctx, "SELECT coalesce(max(version), 0) FROM hostrd_schema").Scan(&version)
	var problem sqlite3.Error
	if errors.As(err, &problem) && problem.Code == sqlite3.ErrError {
		err = fmt.Errorf("its table hostrd_schema is not one of hostr-daemon (%w): move the file away or give another --state-dir", err)
	}
	return version, err
}
