package main

import (
	"fmt"
	"os"
	"strings"

	"hostr-daemon/catalog"
	"hostr-daemon/internal/doctor"
	"hostr-daemon/internal/environment"
	"hostr-daemon/internal/terminal"
)

type doctorCommand struct{}

// Run examines the environment and prints what works.
func (d *doctorCommand) Run(options *Options) error {
	loaded, err := catalog.Load()
	if err != nil {
		return err
	}
	ctx, stop := endOnSignal()
	defer stop()
	program, err := open(ctx, loaded, options, nil)
	if err != nil {
		return err
	}
	facts, factsErr := environment.Load(options.environment())
	if isTerminal(os.Stderr) {
		fmt.Fprintf(os.Stderr, "Checking the %s environment; this takes up to ten seconds.\n", facts.Name)
	}
	findings, err := doctor.Examine(ctx, doctor.Config{
		Environment: facts, EnvironmentError: factsErr, State: program.runtime, Secrets: options.secrets(),
	})
	if err == nil && ctx.Err() == nil {
		err = printFindings(findings)
	}
	return orSignal(ctx, program.closeAfter(err))
}

func printFindings(findings []doctor.Finding) error {
	var page strings.Builder
	healthy, err := doctor.Report(&page, findings, widthOf(os.Stdout))
	if err != nil {
		return err
	}
	if err := terminal.Print(os.Stdout, page.String()); err != nil {
		return err
	}
	if !healthy {
		return exit(exitFailed)
	}
	return nil
}
