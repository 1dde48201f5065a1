package store

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hostr-daemon/internal/fault"
)

// upstreamColumns are the tables of spec 11 §6.1, as PRAGMA table_info shows them:
// name, type, not null, default, place in the primary key.
var upstreamColumns = map[string]string{
	"operations": "pubkey TEXT 1 - 1, namespace TEXT 1 - 2, id TEXT 1 - 3, state TEXT 0 - 0, " +
		"is_terminal INTEGER 1 0 0, updated_at TEXT 0 - 0, data TEXT 1 - 0",
	"config":                  "pubkey TEXT 1 - 1, key TEXT 1 - 2, value TEXT 1 - 0",
	"state_cache":             "key TEXT 0 - 1, value TEXT 1 - 0",
	"displayed_notifications": "id TEXT 0 - 1, created_at TEXT 1 datetime('now') 0",
}

func columns(t *testing.T, db *sql.DB, table string) string {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), `SELECT name || ' ' || type || ' ' || "notnull" || ' ' || coalesce(dflt_value, '-') || ' ' || pk FROM pragma_table_info(?)`, table)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(texts(t, rows), ", ")
}

func texts(t *testing.T, rows *sql.Rows) (all []string) {
	t.Helper()
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			t.Fatal(err)
		}
		all = append(all, text)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

func schemaOf(t *testing.T, db *sql.DB, where string) []string {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), "SELECT type || ' ' || name FROM sqlite_schema WHERE "+where+" ORDER BY name")
	if err != nil {
		t.Fatal(err)
	}
	return texts(t, rows)
}

// ownTables are the tables that our migrations make, and their journal.
func ownTables(t *testing.T) []string {
	t.Helper()
	steps, err := migrations(ownFiles, "migrations")
	if err != nil {
		t.Fatal(err)
	}
	tables := []string{"table hostrd_schema"}
	for _, made := range regexp.MustCompile(`CREATE TABLE IF NOT EXISTS (\w+)`).FindAllStringSubmatch(strings.Join(steps, "\n"), -1) {
		tables = append(tables, "table "+made[1])
	}
	slices.Sort(tables)
	return tables
}

// latest is the version of our own tables.
func latest(t *testing.T) int {
	t.Helper()
	steps, err := migrations(ownFiles, "migrations")
	if err != nil {
		t.Fatal(err)
	}
	return len(steps)
}

