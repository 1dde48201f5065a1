package store

import (
	"context"
	"errors"
	"io/fs"
	"syscall"

	"github.com/mattn/go-sqlite3"

	"hostr-daemon/internal/fault"
)

// remedy is what a person should know about a kind of SQLite failure. The message
// takes the file and the text of the failure.
type remedy struct {
	message string
	// passes is true when the same call may succeed later without a change here.
	passes bool
}

const (
	moveAway     = "Nothing in it was changed: put a backup in its place, or move it and the -wal and -shm files beside it away to start with an empty database."
	noWriting    = "The database %[1]q may not be written by this user (%[2]v): change the owner or mode of the file, its directory and the -wal and -shm files beside it, or use another --state-dir."
	noSpace      = "There is no space left for the database %[1]q (%[2]v): free some, then try again."
	needsMemory  = "The file system of the database %[1]q does not let processes share memory, which SQLite's write-ahead log needs (%[2]v): use a --state-dir on a local disk."
	otherProgram = "Another program keeps the database %[1]q locked (%[2]v): close it (an sqlite3 shell, a backup, an older daemon) or wait, then try again."
)

var remedies = map[sqlite3.ErrNo]remedy{
	sqlite3.ErrNotADB:   {message: "The file %[1]q is not a readable SQLite database (%[2]v). " + moveAway},
	sqlite3.ErrCorrupt:  {message: "The database %[1]q is damaged (%[2]v). " + moveAway},
	sqlite3.ErrFormat:   {message: "The database %[1]q is damaged (%[2]v). " + moveAway},
	sqlite3.ErrBusy:     {message: otherProgram, passes: true},
	sqlite3.ErrLocked:   {message: otherProgram, passes: true},
	sqlite3.ErrReadonly: {message: noWriting},
	sqlite3.ErrPerm:     {message: noWriting},
	sqlite3.ErrAuth:     {message: noWriting},
	sqlite3.ErrCantOpen: {message: "The database %[1]q cannot be opened (%[2]v): check that its directory exists and that this user may write there, or use another --state-dir."},
	sqlite3.ErrFull:     {message: noSpace, passes: true},
	sqlite3.ErrIoErr:    {message: "The disk of the database %[1]q does not read or write (%[2]v): check the disk and its mount, then try again.", passes: true},
	sqlite3.ErrProtocol: {message: needsMemory},
}

// problem turns a failure into one for people. The end of ctx stays what it is.
func (s *Store) problem(ctx context.Context, doing string, err error) error {
	if err == nil {
		return nil
	}
	var coded *fault.Error
	if errors.As(err, &coded) {
		return err
	}
	if cause := context.Cause(ctx); cause != nil && (errors.Is(err, context.Cause(ctx)) || interrupted(err)) {
		return cause
	}
	return failure(s.path, doing, err)
}

// interrupted tells whether err is how the database says that its context ended.
func interrupted(err error) bool {
	var failed sqlite3.Error
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) ||
		errors.As(err, &failed) && failed.Code == sqlite3.ErrInterrupt
}

func failure(path, doing string, err error) error {
	var pragma *notInForceError
	if errors.As(err, &pragma) && pragma.name == "journal_mode" {
		coded := fault.New(fault.UnexpectedError, needsMemory, path, err)
		coded.Cause = err
		return coded
	}
	var failed sqlite3.Error
	if !errors.As(err, &failed) {
		return fault.New(fault.UnexpectedError, "%s the database %q failed: %w", doing, path, err)
	}
	known, listed := remedies[failed.Code]
	switch {
	case failed.SystemErrno == syscall.ENOSPC || failed.SystemErrno == syscall.EDQUOT:
		known = remedies[sqlite3.ErrFull]
	case failed.SystemErrno == syscall.EACCES || failed.SystemErrno == syscall.EROFS:
		known = remedies[sqlite3.ErrReadonly]
	case !listed:
		return fault.New(fault.UnexpectedError, "%s the database %q failed: %w", doing, path, err)
	}
	coded := fault.New(fault.UnexpectedError, known.message, path, err)
	coded.Cause = err
	coded.Retryable = known.passes
	return coded
}

// fileProblem is a failure of the file itself, before SQLite saw it.
func fileProblem(path string, err error) error {
	reason := err
	var operation *fs.PathError
	if errors.As(err, &operation) {
		reason = operation.Err
	}
	message, passes := remedies[sqlite3.ErrCantOpen].message, false
	switch {
	case errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS):
		message = noWriting
	case errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT):
		message, passes = noSpace, true
	}
	coded := fault.New(fault.UnexpectedError, message, path, reason)
	coded.Cause = err
	coded.Retryable = passes
	return coded
}

func isBusy(err error) bool {
	var failed sqlite3.Error
	return errors.As(err, &failed) && (failed.Code == sqlite3.ErrBusy || failed.Code == sqlite3.ErrLocked)
}
