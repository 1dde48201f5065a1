package relay

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nbd-wtf/go-nostr"
)

const (
	defaultTimeout = 10 * time.Second
	// maxAnswer bounds what one query holds in memory, in bytes.
	maxAnswer = 128 << 20
)

// QueryOptions are the less usual sides of a query.
type QueryOptions struct {
	// Relays are asked instead of the Hostr relay; hostr-only kinds go to that all
	// the same. Unusable URLs are dropped.
	Relays []string
	// Timeout is 10 s when zero.
	Timeout time.Duration
}

// Query asks relays for stored events and returns when each has sent EOSE or has
// failed, at the latest when the timeout or the context's deadline is over; then
// the answer holds what has come so far and neither is an error. It returns the
// context's cause when the context is cancelled, and ErrClosed.
//
// Equal queries that run at the same time are one: later callers join it with the
// time it has left.
func (c *Client) Query(ctx context.Context, filter nostr.Filter, options QueryOptions) (Answer, error) {
	filter, empty := prepareFilter(filter)
	if empty {
		return Answer{Complete: true}, nil
	}
	relays := c.readRelays(filter.Kinds, options.Relays)
	if len(relays) == 0 {
		return Answer{}, nil
	}
	timeout := options.Timeout
	if timeout <= 0 {
		timeout = defaultTimeout
	}
	run, err := c.joinQuery(filter, relays, timeout)
	if err != nil {
		return Answer{}, err
	}
	defer c.leaveQuery(run)
	select {
	case <-run.done:
		if c.ctx.Err() != nil {
			return Answer{}, ErrClosed
		}
		return run.answer(), nil
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return run.answer(), nil
		}
		return Answer{}, context.Cause(ctx)
	}
}

// queryRun is one query on the wire, for one or more callers.
type queryRun struct {
	key     string
	client  *Client
	callers int // guarded by the client's lock
	// abandoned ends when no caller is left.
	abandoned context.Context
	abandon   context.CancelFunc
	// answered is closed when every part has ended, done when the answer is final.
	answered, done chan struct{}
	parts          []*queryPart

	mu     sync.Mutex
	open   int
	final  bool
	size   int
	seen   map[string]struct{}
	events []*nostr.Event
}

// queryPart is the part of one relay in a query.
type queryPart struct {
	run          *queryRun
	connection   *connection
	wire         *wireSubscription
	signedBefore time.Duration
	outcome      RelayOutcome // guarded by the run's lock; End is empty while open
}

// joinQuery returns the equal query under way or starts one.
func (c *Client) joinQuery(filter nostr.Filter, relays []string, timeout time.Duration) (*queryRun, error) {
	key := queryKey(filter, relays, timeout)
	connections := make([]*connection, len(relays))
	for i, url := range relays {
		var err error
		if connections[i], err = c.connection(url); err != nil {
			return nil, err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, ErrClosed
	}
	run, ok := c.running[key]
	if !ok || key == "" {
		run = newQueryRun(c, key, filter, connections)
		c.running[key] = run
		c.tasks.Go(func() { run.run(timeout) })
	}
	run.callers++
	return run, nil
}

// leaveQuery ends a run that nobody waits for any more.
func (c *Client) leaveQuery(run *queryRun) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if run.callers--; run.callers == 0 {
		c.forgetQuery(run)
		run.abandon()
	}
}

// forgetQuery keeps further callers from joining. The lock is held.
func (c *Client) forgetQuery(run *queryRun) {
	if c.running[run.key] == run {
		delete(c.running, run.key)
	}
}

func newQueryRun(c *Client, key string, filter nostr.Filter, connections []*connection) *queryRun {
	run := &queryRun{
		key: key, client: c, open: len(connections), seen: map[string]struct{}{},
		answered: make(chan struct{}), done: make(chan struct{}),
	}
	run.abandoned, run.abandon = context.WithCancel(c.ctx)
	for _, connection := range connections {
		part := &queryPart{run: run, connection: connection, outcome: RelayOutcome{URL: connection.url}}
		part.wire = &wireSubscription{filter: filter, receiver: part, number: c.lastID.Add(1)}
		part.wire.sequence = newSequence(c.verifier, part.deliver)
		run.parts = append(run.parts, part)
	}
	return run
}