func versions(t *testing.T, db *sql.DB) (upstream, own int) {
	t.Helper()
	upstream, err := upstreamVersion(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	if own, err = ownVersion(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	return upstream, own
}

func TestNewDatabaseHasTheUpstreamTables(t *testing.T) {
	t.Parallel()
	s := openStore(t, newPath(t))
	var names []string
	for name, want := range upstreamColumns {
		names = append(names, name)
		if diff := cmp.Diff(want, columns(t, s.reader, name)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	got := schemaOf(t, s.reader, "name NOT LIKE 'hostrd!_%' ESCAPE '!' AND name NOT LIKE 'sqlite!_autoindex%' ESCAPE '!'")
	if len(got) != len(names) {
		t.Errorf("tables and indexes beside ours: %v", got)
	}
	if diff := cmp.Diff(ownTables(t), schemaOf(t, s.reader, "type = 'table' AND name LIKE 'hostrd!_%' ESCAPE '!'")); diff != "" {
		t.Errorf("our tables (-want +got):\n%s", diff)
	}
	if upstream, own := versions(t, s.reader); upstream != 2 || own != latest(t) {
		t.Errorf("versions %d and %d", upstream, own)
	}
	execute(t, s.writer, "INSERT INTO displayed_notifications (id) VALUES ('n')")
}

// dump writes every row of every table that is not ours.
func dump(t *testing.T, db *sql.DB) string {
	t.Helper()
	var dumped strings.Builder
	for _, table := range schemaOf(t, db, "type = 'table' AND name NOT LIKE 'hostrd!_%' ESCAPE '!'") {
		name := strings.TrimPrefix(table, "table ")
		rows, err := db.QueryContext(t.Context(), "SELECT * FROM "+name+" ORDER BY 1")
		if err != nil {
			t.Fatal(err)
		}
		names, _ := rows.Columns()
		written := 0
		for ; rows.Next(); written++ {
			cells := make([]any, len(names))
			for i := range cells {
				cells[i] = new(sql.NullString)
			}
			if err := rows.Scan(cells...); err != nil {
				t.Fatal(err)
			}
			fmt.Fprint(&dumped, name, names)
			for _, cell := range cells {
				fmt.Fprintf(&dumped, " %v", *cell.(*sql.NullString))
			}
			dumped.WriteByte('\n')
		}
		if err := rows.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return dumped.String()
}

func TestUpstreamDatabasesOpen(t *testing.T) {
	t.Parallel()
	for version, after := range map[int]int{0: 2, 1: 2, 2: 2, 7: 7} {
		t.Run(fmt.Sprint(version), func(t *testing.T) {
			t.Parallel()
			path := newPath(t)
			script, err := os.ReadFile(filepath.Join("testdata", fmt.Sprintf("upstream-%d.sql", version)))
			if err != nil {
				t.Fatal(err)
			}
			raw := openRaw(t, path)
			execute(t, raw, string(script))
			before := dump(t, raw)
			if before == "" {
				t.Fatal("the fixture is empty")
			}
			if err := raw.Close(); err != nil {
				t.Fatal(err)
			}

			s := openStore(t, path)
			if diff := cmp.Diff(before, dump(t, s.reader)); diff != "" {
				t.Errorf("rows changed (-before +after):\n%s", diff)
			}
			if upstream, own := versions(t, s.reader); upstream != after || own != latest(t) {
				t.Errorf("versions %d and %d", upstream, own)
			}
			if after == 2 {
				for name, want := range upstreamColumns {
					if diff := cmp.Diff(want, columns(t, s.reader, name)); diff != "" {
						t.Errorf("%s (-want +got):\n%s", name, diff)
					}
				}
			}
			if err := s.VerifiedEvents().Remember(t.Context(), keys(0, 3)); err != nil {
				t.Error(err)
			}
			again := openRaw(t, path)
			execute(t, again, "INSERT INTO operations (pubkey, namespace, id, data) VALUES ('bb', 'swap_in', 'by the old daemon', '{}')")
			if n := count(t, s.reader, "operations WHERE pubkey = 'bb'"); n != 1 {
				t.Error("what the old daemon writes now is not seen")
			}
		})
	}
}

func TestEmptyFileOpens(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	s := openStore(t, path)
	if upstream, own := versions(t, s.reader); upstream != 2 || own != latest(t) {
		t.Errorf("versions %d and %d", upstream, own)
	}
	if info, _ := os.Stat(path); info.Mode().Perm() != 0o644 {
		t.Errorf("the mode of an existing file became %v", info.Mode())
	}
}

func TestNewerSchemaOfOursIsRefused(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	s := openStore(t, path)
	execute(t, s.writer, "INSERT INTO hostrd_schema VALUES (9, '2030-01-01T00:00:00Z'); CREATE TABLE hostrd_later (id TEXT)")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	before := fingerprint(t, path)
	_, err := Open(t.Context(), path)
	coded := fault.From(err)
	if coded == nil || coded.Code != fault.UnexpectedError || coded.Retryable {
		t.Fatalf("%+v", coded)
	}
	for _, part := range []string{path, "version 9", fmt.Sprintf("up to %d", latest(t)), "newer hostr-daemon", "--state-dir"} {
		if !strings.Contains(coded.Message, part) {
			t.Errorf("%q does not say %q", coded.Message, part)
		}
	}
	if fingerprint(t, path) != before {
		t.Error("the file changed")
	}
}

func TestFailedMigrationLeavesNothing(t *testing.T) {
	t.Parallel()
	s := openStore(t, newPath(t))
	err := transact(t.Context(), s.writer, func(ctx context.Context, tx *sql.Tx) error {
		return migrateOwn(ctx, tx, latest(t)+1, "CREATE TABLE hostrd_half (id TEXT); CREATE TABEL hostrd_other (id TEXT)")
	})
	if err == nil {
		t.Fatal("no error")
	}
	if _, own := versions(t, s.reader); own != latest(t) {
		t.Errorf("version %d", own)
	}
	if got := schemaOf(t, s.reader, "name = 'hostrd_half'"); len(got) != 0 {
		t.Error("half a migration stayed")
	}
}

func TestMigrationsRunOnceForTwoOpeners(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	opened := make(chan error, 4)
	for range cap(opened) {
		go func() {
			s, err := Open(context.Background(), path)
			if err == nil {
				err = s.Close()
			}
			opened <- err
		}()
	}
	for range cap(opened) {
		if err := <-opened; err != nil {
			t.Error(err)
		}
	}
	if n := count(t, openStore(t, path).reader, "hostrd_schema"); n != latest(t) {
		t.Errorf("%d migrations are noted", n)
	}
}

func TestForeignSchemaTableIsNamed(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	s := openStore(t, path)
	execute(t, s.writer, "DROP TABLE hostrd_schema; CREATE TABLE hostrd_schema (x)")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := Open(t.Context(), path)
	if coded := fault.From(err); coded == nil || !strings.Contains(coded.Message, "hostrd_schema is not one of hostr-daemon") {
		t.Errorf("a foreign table gives %v", err)
	}
}
