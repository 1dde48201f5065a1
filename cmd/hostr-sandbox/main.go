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

// errAnswers ends try when an answer was not right.
var errAnswers = errors.New("not every answer was right")

// How much of the daemon's log is shown after a failure: lines, and bytes of each.
const (
	shownLogLines = 25
	shownLogLine  = 400
)

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

func (f marketFlags) check() error {
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
	if err := c.check(); err != nil {
		return err
	}
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
	market, err := sandbox.Start(ctx, sandbox.Options{Listings: c.Listings, Seed: c.Seed, Logger: logger})
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
	Odd          bool `help:"Add listings no careful client would write."`
	RelayPort    int  `placeholder:"PORT" help:"Port of the relay (default: a free one)."`
	BlossomPort  int  `placeholder:"PORT" help:"Port of the Blossom server."`
	GeocoderPort int  `placeholder:"PORT" help:"Port of the geocoder."`
	ControlPort  int  `placeholder:"PORT" help:"Port of the control endpoint."`
}

// Run implements the command.
func (c serveCommand) Run(ctx context.Context, logger zerolog.Logger) error {
	if err := c.check(); err != nil {
		return err
	}
	return serve.Run(ctx, serve.Options{
		Market: sandbox.Options{
			Listings: c.Listings, Seed: c.Seed, Odd: c.Odd, Logger: logger,
			RelayPort: c.RelayPort, BlossomPort: c.BlossomPort, GeocoderPort: c.GeocoderPort,
		},
		ControlPort: c.ControlPort,
		Out:         os.Stdout,
	})
}

type relayCommand struct {
	ServiceURL string `required:"" help:"Address the relay's users know."`
}

// Run implements the command.
func (c relayCommand) Run() error { return hostrrelay.Serve(c.ServiceURL, os.Stdin, os.Stdout) }

func main() {
	var line commandLine
	command := kong.Parse(&line,
		kong.Name("hostr-sandbox"),
		kong.Description("A Hostr market on one machine, to try hostr-daemon on and to develop against."),
		kong.ShortUsageOnError(),
	)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends it at once
	logger := zerolog.Nop()
	if line.Verbose {
		logger = zerolog.New(zerolog.ConsoleWriter{Out: os.Stderr}).With().Timestamp().Logger()
	}
	command.BindTo(ctx, (*context.Context)(nil))
	command.Bind(logger)
	if err := command.Run(); err != nil {
		stop()
		if !errors.Is(err, errAnswers) {
			fmt.Fprintln(os.Stderr, "hostr-sandbox: "+err.Error())
		}
		os.Exit(1)
	}
}
