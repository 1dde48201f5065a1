package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/gofrs/flock"

	"hostr-daemon/internal/fault"
)

// stateLock keeps a second daemon off one environment of a state directory. The
// operating system frees it when its process ends, however that ends; the file stays
// and means nothing by itself.
type stateLock struct {
	dir         string
	environment string
	file        *flock.Flock
}

// LockHolder is the text of the lock file, for people: who has it. It is also the
// details of the error that says so.
type LockHolder struct {
	// PID is the process, 0 when unknown.
	PID int `json:"pid"`
	// StartedAt is when it took the lock.
	StartedAt time.Time `json:"startedAt"`
}

// lockPoll is the pause between two tries; no system lets a wait for a file lock be
// ended.
const lockPoll = 100 * time.Millisecond

func newStateLock(dir, environment string) *stateLock {
	path := filepath.Join(dir, environment+".lock")
	return &stateLock{dir: dir, environment: environment, file: flock.New(path, flock.SetPermissions(0o600))}
}

// acquire takes the lock, and calls waiting once if another process has it.
func (l *stateLock) acquire(ctx context.Context, now time.Time, waiting func()) error {
	// A link is refused too: what it points to is not ours to write.
	if info, err := os.Lstat(l.file.Path()); err == nil && !info.Mode().IsRegular() {
		return fault.New(fault.UnexpectedError,
			"%q is not a file, so it cannot be the lock of the state directory: move it away.", l.file.Path())
	}
	poll := time.NewTicker(lockPoll)
	defer poll.Stop()
	for {
		taken, err := l.file.TryLock()
		if err != nil {
			return l.problem(err)
		}
		if taken && l.inPlace() {
			l.sign(now)
			return nil
		}
		if taken {
			if err := l.file.Unlock(); err != nil {
				return l.problem(err)
			}
		} else if waiting != nil {
			waiting()
			waiting = nil
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// inPlace tells whether the locked file is still the one by that name: somebody may
// have replaced the directory between opening and locking it.
func (l *stateLock) inPlace() bool {
	locked, err := l.file.Stat()
	if err != nil {
		return false
	}
	named, err := os.Lstat(l.file.Path())
	return err == nil && os.SameFile(locked, named)
}

// sign writes who has the lock into the file. The text is a courtesy: without it, on
// a full disk for example, the lock is as good.
func (l *stateLock) sign(now time.Time) {
	holder := LockHolder{PID: os.Getpid(), StartedAt: now.UTC().Truncate(time.Second)}
	if text, err := json.Marshal(holder); err == nil {
		_ = l.overwrite(append(text, '\n'))
	}
}

// overwrite replaces what stands in the locked file, and only in that one: by now
// the name may stand for another.
func (l *stateLock) overwrite(text []byte) error {
	locked, err := l.file.Stat()
	if err != nil {
		return err
	}
	file, err := os.OpenFile(l.file.Path(), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	named, err := file.Stat()
	if err != nil || !os.SameFile(locked, named) {
		return err
	}
	if err := file.Truncate(0); err != nil {
		return err
	}
	_, err = file.Write(text)
	return err
}

// holder reads who has the lock, as far as the text tells.
func (l *stateLock) holder() (holder LockHolder) {
	file, err := os.Open(l.file.Path())
	if err != nil {
		return LockHolder{}
	}
	defer file.Close()
	if err := json.NewDecoder(io.LimitReader(file, 4096)).Decode(&holder); err != nil {
		return LockHolder{}
	}
	return holder
}

// held says who keeps the lock and what to do about it.
func (l *stateLock) held() error {
	holder := l.holder()
	process := "another process"
	if holder.PID > 0 {
		process = fmt.Sprintf("process %d, started %s", holder.PID, holder.StartedAt.UTC().Format(time.RFC3339))
	}
	return fault.New(fault.UnexpectedError,
		"The state directory %q is in use for %s by another hostr-daemon (%s): wait until it has ended, stop it, or use another --state-dir.",
		l.dir, l.environment, process).Transient().WithDetails(holder)
}

// release gives the lock back. The file stays, because deleting it could take the
// lock from under the next process; it is emptied so that it names nobody.
func (l *stateLock) release() error {
	if !l.file.Locked() {
		return nil
	}
	emptied := l.overwrite(nil)
	if errors.Is(emptied, fs.ErrNotExist) {
		emptied = nil
	}
	if err := errors.Join(emptied, l.file.Unlock()); err != nil {
		return fmt.Errorf("releasing the lock of the state directory %q: %w", l.dir, err)
	}
	return nil
}

func (l *stateLock) problem(err error) error {
	for _, unsupported := range []error{syscall.ENOLCK, syscall.ENOTSUP, syscall.EOPNOTSUPP, syscall.ENOSYS, syscall.EINVAL} {
		if errors.Is(err, unsupported) {
			return fault.New(fault.UnexpectedError,
				"The file system of the state directory %q has no file locks (%w): use a --state-dir on a local disk.", l.dir, err)
		}
	}
	return directoryProblem(l.dir, err)
}