// run asks the relays and waits for the end of the query.
func (r *queryRun) run(timeout time.Duration) {
	started := r.client.clock.Now()
	for _, part := range r.parts {
		part.signedBefore = part.connection.signed()
		part.connection.register(part.wire)
	}
	for remaining := timeout; remaining > 0 && !r.await(remaining); {
		spent := r.client.clock.Now().Sub(started)
		remaining = timeout + r.signing() - spent
	}
	r.client.mu.Lock()
	r.client.forgetQuery(r)
	r.client.mu.Unlock()
	r.finish()
	r.abandon()
}

// await returns true when the query has ended before the time was over.
func (r *queryRun) await(d time.Duration) bool {
	fired, stop := timer(r.client.clock, d)
	defer stop()
	select {
	case <-r.answered:
		return true
	case <-r.abandoned.Done():
		return true
	case <-fired:
		return false
	}
}

// signing returns how long an unfinished relay's AUTH was being signed since the
// query began: the clock stands still meanwhile (spec 82 §4 step 7).
func (r *queryRun) signing() time.Duration {
	var longest time.Duration
	for _, part := range r.parts {
		if !part.over() {
			longest = max(longest, part.connection.signed()-part.signedBefore)
		}
	}
	return longest
}

// finish takes the query off the wire and makes its answer final.
func (r *queryRun) finish() {
	for _, part := range r.parts {
		end, reason := part.connection.unregister(part.wire)
		part.ended(end, reason)
	}
	r.mu.Lock()
	r.final = true
	r.mu.Unlock()
	close(r.done)
}

// answer returns what there is now.
func (r *queryRun) answer() Answer {
	r.mu.Lock()
	defer r.mu.Unlock()
	answer := Answer{Events: slices.Clone(r.events), Complete: true}
	for _, part := range r.parts {
		outcome := part.outcome
		if outcome.End == "" {
			outcome.End, outcome.Reason = EndTimeout, "no EOSE in time"
		}
		answer.Complete = answer.Complete && outcome.End == EndEOSE
		answer.Relays = append(answer.Relays, outcome)
	}
	return answer
}

func (p *queryPart) over() bool {
	p.run.mu.Lock()
	defer p.run.mu.Unlock()
	return p.outcome.End != ""
}

// admit drops an event that the answer has already. Only verified events count as
// had: a forged copy that comes first does not hide the genuine one.
func (p *queryPart) admit(event *nostr.Event, size int) bool {
	r := p.run
	r.mu.Lock()
	_, had := r.seen[event.ID]
	fits := r.size+size <= r.client.answerBytes
	if fits && !had {
		r.size += size
	}
	r.mu.Unlock()
	if !fits && !had {
		p.connection.finish(p.wire, EndDropped, fmt.Sprintf("the answer is larger than %d MiB", r.client.answerBytes>>20))
	}
	return fits && !had
}

func (p *queryPart) deliver(event *nostr.Event, size int, genuine bool) {
	r := p.run
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, had := r.seen[event.ID]; !genuine || had || r.final {
		r.size -= size
		return
	}
	r.seen[event.ID] = struct{}{}
	r.events = append(r.events, event)
	p.outcome.Events++
}

func (p *queryPart) ended(end End, reason string) {
	r := p.run
	r.mu.Lock()
	defer r.mu.Unlock()
	if p.outcome.End != "" {
		return
	}
	p.outcome.End, p.outcome.Reason = end, reason
	if r.open--; r.open == 0 {
		close(r.answered)
	}
}

// A query has no live side.
func (p *queryPart) stored()        {}
func (p *queryPart) restored()      {}
func (p *queryPart) refused(string) {}
