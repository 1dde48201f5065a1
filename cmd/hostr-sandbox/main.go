// Command hostr-sandbox is a Hostr market on one machine: "try" shows what the
// daemon does on it, "serve" keeps it up for development. This file only reads
// the command line; internal/sandbox does the work.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"
	"github.com/rs/zerolog"

	"hostr-daemon/internal/sandbox"
	"hostr-daemon/internal/sandbox/conversation"
	"hostr-daemon/internal/sandbox/hostrrelay"
	"hostr-daemon/internal/sandbox/serve"
)

var (
	// errAnswers ends try when an answer was not right.
	errAnswers = errors.New("not every answer was right")
	// errUnread ends a command whose output nobody reads any more.
	errUnread = errors.New("nobody reads the output")
)

// Exit codes, as the daemon's.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

// How much of the daemon's log is shown after a failure: lines, and bytes of each.
const (
	shownLogLines = 25
	shownLogLine  = 400
)

// listingsWithStays is how many listings have bookings and reviews.
const listingsWithStays = 20

type commandLine struct {
	Verbose bool `help:"Log what the market does to stderr."`

	Try   tryCommand   `cmd:"" help:"Bring a market up, talk with the daemon, and check every answer."`
	Serve serveCommand `cmd:"" help:"Keep a market up and print how to use it."`
	Relay relayCommand `cmd:"" hidden:"" help:"Run the relay alone, driven over stdin (for tests)."`
}

// marketFlags are common to try and serve.
type marketFlags struct {
	Listings int   `default:"200" help:"Number of listings."`
	Seed     int64 `default:"1" help:"Decides all keys, texts and places."`
}

// Validate is called by kong when the command line is read.
func (f marketFlags) Validate() error {
	if f.Listings < 0 || f.Listings > 200_000 {
		return fmt.Errorf("--listings must lie between 0 and 200000")
	}
	return nil
}

type tryCommand struct {
	marketFlags
	Daemon string `type:"existingfile" placeholder:"PATH" help:"Binary of hostr-daemon; without it one is built."`
	Raw    bool   `help:"Show whole frames."`
}

// Run implements the command.
func (c tryCommand) Run(ctx context.Context, logger zerolog.Logger) (err error) {
	dir, err := os.MkdirTemp("", "hostr-sandbox-")
	if err != nil {
		return fmt.Errorf("no temporary directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	daemon := c.Daemon
	if daemon == "" {
		if daemon, err = conversation.BuildDaemon(ctx, dir, os.Stderr); err != nil {
			return err
		}
	}
	market, err := sandbox.Start(ctx, sandbox.Options{Listings: c.Listings, Seed: c.Seed, Stays: listingsWithStays, Logger: logger})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, market.Close()) }()
	config := filepath.Join(dir, "market.json")
	if err := market.WriteConfig(config); err != nil {
		return err
	}
	report, err := conversation.Run(ctx, conversation.Options{
		Market: market, Daemon: daemon, Config: config, StateDir: filepath.Join(dir, "state"), Raw: c.Raw, Out: os.Stdout,
	})
	if err != nil {
		return err
	}
	return conclude(report)
}

// conclude says how it went, in one line or with all that was wrong.
func conclude(report conversation.Report) error {
	if len(report.Wrong) == 0 {
		fmt.Printf("\nAll was right: %d checks.\n", report.Right)
		fmt.Println("\nPaying is still to come. To call the daemon yourself, keep a market up:")
		fmt.Println("\n  go run ./cmd/hostr-sandbox serve")
		return nil
	}
	fmt.Printf("\nRight: %d. Wrong: %d:\n", report.Right, len(report.Wrong))
	for _, wrong := range report.Wrong {
		fmt.Println("  ✗ " + wrong)
	}
	fmt.Println("\nThe end of the daemon's log:")
	if report.Log == "" {
		fmt.Println("  (it wrote nothing)")
	}
	lines := strings.Split(strings.TrimSpace(report.Log), "\n")
	for _, line := range lines[max(0, len(lines)-shownLogLines):] {
		fmt.Println("  " + strings.ToValidUTF8(line[:min(len(line), shownLogLine)], ""))
	}
	return errAnswers
}

type serveCommand struct {
	marketFlags
	Accounts     bool `help:"Also print the people's keys, to sign in with."`
	Odd          bool `help:"Add listings no careful client would write."`
	RelayPort    int  `placeholder:"PORT" help:"Port of the relay (default: a free one)."`
	BlossomPort  int  `placeholder:"PORT" help:"Port of the Blossom server."`
	GeocoderPort int  `placeholder:"PORT" help:"Port of the geocoder."`
	ControlPort  int  `placeholder:"PORT" help:"Port of the control endpoint."`
}

// Run implements the command.
func (c serveCommand) Run(ctx context.Context, logger zerolog.Logger) error {
	return serve.Run(ctx, serve.Options{
		Market: sandbox.Options{
			Listings: c.Listings, Seed: c.Seed, Odd: c.Odd, Stays: listingsWithStays, Logger: logger,
			RelayPort: c.RelayPort, BlossomPort: c.BlossomPort, GeocoderPort: c.GeocoderPort,
		},
		ControlPort: c.ControlPort,
		Accounts:    c.Accounts,
		Out:         os.Stdout,
	})
}

type relayCommand struct {
	ServiceURL string `required:"" help:"Address the relay's users know."`
}

// Run implements the command.
func (c relayCommand) Run() error { return hostrrelay.Serve(c.ServiceURL, os.Stdin, os.Stdout) }

func main() { os.Exit(run(os.Args[1:])) }

func run(arguments []string) int {
	// Whoever reads the output may leave early, as head does: that ends a command
	// in order, so that it takes its directory along.
	signal.Ignore(syscall.SIGPIPE)
	var line commandLine
	exited := -1
	parser, err := kong.New(&line,
		kong.Name("hostr-sandbox"),
		kong.Description("A Hostr market on one machine, to try hostr-daemon on and to develop against."),
		kong.Exit(func(code int) { exited = code }),
	)
	if err != nil {
		fmt.Fprintln(os.Stderr, "hostr-sandbox: the command line's grammar:", err)
		return exitFailed
	}
	command, err := parser.Parse(arguments)
	if exited >= 0 {
		return exited // --help has printed what was asked for
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "hostr-sandbox: %v\nSee hostr-sandbox --help.\n", err)
		return exitUsage
	}
	return exitCode(line.run(command))
}

// run runs the command until it is done, a signal comes or nobody reads on.
func (l *commandLine) run(command *kong.Context) error {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	defer watchReader(os.Stdout, func() { cancel(errUnread) })()
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends it at once
	logger := zerolog.Nop()
	if l.Verbose {
		logger = zerolog.New(zerolog.ConsoleWriter{Out: os.Stderr}).With().Timestamp().Logger()
	}
	command.BindTo(ctx, (*context.Context)(nil))
	command.Bind(logger)
	err := command.Run()
	if err != nil && errors.Is(context.Cause(ctx), errUnread) {
		return errUnread
	}
	return err
}

// exitCode says what went wrong, if that was not said yet, and returns the code.
func exitCode(err error) int {
	switch {
	case err == nil, errors.Is(err, errUnread), errors.Is(err, syscall.EPIPE):
		return exitDone
	case errors.Is(err, errAnswers):
		return exitFailed
	default:
		fmt.Fprintln(os.Stderr, "hostr-sandbox: "+err.Error())
		return exitFailed
	}
}
