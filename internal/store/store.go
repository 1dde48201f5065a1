// Package store is the daemon's SQLite database, one file per environment (spec 11
// §6). It holds the tables the old daemon made, exactly as that one made them, and
// beside them our own, whose names start with hostrd_.
//
// It knows files, SQL and rows. It must never know what a row means, hand out the
// database handle, or delete, move or overwrite a file it cannot read.
package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"hostr-daemon/internal/fault"
)

// Store is an open database. All methods may be called concurrently.
type Store struct {
	path     string
	patience time.Duration
	writer   *sql.DB
	reader   *sql.DB
	verified *VerifiedEvents

	// closing ends every operation under way; operations counts them.
	closing    context.Context
	close      context.CancelCauseFunc
	operations sync.WaitGroup
	mu         sync.Mutex // guards closed against a new operation
	closed     bool
}

const (
	// busyPatience is how long an operation waits for another program's lock.
	busyPatience = 5 * time.Second
	// busyPause is the wait between two tries where SQLite does not wait itself.
	busyPause = 20 * time.Millisecond
	// readConnections is how many reads run side by side.
	readConnections = 4
)

// Open opens the database, creates it with mode 0600 when it is missing, and brings
// its tables up to date. It waits up to five seconds for a lock of another program,
// unless ctx ends before. Every error is a *fault.Error that names the file, or the
// end of ctx.
func Open(ctx context.Context, path string) (*Store, error) {
	return open(ctx, path, busyPatience)
}

func open(ctx context.Context, path string, patience time.Duration) (*Store, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, fileProblem(path, err)
	}
	if err := createFile(absolute); err != nil {
		return nil, err
	}
	s := &Store{
		path:     absolute,
		patience: patience,
		writer:   openPool(absolute, writerPragmas, 1),
		reader:   openPool(absolute, readerPragmas, readConnections),
	}
	s.closing, s.close = context.WithCancelCause(context.Background())
	s.verified = &VerifiedEvents{store: s, limit: maxVerifiedEvents, keysPerSweep: defaultKeysPerSweep}
	if err := s.retryBusy(ctx, func() error { return s.migrate(ctx) }); err != nil {
		return nil, errors.Join(s.problem(ctx, "opening", err), s.Close())
	}
	return s, nil
}

// Close ends the operations under way, waits for them and closes the file. Further
// calls do nothing.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	s.mu.Unlock()
	s.close(errClosed)
	s.operations.Wait()
	// The writer goes last: the last connection writes the log back into the file.
	if err := errors.Join(s.reader.Close(), s.writer.Close()); err != nil {
		return fmt.Errorf("closing the database %q: %w", s.path, err)
	}
	return nil
}

// VerifiedEvents returns the memory of events whose signature was found good.
func (s *Store) VerifiedEvents() *VerifiedEvents { return s.verified }

var errClosed = fault.New(fault.UnexpectedError, "The database is closed because hostr-daemon is ending.").Transient()

// write runs f in a transaction that has the write lock from its beginning, and
// commits it unless f fails. doing tells in messages what was tried, for example
// "writing verified events to".
func (s *Store) write(ctx context.Context, doing string, f func(context.Context, *sql.Tx) error) error {
	ctx, leave, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	err = s.retryBusy(ctx, func() error { return transact(ctx, s.writer, f) })
	return s.problem(ctx, doing, err)
}

// read runs f on a connection that cannot write.
func (s *Store) read(ctx context.Context, doing string, f func(context.Context, *sql.DB) error) error {
	ctx, leave, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	err = s.retryBusy(ctx, func() error { return f(ctx, s.reader) })
	return s.problem(ctx, doing, err)
}

// enter counts an operation and makes it end with the caller or with the store.
func (s *Store) enter(ctx context.Context) (context.Context, func(), error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, nil, errClosed
	}
	s.operations.Add(1)
	ctx, cancel := context.WithCancelCause(ctx)
	unlink := context.AfterFunc(s.closing, func() { cancel(errClosed) })
	return ctx, func() {
		unlink()
		cancel(nil)
		s.operations.Done()
	}, nil
}

func transact(ctx context.Context, db *sql.DB, f func(context.Context, *sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // does nothing after a commit
	if err := f(ctx, tx); err != nil {
		return err
	}
	return tx.Commit()
}

// retryBusy repeats an attempt that met another program's lock. SQLite's own wait is
// kept short because nothing can end it, and a signal must end the daemon at once.
func (s *Store) retryBusy(ctx context.Context, attempt func() error) error {
	patience := time.NewTimer(s.patience)
	defer patience.Stop()
	for {
		err := attempt()
		if !isBusy(err) {
			return err
		}
		pause := time.NewTimer(busyPause)
		select {
		case <-pause.C:
		case <-patience.C:
			pause.Stop()
			return err
		case <-ctx.Done():
			pause.Stop()
			return context.Cause(ctx)
		}
	}
}
