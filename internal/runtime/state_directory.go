package runtime

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"syscall"

	"hostr-daemon/internal/fault"
)

// defaultStateDir lies in the home directory; its name is that of the old daemon.
const defaultStateDir = ".hostr-cli"

// ResolveStateDir returns the absolute path of the state directory. "~" and a leading
// "~/" stand for the home directory, empty for .hostr-cli in it; without a home
// directory the current one takes its place (spec 10 §1.1). A nil getenv is os.Getenv.
func ResolveStateDir(dir string, getenv func(string) string) (string, error) {
	if getenv == nil {
		getenv = os.Getenv
	}
	home := getenv("HOME")
	if home == "" && goruntime.GOOS == "windows" {
		home = getenv("USERPROFILE")
	}
	if home == "" {
		home = "."
	}
	switch below, inHome := strings.CutPrefix(dir, "~/"); {
	case strings.TrimSpace(dir) == "":
		dir = filepath.Join(home, defaultStateDir)
	case dir == "~":
		dir = home
	case inHome:
		dir = filepath.Join(home, below)
	}
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return "", fault.New(fault.UnexpectedError,
			"The state directory %q cannot be found because the current directory is gone (%w): give a --state-dir that starts with /.", dir, err)
	}
	return absolute, nil
}

// prepareDirectory makes the directory with its missing parents, for its owner only.
// One that exists is left as it is.
func (s *State) prepareDirectory(dir string) error {
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		if err = os.MkdirAll(dir, 0o700); err == nil {
			return nil
		}
	}
	if err != nil {
		return directoryProblem(dir, err)
	}
	if !info.IsDir() {
		return directoryProblem(dir, syscall.ENOTDIR)
	}
	if others := info.Mode().Perm() & 0o077; others != 0 && goruntime.GOOS != "windows" && s.warned.CompareAndSwap(false, true) {
		s.options.Logger.Warn().Str("stateDir", dir).Stringer("mode", info.Mode().Perm()).
			Msg("other users of this machine can look into the state directory; chmod 700 keeps them out")
	}
	return nil
}

func directoryProblem(dir string, err error) error {
	reason := err
	var operation *fs.PathError
	if errors.As(err, &operation) {
		reason = operation.Err
	}
	switch {
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, fs.ErrExist):
		return fault.New(fault.UnexpectedError,
			"The state directory %q cannot be used because it or a part of its path is not a directory (%w): move that away, or use another --state-dir.", dir, reason)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return fault.New(fault.UnexpectedError,
			"The state directory %q may not be used by this user (%w): change its owner or mode, or use another --state-dir.", dir, reason)
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fault.New(fault.UnexpectedError,
			"There is no space left for the state directory %q (%w): free some, then try again.", dir, reason).Transient()
	}
	return fault.New(fault.UnexpectedError,
		"The state directory %q cannot be used (%w): mend that, or use another --state-dir.", dir, reason)
}
