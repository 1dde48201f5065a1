package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/mattn/go-sqlite3"
	"go.uber.org/goleak"

	"hostr-daemon/internal/fault"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(crashWriterVariable); path != "" {
		writeUntilKilled(path)
	}
	goleak.VerifyTestMain(m)
}

func openStore(t testing.TB, path string) *Store {
	t.Helper()
	s, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func newPath(t testing.TB) string { return filepath.Join(t.TempDir(), "test.sqlite3") }

// openRaw opens the file the way the old daemon does: defaults and a busy timeout.
func openRaw(t testing.TB, path string) *sql.DB {
	t.Helper()
	db := sql.OpenDB(&connector{name: "file:" + path + "?_busy_timeout=5000", driver: &sqlite3.SQLiteDriver{}})
	db.SetMaxOpenConns(1)
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func execute(t testing.TB, db *sql.DB, statements string) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), statements); err != nil {
		t.Fatal(err)
	}
}

func key(n int) [32]byte {
	return sha256.Sum256(binary.BigEndian.AppendUint64(nil, uint64(n)))
}

func keys(from, to int) [][32]byte {
	var made [][32]byte
	for n := from; n < to; n++ {
		made = append(made, key(n))
	}
	return made
}

func TestPragmasAreInForce(t *testing.T) {
	t.Parallel()
	s := openStore(t, newPath(t))
	for pool, want := range map[*sql.DB]map[string]string{
		s.writer: {"journal_mode": "wal", "synchronous": "2", "foreign_keys": "1", "busy_timeout": busyTimeout, "trusted_schema": "0", "query_only": "0"},
		s.reader: {"journal_mode": "wal", "busy_timeout": busyTimeout, "trusted_schema": "0", "query_only": "1"},
	} {
		for name, value := range want {
			var got string
			if err := pool.QueryRowContext(t.Context(), "PRAGMA "+name).Scan(&got); err != nil || got != value {
				t.Errorf("PRAGMA %s = %q (%v), want %q", name, got, err, value)
			}
		}
	}
}

func TestPragmaThatDoesNotTakeIsAnError(t *testing.T) {
	t.Parallel()
	// A database in memory cannot have a write-ahead log.
	db := sql.OpenDB(&connector{name: ":memory:", driver: &sqlite3.SQLiteDriver{ConnectHook: func(conn *sqlite3.SQLiteConn) error {
		return applyPragmas(conn, writerPragmas)
	}}})
	defer db.Close()
	err := db.PingContext(t.Context())
	var refused *notInForceError
	if !errors.As(err, &refused) || refused.name != "journal_mode" || refused.got != "memory" {
		t.Errorf("%v", err)
	}
}

func TestReadersCannotWrite(t *testing.T) {
	t.Parallel()
	s := openStore(t, newPath(t))
	err := s.read(t.Context(), "reading", func(ctx context.Context, db *sql.DB) error {
		_, err := db.ExecContext(ctx, "DELETE FROM config")
		return err
	})
	if !fault.Is(err, fault.UnexpectedError) {
		t.Errorf("%v", err)
	}
}

func TestPathsWithOddCharacters(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a?b=c#d", "50% näher", "a b&mode=memory", `back\slash`, "file:x", "':memory:'"} {
		path := filepath.Join(t.TempDir(), name)
		s := openStore(t, path)
		if err := s.VerifiedEvents().Remember(t.Context(), keys(0, 1)); err != nil {
			t.Errorf("%q: %v", name, err)
		}
		if info, err := os.Stat(path); err != nil || info.Size() == 0 {
			t.Errorf("%q: %v %v", name, info, err)
		}
	}
}

func TestFailedTransactionLeavesNothing(t *testing.T) {
	t.Parallel()
	s := openStore(t, newPath(t))
	refused := errors.New("refused")
	err := s.write(t.Context(), "writing", func(ctx context.Context, tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, "INSERT INTO config VALUES ('p', 'k', 'v')"); err != nil {
			return err
		}
		return refused
	})
	if !errors.Is(err, refused) {
		t.Errorf("%v", err)
	}
	if n := count(t, s.reader, "config"); n != 0 {
		t.Errorf("%d rows", n)
	}
}

func count(t testing.TB, db *sql.DB, table string) (n int) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM "+table).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestCloseEndsOperations(t *testing.T) {
	t.Parallel()
	s := openStore(t, newPath(t))
	started, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- s.read(context.Background(), "counting in", func(ctx context.Context, db *sql.DB) error {
			close(started)
			var n int
			return db.QueryRowContext(ctx, "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT count(*) FROM c").Scan(&n)
		})
	}()
	await(t, started)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if !errors.Is(err, errClosed) {
			t.Errorf("%v", err)
		}
	default:
		t.Error("Close returned before the operation had ended")
	}
	if err := s.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
	if _, err := s.VerifiedEvents().Known(t.Context(), keys(0, 1)); !errors.Is(err, errClosed) {
		t.Errorf("after Close: %v", err)
	}
}

func await(t testing.TB, happened <-chan struct{}) {
	t.Helper()
	select {
	case <-happened:
	case <-time.After(30 * time.Second):
		t.Fatal("waited in vain")
	}
}

func TestCallerEndsOperation(t *testing.T) {
	t.Parallel()
	s := openStore(t, newPath(t))
	cause := errors.New("cancelled by the caller")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	if err := s.VerifiedEvents().Remember(ctx, keys(0, 1)); !errors.Is(err, cause) {
		t.Errorf("%v", err)
	}
	if _, err := Open(ctx, newPath(t)); !errors.Is(err, cause) {
		t.Errorf("Open: %v", err)
	}
}

func TestManyCallersAtOnce(t *testing.T) {
	t.Parallel()
	s := openStore(t, newPath(t))
	failures := make(chan error, 16)
	for worker := range cap(failures) {
		go func() {
			for round := range 10 {
				mine := keys(worker*1000+round*10, worker*1000+round*10+10)
				if err := s.VerifiedEvents().Remember(context.Background(), mine); err != nil {
					failures <- err
					return
				}
				known, err := s.VerifiedEvents().Known(context.Background(), mine)
				if err != nil || !known[0] || !known[9] {
					failures <- fmt.Errorf("not known at once: %v %w", known, err)
					return
				}
			}
			failures <- nil
		}()
	}
	for range cap(failures) {
		if err := <-failures; err != nil {
			t.Error(err)
		}
	}
}

// BenchmarkOpen opens an existing database with 10,000 events and closes it.
func BenchmarkOpen(b *testing.B) {
	path := newPath(b)
	s := openStore(b, path)
	if err := s.VerifiedEvents().Remember(b.Context(), keys(0, 10_000)); err != nil {
		b.Fatal(err)
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		s, err := Open(b.Context(), path)
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}
