package relay

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/coder/websocket"
	"github.com/rs/zerolog"
)

const (
	// dialLimit bounds one attempt; a query gives up earlier at its own limit.
	dialLimit = 10 * time.Second
	// dialPause is the least time between a failed attempt and the next one on
	// behalf of a caller (spec 82 §2).
	dialPause = 2 * time.Second
	// settled is how long a socket must have lived for the backoff to start anew.
	settled = 10 * time.Second
	// maxRequests is how many REQs are open on one connection. Live ones never
	// wait, as one that waits unnoticed would miss events; queries do, but
	// minQueries of them are always let through.
	maxRequests = 20
	minQueries  = 4
	// restoreLimit is how long a repeated REQ waits for EOSE before it counts as
	// standing.
	restoreLimit = 2 * time.Second
)

var (
	errConnectionLost = errors.New("the connection was lost before the relay answered")
	errUnreachable    = errors.New("the relay could not be reached")
	errNotConnected   = errors.New("no connection in time")
)

// connection is one client's way to one relay: the socket while there is one, the
// REQs that are or ought to be open on it, and the goroutine that dials, reads and
// dials again for as long as something needs it.
type connection struct {
	client *Client
	url    string
	log    zerolog.Logger
	wake   chan struct{}

	mu            sync.Mutex
	socket        *socket
	callers       []chan struct{} // closed when the attempt they wait for has ended
	subscriptions map[string]*wireSubscription
	queue         []*wireSubscription
	queries, live int // REQs that hold a place

	// attempts counts failed attempts and short-lived sockets in a row; retryAt is
	// when REQs may have the next one, pauseUntil when callers may.
	attempts            int
	retryAt, pauseUntil time.Time
	failure             error // of the last attempt

	// authenticates is set once this client wants an identity here or the relay has
	// accepted one: every further socket begins with AUTH.
	authenticates bool
	// challengeless is set while the relay is known to send no challenge.
	challengeless bool
	signing       stopwatch
}

func newConnection(client *Client, url string) *connection {
	loggable, _ := splitAt(url, "?#")
	return &connection{
		client: client, url: url, log: client.log.With().Str("relay", loggable).Logger(),
		wake: make(chan struct{}, 1), subscriptions: map[string]*wireSubscription{},
	}
}

// open returns the socket, waiting for one attempt to connect if there is none.
func (c *connection) open(ctx context.Context) (*socket, error) {
	c.mu.Lock()
	if c.socket != nil {
		defer c.mu.Unlock()
		return c.socket, nil
	}
	attempted := make(chan struct{})
	c.callers = append(c.callers, attempted)
	c.mu.Unlock()
	c.poke()
	select {
	case <-attempted:
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.socket == nil {
			return nil, cmp.Or(c.failure, errConnectionLost)
		}
		return c.socket, nil
	case <-ctx.Done():
		c.mu.Lock()
		defer c.mu.Unlock()
		c.callers = slices.DeleteFunc(c.callers, func(caller chan struct{}) bool { return caller == attempted })
		return nil, context.Cause(ctx)
	case <-c.client.ctx.Done():
		return nil, ErrClosed
	}
}

// poke makes the goroutine look again whether something needs the connection.
func (c *connection) poke() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// run is the connection's goroutine.
func (c *connection) run() {
	for c.awaitNeed() {
		ctx, cancel := limit(c.client.ctx, c.client.clock, dialLimit, errNotConnected)
		conn, err := c.client.dialer.dial(ctx, c.url)
		cancel()
		if err != nil {
			c.dialFailed(err)
			continue
		}
		c.serve(conn)
	}
}

// awaitNeed returns true when it is time to dial and false when the client closes.
func (c *connection) awaitNeed() bool {
	for c.client.ctx.Err() == nil {
		delay, needed := c.nextAttempt()
		if needed && delay <= 0 {
			return true
		}
		var fired <-chan struct{}
		stop := func() bool { return false }
		if needed {
			fired, stop = timer(c.client.clock, delay)
		}
		select {
		case <-fired:
		case <-c.wake:
		case <-c.client.ctx.Done():
		}
		stop()
	}
	return false
}

