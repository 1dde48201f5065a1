package signerapp

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

// Request is one request as it arrived.
type Request struct {
	// ID is the NIP-46 request id, EventID that of the event that carried it.
	ID, EventID string
	Method      string
	Params      []string
	Client      string
	// Repeat is true when a request with this id has come before.
	Repeat bool
}

// maxRequests is how many requests are kept; the oldest go first.
const maxRequests = 4096

// ledger keeps what has come in and wakes those who wait for it.
type ledger struct {
	mu       sync.Mutex
	requests []Request
	held     int
	changed  chan struct{}
}

func newLedger() *ledger { return &ledger{changed: make(chan struct{})} }

// add records a request and returns whether its id has come before.
func (l *ledger) add(request Request) (repeat bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	request.Repeat = slices.ContainsFunc(l.requests, func(r Request) bool { return r.ID == request.ID && r.Client == request.Client })
	if len(l.requests) == maxRequests {
		l.requests = slices.Delete(l.requests, 0, maxRequests/4)
	}
	l.requests = append(l.requests, request)
	l.wake()
	return request.Repeat
}

func (l *ledger) hold(count int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = count
	l.wake()
}

// wake needs the lock.
func (l *ledger) wake() {
	close(l.changed)
	l.changed = make(chan struct{})
}

func (l *ledger) snapshot() ([]Request, int, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.requests), l.held, l.changed
}

// Requests returns what has come in, oldest first, as far as it is kept.
func (a *App) Requests() []Request {
	requests, _, _ := a.ledger.snapshot()
	return requests
}

// Count returns how many requests for a method have come in, repeated ones not
// counted; with an empty method those for any.
func (a *App) Count(method string) int {
	requests, _, _ := a.ledger.snapshot()
	return count(requests, method)
}

func count(requests []Request, method string) (found int) {
	for _, request := range requests {
		if !request.Repeat && (method == "" || request.Method == method) {
			found++
		}
	}
	return found
}

// WaitFor returns as soon as reached says yes to the requests that have come in and
// the number of those held, or with an error when ctx ends first.
func (a *App) WaitFor(ctx context.Context, reached func(requests []Request, held int) bool) error {
	for {
		requests, held, changed := a.ledger.snapshot()
		if reached(requests, held) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("the signer app has %d requests, %d of them held: %w", len(requests), held, ctx.Err())
		}
	}
}
