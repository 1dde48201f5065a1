package secrets

import (
	"context"
	"fmt"
	"strings"
)

// The statuses of security are the lowest bytes of the keychain's error numbers.
const (
	keychainNotFound    = 44 // errSecItemNotFound
	keychainNotPrompted = 36 // errSecInteractionNotAllowed
	keychainDismissed   = 128
)

// keychain is the command of the macOS keychain. A value is an argument of the
// command that stores it, where other programs of the same user can see it for a
// moment: the command takes it in no other way without a terminal.
type keychain struct {
	path func() (string, error)
}

func (keychain) name() string { return "macOS keychain" }

func (k keychain) find() error {
	_, err := k.path()
	return err
}

func (k keychain) lookup(ctx context.Context, key string) (string, bool, error) {
	result, err := k.run(ctx, "find-generic-password", "-s", service, "-a", key, "-w")
	switch {
	case err != nil:
		return "", false, err
	case result.exit == 0:
		return strings.TrimRight(result.stdout, whiteSpace), true, nil
	case result.exit == keychainNotFound:
		return "", false, nil
	default:
		return "", false, keychainReason(result)
	}
}

// store updates the item in place. Only if that fails, as for an item that another
// program may not touch, it is deleted first: in between a crash would lose it.
func (k keychain) store(ctx context.Context, key, value string) error {
	add := []string{"add-generic-password", "-s", service, "-a", key, "-w", value, "-U"}
	result, err := k.run(ctx, add...)
	if err != nil || result.exit == 0 {
		return err
	}
	if _, err = k.run(ctx, "delete-generic-password", "-s", service, "-a", key); err != nil {
		return err
	}
	result, err = k.run(ctx, add...)
	if err == nil && result.exit != 0 {
		err = keychainReason(result)
	}
	return err
}

func (k keychain) clear(ctx context.Context, key string) error {
	result, err := k.run(ctx, "delete-generic-password", "-s", service, "-a", key)
	if err == nil && result.exit != 0 && result.exit != keychainNotFound {
		err = keychainReason(result)
	}
	return err
}

// list reads the attributes of all items; their values are not asked for.
func (k keychain) list(ctx context.Context) ([]string, error) {
	result, err := k.run(ctx, "dump-keychain")
	if err == nil && result.exit != 0 {
		err = keychainReason(result)
	}
	if err != nil {
		return nil, err
	}
	return keychainAccounts(result.stdout), nil
}

// keychainAccounts returns the accounts of the service in a dump: each item begins with
// a line "keychain:", and its attributes are in alphabetical order.
func keychainAccounts(dump string) []string {
	var accounts []string
	account := ""
	for line := range strings.Lines(dump) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "keychain:") {
			account = ""
		}
		if value, ok := strings.CutPrefix(line, `"acct"<blob>="`); ok {
			account = strings.TrimSuffix(value, `"`)
		}
		if line == `"svce"<blob>="`+service+`"` && account != "" {
			accounts = append(accounts, account)
		}
	}
	return accounts
}

func (k keychain) run(ctx context.Context, args ...string) (commandResult, error) {
	path, err := k.path()
	if err != nil {
		return commandResult{}, err
	}
	return runCommand(ctx, "", path, args...)
}

func keychainReason(result commandResult) error {
	switch result.exit {
	case keychainNotPrompted:
		return fmt.Errorf("it is locked, and no question to unlock it can be shown")
	case keychainDismissed:
		return fmt.Errorf("the question to unlock it was dismissed")
	default:
		return fmt.Errorf("security ended with status %d", result.exit)
	}
}