// nextAttempt returns how long to wait before the next attempt, if one is needed.
func (c *connection) nextAttempt() (delay time.Duration, needed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	waited, restoring := len(c.callers) > 0, false
	for _, w := range c.subscriptions {
		waited = waited || w.needsFirstConnection()
		restoring = restoring || w.needsConnection()
	}
	now := c.client.clock.Now()
	switch {
	case waited && restoring:
		return min(c.pauseUntil.Sub(now), c.retryAt.Sub(now)), true
	case waited:
		return c.pauseUntil.Sub(now), true
	default:
		return c.retryAt.Sub(now), restoring
	}
}

// dialFailed ends the queries that had not reached the relay yet. Those that had,
// and live subscriptions, wait for the next attempt.
func (c *connection) dialFailed(err error) {
	c.mu.Lock()
	now := c.client.clock.Now()
	c.failure = err
	c.pauseUntil = now.Add(dialPause)
	c.postpone(now)
	c.releaseCallers()
	var unreachable []*wireSubscription
	for _, w := range c.inOrder() {
		if w.needsFirstConnection() {
			unreachable = append(unreachable, w)
		} else {
			w.reason = reasonOf(err)
		}
	}
	c.mu.Unlock()
	if c.client.ctx.Err() != nil {
		return
	}
	c.log.Info().Str("reason", reasonOf(err)).Msg("relay could not be reached")
	for _, w := range unreachable {
		c.finish(w, EndUnreachable, reasonOf(err))
	}
}

// serve runs a fresh socket until it ends.
func (c *connection) serve(conn *websocket.Conn) {
	s := newSocket(c, conn)
	c.mu.Lock()
	c.socket, c.failure, c.pauseUntil = s, nil, time.Time{}
	s.ready = !c.authenticates
	for _, w := range c.inOrder() {
		if w.state == wireUnsent {
			c.sendIfReady(w)
		}
	}
	if !s.ready {
		first := s.startAuthentication()
		s.authentication.first = first
		s.tasks.Go(func() { s.open(first) })
	}
	c.releaseCallers()
	c.mu.Unlock()
	c.log.Debug().Msg("relay connected")
	s.run()
	c.drop(s)
}

// drop forgets a socket that has ended. What was open on it is sent again on the
// next one.
func (c *connection) drop(s *socket) {
	cause := context.Cause(s.ctx)
	c.mu.Lock()
	now := c.client.clock.Now()
	c.socket = nil
	publishes := s.publishes
	s.publishes = nil
	if now.Sub(s.opened) >= settled {
		c.attempts = 0
		c.postpone(now)
	} else {
		c.postpone(now)
		c.pauseUntil = c.retryAt // Or a relay that hangs up at once would be dialled without a pause.
	}
	var hopeless []*wireSubscription
	for _, w := range c.inOrder() {
		if w.state != wireOpen && w.state != wireRetrying {
			continue
		}
		w.state, w.standing, w.reason = wireUnsent, false, reasonOf(cause)
		if errors.Is(cause, websocket.ErrMessageTooBig) && !w.live {
			if w.oversized++; w.oversized > 1 {
				hopeless = append(hopeless, w)
			}
		}
	}
	c.mu.Unlock()
	for _, waits := range publishes {
		for _, answer := range waits {
			close(answer)
		}
	}
	for _, w := range hopeless {
		c.finish(w, EndDropped, reasonOf(cause))
	}
	s.tasks.Wait()
	if c.client.ctx.Err() == nil {
		c.log.Info().Str("reason", reasonOf(cause)).Msg("relay connection lost")
	}
}

// signed returns how long the account has been signing AUTH events here.
func (c *connection) signed() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.signing.total(c.client.clock.Now())
}

// The functions below expect the lock to be held.

// postpone sets when REQs may have the next attempt.
func (c *connection) postpone(now time.Time) {
	c.retryAt = now.Add(backoff(c.attempts, c.client.jitter()))
	c.attempts++
}

func (c *connection) releaseCallers() {
	for _, caller := range c.callers {
		close(caller)
	}
	c.callers = nil
}
