//go:build unix

package secrets

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// stranger is the user without rights, nobody.
const stranger = 65534

func init() { roles["stranger"] = readAsStranger }

// readAsStranger is a child that reads a plain file, and writes to it, as somebody else
// than the test.
func readAsStranger() int {
	if err := errors.Join(syscall.Setgid(stranger), syscall.Setuid(stranger)); err != nil {
		fmt.Println(err)
		return 1
	}
	store := fileStore(PlainFile, os.Getenv("FOLDER"))
	value, _, err := store.Read(context.Background(), "auth")
	fmt.Printf("read %q: %v\n", value, err)
	fmt.Printf("written: %v\n", store.Write(context.Background(), "auth", "overwritten"))
	return 0
}

// TestSecretsOfSomebodyElse has a file of another user: what it allows is done, what it
// does not is told, and it is never changed by accident.
func TestSecretsOfSomebodyElse(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can be somebody else")
	}
	for name, test := range map[string]struct {
		mode fs.FileMode
		want []string
	}{
		"closed":   {0o600, []string{`read "": `, "cannot be read: permission denied", "written: "}},
		"readable": {0o644, []string{`read "kept": <nil>`, "cannot be written: permission denied"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			for _, open := range []string{folder, filepath.Dir(folder)} {
				if err := os.Chmod(open, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			path := filepath.Join(folder, plainName)
			mustWrite(t, fileStore(PlainFile, folder), "auth", "kept")
			if err := os.Chmod(path, test.mode); err != nil {
				t.Fatal(err)
			}
			output, err := child(t, "stranger", "FOLDER="+folder).Output()
			if err != nil {
				t.Fatalf("%v: %s", err, output)
			}
			for _, want := range test.want {
				if !strings.Contains(string(output), want) {
					t.Errorf("the output lacks %q:\n%s", want, output)
				}
			}
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != test.mode {
				t.Errorf("the file's mode is %v now, %v", info.Mode(), err)
			}
			if got := mustRead(t, fileStore(PlainFile, folder), "auth"); got != "kept" {
				t.Errorf("the file holds %q now", got)
			}
		})
	}
}

// TestRootLeavesTheOwner writes to somebody else's file as root, who may.
func TestRootLeavesTheOwner(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root may write to what is somebody else's")
	}
	folder := t.TempDir()
	path := filepath.Join(folder, plainName)
	store := fileStore(PlainFile, folder)
	mustWrite(t, store, "auth", "before")
	if err := os.Chown(path, stranger, stranger); err != nil {
		t.Fatal(err)
	}
	mustWrite(t, store, "auth", "after")
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if owner := info.Sys().(*syscall.Stat_t); owner.Uid != stranger || owner.Gid != stranger || info.Mode().Perm() != 0o600 {
		t.Errorf("the file belongs to %d:%d with mode %v", owner.Uid, owner.Gid, info.Mode())
	}
}
