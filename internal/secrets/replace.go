package secrets

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// temporarySuffix makes the name of a file that is being written. The name is
// fixed, so that a writer that was killed leaves at most one behind, which the
// next one removes: it holds secrets.
const temporarySuffix = ".tmp"

// replaceFile gives the file its new content, on the disk when it returns. Whoever
// reads it, after a crash too, finds the old content or the new one. Only its
// owner can read it at any time. The caller holds the lock of the folder.
func replaceFile(path string, content []byte) error {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	temporary := path + temporarySuffix
	if err := removeIfThere(temporary); err != nil {
		return err
	}
	err := writeNew(temporary, content)
	if err == nil {
		keepOwner(temporary, path)
		err = os.Rename(temporary, path)
	}
	if err != nil {
		return errors.Join(err, removeIfThere(temporary))
	}
	return syncFolder(filepath.Dir(path))
}

func writeNew(path string, content []byte) error {
	created, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = created.Write(content)
	if err == nil {
		err = created.Sync()
	}
	return errors.Join(err, created.Close())
}

// makeFolder creates a missing folder, with parents, for its owner only.
func makeFolder(path string) error {
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(path))
}

// syncFolder makes the names in a folder survive a loss of power.
func syncFolder(path string) error {
	if runtime.GOOS == "windows" { // which has no such call
		return nil
	}
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// removeFile removes a file for good, as far as a file system can.
func removeFile(path string) error {
	if err := removeIfThere(path); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(path))
}
