package store

import (
	"errors"
	"os"

	"hostr-daemon/internal/fault"
)

// createFile makes a missing database file, empty and readable by its owner only;
// SQLite gives its -wal and -shm files the same mode. What exists is left as it is.
func createFile(path string) error {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		return errors.Join(file.Chmod(0o600), file.Close())
	}
	if !errors.Is(err, os.ErrExist) {
		return fileProblem(path, err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return fileProblem(path, err)
	}
	if !info.Mode().IsRegular() {
		return fault.New(fault.UnexpectedError,
			"The database %q is not a file but %s: move it away, or use another --state-dir.", path, kindOf(info.Mode()))
	}
	// SQLite would open a file it may only read and fail at the first write.
	if err := checkWritable(path); err != nil {
		return fileProblem(path, err)
	}
	return nil
}

func kindOf(mode os.FileMode) string {
	if mode.IsDir() {
		return "a directory"
	}
	return "a device, pipe or socket"
}
