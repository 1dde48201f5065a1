//go:build unix

package runtime

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"

	_ "github.com/mattn/go-sqlite3"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/store"
)

// longGrace is far beyond what any test waits for a lock that is about to be free.
const longGrace = time.Minute

func openState(t testing.TB, o StateOptions) *State {
	t.Helper()
	if o.Environment == "" {
		o.Environment = "test"
	}
	if o.LockGrace == 0 {
		o.LockGrace = longGrace
	}
	s := OpenState(t.Context(), o)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func mustStore(t testing.TB, s *State) *store.Store {
	t.Helper()
	opened, err := s.Store(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return opened
}

// checkStateProblem asserts a coded error that says all parts.
func checkStateProblem(t testing.TB, err error, retryable bool, parts ...string) {
	t.Helper()
	var coded *fault.Error
	if !errors.As(err, &coded) {
		t.Fatalf("not coded: %v", err)
	}
	if coded.Code != fault.UnexpectedError || coded.Retryable != retryable {
		t.Errorf("code %s, retryable %v: %s", coded.Code, coded.Retryable, coded.Message)
	}
	for _, part := range parts {
		if !strings.Contains(coded.Message, part) {
			t.Errorf("%q does not say %q", coded.Message, part)
		}
	}
}

func TestResolveStateDir(t *testing.T) {
	t.Parallel()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ dir, home, want string }{
		{"", "/home/a", "/home/a/.hostr-cli"},
		{"  ", "/home/a", "/home/a/.hostr-cli"},
		{"~", "/home/a", "/home/a"},
		{"~/x/y", "/home/a", "/home/a/x/y"},
		{"~b/x", "/home/a", here + "/~b/x"},
		{"x~/y", "/home/a", here + "/x~/y"},
		{"/srv/hostr", "/home/a", "/srv/hostr"},
		{"state", "/home/a", here + "/state"},
		{"../state/", "/home/a", filepath.Dir(here) + "/state"},
		{" x", "/home/a", here + "/ x"},
		{"", "", here + "/.hostr-cli"},
		{"~", "", here},
		{"~/x", "", here + "/x"},
		{"", "relative", here + "/relative/.hostr-cli"},
	} {
		got, err := ResolveStateDir(test.dir, func(name string) string { return map[string]string{"HOME": test.home}[name] })
		if err != nil || got != test.want {
			t.Errorf("ResolveStateDir(%q) with home %q = %q, %v; want %q", test.dir, test.home, got, err, test.want)
		}
	}
}

func TestNewStateDirectoryIsPrivate(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	dir := filepath.Join(base, "a", "b", "state")
	started := time.Date(2026, 3, 4, 5, 6, 7, 8, time.FixedZone("", 3600))
	s := openState(t, StateOptions{Dir: dir, Now: func() time.Time { return started }})
	if err := mustStore(t, s).VerifiedEvents().Remember(t.Context(), make([][32]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if err := s.Check(t.Context()); err != nil {
		t.Error(err)
	}
	for path, mode := range map[string]os.FileMode{
		filepath.Join(base, "a"):                    0o700,
		filepath.Join(base, "a", "b"):               0o700,
		dir:                                         0o700,
		filepath.Join(dir, "test.lock"):             0o600,
		filepath.Join(dir, "test.sqlite3"):          0o600,
		filepath.Join(dir, "test.sqlite3") + "-wal": 0o600,
	} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v %v, want mode %v", path, info, err, mode)
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "test.lock"))
	if err != nil {
		t.Fatal(err)
	}
	var holder LockHolder
	if err := json.Unmarshal(text, &holder); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(LockHolder{PID: os.Getpid(), StartedAt: started.UTC().Truncate(time.Second)}, holder); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "test.lock")); err != nil || len(text) != 0 {
		t.Errorf("the free lock still names %q (%v)", text, err)
	}
}

