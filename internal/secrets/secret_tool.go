package secrets

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// maxSecretToolValue is in bytes. secret-tool cuts longer values off and still
// exits with 0.
const maxSecretToolValue = 8191

// secretTool is the command of the Secret Service on Linux. Values travel on stdin
// and stdout only.
type secretTool struct {
	// path finds the command, at each use: it may be installed meanwhile.
	path func() (string, error)
}

func (secretTool) name() string { return "keyring (Secret Service, through secret-tool)" }

func (t secretTool) find() error {
	_, err := t.path()
	return err
}

func (t secretTool) lookup(ctx context.Context, key string) (string, bool, error) {
	result, err := t.run(ctx, "", "lookup", "service", service, "key", key)
	switch {
	case err != nil:
		return "", false, err
	case result.exit == 0:
		return strings.TrimRight(result.stdout, whiteSpace), true, nil
	case result.stderr == "":
		return "", false, nil
	default:
		return "", false, secretToolReason(result)
	}
}

func (t secretTool) store(ctx context.Context, key, value string) error {
	if len(value) > maxSecretToolValue {
		return fmt.Errorf("secret-tool takes at most %d bytes and the entry has %d; an encrypted file has no such limit", maxSecretToolValue, len(value))
	}
	result, err := t.run(ctx, value, "store", "--label=Hostr "+key, "service", service, "key", key)
	if err == nil && (result.exit != 0 || result.stderr != "") {
		err = secretToolReason(result)
	}
	return err
}

func (t secretTool) clear(ctx context.Context, key string) error {
	result, err := t.run(ctx, "", "clear", "service", service, "key", key)
	if err == nil && result.exit != 0 {
		err = secretToolReason(result)
	}
	return err
}

// list reads the attributes, which secret-tool writes to stderr up to 0.20 and to
// stdout later. It prints the values too, which stay in this function.
func (t secretTool) list(ctx context.Context) ([]string, error) {
	result, err := t.run(ctx, "", "search", "--all", "service", service)
	if err != nil {
		return nil, err
	}
	var keys []string
	for line := range strings.Lines(result.stdout + "\n" + result.stderr) {
		if key, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "attribute.key = "); ok {
			keys = append(keys, key)
		}
	}
	if result.exit != 0 && result.stderr != "" {
		return nil, secretToolReason(result)
	}
	return keys, nil
}

func (t secretTool) run(ctx context.Context, stdin string, args ...string) (commandResult, error) {
	path, err := t.path()
	if err != nil {
		return commandResult{}, err
	}
	return runCommand(ctx, stdin, path, args...)
}

// secretToolReasons are the failures whose words are known; those marked absent
// mean that no keyring runs.
var secretToolReasons = []struct {
	words  string
	absent bool
	reason string
}{
	{"autolaunch D-Bus", true, "there is no D-Bus session to find one in"},
	{"dbus-launch", true, "there is no D-Bus session to find one in"},
	{"Could not connect", true, "the D-Bus session cannot be reached"},
	{"not provided by any .service", true, "no Secret Service runs"},
	{"locked", false, "the keyring is locked"},
	{"dismissed", false, "the question to unlock the keyring was dismissed"},
}

// secretToolReason does not repeat what the command said, which a value might be in.
func secretToolReason(result commandResult) error {
	for _, known := range secretToolReasons {
		if !strings.Contains(result.stderr, known.words) {
			continue
		}
		if known.absent {
			return fmt.Errorf("%w answers: %s", errNoKeyring, known.reason)
		}
		return errors.New(known.reason)
	}
	return fmt.Errorf("secret-tool ended with status %d", result.exit)
}
