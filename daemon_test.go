package hostrdaemon

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	// What the daemon is built of: without these, go test would not know that its
	// remembered results of these tests are stale.
	_ "hostr-daemon/internal/actions"
	_ "hostr-daemon/internal/daemon"
	_ "hostr-daemon/internal/doctor"
	_ "hostr-daemon/internal/logsink"
	_ "hostr-daemon/internal/terminal"
)

var built struct {
	once sync.Once
	path string
	err  error
}

// daemonBinary builds cmd/hostr-daemon once for all tests of this package.
// HOSTR_DAEMON names a binary to test instead.
func daemonBinary(t *testing.T) string {
	t.Helper()
	built.once.Do(func() {
		if built.path = os.Getenv("HOSTR_DAEMON"); built.path != "" {
			return
		}
		built.path = filepath.Join(scratch, "hostr-daemon")
		out, err := exec.Command("go", "build", "-o", built.path, "./cmd/hostr-daemon").CombinedOutput()
		if err != nil {
			built.err = fmt.Errorf("%w\n%s", err, out)
		}
	})
	if built.err != nil {
		t.Fatalf("building hostr-daemon: %v", built.err)
	}
	return built.path
}

// scratch outlives single tests, which share the built binary.
var scratch string

func TestMain(m *testing.M) {
	var err error
	if scratch, err = os.MkdirTemp("", "hostr-daemon-test-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(scratch)
	os.Exit(code)
}

// TestBridge runs the Node side of the tests against the built daemon.
func TestBridge(t *testing.T) {
	t.Parallel()
	node, err := exec.LookPath("node")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("node is not installed: CI must run the bridge test")
		}
		t.Skip("node is not installed; the bridge test needs Node 18 or later")
	}
	const script = "test/bridge.test.mjs"
	if _, err := os.Stat(script); err != nil { // seen by go test, so that a change of it counts
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), node, "--test", script)
	command.Env = append(os.Environ(), "HOSTR_DAEMON="+daemonBinary(t))
	if out, err := command.CombinedOutput(); err != nil {
		t.Errorf("node --test: %v\n%s", err, out)
	}
}
