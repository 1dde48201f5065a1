package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"hostr-daemon/catalog"
	"hostr-daemon/internal/daemon"
	"hostr-daemon/internal/terminal"
)

type serveCommand struct {
	Ignored []string `arg:"" optional:"" hidden:"" help:"Words that are no options are ignored."`
}

// Run serves stdin until it ends, a signal comes or nobody reads stdout any more.
func (s *serveCommand) Run(options *Options) error {
	loaded, err := catalog.Load()
	if err != nil {
		return err
	}
	failOnBrokenPipe()
	ctx, stop := endOnSignal()
	defer stop()
	// Set before it runs; nothing notifies before its first request.
	var server *daemon.Daemon
	program, err := open(ctx, loaded, options, func(method string, params any) { server.Notify(method, params) })
	if err != nil {
		return err
	}
	if isTerminal(os.Stdin) {
		s.greet(program.runtime.EnvironmentName())
	}
	server = daemon.New(daemon.Config{
		Product:     program.product,
		Environment: program.runtime.EnvironmentName(),
		Logger:      program.journal,
		In:          os.Stdin,
		Out:         os.Stdout,
	})
	endLook := program.tellElsewhere(ctx, options.secrets())
	served := server.Run(ctx)
	endLook()
	if errors.Is(served, daemon.ErrOutput) {
		served = nil // nobody reads any more: the ordinary end of a child
	}
	return orSignal(ctx, errors.Join(served, program.close()))
}

// greet tells a person who started the daemon by hand what it is waiting for. Whether
// they can read it is not the daemon's trouble.
func (s *serveCommand) greet(environment string) {
	var text strings.Builder
	if len(s.Ignored) > 0 {
		fmt.Fprintf(&text, "Not a command, so without effect: %s. See hostr-daemon --help.\n", strings.Join(s.Ignored, " "))
	}
	fmt.Fprintf(&text, `hostr-daemon %s (%s) is waiting for requests, one JSON object per line. Try:
  {"id":"1","method":"callAction","params":{"action":"hostr.listings.search","input":{"limit":3}}}
Ctrl-D ends it. For readable answers use: hostr-daemon call hostr.listings.search limit=3
`, version, environment)
	_ = terminal.Print(os.Stderr, text.String())
}
