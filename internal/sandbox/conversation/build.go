package conversation

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// daemonPackage is what "go build" is told to build.
const daemonPackage = "hostr-daemon/cmd/hostr-daemon"

// buildTimeout is generous: the first build on a machine compiles SQLite.
const buildTimeout = 15 * time.Minute

// BuildDaemon builds the daemon into dir, tells about it on progress, and returns
// the path of the binary.
func BuildDaemon(ctx context.Context, dir string, progress io.Writer) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, buildTimeout)
	defer cancel()
	binary := filepath.Join(dir, "hostr-daemon")
	if runtime.GOOS == "windows" {
		binary += ".exe"
	}
	fmt.Fprintln(progress, "Building hostr-daemon (the first time takes a minute or two) …")
	began := time.Now()
	output, err := exec.CommandContext(ctx, "go", "build", "-o", binary, daemonPackage).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("hostr-daemon cannot be built here (run this inside the repository, or name a binary "+
			"with --daemon): %w\n%s", err, strings.TrimSpace(string(output)))
	}
	fmt.Fprintf(progress, "Built in %s.\n", time.Since(began).Round(100*time.Millisecond))
	return binary, nil
}
