// Package conversation talks with a hostr-daemon as the bridge does: it spawns
// the binary over three pipes, asks in lines of JSON, shows what goes back and
// forth, and compares each answer with what the market was seeded with.
//
// It knows the protocol from the specification alone and must never import the
// daemon's packages, or it would check the daemon with itself. The one exception is
// derivation, by which it plays another program of the same account.
package conversation

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"hostr-daemon/internal/sandbox"
)

// Environment is what the daemon is started with; the market replaces its
// addresses.
const Environment = "development"

// Limits of a whole conversation and of the daemon's end after its input closed.
const (
	totalTimeout = 3 * time.Minute
	exitTimeout  = 35 * time.Second
)

// Options say who talks with whom.
type Options struct {
	Market *sandbox.Market
	// Daemon is the path of the binary.
	Daemon string
	// Config is the path of the market's override file.
	Config string
	// StateDir is an empty directory for the daemon.
	StateDir string
	// Raw shows whole frames instead of their beginnings.
	Raw bool
	// StrangersOnly leaves out the parts with an account.
	StrangersOnly bool
	Out           io.Writer
}

// Report is how it went.
type Report struct {
	// Right counts what was checked and right.
	Right int
	// Wrong names what was not, each with its step.
	Wrong []string
	// Log is the end of the daemon's stderr.
	Log string
}

// Arguments are the daemon's, as the bridge gives them, and --config.
func Arguments(stateDir, config string) []string {
	return []string{"--stdio", "--env", Environment, "--state-dir", stateDir, "--config", config}
}

// BridgeEnvironment is what the bridge adds in development (spec 10 §6.1).
func BridgeEnvironment() []string {
	return []string{"HOSTR_CLI_ALLOW_INSECURE_STORAGE=1", "HOSTR_CLI_STORAGE=insecure-file"}
}

// Run holds the conversation. An error means that it could not begin; what went
// wrong afterwards is in the report.
func Run(ctx context.Context, o Options) (Report, error) {
	introduce(NewPaper(o.Out), o)
	child, err := Spawn(o.Daemon, Arguments(o.StateDir, o.Config), BridgeEnvironment())
	if err != nil {
		return Report{}, err
	}
	return hold(ctx, child, o), nil
}

func hold(ctx context.Context, child *Child, o Options) Report {
	ctx, cancel := context.WithTimeout(ctx, totalTimeout)
	defer cancel()
	paper := NewPaper(o.Out)
	t := &talk{child: child, paper: paper, raw: o.Raw, sent: make(map[string]time.Time)}
	for number, step := range script(o.Market, o.StrangersOnly) {
		if t.fatal != nil || ctx.Err() != nil {
			break
		}
		t.step = step.title
		paper.Heading(fmt.Sprintf("%d. %s", number+1, step.title))
		paper.Paragraph(step.why)
		step.run(ctx, t)
	}
	if ctx.Err() != nil && t.fatal == nil {
		t.stop(fmt.Errorf("the conversation was broken off: %w", context.Cause(ctx)))
	}
	t.farewell(ctx)
	return Report{Right: t.right, Wrong: t.wrong, Log: child.Log()}
}

func introduce(paper *Paper, o Options) {
	paper.Heading("What you will see")
	paper.Paragraph("Hostr is a market for places to stay that belongs to nobody: hosts sign their listings with their own " +
		"keys and publish them on a Nostr relay, guests find and book them, and payment goes over Lightning with an escrow " +
		"in between.")
	paper.Blank()
	paper.Paragraph("hostr-daemon does the work for a program that has no Hostr code of its own, such as a bridge for " +
		"AI assistants. That program starts the daemon as a child process and writes one JSON request per line to its input; " +
		"the daemon answers each with one line on its output. Below, this sandbox plays the program.")
	paper.Blank()
	paper.Paragraph(fmt.Sprintf("A small market is up on this machine: a relay with %d listings of %d hosts, a picture server "+
		"and a geocoder. Nothing leaves the machine. Each answer is compared with what was put on the market.",
		len(o.Market.Listings), len(o.Market.Hosts)))
	paper.Blank()
	paper.Paragraph("The daemon is started with:")
	paper.Detail(o.Daemon + " " + strings.Join(Arguments(o.StateDir, o.Config), " "))
	paper.Detail("in its environment: " + strings.Join(BridgeEnvironment(), " "))
	paper.Blank()
	paper.Paragraph("→ the program asks   ← the daemon answers (… where cut)   ✓ checked and right")
}

// farewell closes the daemon's input, which must end it with exit code 0.
func (t *talk) farewell(ctx context.Context) {
	t.step = "Goodbye"
	t.paper.Heading(t.step)
	t.paper.Paragraph("When the program is done it closes the daemon's input. The daemon finishes what it has begun and exits.")
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), exitTimeout)
	defer cancel()
	if t.fatal != nil && !t.child.Ended() {
		cancel() // it does not answer: end it at once
	}
	began := time.Now()
	code, err := t.child.End(ending)
	switch {
	case t.fatal != nil && err == nil:
		t.bad("it had exited with code %d before it was told to", code)
	case t.fatal != nil:
	case err != nil:
		t.bad("%v", err)
	default:
		t.check(code == 0, fmt.Sprintf("it exits with code 0 after %s", spell(time.Since(began))),
			fmt.Sprintf("the code is %d", code))
	}
	stray := t.child.Stray()
	found := "nothing"
	if len(stray) > 0 {
		found = fmt.Sprintf("%d lines, the first is %s", len(stray), shorten(stray[0], 200))
	}
	t.check(len(stray) == 0, "its output held one answer per request and nothing else", found)
}
