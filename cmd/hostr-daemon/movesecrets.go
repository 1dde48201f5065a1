package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/rs/zerolog"

	"hostr-daemon/internal/environment"
	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/runtime"
	"hostr-daemon/internal/secrets"
	"hostr-daemon/internal/terminal"
)

// moveSecretsCommand says both places by the names that people type.
type moveSecretsCommand struct {
	To   string `required:"" enum:"keyring,encrypted-file,plain-file" placeholder:"PLACE" help:"Where they shall rest: keyring, encrypted-file (with the key given as for serving) or plain-file."`
	From string `enum:",keyring,encrypted-file,plain-file" default:"" placeholder:"PLACE" help:"Where they rest; needed only when they rest in several other places."`
}

// Help is what --help tells beside the options.
func (m *moveSecretsCommand) Help() string {
	return "Private keys, seeds and wallet connections of the environment are copied, read back, and then removed where they were. " +
		"No daemon may run on the state directory meanwhile. A move that is cut off loses nothing: run it again. " +
		"The keyring holds those of all environments; moving out of it moves them all."
}

// Run moves the secrets while it holds the state directory, and tells how the daemon
// finds them from now on.
func (m *moveSecretsCommand) Run(options *Options) error {
	ctx, stop := endOnSignal()
	defer stop()
	moved, err := m.move(ctx, options)
	switch {
	case err == nil:
		return terminal.Print(os.Stdout, m.report(moved))
	case ctx.Err() != nil:
		return orSignal(ctx, err)
	}
	if err := terminal.Failure(os.Stderr, fault.From(err)); err != nil {
		return err
	}
	return exit(exitFailed)
}

func (m *moveSecretsCommand) move(ctx context.Context, options *Options) (moved secrets.Moved, err error) {
	if m.From == m.To {
		return secrets.Moved{}, fault.New(fault.UnexpectedError, "Private keys cannot be moved from %s to %s: that is one place.", m.From, m.To).
			WithHint("Leave --from out, or name the place where they rest now.")
	}
	named, err := environment.Resolve(options.Env)
	if err != nil {
		return secrets.Moved{}, err
	}
	places := options.secrets()
	places.Environment = named.Name
	if places.StateDir, err = runtime.ResolveStateDir(options.StateDir, os.Getenv); err != nil {
		return secrets.Moved{}, err
	}
	if err := mustExist(places.StateDir); err != nil {
		return secrets.Moved{}, err
	}
	state := runtime.OpenState(ctx, runtime.StateOptions{Dir: options.StateDir, Environment: named.Name, Logger: zerolog.Nop()})
	defer func() { err = errors.Join(err, state.Close()) }()
	if _, err := state.Store(ctx); err != nil {
		return secrets.Moved{}, err
	}
	return secrets.Move(ctx, places, secretsPlace(m.From), secretsPlace(m.To))
}

// mustExist keeps a slip in the name of the state directory from making one, in which
// there is nothing to move.
func mustExist(stateDir string) error {
	if _, err := os.Stat(stateDir); !errors.Is(err, fs.ErrNotExist) {
		return nil // what else is wrong with it is told by whoever opens it
	}
	return fault.New(fault.UnexpectedError, "No private keys were moved: there is no state directory %s.", stateDir).
		WithHint("Look at --state-dir and $HOSTR_STATE_DIR for a slip, or make the directory if it is meant to be new.")
}

// secretsPlace is the kind of a place by the name that people type.
func secretsPlace(name string) secrets.Kind {
	if name == "plain-file" {
		return secrets.PlainFile
	}
	return secrets.Kind(name)
}

// startLines tell how the daemon finds the secrets in a place.
var startLines = map[secrets.Kind]string{
	secrets.Keyring:       "Start hostr-daemon without a key and without --allow-insecure-file-secrets from now on; a bridge always allows the plain file and does not find them there.",
	secrets.EncryptedFile: "Start hostr-daemon with the same key from now on.",
	secrets.PlainFile:     "Start hostr-daemon with --allow-insecure-file-secrets and without a key from now on, as a bridge does.",
}

func (m *moveSecretsCommand) report(moved secrets.Moved) string {
	if moved.Entries == 0 {
		return fmt.Sprintf("Nothing to move: no private keys rest outside of %s.\n", moved.To.Where)
	}
	return fmt.Sprintf("Moved %d entries, %d of them sign-ins, from %s to %s.\n%s\n",
		moved.Entries, moved.Accounts, moved.From.Where, moved.To.Where, startLines[moved.To.Kind])
}
