// Package doctor finds out what works from this machine: the override file, the state
// directory, the place for private keys, the signer of each account kept there, and
// each outside system of the environment. It asks each one real question, all at the
// same time, and times the answer.
//
// It opens the state directory as the daemon would, and asks each account's signer who
// it signs for; it changes nothing and has nothing signed. It must never show a secret,
// nor a key that an address may hold.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"hostr-daemon/internal/environment"
	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/runtime"
	"hostr-daemon/internal/secrets"
	"hostr-daemon/internal/sessions"
)

// patience bounds each check.
const patience = 10 * time.Second

// State is what the doctor needs of a running daemon.
type State interface {
	// StateDir is the directory as resolved.
	StateDir() (string, error)
	// OpenState opens the state directory, or tells why it cannot be opened.
	OpenState(ctx context.Context) error
	// Sessions are those of the accounts kept there, or why there are none yet. While
	// another process holds the directory the error's details are a runtime.LockHolder.
	Sessions(ctx context.Context) (*sessions.Registry, error)
}

// Config says what to examine.
type Config struct {
	// Environment has the addresses to try. Where EnvironmentError is set only its
	// name counts, and no outside system is asked.
	Environment      environment.Environment
	EnvironmentError error
	State            State
	// Secrets say where private keys may rest. Directory and environment are filled in.
	Secrets secrets.Options
}

// Finding is what one check found out.
type Finding struct {
	// Subject is what was checked, such as "relay"; Target is which one.
	Subject, Target string
	// Err is nil when it works; Detail then may tell more.
	Err    error
	Detail string
	// Took is how long the check lasted.
	Took time.Duration
	// Elsewhere is set where another process has what was to be examined: no fault, and
	// nothing is known of it.
	Elsewhere bool
	// Optional marks parts without which the daemon still does its main work.
	Optional bool
}

// check is one question to ask.
type check struct {
	subject, target string
	optional        bool
	run             func(ctx context.Context) (detail string, err error)
}

// Examine runs all checks side by side; the findings come in a fixed order. Outside
// systems are asked with connections of the doctor's own, so that a state directory
// that is taken hides none of them.
func Examine(ctx context.Context, config Config) ([]Finding, error) {
	checks := config.localChecks()
	local := len(checks)
	var accounts []Finding
	var running sync.WaitGroup
	if config.EnvironmentError == nil {
		reach, err := newReach(config.Environment)
		if err != nil {
			return nil, err
		}
		defer reach.close()
		checks = append(checks, reach.checks(config.Environment)...)
		running.Go(func() { accounts = config.examineAccounts(ctx) })
	}
	findings := make([]Finding, len(checks))
	for i, c := range checks {
		running.Go(func() { findings[i] = examine(ctx, c) })
	}
	running.Wait()
	return slices.Insert(findings, local, accounts...), nil
}

func examine(ctx context.Context, c check) Finding {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("no answer within %s", patience))
	defer cancel()
	begin := time.Now()
	detail, err := c.run(ctx)
	finding := Finding{Subject: c.subject, Target: c.target, Optional: c.optional, Detail: detail, Err: err, Took: time.Since(begin)}
	if held := elsewhere(""); errors.As(err, &held) {
		finding.Detail, finding.Err, finding.Elsewhere = string(held), nil, true
	}
	return finding
}

// elsewhere ends a check of what another process has; it says what to know of that.
type elsewhere string

func (e elsewhere) Error() string { return string(e) }

// localChecks are those of this machine.
func (c Config) localChecks() []check {
	dir, dirError := c.State.StateDir()
	return []check{{
		subject: "environment", target: c.Environment.Name,
		run: func(context.Context) (string, error) { return "", c.EnvironmentError },
	}, {
		subject: "state directory", target: dir,
		run: func(ctx context.Context) (string, error) {
			if dirError != nil {
				return "", dirError
			}
			return c.openState(ctx)
		},
	}, {
		subject: "private keys", target: dir, optional: true,
		run: func(ctx context.Context) (string, error) {
			if dirError != nil {
				return "", dirError
			}
			return c.checkSecrets(ctx, dir)
		},
	}}
}

// openState takes a directory in use for no fault: some daemon works with it.
func (c Config) openState(ctx context.Context) (string, error) {
	err := c.State.OpenState(ctx)
	if inUse(err) {
		return "", elsewhere(fault.From(err).Message)
	}
	return "", err
}

// inUse tells that another process holds the state directory.
func inUse(err error) bool {
	coded := fault.From(err)
	if coded == nil {
		return false
	}
	_, held := coded.Details.(runtime.LockHolder)
	return held
}

