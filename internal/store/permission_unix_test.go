//go:build unix

package store

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// TestFileModes is not parallel: the umask belongs to the process.
func TestFileModes(t *testing.T) {
	for _, umask := range []int{0, 0o022, 0o777} {
		dir := t.TempDir()
		path := filepath.Join(dir, "test.sqlite3")
		before := syscall.Umask(umask)
		s, err := Open(t.Context(), path)
		if err == nil {
			err = s.VerifiedEvents().Remember(t.Context(), keys(0, 1))
		}
		syscall.Umask(before)
		if err != nil {
			t.Fatal(err)
		}
		for _, suffix := range []string{"", "-wal", "-shm"} {
			info, err := os.Stat(path + suffix)
			if err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("umask %03o: %s: %v %v", umask, suffix, info, err)
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestWithoutPermission runs as a user whom permissions bind: root is not.
func TestWithoutPermission(t *testing.T) {
	if os.Getuid() == 0 {
		rerunUnprivileged(t)
		return
	}
	ours := filled(t)
	upstream := newPath(t)
	raw := openRaw(t, upstream)
	execute(t, raw, "CREATE TABLE t (x)")
	if err := raw.Close(); err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{"ours": ours, "of the old daemon": upstream} {
		for _, mode := range []struct{ file, directory os.FileMode }{{0o400, 0o700}, {0o000, 0o700}, {0o600, 0o500}, {0o400, 0o500}} {
			t.Run(fmt.Sprintf("%s %03o in %03o", name, mode.file, mode.directory), func(t *testing.T) {
				changeModes(t, path, mode.file, mode.directory)
				defer changeModes(t, path, 0o600, 0o700)
				s, err := Open(t.Context(), path)
				if err == nil {
					_ = s.Close()
				}
				checkProblem(t, err, path, false, "may not be written by this user", "--state-dir")
			})
		}
		openStore(t, path)
	}
	readOnly := t.TempDir()
	changeModes(t, readOnly, 0o500, 0o700)
	_, err := Open(t.Context(), filepath.Join(readOnly, "new.sqlite3"))
	checkProblem(t, err, readOnly, false, "may not be written by this user")
	changeModes(t, readOnly, 0o700, 0o700)
}

func changeModes(t *testing.T, path string, mode, directory os.FileMode) {
	t.Helper()
	if err := errors.Join(os.Chmod(path, mode), os.Chmod(filepath.Dir(path), directory)); err != nil {
		t.Fatal(err)
	}
}

// rerunUnprivileged runs the calling test again, as nobody, from a place nobody may read.
func rerunUnprivileged(t *testing.T) {
	t.Helper()
	const nobody = 65534
	dir, err := os.MkdirTemp("", "unprivileged")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	binary, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(dir, "test")
	if err := os.WriteFile(copied, binary, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, copied} {
		if err := os.Chown(path, nobody, nobody); err != nil {
			t.Skipf("cannot become another user here: %v", err)
		}
	}
	again := exec.Command(copied, "-test.run=^"+t.Name()+"$", "-test.v")
	again.Dir = dir
	again.Env = append(os.Environ(), "TMPDIR="+dir, "HOME="+dir)
	again.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	if out, err := again.CombinedOutput(); err != nil {
		t.Errorf("as another user: %v\n%s", err, out)
	}
}
