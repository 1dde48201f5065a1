package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/mattn/go-sqlite3"
)

// pragma is a setting of a connection. SQLite ignores what it does not know or
// cannot do, so each one is read back.
type pragma struct {
	name, value string
	// means is what reading it back must give, when that is not the value.
	means string
}

const (
	// busyTimeout is SQLite's own wait for a lock, in milliseconds; retryBusy does
	// the rest of the waiting.
	busyTimeout = "100"
	// statementCache is how many prepared statements a connection keeps.
	statementCache = "32"
)

var (
	writerPragmas = []pragma{
		{name: "busy_timeout", value: busyTimeout},
		{name: "journal_mode", value: "wal"},
		// Money is moved on the strength of what was committed, so a commit must
		// outlive a power cut.
		{name: "synchronous", value: "FULL", means: "2"},
		{name: "foreign_keys", value: "ON", means: "1"},
		{name: "trusted_schema", value: "OFF", means: "0"},
		{name: "journal_size_limit", value: "16777216"},
		// In KiB: a batch of verified events touches some 2 MiB of pages, which the
		// default could not hold until the commit.
		{name: "cache_size", value: "-8000"},
	}
	readerPragmas = []pragma{
		{name: "busy_timeout", value: busyTimeout},
		{name: "trusted_schema", value: "OFF", means: "0"},
		{name: "query_only", value: "ON", means: "1"},
	}
)

// openPool makes connections on demand, so it cannot fail itself.
func openPool(path string, pragmas []pragma, size int) *sql.DB {
	db := sql.OpenDB(&connector{
		name: dataSource(path),
		driver: &sqlite3.SQLiteDriver{ConnectHook: func(conn *sqlite3.SQLiteConn) error {
			return applyPragmas(conn, pragmas)
		}},
	})
	db.SetMaxOpenConns(size)
	db.SetMaxIdleConns(size)
	return db
}

// connector opens connections without a driver registered for the whole process.
type connector struct {
	name   string
	driver *sqlite3.SQLiteDriver
}

func (c *connector) Connect(context.Context) (driver.Conn, error) { return c.driver.Open(c.name) }

func (c *connector) Driver() driver.Driver { return c.driver }

// dataSource writes an absolute path as a URI, because a plain one may hold characters that
// would be taken for options.
func dataSource(path string) string {
	options := url.Values{
		"_txlock":          {"immediate"},
		"_busy_timeout":    {busyTimeout},
		"_stmt_cache_size": {statementCache},
	}
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // a drive letter
	}
	uri := url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: options.Encode()}
	return uri.String()
}

// notInForceError is a pragma that SQLite did not take.
type notInForceError struct{ name, wanted, got string }

func (e *notInForceError) Error() string {
	return fmt.Sprintf("PRAGMA %s is %q instead of %q", e.name, e.got, e.wanted)
}

func applyPragmas(conn *sqlite3.SQLiteConn, pragmas []pragma) error {
	for _, p := range pragmas {
		if _, err := conn.Exec("PRAGMA "+p.name+" = "+p.value, nil); err != nil {
			return err
		}
		wanted := p.value
		if p.means != "" {
			wanted = p.means
		}
		got, err := readPragma(conn, p.name)
		if err != nil {
			return err
		}
		if got != wanted {
			return &notInForceError{name: p.name, wanted: wanted, got: got}
		}
	}
	return nil
}

func readPragma(conn *sqlite3.SQLiteConn, name string) (got string, err error) {
	rows, err := conn.Query("PRAGMA "+name, nil)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	row := make([]driver.Value, len(rows.Columns()))
	if err := rows.Next(row); err != nil {
		return "", fmt.Errorf("reading PRAGMA %s: %w", name, err)
	}
	if text, isBytes := row[0].([]byte); isBytes {
		return string(text), nil
	}
	return fmt.Sprint(row[0]), nil
}
