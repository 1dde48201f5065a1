package relay

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
)

const (
	pingInterval = 10 * time.Second
	// pongLimit is how long a peer may be silent after a ping; the second miss in a
	// row ends the socket, so that a dead peer is noticed within 20 s.
	pongLimit = 5 * time.Second
	// writeLimit is how long one frame may take to leave.
	writeLimit = 15 * time.Second
	// maxUnwritten bounds the bytes waiting for a peer that does not read.
	maxUnwritten = 16 << 20
	// maxIdleBuffer is what the reader keeps of its buffer between frames, in bytes.
	maxIdleBuffer = 1 << 20
	// maxNotices is how many NOTICEs of one socket are logged.
	maxNotices = 20
)

var (
	errSilent       = errors.New("the relay stopped answering pings")
	errNotReading   = errors.New("the relay does not read what it is sent")
	errSocketClosed = errors.New("the connection was closed")
)

// socket is one WebSocket from dial to drop. Its reader never waits: not for
// verification, not for a consumer, not for the writer.
type socket struct {
	connection *connection
	conn       *websocket.Conn
	opened     time.Time
	ctx        context.Context
	cancel     context.CancelCauseFunc
	tasks      sync.WaitGroup
	outbox     *outbox
	received   atomic.Int64 // bytes; tells the pinger of a peer busy with a long frame
	notices    int
	unreadable int

	// The rest is guarded by the connection's lock.

	// ready is true once REQs may go out that do not come before AUTH.
	ready          bool
	authentication authentication
	// publishes holds the waiters for an OK by event id, oldest first.
	publishes map[string][]chan okAnswer
}

// okAnswer is a relay's OK.
type okAnswer struct {
	accepted bool
	text     string
}

func newSocket(c *connection, conn *websocket.Conn) *socket {
	s := &socket{
		connection: c, conn: conn, opened: c.client.clock.Now(),
		outbox:         newOutbox(),
		authentication: authentication{challenged: make(chan struct{})},
		publishes:      map[string][]chan okAnswer{},
	}
	s.ctx, s.cancel = context.WithCancelCause(c.client.ctx)
	return s
}

// run reads until the socket ends; the reason is the cause of its context.
func (s *socket) run() {
	s.tasks.Go(s.write)
	s.tasks.Go(s.tend)
	s.fail(s.read())
}

// fail ends the socket; the first reason stays.
func (s *socket) fail(reason error) { s.cancel(reason) }

func (s *socket) send(frame []byte) {
	if !s.outbox.push(frame) {
		s.fail(errNotReading)
	}
}

// publish sends a frame that the relay answers with an OK for the id. Of two
// publishes of one event the older gets the first refusal; an acceptance is for
// both.
func (s *socket) publish(ctx context.Context, id string, frame []byte) (okAnswer, error) {
	answer := make(chan okAnswer, 1)
	c := s.connection
	c.mu.Lock()
	if c.socket != s {
		c.mu.Unlock()
		return okAnswer{}, errConnectionLost
	}
	s.publishes[id] = append(s.publishes[id], answer)
	c.mu.Unlock()
	s.send(frame)
	select {
	case ok, answered := <-answer:
		if !answered {
			return okAnswer{}, errConnectionLost
		}
		return ok, nil
	case <-ctx.Done():
		s.giveUp(id, answer)
		return okAnswer{}, context.Cause(ctx)
	}
}

// giveUp takes a waiter for an OK out of the list.
func (s *socket) giveUp(id string, answer chan okAnswer) {
	s.connection.mu.Lock()
	defer s.connection.mu.Unlock()
	left := slices.DeleteFunc(s.publishes[id], func(other chan okAnswer) bool { return other == answer })
	if len(left) == 0 {
		delete(s.publishes, id)
	} else {
		s.publishes[id] = left
	}
}

func (s *socket) write() {
	for {
		select {
		case <-s.outbox.filled:
		case <-s.ctx.Done():
			return
		}
		for _, frame := range s.outbox.take() {
			ctx, cancel := limit(s.ctx, s.connection.client.clock, writeLimit, errNotReading)
			err := s.conn.Write(ctx, websocket.MessageText, frame)
			cause := context.Cause(ctx)
			cancel()
			if err != nil {
				if errors.Is(cause, errNotReading) {
					err = errNotReading
				}
				s.fail(err)
				return
			}
		}
	}
}

// tend pings the peer and ends the WebSocket with the socket, without a closing
// handshake that a silent peer could hold up.
func (s *socket) tend() {
	defer func() { _ = s.conn.CloseNow() }()
	for wait(s.ctx, s.connection.client.clock, pingInterval) == nil {
		if !s.isAnswered() {
			s.fail(errSilent)
			return
		}
	}
}

// isAnswered pings up to twice; data that arrives counts as an answer. A ping whose
// context ends while it is written would end the connection, so that is left to the
// end of the wait.
func (s *socket) isAnswered() bool {
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	before := s.received.Load()
	pongs := make(chan error, 2)
	for range cap(pongs) {
		s.tasks.Go(func() { pongs <- s.conn.Ping(ctx) })
		fired, stop := timer(s.connection.client.clock, pongLimit)
		select {
		case <-pongs: // An error comes of a closed connection, which the reader reports.
			stop()
			return true
		case <-ctx.Done():
			stop()
			return true
		case <-fired:
		}
		if s.received.Load() != before {
			return true
		}
	}
	return false
}
