//go:build race

package sandbox

import (
	"context"
	"fmt"
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
	binary, err := relayBinary()
	if err != nil {
		return nil, err
	}
	return hostrrelay.Spawn(ctx, binary, serviceURL)
}

const (
	relayPackage = "hostr-daemon/cmd/hostr-sandbox"
	relayDirs    = "hostr-sandbox-race-" // then the process id, a dash and random digits
)

// relayBinary builds the command once for this process. Nothing tells a package
// when its test process ends, so each build sweeps away what ended ones left.
var relayBinary = sync.OnceValues(func() (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	sweep()
	dir, err := os.MkdirTemp("", relayDirs+strconv.Itoa(os.Getpid())+"-")
	if err != nil {
		return "", fmt.Errorf("relay process: %w", err)
	}
	binary := filepath.Join(dir, "hostr-sandbox")
	output, err := exec.CommandContext(ctx, "go", "build", "-race=false", "-o", binary, relayPackage).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("relay process: go build %s: %w: %s", relayPackage, err, strings.TrimSpace(string(output)))
	}
	return binary, nil
})

// sweep removes the binaries of processes that are gone.
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
