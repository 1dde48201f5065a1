package hostrrelay

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nbd-wtf/go-nostr"
	"github.com/rs/zerolog"
)

// insertBatch is how many events travel in one line to the relay process.
const insertBatch = 500

// order is one line to the relay process: exactly one field is set.
type order struct {
	Insert []nostr.Event `json:"insert,omitempty"`
	Query  *nostr.Filter `json:"query,omitempty"`
}

// report is one line from it. The first one carries the URL, each other one
// answers an order.
type report struct {
	URL    string        `json:"url,omitempty"`
	Error  string        `json:"error,omitempty"`
	Events []nostr.Event `json:"events,omitempty"`
}

// Serve is the relay process: it runs a relay, reports its URL and obeys orders
// until the input ends, which it does when the parent is gone.
func Serve(serviceURL string, orders io.Reader, reports io.Writer) error {
	server, err := Open(serviceURL, zerolog.Nop())
	if err != nil {
		return err
	}
	out := json.NewEncoder(reports)
	failed := out.Encode(report{URL: server.URL()})
	in := json.NewDecoder(orders)
	for failed == nil {
		var next order
		if err := in.Decode(&next); err != nil {
			if !errors.Is(err, io.EOF) {
				failed = fmt.Errorf("unreadable order: %w", err)
			}
			break
		}
		failed = out.Encode(server.obey(next))
	}
	return errors.Join(failed, server.Close())
}

func (s *Server) obey(next order) report {
	if next.Query == nil {
		s.store.Insert(next.Insert)
		return report{}
	}
	events, err := s.Query(context.Background(), *next.Query)
	if err != nil {
		return report{Error: err.Error()}
	}
	return report{Events: events}
}

// Process is a relay in a process of its own, driven as Server is.
type Process struct {
	url     string
	command *exec.Cmd
	orders  io.WriteCloser
	lines   *bufio.Reader
	stderr  *strings.Builder
	mu      sync.Mutex // one order at a time
}

// Spawn starts "binary relay --service-url URL" and waits for its address.
func Spawn(ctx context.Context, binary, serviceURL string) (*Process, error) {
	process := &Process{
		command: exec.Command(binary, "relay", "--service-url", serviceURL),
		stderr:  &strings.Builder{},
	}
	process.command.Stderr = process.stderr
	process.command.WaitDelay = closeTimeout
	orders, err := process.command.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("relay process: %w", err)
	}
	stdout, err := process.command.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("relay process: %w", err)
	}
	process.orders, process.lines = orders, bufio.NewReader(stdout)
	if err := process.command.Start(); err != nil {
		return nil, fmt.Errorf("relay process: %w", err)
	}
	first, err := process.read(ctx)
	if err == nil && first.URL == "" {
		err = errors.New("it reported no address")
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("relay process: %w", err), process.Close())
	}
	process.url = first.URL
	return process, nil
}

// URL returns where the relay itself listens.
func (p *Process) URL() string { return p.url }

// Insert puts events into the store past every rule.
func (p *Process) Insert(ctx context.Context, events []nostr.Event) error {
	for batch := range slices.Chunk(events, insertBatch) {
		if _, err := p.ask(ctx, order{Insert: batch}); err != nil {
			return err
		}
	}
	return nil
}

// Query returns the stored events that match, direct messages included, newest
// first.
func (p *Process) Query(ctx context.Context, filter nostr.Filter) ([]nostr.Event, error) {
	answer, err := p.ask(ctx, order{Query: &filter})
	return answer.Events, err
}

// Close ends the process by closing its input, or by force if it does not obey.
func (p *Process) Close() error {
	_ = p.orders.Close()
	overdue := time.AfterFunc(2*closeTimeout, func() { _ = p.command.Process.Kill() })
	defer overdue.Stop()
	if err := p.command.Wait(); err != nil {
		return fmt.Errorf("relay process: %w: %s", err, strings.TrimSpace(p.stderr.String()))
	}
	return nil
}

func (p *Process) ask(ctx context.Context, next order) (report, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	line, err := json.Marshal(next)
	if err != nil {
		return report{}, fmt.Errorf("relay process: %w", err)
	}
	if _, err := p.orders.Write(append(line, '\n')); err != nil {
		return report{}, fmt.Errorf("relay process: %w", err)
	}
	return p.read(ctx)
}

// read waits for one report. A context that ends first ends the process, since
// the next order could not tell whose report it gets.
func (p *Process) read(ctx context.Context) (report, error) {
	defer context.AfterFunc(ctx, func() { _ = p.command.Process.Kill() })()
	line, err := p.lines.ReadBytes('\n')
	if err != nil {
		return report{}, errors.Join(fmt.Errorf("no answer: %w", err), ctx.Err())
	}
	var answer report
	if err := json.Unmarshal(line, &answer); err != nil {
		return report{}, fmt.Errorf("unreadable answer: %w", err)
	}
	if answer.Error != "" {
		return report{}, errors.New(answer.Error)
	}
	return answer, nil
}
