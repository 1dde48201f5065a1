package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mattn/go-sqlite3"

	"hostr-daemon/internal/fault"
)

func fingerprint(t *testing.T, path string) [32]byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return sha256.Sum256(data)
}

// checkProblem asserts a coded message that names the file and says all parts.
func checkProblem(t *testing.T, err error, path string, retryable bool, parts ...string) {
	t.Helper()
	var coded *fault.Error
	if !errors.As(err, &coded) {
		t.Fatalf("not coded: %v", err)
	}
	if coded.Code != fault.UnexpectedError || coded.Retryable != retryable {
		t.Errorf("code %s, retryable %v: %s", coded.Code, coded.Retryable, coded.Message)
	}
	for _, part := range append(parts, path) {
		if !strings.Contains(coded.Message, part) {
			t.Errorf("%q does not say %q", coded.Message, part)
		}
	}
}

// filled returns a closed database with many events in many pages.
func filled(t *testing.T) string {
	t.Helper()
	path := newPath(t)
	s := openStore(t, path)
	if err := s.VerifiedEvents().Remember(t.Context(), keys(0, 4000)); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestUnreadableFilesAreNamedAndLeftAlone(t *testing.T) {
	t.Parallel()
	const remedyText = "Nothing in it was changed"
	for name, test := range map[string]struct {
		damage func(data []byte) []byte
		parts  []string
	}{
		"text":            {func([]byte) []byte { return bytes.Repeat([]byte("this is a letter\n"), 500) }, []string{"not a readable SQLite database", remedyText}},
		"short":           {func(data []byte) []byte { return data[:50] }, []string{"damaged", remedyText}},
		"damaged header":  {func(data []byte) []byte { data[0] ^= 0xff; return data }, []string{"not a readable SQLite database", remedyText}},
		"damaged schema":  {func(data []byte) []byte { clear(data[100:4096]); return data }, []string{"damaged", remedyText}},
		"cut in the half": {func(data []byte) []byte { return data[:len(data)/2] }, []string{"damaged", remedyText}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filled(t)
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, test.damage(data), 0o600); err != nil {
				t.Fatal(err)
			}
			before := fingerprint(t, path)
			s, err := Open(t.Context(), path)
			if err == nil { // damage behind the first page shows when it is read
				_, err = s.VerifiedEvents().Known(t.Context(), keys(0, 4000))
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}
			checkProblem(t, err, path, false, test.parts...)
			if fingerprint(t, path) != before {
				t.Error("the file changed")
			}
		})
	}
}

func TestPlacesWithoutAFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	dangling := filepath.Join(dir, "dangling")
	if err := os.Symlink(filepath.Join(dir, "nowhere", "x"), dangling); err != nil {
		t.Fatal(err)
	}
	for path, part := range map[string]string{
		dir:                                "not a file but a directory",
		filepath.Join(dir, "absent", "db"): "no such file or directory",
		filepath.Join(file, "db"):          "not a directory",
		dangling:                           "no such file or directory",
	} {
		s, err := Open(t.Context(), path)
		if err == nil {
			t.Errorf("%s opened", path)
			_ = s.Close()
			continue
		}
		checkProblem(t, err, path, false, part, "--state-dir")
	}
}

func TestFullDisk(t *testing.T) {
	t.Parallel()
	s := openStore(t, newPath(t))
	execute(t, s.writer, "PRAGMA max_page_count = 20")
	err := s.VerifiedEvents().Remember(t.Context(), keys(0, 4000))
	checkProblem(t, err, s.path, true, "no space left")
	known, err := s.VerifiedEvents().Known(t.Context(), keys(0, 1))
	if err != nil || known[0] {
		t.Errorf("a refused write left something: %v %v", known, err)
	}
	execute(t, s.writer, "PRAGMA max_page_count = 1000000")
	if err := s.VerifiedEvents().Remember(t.Context(), keys(0, 4000)); err != nil {
		t.Errorf("with space again: %v", err)
	}
}

func TestLockedByAnotherProgram(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	raw := openRaw(t, path) // rollback journal: its lock keeps everybody out
	execute(t, raw, "CREATE TABLE t (x); BEGIN EXCLUSIVE")
	_, err := open(t.Context(), path, 50*time.Millisecond)
	checkProblem(t, err, path, true, "Another program", "close it")

	cause := errors.New("ended by a signal")
	ctx, cancel := context.WithCancelCause(t.Context())
	opening := make(chan error, 1)
	go func() {
		_, err := open(ctx, path, time.Hour)
		opening <- err
	}()
	cancel(cause)
	if err := <-opening; !errors.Is(err, cause) {
		t.Errorf("%v", err)
	}
	execute(t, raw, "COMMIT")
	openStore(t, path)
}

func TestWriteLockOfAnotherProgram(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	s, err := open(t.Context(), path, 50*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	raw := openRaw(t, path)
	execute(t, raw, "BEGIN IMMEDIATE; INSERT INTO config VALUES ('p', 'k', 'v')")
	checkProblem(t, s.VerifiedEvents().Remember(t.Context(), keys(0, 1)), path, true, "Another program")
	if _, err := s.VerifiedEvents().Known(t.Context(), keys(0, 1)); err != nil {
		t.Errorf("reading beside a writer: %v", err)
	}
	execute(t, raw, "COMMIT")
	if err := s.VerifiedEvents().Remember(t.Context(), keys(0, 1)); err != nil {
		t.Errorf("after the lock: %v", err)
	}
}

func TestEveryFailureSaysWhatToDo(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		err       error
		retryable bool
		part      string
	}{
		{sqlite3.Error{Code: sqlite3.ErrReadonly}, false, "may not be written"},
		{sqlite3.Error{Code: sqlite3.ErrCantOpen, SystemErrno: syscall.EACCES}, false, "may not be written"},
		{sqlite3.Error{Code: sqlite3.ErrCantOpen, SystemErrno: syscall.EROFS}, false, "may not be written"},
		{sqlite3.Error{Code: sqlite3.ErrCantOpen, SystemErrno: syscall.ENOENT}, false, "cannot be opened"},
		{sqlite3.Error{Code: sqlite3.ErrIoErr, SystemErrno: syscall.ENOSPC}, true, "no space left"},
		{sqlite3.Error{Code: sqlite3.ErrIoErr, SystemErrno: syscall.EIO}, true, "check the disk"},
		{sqlite3.Error{Code: sqlite3.ErrProtocol}, false, "local disk"},
		{sqlite3.Error{Code: sqlite3.ErrMisuse}, false, "testing the database"},
		{&notInForceError{name: "journal_mode", wanted: "wal", got: "delete"}, false, "local disk"},
		{&notInForceError{name: "synchronous", wanted: "2", got: "1"}, false, "PRAGMA synchronous"},
		{fmt.Errorf("wrapped: %w", sqlite3.Error{Code: sqlite3.ErrFull}), true, "no space left"},
	} {
		err := failure("some.sqlite3", "testing", test.err)
		checkProblem(t, err, "some.sqlite3", test.retryable, test.part)
		if !errors.Is(err, test.err) && errors.Unwrap(err) == nil {
			t.Errorf("%v lost its cause", err)
		}
	}
}
