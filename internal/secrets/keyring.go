package secrets

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"hostr-daemon/internal/fault"
)

// service is the name all entries stand under in a keyring, and was the old
// daemon's. It holds no environment: all environments share their entries there
// (spec 11 §5.1).
const service = "network.hostr.cli"

// probeKey is an entry that never exists.
const probeKey = "hostr-daemon/check"

// errNoKeyring is in the error of a tool when there is no keyring to ask.
var errNoKeyring = errors.New("no keyring")

// keyringTool is the operating system's command for its keyring.
type keyringTool interface {
	// find fails if the command is not there.
	find() error
	// lookup returns an entry; ok is false if the keyring says that it has none.
	lookup(ctx context.Context, key string) (value string, ok bool, err error)
	store(ctx context.Context, key, value string) error
	// clear removes an entry that exists.
	clear(ctx context.Context, key string) error
	// list returns the keys of all entries of the service.
	list(ctx context.Context) ([]string, error)
	// name of the keyring, for people.
	name() string
}

// keyring is the keyring of the operating system.
type keyring struct {
	tool keyringTool
	// turn holds one token, which the update that runs takes.
	turn chan struct{}
}

func newKeyring(goos string) *keyring {
	var tool keyringTool
	switch goos {
	case "linux":
		tool = secretTool{path: lookPath("secret-tool")}
	case "darwin":
		tool = keychain{path: lookPath("/usr/bin/security")}
	default:
		tool = noTool{}
	}
	return &keyring{tool: tool, turn: make(chan struct{}, 1)}
}

// read finds nothing where there is no keyring (spec 11 §5.1). A keyring that is
// locked or does not answer is an error: silence is not absence.
func (k *keyring) read(ctx context.Context, key string) (string, bool, error) {
	value, ok, err := k.tool.lookup(ctx, key)
	switch {
	case errors.Is(err, errNoKeyring):
		return "", false, nil
	case err != nil:
		return "", false, k.problem("read from", err)
	default:
		return value, ok, nil
	}
}

func (k *keyring) update(ctx context.Context, key string, change Change) error {
	select {
	case k.turn <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("waiting for the keyring: %w", context.Cause(ctx))
	}
	defer func() { <-k.turn }()
	old, stored, err := k.read(ctx, key)
	if err != nil {
		return err
	}
	value, keep, err := change(old, stored)
	switch {
	case err != nil:
		return err
	case keep && !(stored && value == old):
		err = k.tool.store(ctx, key, value)
	case !keep && stored:
		err = k.tool.clear(ctx, key)
	}
	if errors.Is(err, errNoKeyring) {
		return noBackend(err)
	}
	if err != nil {
		return k.problem("written to", err)
	}
	return nil
}

func (k *keyring) keys(ctx context.Context) ([]string, error) {
	keys, err := k.tool.list(ctx)
	switch {
	case errors.Is(err, errNoKeyring):
		return nil, nil
	case err != nil:
		return nil, k.problem("read from", err)
	default:
		slices.Sort(keys)
		return slices.Compact(keys), nil
	}
}

func (k *keyring) check(ctx context.Context) error {
	_, _, err := k.tool.lookup(ctx, probeKey)
	switch {
	case errors.Is(err, errNoKeyring):
		return noBackend(err)
	case err != nil:
		return k.problem("read from", err)
	default:
		return nil
	}
}

func (k *keyring) place() Place {
	if k.tool.find() != nil {
		return Place{None, ""}
	}
	return Place{Keyring, k.tool.name()}
}

func (k *keyring) problem(action string, err error) error {
	if errors.Is(err, context.Canceled) {
		return fmt.Errorf("the keyring was not waited for: %w", err)
	}
	return fault.New(fault.UnexpectedError, "A secret could not be %s the %s: %w.", action, k.tool.name(), err).
		WithHint("Unlock the keyring and try again. On a machine without a desktop, set " + keyVariable + " for an encrypted file instead.").
		Transient()
}

// noTool stands where the operating system has no keyring that the daemon knows.
type noTool struct{}

func (noTool) find() error {
	return fmt.Errorf("%w of this operating system is supported", errNoKeyring)
}
func (t noTool) lookup(context.Context, string) (string, bool, error) { return "", false, t.find() }
func (t noTool) store(context.Context, string, string) error          { return t.find() }
func (t noTool) clear(context.Context, string) error                  { return t.find() }
func (t noTool) list(context.Context) ([]string, error)               { return nil, t.find() }
func (noTool) name() string                                           { return "" }
