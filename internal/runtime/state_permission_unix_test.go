//go:build unix

package runtime

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// TestStateDirectoryWithoutPermission runs as a user whom permissions bind: root is not.
func TestStateDirectoryWithoutPermission(t *testing.T) {
	if os.Getuid() == 0 {
		rerunUnprivileged(t)
		return
	}
	chmod := func(path string, mode os.FileMode) {
		t.Helper()
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	parent := t.TempDir()
	chmod(parent, 0o500)
	s := openState(t, StateOptions{Dir: filepath.Join(parent, "a", "state")})
	_, err := s.Store(t.Context())
	checkStateProblem(t, err, false, parent, "may not be used by this user", "--state-dir")
	checkStateProblem(t, s.Check(t.Context()), false, "may not be used by this user")
	chmod(parent, 0o700)
	mustStore(t, s)

	dir := t.TempDir()
	for _, mode := range []os.FileMode{0o500, 0o000} {
		chmod(dir, mode)
		s := openState(t, StateOptions{Dir: dir})
		_, err := s.Store(t.Context())
		checkStateProblem(t, err, false, dir, "may not be used by this user")
		chmod(dir, 0o700)
		mustStore(t, s)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(filepath.Join(dir, "test.lock")); err != nil {
			t.Fatal(err)
		}
	}
}

// rerunUnprivileged runs the calling test again as nobody, from a copy of the binary.
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
