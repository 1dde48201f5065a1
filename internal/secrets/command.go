package secrets

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	// commandLimit leaves a person the time to unlock the keyring.
	commandLimit = 30 * time.Second
	// commandKill is how long a command that was told to end may hold its output.
	commandKill = time.Second

	whiteSpace = " \t\r\n"
)

// commandResult is what a command that ran to its end left.
type commandResult struct {
	stdout string
	stderr string
	exit   int
}

// lookPath returns a function that finds a command, as errNoKeyring if it is missing.
func lookPath(name string) func() (string, error) {
	return func() (string, error) {
		path, err := exec.LookPath(name)
		if err != nil {
			return "", fmt.Errorf("%w can be asked: %s is not installed", errNoKeyring, filepath.Base(name))
		}
		return path, nil
	}
}

// runCommand runs a keyring command. Errors hold neither its arguments nor its
// input or output.
func runCommand(ctx context.Context, stdin, path string, args ...string) (commandResult, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, commandLimit, fmt.Errorf("no answer within %v", commandLimit))
	defer cancel()
	var stdout, stderr bytes.Buffer
	command := exec.CommandContext(ctx, path, args...)
	command.Env = commandEnvironment()
	command.Stdin, command.Stdout, command.Stderr = strings.NewReader(stdin), &stdout, &stderr
	command.WaitDelay = commandKill
	err := command.Run()
	result := commandResult{stdout: stdout.String(), stderr: strings.TrimSpace(stderr.String())}
	var exit *exec.ExitError
	switch {
	case err == nil:
		return result, nil
	case ctx.Err() != nil:
		return commandResult{}, context.Cause(ctx)
	case errors.As(err, &exit) && exit.Exited():
		result.exit = exit.ExitCode()
		return result, nil
	default:
		return commandResult{}, fmt.Errorf("%s could not be run", filepath.Base(path))
	}
}

// commandEnvironment is ours with messages in English and without the daemon's key.
func commandEnvironment() []string {
	ours := slices.DeleteFunc(os.Environ(), func(variable string) bool {
		return strings.HasPrefix(variable, keyVariable+"=")
	})
	return append(ours, "LC_ALL=C")
}