func TestExistingDirectoryAndForeignFilesAreLeftAlone(t *testing.T) {
	t.Parallel()
	for mode, warnings := range map[os.FileMode]int{0o755: 1, 0o750: 1, 0o711: 1, 0o700: 0} {
		dir := t.TempDir()
		foreign := map[string]string{"oauth-clients.json": "{}", "test.json": "x", "staging.sqlite3": "not ours to judge"}
		for name, content := range foreign {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		blocked := filepath.Join(dir, "test.sqlite3")
		if err := os.Mkdir(blocked, 0o700); err != nil {
			t.Fatal(err)
		}
		s := openState(t, StateOptions{Dir: dir, Logger: zerolog.New(&log)})
		if _, err := s.Store(t.Context()); err == nil {
			t.Error("a directory opened as database")
		}
		if err := os.Remove(blocked); err != nil {
			t.Fatal(err)
		}
		mustStore(t, s) // the second attempt does not warn again
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if info, _ := os.Stat(dir); info.Mode().Perm() != mode {
			t.Errorf("mode %v became %v", mode, info.Mode().Perm())
		}
		for name, content := range foreign {
			if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != content {
				t.Errorf("%s became %q (%v)", name, got, err)
			}
		}
		if got := strings.Count(log.String(), "chmod 700"); got != warnings {
			t.Errorf("mode %v: %d warnings: %s", mode, got, log.String())
		}
	}
}

func TestSymlinkedStateDirectory(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	real, link := filepath.Join(base, "real"), filepath.Join(base, "link")
	if err := os.Mkdir(real, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(real, link); err != nil {
		t.Fatal(err)
	}
	mustStore(t, openState(t, StateOptions{Dir: link}))
	other := openState(t, StateOptions{Dir: real, LockGrace: time.Millisecond})
	_, err := other.Store(t.Context())
	checkStateProblem(t, err, true, "is in use")
}

// TestProblemsPassWithoutRestart puts an obstacle in the way and takes it away again.
func TestProblemsPassWithoutRestart(t *testing.T) {
	t.Parallel()
	write := func(t *testing.T, path, content string) {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	mkdir := func(t *testing.T, path string) {
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		name     string
		obstacle func(t *testing.T, dir string) (mend func() error)
		parts    []string
	}{
		{"file in its place", func(t *testing.T, dir string) func() error {
			write(t, dir, "")
			return func() error { return os.Remove(dir) }
		}, []string{"not a directory", "--state-dir"}},
		{"file in place of its parent", func(t *testing.T, dir string) func() error {
			write(t, filepath.Dir(dir), "")
			return func() error { return os.Remove(filepath.Dir(dir)) }
		}, []string{"not a directory", "--state-dir"}},
		{"link to nowhere", func(t *testing.T, dir string) func() error {
			mkdir(t, filepath.Dir(dir))
			if err := os.Symlink(dir+"-elsewhere", dir); err != nil {
				t.Fatal(err)
			}
			return func() error { return os.Mkdir(dir+"-elsewhere", 0o700) }
		}, []string{"not a directory"}},
		{"link to itself", func(t *testing.T, dir string) func() error {
			mkdir(t, filepath.Dir(dir))
			if err := os.Symlink(dir, dir); err != nil {
				t.Fatal(err)
			}
			return func() error { return os.Remove(dir) }
		}, []string{"cannot be used", "--state-dir"}},
		{"directory in place of the lock", func(t *testing.T, dir string) func() error {
			mkdir(t, filepath.Join(dir, "test.lock"))
			return func() error { return os.Remove(filepath.Join(dir, "test.lock")) }
		}, []string{"test.lock", "move it away"}},
		{"pipe in place of the lock", func(t *testing.T, dir string) func() error {
			mkdir(t, dir)
			if err := syscall.Mkfifo(filepath.Join(dir, "test.lock"), 0o600); err != nil {
				t.Fatal(err)
			}
			return func() error { return os.Remove(filepath.Join(dir, "test.lock")) }
		}, []string{"test.lock", "move it away"}},
		{"directory in place of the database", func(t *testing.T, dir string) func() error {
			mkdir(t, filepath.Join(dir, "test.sqlite3"))
			return func() error { return os.Remove(filepath.Join(dir, "test.sqlite3")) }
		}, []string{"not a file but a directory"}},
		{"damaged database", func(t *testing.T, dir string) func() error {
			mkdir(t, dir)
			write(t, filepath.Join(dir, "test.sqlite3"), strings.Repeat("damaged", 1000))
			return func() error {
				return os.Rename(filepath.Join(dir, "test.sqlite3"), filepath.Join(dir, "damaged.sqlite3"))
			}
		}, []string{"not a readable SQLite database"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "parent", "state")
			if test.name != "file in place of its parent" {
				mkdir(t, filepath.Dir(dir))
			}
			mend := test.obstacle(t, dir)
			s := openState(t, StateOptions{Dir: dir})
			for range 2 {
				_, err := s.Store(t.Context())
				checkStateProblem(t, err, false, append(test.parts, dir)...)
				checkStateProblem(t, s.Check(t.Context()), false, test.parts...)
			}
			if err := mend(); err != nil {
				t.Fatal(err)
			}
			if err := s.Check(t.Context()); err != nil {
				t.Error(err)
			}
			mustStore(t, s)
		})
	}
}

// daemonProcess is another process that holds a state directory.
type daemonProcess struct {
	*exec.Cmd
	stdin io.Closer
}

func holdInAnotherProcess(t *testing.T, dir string) *daemonProcess {
	t.Helper()
	other := exec.Command(os.Args[0])
	other.Env = append(os.Environ(), lockHolderVariable+"="+dir)
	other.Stderr = os.Stderr
	stdin, err := other.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := other.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = other.Process.Kill()
		_ = other.Wait()
	})
	if line, err := bufio.NewReader(stdout).ReadString('\n'); err != nil || line != "held\n" {
		t.Fatalf("the other process said %q (%v)", line, err)
	}
	return &daemonProcess{Cmd: other, stdin: stdin}
}

