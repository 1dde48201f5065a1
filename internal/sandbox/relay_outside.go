//go:build race

package sandbox

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rs/zerolog"

	"hostr-daemon/internal/sandbox/hostrrelay"
	"hostr-daemon/internal/sandbox/relayproxy"
)

// openRelay runs the relay in a process of its own, built without the race
// detector, which would report khatru.
func openRelay(ctx context.Context, serviceURL string, _ zerolog.Logger) (relayproxy.Backend, error) {
	built, err := relayBinary()
	if err != nil {
		return nil, err
	}
	// On a cold build cache the build alone uses up the time the caller gave.
	starting, cancel := context.WithTimeout(context.WithoutCancel(ctx), startTimeout)
	defer cancel()
	return hostrrelay.Spawn(starting, built.path, serviceURL)
}

// startTimeout is far above what the start of a process takes on a busy machine.
const startTimeout = time.Minute

const (
	relayPackage = "hostr-daemon/cmd/hostr-sandbox"
	relayDirs    = "hostr-sandbox-race-" // then the process id, a dash and random digits
)

// binary is a built command. Its directory is removed when alive is closed.
type binary struct {
	path  string
	alive io.Closer // referred to so that only the end of the process closes it
}

// relayBinary builds the command once for this process.
var relayBinary = sync.OnceValues(func() (binary, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	sweep()
	dir, err := os.MkdirTemp("", relayDirs+strconv.Itoa(os.Getpid())+"-")
	if err != nil {
		return binary{}, fmt.Errorf("relay process: %w", err)
	}
	path := filepath.Join(dir, "hostr-sandbox")
	output, err := exec.CommandContext(ctx, "go", "build", "-race=false", "-o", path, relayPackage).CombinedOutput()
	if err != nil {
		return binary{}, fmt.Errorf("relay process: go build %s: %w: %s", relayPackage, err, strings.TrimSpace(string(output)))
	}
	alive, err := removeAfterwards(dir)
	return binary{path, alive}, err
})

// removeAfterwards has a shell remove dir when the returned end of a pipe closes,
// as it does with this process: nothing else tells when a test process ends.
func removeAfterwards(dir string) (io.Closer, error) {
	shell := exec.Command("sh", "-c", `trap "" INT TERM HUP; read -r _; rm -rf -- "$1"`, "sh", dir)
	alive, err := shell.StdinPipe()
	if err == nil {
		err = shell.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("relay process: %w", err)
	}
	return alive, nil
}

// sweep removes the binaries of processes that are gone, should one be left.
func sweep() {
	dirs, _ := filepath.Glob(filepath.Join(os.TempDir(), relayDirs+"*"))
	for _, dir := range dirs {
		owner, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), relayDirs), "-")
		pid, err := strconv.Atoi(owner)
		if err != nil {
			continue
		}
		process, err := os.FindProcess(pid)
		if err != nil || process.Signal(syscall.Signal(0)) != nil {
			_ = os.RemoveAll(dir)
		}
	}
}
