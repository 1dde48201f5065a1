package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"hostr-daemon/catalog"
	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/request"
	"hostr-daemon/internal/terminal"
)

type callCommand struct {
	Action string   `arg:"" help:"Action id, such as hostr.listings.search."`
	Input  []string `arg:"" optional:"" help:"The input as one JSON object, or as key=value pairs."`
	As     string   `placeholder:"PUBKEY" help:"Call as this account."`
	JSON   bool     `name:"json" help:"Print the result as JSON."`
}

// Run runs the action as the bridge's request would, and prints what came of it.
func (c *callCommand) Run(options *Options) error {
	loaded, err := catalog.Load()
	if err != nil {
		return err
	}
	action, known := loaded.Lookup(c.Action)
	if !known {
		return unknownAction(c.Action)
	}
	input, err := terminal.Input(action, c.Input)
	if err != nil {
		return usageError{err}
	}
	ctx, stop := endOnSignal()
	defer stop()
	program, err := open(ctx, loaded, options, nil)
	if err != nil {
		return err
	}
	outcome, err := c.call(ctx, program, input)
	if ctx.Err() == nil {
		err = c.report(outcome, err)
	}
	return orSignal(ctx, program.closeAfter(err))
}

// call waits for the action, and shows a person that it is still going on.
func (c *callCommand) call(ctx context.Context, program *program, input []byte) (request.Outcome, error) {
	call := request.Action{ID: c.Action, Pubkey: c.As, Input: input}
	limit := program.product.TimeLimit(call)
	tooLong := fault.New(fault.UnexpectedError, "%s was not done within %s.", c.Action, limit.Round(time.Second)).Transient()
	ctx, cancel := context.WithTimeoutCause(ctx, limit, tooLong)
	defer cancel()
	if isTerminal(os.Stderr) {
		defer terminal.Progress(os.Stderr, c.Action)()
	}
	outcome, err := program.product.CallAction(ctx, call)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return outcome, err
}

func (c *callCommand) report(outcome request.Outcome, err error) error {
	if err != nil {
		if writeErr := terminal.Failure(os.Stderr, fault.From(err)); writeErr != nil {
			return writeErr
		}
		return exit(exitFailed)
	}
	if !c.JSON {
		return terminal.Result(os.Stdout, outcome)
	}
	if err := terminal.JSON(os.Stdout, outcome.Data); err != nil {
		return err
	}
	return terminal.Warnings(os.Stderr, outcome.Warnings)
}

func unknownAction(id string) error {
	return usageError{fmt.Errorf("there is no action %q: hostr-daemon describe lists them", id)}
}