// openSecrets opens the place for private keys as the daemon does.
func (c Config) openSecrets(dir string) (*secrets.Store, error) {
	return secrets.Open(c.secretsOptions(dir))
}

func (c Config) secretsOptions(dir string) secrets.Options {
	options := c.Secrets
	options.StateDir, options.Environment = dir, c.Environment.Name
	return options
}

func (c Config) checkSecrets(ctx context.Context, dir string) (string, error) {
	store, err := c.openSecrets(dir)
	if err != nil {
		return "", err
	}
	unseen := c.unseen(ctx, dir)
	if err := store.Check(ctx); err != nil {
		told := *fault.From(err)
		if unseen != "" {
			told.Message += " " + unseen + "."
		}
		return "", &told
	}
	if unseen != "" {
		unseen = "; " + unseen
	}
	return string(store.Place().Kind) + unseen, nil
}

// unseen tells of accounts in the place that is not used. One that cannot be looked
// into is no trouble of the daemon's.
func (c Config) unseen(ctx context.Context, dir string) string {
	unseen, err := secrets.Elsewhere(ctx, c.secretsOptions(dir))
	if err != nil || unseen == nil {
		return ""
	}
	return unseen.String()
}

// Report prints the findings as a table and tells whether the daemon can do its
// main work. What outside systems say is printed as it came, on the finding's line; a
// table that is wider than width, in characters, has it below. 0 is any width.
func Report(out io.Writer, findings []Finding, width int) (healthy bool, err error) {
	rows, healthy := rowsOf(findings)
	text, err := oneLineEach(rows)
	if err == nil && width > 0 && widest(text) > width {
		text, err = twoLinesEach(rows, width)
	}
	if err != nil {
		return healthy, err
	}
	conclusion := "hostr-daemon can do its main work from here."
	if !healthy {
		conclusion = "hostr-daemon cannot do its main work from here: mend what FAILED."
	}
	_, err = fmt.Fprintf(out, "%s\n%s\n", text, conclusion)
	return healthy, err
}

// row is a finding in words.
type row struct{ subject, target, verdict, took, detail string }

func rowsOf(findings []Finding) (rows []row, healthy bool) {
	healthy = true
	for _, f := range findings {
		verdict, detail, took := "ok", f.Detail, fmt.Sprintf("%d ms", f.Took.Milliseconds())
		switch {
		case f.Err != nil && f.Optional:
			verdict, detail = "not now", message(f.Err)
		case f.Err != nil:
			verdict, detail = "FAILED", message(f.Err)
			healthy = false
		case f.Elsewhere:
			verdict, took = "in use", "" // how long was waited for it is no answer
		}
		// Blanks of any kind in a cell would break the table.
		detail = strings.Join(strings.Fields(detail), " ")
		rows = append(rows, row{f.Subject, f.Target, verdict, took, detail})
	}
	return rows, healthy
}

func oneLineEach(rows []row) (string, error) {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, r := range rows {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", r.subject, r.target, r.verdict, r.took, r.detail)
	}
	if err := table.Flush(); err != nil {
		return "", err
	}
	return text.String(), nil
}

// twoLinesEach has the longest cells last, and what there is to tell below.
func twoLinesEach(rows []row, width int) (string, error) {
	var head strings.Builder
	table := tabwriter.NewWriter(&head, 0, 0, 2, ' ', 0)
	for _, r := range rows {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", r.subject, r.verdict, r.took, r.target)
	}
	if err := table.Flush(); err != nil {
		return "", err
	}
	var text strings.Builder
	for i, line := range slices.Collect(strings.Lines(head.String())) {
		text.WriteString(line)
		text.WriteString(below(rows[i].detail, width))
	}
	return text.String(), nil
}

// below breaks a text between words; a longer word stays whole, so that it can be
// copied.
func below(text string, width int) string {
	const indent = "    "
	var lines strings.Builder
	used := 0
	for word := range strings.FieldsSeq(text) {
		length := utf8.RuneCountInString(word)
		switch {
		case used == 0:
			lines.WriteString(indent)
			used = len(indent)
		case used+1+length > width:
			lines.WriteString("\n" + indent)
			used = len(indent)
		default:
			lines.WriteByte(' ')
			used++
		}
		lines.WriteString(word)
		used += length
	}
	if used > 0 {
		lines.WriteByte('\n')
	}
	return lines.String()
}

func widest(text string) (most int) {
	for line := range strings.Lines(text) {
		most = max(most, utf8.RuneCountInString(strings.TrimRight(line, " \n")))
	}
	return most
}

// message is what an error says, with what to do about it.
func message(err error) string {
	coded := fault.From(err)
	if coded.Hint == "" {
		return coded.Message
	}
	return coded.Message + " " + coded.Hint
}
