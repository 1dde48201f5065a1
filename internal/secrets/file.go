package secrets

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"hostr-daemon/internal/fault"
)

const (
	// lockName is the file in the environment's folder that a writer holds, whatever
	// file it writes.
	lockName  = "secrets.lock"
	lockLimit = 10 * time.Second
	lockRetry = 5 * time.Millisecond

	maxFileBytes = 64 << 20

	// settled is how old a change must be to tell the next one by its time: file
	// systems count time in steps of up to two seconds.
	settled = 2 * time.Second
)

// codec turns entries into the bytes of a file and back.
type codec interface {
	decode(content []byte) (document, error)
	encode(entries document) ([]byte, error)
}

// file keeps all entries in one file, which is only ever replaced as a whole.
type file struct {
	path  string
	kind  Kind
	codec codec
	// former is a plain file whose entries move into this one; empty means none.
	former string
	// turn holds one token, which the writer of this process takes.
	turn chan struct{}

	mu       sync.Mutex
	moved    bool // the entries of former have moved, or there were none
	snapshot snapshot
}

// snapshot is what was read from the file, and how it looked then.
type snapshot struct {
	info    fs.FileInfo
	readAt  time.Time
	entries document
}

func newPlainFile(path string) *file { return newFile(path, "", PlainFile, plainText{}) }

func newEncryptedFile(path, former string, key Secret) *file {
	return newFile(path, former, EncryptedFile, newEnvelope(key))
}

func newFile(path, former string, kind Kind, codec codec) *file {
	return &file{path: path, former: former, kind: kind, codec: codec, turn: make(chan struct{}, 1), moved: former == ""}
}

func (f *file) place() Place { return Place{f.kind, f.path} }

func (f *file) read(ctx context.Context, key string) (string, bool, error) {
	entries, err := f.all(ctx)
	if err != nil {
		return "", false, err
	}
	value, ok := entries.value(key)
	return value, ok, nil
}

func (f *file) keys(ctx context.Context) ([]string, error) {
	entries, err := f.all(ctx)
	return entries.keys(), err
}

func (f *file) check(ctx context.Context) error {
	if _, err := f.all(ctx); err != nil {
		return err
	}
	// Taking the lock shows that the folder can be written.
	return f.exclusively(ctx, func() error { return nil })
}

func (f *file) update(ctx context.Context, key string, change Change) error {
	return f.exclusively(ctx, func() error {
		entries, err := f.load()
		if err != nil {
			return err
		}
		old, stored := entries.value(key)
		value, keep, err := change(old, stored)
		if err != nil || (keep == stored && value == old) || (!keep && !stored) {
			return err
		}
		return f.save(entries.with(key, value, keep))
	})
}

// all returns the entries, moved in from the former place if that has not happened.
func (f *file) all(ctx context.Context) (document, error) {
	if f.mustMove() {
		if err := f.exclusively(ctx, func() error { return nil }); err != nil {
			return nil, err
		}
	}
	return f.load()
}

// exclusively runs work while no other update runs, in this process or another.
func (f *file) exclusively(ctx context.Context, work func() error) error {
	ctx, cancel := context.WithTimeout(ctx, lockLimit)
	defer cancel()
	select {
	case f.turn <- struct{}{}:
	case <-ctx.Done():
		return f.lockProblem(ctx)
	}
	defer func() { <-f.turn }()
	folder := filepath.Dir(f.path)
	if err := makeFolder(folder); err != nil {
		return f.problem("written", err)
	}
	lock := flock.New(filepath.Join(folder, lockName), flock.SetPermissions(0o600))
	defer lock.Close()
	if _, err := lock.TryLockContext(ctx, lockRetry); err != nil {
		if ctx.Err() != nil {
			return f.lockProblem(ctx)
		}
		return f.problem("written", err)
	}
	if err := f.tidy(); err != nil {
		return f.problem("written", err)
	}
	return work()
}

