package environment

import (
	"os"
	"testing"
)

// makePipe makes a directory: this system has no pipes among its files.
func makePipe(t *testing.T, path string) {
	t.Helper()
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
}
