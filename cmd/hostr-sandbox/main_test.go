package main_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// build builds the command as users do, without the race detector.
func build(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "hostr-sandbox")
	output, err := exec.Command("go", "build", "-race=false", "-o", binary, ".").CombinedOutput()
	if err != nil {
		t.Fatalf("go build: %v\n%s", err, output)
	}
	return binary
}

// output is what a command writes to stdout, by lines, until it is closed.
type output struct {
	*bufio.Reader
	io.Closer
}

// start runs the command with a temporary directory of its own.
func start(t *testing.T, binary string, arguments ...string) (command *exec.Cmd, stdin io.WriteCloser, stdout *output, temporary string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	temporary = t.TempDir()
	command = exec.CommandContext(ctx, binary, arguments...)
	command.Env = append(os.Environ(), "TMPDIR="+temporary)
	stdin, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	command.Stderr = &bytes.Buffer{}
	pipe, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	return command, stdin, &output{bufio.NewReader(pipe), pipe}, temporary
}

func TestCommand(t *testing.T) {
	t.Parallel()
	binary := build(t)

	t.Run("serve ends on SIGTERM and leaves nothing", func(t *testing.T) {
		t.Parallel()
		command, _, stdout, temporary := start(t, binary, "serve", "--listings", "20", "--seed", "4")
		for {
			line, err := stdout.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(line, "Ctrl-C") {
				break
			}
		}
		if err := command.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		rest, err := io.ReadAll(stdout)
		if err != nil || !bytes.Contains(rest, []byte("The market is closed.")) {
			t.Errorf("last words %q, %v", rest, err)
		}
		if err := command.Wait(); err != nil {
			t.Errorf("it ended with %v", err)
		}
		if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
			t.Errorf("left in the temporary directory: %v, %v", left, err)
		}
	})

	t.Run("a reader that leaves ends it in order", func(t *testing.T) {
		t.Parallel()
		silent := filepath.Join(t.TempDir(), "daemon")
		if err := os.WriteFile(silent, []byte("#!/bin/sh\nexec cat >/dev/null\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		for _, arguments := range [][]string{
			{"serve", "--listings", "20"},
			{"try", "--listings", "20", "--daemon", silent},
		} {
			command, _, stdout, temporary := start(t, binary, arguments...)
			for range 3 {
				if _, err := stdout.ReadString('\n'); err != nil {
					t.Fatal(err)
				}
			}
			if err := stdout.Close(); err != nil {
				t.Fatal(err)
			}
			if err := command.Wait(); err != nil || command.Stderr.(*bytes.Buffer).Len() > 0 {
				t.Errorf("%v ended with %v and said %q", arguments, err, command.Stderr)
			}
			if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
				t.Errorf("%v left in the temporary directory: %v, %v", arguments, left, err)
			}
		}
	})

	t.Run("relay ends with its parent", func(t *testing.T) {
		t.Parallel()
		command, stdin, stdout, _ := start(t, binary, "relay", "--service-url", "ws://127.0.0.1:1")
		line, err := stdout.ReadString('\n')
		if err != nil || !strings.HasPrefix(line, `{"url":"ws://127.0.0.1:`) {
			t.Errorf("first line %q, %v", line, err)
		}
		if err := stdin.Close(); err != nil {
			t.Fatal(err)
		}
		if err := command.Wait(); err != nil {
			t.Errorf("it ended with %v", err)
		}
	})

	t.Run("bad use is explained", func(t *testing.T) {
		t.Parallel()
		for arguments, want := range map[string]string{
			"try --daemon no-such-file":  "no-such-file",
			"serve --listings 200001":    "--listings must lie between 0 and 200000",
			"serve --relay-port nothing": "--relay-port",
			"try --listings=-1":          "--listings must lie between 0 and 200000",
			"sleep":                      "unexpected argument sleep",
			"":                           `expected one of "try", "serve"`,
		} {
			output, err := exec.Command(binary, strings.Fields(arguments)...).CombinedOutput()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != 2 || !strings.Contains(string(output), want) {
				t.Errorf("%s: %v, %s", arguments, err, output)
			}
		}
		help, err := exec.Command(binary, "--help").CombinedOutput()
		if err != nil || !bytes.Contains(help, []byte("try")) || bytes.Contains(help, []byte("relay")) {
			t.Errorf("help: %v\n%s", err, help)
		}
	})

	t.Run("try says what was wrong and fails", func(t *testing.T) {
		t.Parallel()
		deaf, err := exec.LookPath("true")
		if err != nil {
			t.Skip("no command to stand in for a daemon that ends at once")
		}
		command, _, stdout, temporary := start(t, binary, "try", "--listings", "20", "--daemon", deaf)
		output, err := io.ReadAll(stdout)
		if err != nil {
			t.Fatal(err)
		}
		if err := command.Wait(); command.ProcessState.ExitCode() != 1 {
			t.Errorf("it ended with %v", err)
		}
		if !bytes.Contains(output, []byte("What can you do?")) || !bytes.Contains(output, []byte("✗")) ||
			!bytes.Contains(output, []byte("The end of the daemon's log:")) {
			t.Errorf("output:\n%s", output)
		}
		if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
			t.Errorf("left in the temporary directory: %v, %v", left, err)
		}
	})
}