func (f *file) lockProblem(ctx context.Context) error {
	if errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		return fault.New(fault.UnexpectedError, "The secrets in %s are held by another process. Try again.", f.path).Transient()
	}
	return fmt.Errorf("waiting for the secrets in %s: %w", f.path, context.Cause(ctx))
}

// tidy removes what a writer that was killed left behind, and moves the entries of
// the former place in. It runs under the lock.
func (f *file) tidy() error {
	if err := removeIfThere(f.path + temporarySuffix); err != nil {
		return err
	}
	if !f.mustMove() {
		return nil
	}
	if err := f.moveFormer(); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.moved = true
	return nil
}

func (f *file) mustMove() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.moved {
		return false
	}
	_, err := os.Lstat(f.former)
	f.moved = errors.Is(err, fs.ErrNotExist)
	return !f.moved
}

// load returns the entries; a file that is missing has none. The document is
// shared and must not be changed.
func (f *file) load() (document, error) {
	info, err := os.Stat(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return document{}, nil
	}
	if err != nil {
		return nil, f.problem("read", err)
	}
	f.mu.Lock()
	known := f.snapshot
	f.mu.Unlock()
	if known.shows(info) {
		return known.entries, nil
	}
	fresh := snapshot{readAt: time.Now()}
	content, info, err := readRegular(f.path)
	if err != nil {
		return nil, f.problem("read", err)
	}
	if fresh.entries, err = f.codec.decode(content); err != nil {
		return nil, f.problem("read", err)
	}
	fresh.info = info
	f.mu.Lock()
	f.snapshot = fresh
	f.mu.Unlock()
	return fresh.entries, nil
}

// shows reports whether the file still is what was read.
func (s snapshot) shows(now fs.FileInfo) bool {
	return s.info != nil && os.SameFile(s.info, now) && s.info.Size() == now.Size() &&
		s.info.ModTime().Equal(now.ModTime()) && now.ModTime().Add(settled).Before(s.readAt)
}

func (f *file) save(entries document) error {
	content, err := f.codec.encode(entries)
	if err == nil {
		err = replaceFile(f.path, content)
	}
	if err != nil {
		return f.problem("written", err)
	}
	return nil
}

// problem names the file and what to do; it passes coded errors on.
func (f *file) problem(action string, err error) error {
	var coded *fault.Error
	if errors.As(err, &coded) {
		return coded
	}
	hint := "Check the owner and the permissions of the file and its folder, and the space on the disk."
	switch {
	case errors.Is(err, ErrWrongKey):
		hint = "Give the key the file was made with, in " + keyVariable + " or --secrets-key-file. Without it, move the file away and sign in again."
	case errors.Is(err, ErrDamaged):
		hint = "Put a good copy in its place, or move it away and sign in again."
	}
	return fault.New(fault.UnexpectedError, "The secrets file %s cannot be %s: %w. It was left as it is.", f.path, action, reasonOf(err)).WithHint(hint)
}

// reasonOf returns the error without the operation and the path in front of it.
func reasonOf(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	var link *os.LinkError
	if errors.As(err, &link) {
		return link.Err
	}
	return err
}

// readRegular reads a whole file, and closes it to other users if it is open to them.
func readRegular(path string) ([]byte, fs.FileInfo, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, nil, errors.New("it is no regular file") // opening a pipe would wait for its writer
	}
	opened, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer opened.Close()
	info, err := opened.Stat()
	if err != nil {
		return nil, nil, err
	}
	const others = 0o077
	if info.Mode().Perm()&others != 0 && runtime.GOOS != "windows" {
		_ = opened.Chmod(0o600) // fails for somebody else's file, which is readable all the same
	}
	content, err := io.ReadAll(io.LimitReader(opened, maxFileBytes+1))
	if err == nil && len(content) > maxFileBytes {
		err = fmt.Errorf("it is larger than %d bytes", maxFileBytes)
	}
	return content, info, err
}
