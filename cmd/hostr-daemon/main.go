// Command hostr-daemon serves Hostr actions in lines of JSON on stdin and stdout
// (spec 10), and lets a person call, describe and examine the same things from a
// terminal.
//
// It wires the parts together and holds no logic of theirs.
//
// Exit codes:
//
//	0    stdin ended and everything was answered; the call succeeded; the doctor
//	     found nothing that stops the daemon; private keys were moved, or there were
//	     none to move; help or the version was printed
//	1    the call failed, the doctor found what stops the daemon, private keys could
//	     not be moved, or serving failed
//	2    the command line makes no sense: an unknown option, environment or action,
//	     a missing value, an input that is none
//	130  ended by SIGINT (Ctrl-C); 143 by SIGTERM
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/alecthomas/kong"

	"hostr-daemon/internal/environment"
)

// version is set when a release is built: -ldflags "-X main.version=1.2.3".
var version = "development"

// Exit codes; a signal ends with exitSignal plus its number.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
	exitSignal = 128
)

// commandLine is the grammar of spec 10 §1.1 with the commands for people beside it.
type commandLine struct {
	Options

	Serve    serveCommand    `cmd:"" default:"withargs" help:"Serve requests from stdin until it ends (what happens without a command)."`
	Call     callCommand     `cmd:"" help:"Run one action and print its result."`
	Describe describeCommand `cmd:"" help:"Show what can be called, or one action in full."`
	Doctor   doctorCommand   `cmd:"" help:"Check what works from here: state, accounts, relays, Blossom, geocoder, chains, swaps."`

	MoveSecrets moveSecretsCommand `cmd:"" help:"Move private keys between keyring, encrypted file and plain file."`
}

func main() {
	os.Exit(run(os.Args[1:]))
}

func run(arguments []string) int {
	var parsed commandLine
	exited := -1
	parser, err := kong.New(&parsed,
		kong.Name("hostr-daemon"),
		kong.Description("Hostr for AI assistants: stays, offers, bookings and messages over Nostr, in lines of JSON.\n\nProgram parents write one request per line to stdin and read one answer per line from stdout; logs go to stderr."),
		kong.Vars{"version": "hostr-daemon " + version},
		kong.Help(printHelp),
		kong.Exit(func(code int) { exited = code }),
	)
	if err != nil {
		return exitCode(fmt.Errorf("the command line's grammar: %w", err))
	}
	dropBlankVariables(parser.Model)
	context, err := parser.Parse(positionalsLast(parser.Model, arguments))
	if exited >= 0 {
		return exited // --help or --version has printed what was asked for
	}
	if err == nil {
		_, err = environment.Resolve(parsed.Env)
	}
	if err != nil {
		return exitCode(usageError{err})
	}
	return exitCode(context.Run(&parsed.Options))
}

// usageError is what is wrong with the command line.
type usageError struct{ error }

// exit carries the exit code of a command that has said all there is to say.
type exit int

func (e exit) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// exitCode says what went wrong, if that was not said yet, and returns the code.
func exitCode(err error) int {
	var said exit
	var usage usageError
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &said):
		return int(said)
	case errors.As(err, &usage):
		fmt.Fprintf(os.Stderr, "hostr-daemon: %v\nSee hostr-daemon --help.\n", err)
		return exitUsage
	default:
		fmt.Fprintln(os.Stderr, "hostr-daemon:", err)
		return exitFailed
	}
}
