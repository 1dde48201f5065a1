package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/nbd-wtf/go-nostr/nip19"

	"hostr-daemon/catalog"
	"hostr-daemon/internal/actions"
	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/request"
	"hostr-daemon/internal/sessions"
	"hostr-daemon/internal/terminal"
)

type callCommand struct {
	Action string   `arg:"" help:"Action id, such as hostr.listings.search."`
	Input  []string `arg:"" optional:"" help:"The input as one JSON object, or as key=value pairs."`
	As     string   `placeholder:"PUBKEY" help:"Call as this account, 64 hex digits or npub1…"`
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
		return unknownAction(loaded, c.Action)
	}
	input, err := terminal.Input(action, c.Input)
	if err != nil {
		return usageError{err}
	}
	caller, err := c.caller(action)
	if err != nil {
		return usageError{err}
	}
	if err := terminal.UnknownInput(os.Stderr, loaded, action, input); err != nil {
		return err
	}
	ctx, stop := endOnSignal()
	defer stop()
	program, err := open(ctx, loaded, options, nil)
	if err != nil {
		return err
	}
	outcome, err := c.call(ctx, program, request.Action{ID: c.Action, Pubkey: caller, Input: input})
	if ctx.Err() == nil {
		err = c.report(outcome, err, caller, func() []string { return program.accounts(ctx, options.secrets()) })
	}
	return orSignal(ctx, program.closeAfter(err))
}

// caller is who calls: an npub as the account it is, other text as it stands. Where any
// name does, a person need not make one up.
func (c *callCommand) caller(action catalog.Action) (string, error) {
	as := strings.TrimSpace(c.As)
	if as == "" && action.AnyName {
		return "terminal", nil
	}
	if !strings.HasPrefix(as, "npub1") {
		return as, nil
	}
	_, decoded, err := nip19.Decode(as)
	pubkey, isKey := decoded.(string)
	if err != nil || !isKey {
		return "", errors.New("--as is no npub: copy it again, or give the 64 hex digits")
	}
	return pubkey, nil
}

// call runs the action; a sign-in shows its code first, then waits whatever its input
// says: what listens for the signer is this process.
func (c *callCommand) call(ctx context.Context, program *program, call request.Action) (request.Outcome, error) {
	if call.ID == connectAction {
		// An input that is none is told by the call itself.
		if input, err := actions.ParseSessionConnectInput(call.Input); err == nil {
			return c.signIn(ctx, program, call, input)
		}
	}
	return wait(ctx, program, call)
}

const connectAction = "hostr.session.connect"

// waitForSigner is the input of the second step of a sign-in.
type waitForSigner struct {
	Wait           bool `json:"wait"`
	TimeoutSeconds int  `json:"timeoutSeconds"`
}

// signIn takes the two steps of a sign-in, as programs do: get the code, then wait.
func (c *callCommand) signIn(ctx context.Context, program *program, call request.Action, input actions.SessionConnectInput) (request.Outcome, error) {
	begin, err := json.Marshal(sessions.ConnectInput{Regenerate: input.Regenerate})
	if err != nil {
		return request.Outcome{}, err
	}
	end, err := json.Marshal(waitForSigner{Wait: true, TimeoutSeconds: input.TimeoutSeconds})
	if err != nil {
		return request.Outcome{}, err
	}
	call.Input = begin
	outcome, err := wait(ctx, program, call)
	code, shown := outcome.Data.(actions.SessionConnectResult)
	if err != nil || !shown || !code.Pending {
		return outcome, err
	}
	out := os.Stdout
	if c.JSON {
		out = os.Stderr // stdout is for the result
	}
	if err := terminal.SignInCode(out, code, isTerminal(out)); err != nil {
		return request.Outcome{}, err
	}
	if err := terminal.Waiting(os.Stderr, time.Duration(input.TimeoutSeconds)*time.Second); err != nil {
		return request.Outcome{}, err
	}
	call.Input = end
	outcome, err = wait(ctx, program, call)
	if fault.Is(err, fault.NostrConnectTimeout) {
		// The code ends with this process, which the action cannot know.
		err = fault.New(fault.NostrConnectTimeout, "The signer has not approved the sign-in within %d seconds.", input.TimeoutSeconds).
			WithHint("Call it again for a new code; timeoutSeconds=600 waits longer.").Transient()
	}
	return outcome, err
}

// wait waits for the action, and shows a person that it is still going on.
func wait(ctx context.Context, program *program, call request.Action) (request.Outcome, error) {
	limit := program.product.TimeLimit(call)
	tooLong := fault.New(fault.UnexpectedError, "%s was not done within %s.", call.ID, limit.Round(time.Second)).Transient()
	ctx, cancel := context.WithTimeoutCause(ctx, limit, tooLong)
	defer cancel()
	if isTerminal(os.Stderr) {
		defer terminal.Progress(os.Stderr, call.ID)()
	}
	outcome, err := program.product.CallAction(ctx, call)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return outcome, err
}

// report prints what came of the call. Which accounts there are is looked up only where
// it is told: that may ask a keyring.
func (c *callCommand) report(outcome request.Outcome, err error, caller string, accounts func() []string) error {
	call := terminal.Call{Action: c.Action, As: strings.TrimSpace(c.As), Pubkey: caller, Now: time.Now()}
	if err != nil {
		failure := fault.From(err)
		if failure.Code == fault.AuthRequired {
			call.Accounts = accounts()
			failure = call.Unauthorized(failure)
		}
		if writeErr := terminal.Failure(os.Stderr, failure); writeErr != nil {
			return writeErr
		}
		return exit(exitFailed)
	}
	if status, ok := outcome.Data.(actions.SessionStatus); ok && !status.Authenticated && !c.JSON {
		call.Accounts = accounts()
	}
	if !c.JSON {
		return terminal.Result(os.Stdout, call, outcome)
	}
	if err := terminal.JSON(os.Stdout, outcome.Data); err != nil {
		return err
	}
	return terminal.Warnings(os.Stderr, outcome.Warnings)
}

func unknownAction(loaded *catalog.Catalog, id string) error {
	if nearest := loaded.Nearest(id); nearest != "" {
		return usageError{fmt.Errorf("there is no action %q: did you mean %s? hostr-daemon describe lists them", id, nearest)}
	}
	return usageError{fmt.Errorf("there is no action %q: hostr-daemon describe lists them", id)}
}