func TestLockOfAnotherProcess(t *testing.T) {
	t.Parallel()
	for name, stop := range map[string]func(*daemonProcess) error{
		"which ends":      func(p *daemonProcess) error { return p.stdin.Close() },
		"which is killed": func(p *daemonProcess) error { return p.Process.Kill() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			other := holdInAnotherProcess(t, dir)
			hasty := openState(t, StateOptions{Dir: dir, LockGrace: time.Millisecond})
			_, err := hasty.Store(t.Context())
			checkStateProblem(t, err, true, dir, "for test", fmt.Sprintf("process %d, started 20", other.Process.Pid), "wait until", "stop it", "--state-dir")
			if holder, ok := fault.From(err).Details.(LockHolder); !ok || holder.PID != other.Process.Pid {
				t.Errorf("details %+v", fault.From(err).Details)
			}
			if err := hasty.Check(t.Context()); err != nil {
				t.Errorf("Check beside a held lock: %v", err)
			}
			if err := hasty.Close(); err != nil {
				t.Fatal(err)
			}

			patient := openState(t, StateOptions{Dir: dir})
			if err := patient.Check(t.Context()); err != nil {
				t.Errorf("Check beside a held lock: %v", err)
			}
			if err := stop(other); err != nil {
				t.Fatal(err)
			}
			mustStore(t, patient)
		})
	}
}

func TestHeldLockIsLoggedOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	mustStore(t, openState(t, StateOptions{Dir: dir}))
	var log bytes.Buffer
	second := openState(t, StateOptions{Dir: dir, LockGrace: 3 * lockPoll, Logger: zerolog.New(&log)})
	if _, err := second.Store(t.Context()); err == nil {
		t.Fatal("two hold the lock")
	}
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(log.String(), "waiting for it"); got != 1 {
		t.Errorf("%d lines: %s", got, log.String())
	}
}

func TestStaleLockFileDoesNotBlock(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", `{"pid":1,"startedAt":"2020-01-01T00:00:00Z"}`, "\x00garbage", strings.Repeat("9", 100_000)} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "test.lock"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		mustStore(t, openState(t, StateOptions{Dir: dir, LockGrace: time.Millisecond}))
	}
}

