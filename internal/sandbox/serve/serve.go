// Package serve keeps a market up for a person: it writes how to use it and
// waits for the end. It adds nothing to the market.
package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"

	_ "embed"

	"hostr-daemon/internal/sandbox"
	"hostr-daemon/internal/sandbox/control"
	"hostr-daemon/internal/sandbox/conversation"
)

// Options say what to serve.
type Options struct {
	Market      sandbox.Options
	ControlPort int
	Out         io.Writer
}

// How many accounts are listed.
const (
	shownHosts  = 3
	shownGuests = 5
)

//go:embed welcome.txt
var welcome string

// page is what welcome.txt is filled with.
type page struct {
	*sandbox.Market
	Command string
	Config  string
	Control string
	City    string
	People  []sandbox.Person
}

// Run brings the market up, writes how to use it and returns when ctx ends, with
// everything taken down and its temporary directory removed.
func Run(ctx context.Context, o Options) (err error) {
	dir, err := os.MkdirTemp("", "hostr-sandbox-")
	if err != nil {
		return fmt.Errorf("no temporary directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	market, err := sandbox.Start(ctx, o.Market)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, market.Close()) }()
	endpoint, err := control.Serve(o.ControlPort, market, o.Market.Logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, endpoint.Close()) }()
	config := filepath.Join(dir, "market.json")
	if err := market.WriteConfig(config); err != nil {
		return err
	}
	if err := writeWelcome(o.Out, market, endpoint.URL(), dir, config); err != nil {
		return err
	}
	<-ctx.Done()
	_, err = fmt.Fprintln(o.Out, "\nThe market is closed.")
	return err
}

func writeWelcome(out io.Writer, market *sandbox.Market, controlURL, dir, config string) error {
	text, err := template.New("welcome").Parse(welcome)
	if err != nil {
		return fmt.Errorf("welcome text: %w", err)
	}
	filled := page{
		Market: market,
		People: slices.Concat(
			market.Hosts[:min(len(market.Hosts), shownHosts)],
			market.Guests[:min(len(market.Guests), shownGuests)],
			[]sandbox.Person{market.Escrow},
		),
		Command: "hostr-daemon " + strings.Join(conversation.Arguments(filepath.Join(dir, "state"), config), " "),
		Config:  config,
		Control: controlURL,
		City:    "Lisbon",
	}
	if err := text.Execute(out, filled); err != nil {
		return fmt.Errorf("welcome text: %w", err)
	}
	return nil
}
