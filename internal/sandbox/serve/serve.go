// Package serve keeps a market up for a person: it writes how to use it and
// waits for the end. It adds nothing to the market.
package serve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/template"

	_ "embed"

	"hostr-daemon/internal/sandbox"
	"hostr-daemon/internal/sandbox/control"
)

// Options say what to serve.
type Options struct {
	Market      sandbox.Options
	ControlPort int
	// Accounts lists people's keys above the rest, which stays in sight that way.
	Accounts bool
	Out      io.Writer
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
	StateDir string // quoted for a shell, as is Config
	Config   string
	Control  string
	City     string           // one the geocoder knows
	People   []sandbox.Person // whose keys are listed
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
	filled := page{
		Market: market, Control: endpoint.URL(), City: "Lisbon",
		StateDir: quote(filepath.Join(dir, "state")), Config: quote(config),
	}
	if o.Accounts {
		filled.People = people(market)
	}
	if err := writeWelcome(o.Out, filled); err != nil {
		return err
	}
	<-ctx.Done()
	_, err = fmt.Fprintln(o.Out, "\nThe market is closed.")
	return err
}

// people returns the first of each kind.
func people(market *sandbox.Market) []sandbox.Person {
	return slices.Concat(
		market.Hosts[:min(len(market.Hosts), shownHosts)],
		market.Guests[:min(len(market.Guests), shownGuests)],
		[]sandbox.Person{market.Escrow},
	)
}

// writeWelcome writes the page at once, so that it is there as a whole or not.
func writeWelcome(out io.Writer, filled page) error {
	text, err := template.New("welcome").Parse(welcome)
	if err != nil {
		return fmt.Errorf("welcome text: %w", err)
	}
	var whole bytes.Buffer
	if err := text.Execute(&whole, filled); err != nil {
		return fmt.Errorf("welcome text: %w", err)
	}
	if _, err := whole.WriteTo(out); err != nil {
		return fmt.Errorf("welcome text: %w", err)
	}
	return nil
}

// plainPath is a path that a shell takes as it stands.
var plainPath = regexp.MustCompile(`^[\w./:@%+=,-]+$`)

// quote makes a path one word of a POSIX shell.
func quote(path string) string {
	if plainPath.MatchString(path) {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}