func TestHolderThatLeftNoNameIsStillReported(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	mustStore(t, openState(t, StateOptions{Dir: dir}))
	for _, text := range []string{"", "garbage", `{"pid":-4}`, `[1]`, strings.Repeat("1", 100_000)} {
		if err := os.WriteFile(filepath.Join(dir, "test.lock"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := openState(t, StateOptions{Dir: dir, LockGrace: time.Millisecond}).Store(t.Context())
		checkStateProblem(t, err, true, "another process", dir)
	}
}

func TestEnvironmentsDoNotBlockEachOther(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	mustStore(t, openState(t, StateOptions{Dir: dir, Environment: "test"}))
	mustStore(t, openState(t, StateOptions{Dir: dir, Environment: "staging", LockGrace: time.Millisecond}))
}

func TestReplacedLockFileIsNoticed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	lock := newStateLock(dir, "test")
	if taken, err := lock.file.TryLock(); err != nil || !taken {
		t.Fatalf("%v %v", taken, err)
	}
	defer lock.file.Unlock()
	if !lock.inPlace() {
		t.Error("a fresh lock file is not in place")
	}
	if err := os.Remove(lock.file.Path()); err != nil {
		t.Fatal(err)
	}
	if lock.inPlace() {
		t.Error("a removed lock file is in place")
	}
	if err := os.WriteFile(lock.file.Path(), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if lock.inPlace() {
		t.Error("a replaced lock file is in place")
	}
}

func TestFileSystemWithoutLocks(t *testing.T) {
	t.Parallel()
	lock := newStateLock("/srv/state", "test")
	for _, err := range []error{syscall.ENOLCK, syscall.ENOTSUP, syscall.EOPNOTSUPP, syscall.ENOSYS, syscall.EINVAL} {
		checkStateProblem(t, lock.problem(&os.PathError{Op: "flock", Path: "/srv/state/test.lock", Err: err}), false, "/srv/state", "no file locks", "local disk")
	}
	checkStateProblem(t, lock.problem(&os.PathError{Op: "open", Err: syscall.EACCES}), false, "may not be used by this user")
	checkStateProblem(t, lock.problem(&os.PathError{Op: "open", Err: syscall.EROFS}), false, "may not be used by this user")
	checkStateProblem(t, lock.problem(&os.PathError{Op: "open", Err: syscall.ENOSPC}), true, "no space left")
	checkStateProblem(t, lock.problem(syscall.EIO), false, "cannot be used")
}

func TestCloseAtAnyTime(t *testing.T) {
	t.Parallel()
	t.Run("while opening", func(t *testing.T) {
		t.Parallel()
		for range 20 {
			dir := t.TempDir()
			s := openState(t, StateOptions{Dir: dir})
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			_, err := s.Store(t.Context())
			checkStateProblem(t, err, true, "is ending")
			checkStateProblem(t, s.Check(t.Context()), true, "is ending")
			mustStore(t, openState(t, StateOptions{Dir: dir})) // nothing is held
		}
	})
	t.Run("while waiting for the lock", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		mustStore(t, openState(t, StateOptions{Dir: dir}))
		s := openState(t, StateOptions{Dir: dir})
		asked := make(chan error, 1)
		go func() {
			_, err := s.Store(context.Background())
			asked <- err
		}()
		if err := s.Check(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		checkStateProblem(t, <-asked, true, "is ending")
	})
	t.Run("twice and at once", func(t *testing.T) {
		t.Parallel()
		s := openState(t, StateOptions{Dir: t.TempDir()})
		mustStore(t, s)
		var closers sync.WaitGroup
		for range 4 {
			closers.Go(func() {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		closers.Wait()
	})
	t.Run("after its context", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		mustStore(t, openState(t, StateOptions{Dir: dir}))
		ctx, cancel := context.WithCancel(t.Context())
		s := OpenState(ctx, StateOptions{Dir: dir, Environment: "test", LockGrace: longGrace})
		cancel()
		_, err := s.Store(t.Context())
		checkStateProblem(t, err, true, "is ending")
		_, err = s.Store(t.Context())
		checkStateProblem(t, err, true, "is ending")
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestCallerNeedNotWait(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	mustStore(t, openState(t, StateOptions{Dir: dir}))
	s := openState(t, StateOptions{Dir: dir})
	cause := errors.New("the request was cancelled")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	if _, err := s.Store(ctx); !errors.Is(err, cause) {
		t.Errorf("%v", err)
	}
}

func TestRequestsShareOneAttempt(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state")
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := openState(t, StateOptions{Dir: dir})
	if _, err := s.Store(t.Context()); err == nil {
		t.Fatal("a file opened as directory")
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	answers := make(chan *store.Store, 16)
	for range cap(answers) {
		go func() {
			opened, err := s.Store(context.Background())
			if err != nil {
				t.Error(err)
			}
			answers <- opened
		}()
	}
	first := <-answers
	for range cap(answers) - 1 {
		if another := <-answers; another != first {
			t.Error("two stores are open")
		}
	}
}

// BenchmarkOpenState is the way from the start to an open database that exists.
func BenchmarkOpenState(b *testing.B) {
	dir := b.TempDir()
	o := StateOptions{Dir: dir, Environment: "test"}
	for b.Loop() {
		s := OpenState(b.Context(), o)
		if _, err := s.Store(b.Context()); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

// A lock file that is a link would have us write into what it points to.
func TestLinkedLockFileIsLeftAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	precious := filepath.Join(t.TempDir(), "precious")
	if err := os.WriteFile(precious, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(precious, filepath.Join(dir, "test.lock")); err != nil {
		t.Fatal(err)
	}
	_, err := openState(t, StateOptions{Dir: dir}).Store(t.Context())
	checkStateProblem(t, err, false, "test.lock")
	if text, err := os.ReadFile(precious); string(text) != "precious" || err != nil {
		t.Errorf("the file behind the link holds %q, %v", text, err)
	}
}

// The readiness probe gives up after 2.5 s, so a database that somebody else keeps
// locked must be reported before.
func TestCheckDoesNotWaitForALockedDatabase(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "test.sqlite3")
	first := OpenState(t.Context(), StateOptions{Dir: dir, Environment: "test"})
	mustStore(t, first)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	holder, err := sql.Open("sqlite3", path+"?_txlock=exclusive")
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Close()
	locked, err := holder.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = locked.Rollback() }()
	err = openState(t, StateOptions{Dir: dir}).Check(t.Context())
	checkStateProblem(t, err, true, "still being opened")
}
