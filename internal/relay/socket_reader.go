package relay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/coder/websocket"
)

func (s *socket) read() error {
	var buffer []byte
	for {
		// The socket's end closes the connection, which ends the read; a context of its
		// own would be set up anew for each frame.
		kind, reader, err := s.conn.Reader(context.Background())
		if err != nil {
			return s.readProblem(err)
		}
		buffer, err = s.readFrame(reader, buffer[:0])
		if err != nil {
			return s.readProblem(err)
		}
		if kind == websocket.MessageText {
			s.receive(buffer)
		}
		if cap(buffer) > maxIdleBuffer {
			buffer = nil
		}
	}
}

// readFrame reads in pieces so that the pinger sees a long frame arrive.
func (s *socket) readFrame(from io.Reader, buffer []byte) ([]byte, error) {
	for {
		buffer = slices.Grow(buffer, 4<<10)
		count, err := from.Read(buffer[len(buffer):min(cap(buffer), len(buffer)+64<<10)])
		s.received.Add(int64(count))
		buffer = buffer[:len(buffer)+count]
		if err == io.EOF {
			return buffer, nil
		}
		if err != nil {
			return buffer, err
		}
	}
}

func (s *socket) readProblem(err error) error {
	var closed websocket.CloseError
	switch {
	case errors.Is(err, websocket.ErrMessageTooBig):
		return fmt.Errorf("the relay sent a message larger than %d MiB: %w",
			s.connection.client.dialer.frameLimit>>20, websocket.ErrMessageTooBig)
	case errors.As(err, &closed):
		return fmt.Errorf("the relay closed the connection (%d %s)", closed.Code, relayText(closed.Reason))
	default:
		return errSocketClosed
	}
}

// receive handles one frame. A panic on bytes from outside costs that frame only.
func (s *socket) receive(data []byte) {
	defer func() {
		if problem := recover(); problem != nil {
			s.connection.log.Error().Str("panic", fmt.Sprintf("%T", problem)).Msg("a frame of the relay caused a panic; it is dropped")
		}
	}()
	read, err := parseFrame(data)
	if err != nil {
		if s.unreadable++; s.unreadable == 1 {
			s.connection.log.Debug().Int("bytes", len(data)).Msg("the relay sends frames that cannot be read; they are dropped")
		}
		return
	}
	switch read.label {
	case "EVENT":
		s.onEvent(read, len(data))
	case "EOSE":
		s.onEOSE(read)
	case "CLOSED":
		s.onClosed(read)
	case "OK":
		s.onOK(read)
	case "AUTH":
		s.onChallenge(read.text)
	case "NOTICE":
		if s.notices++; s.notices <= maxNotices {
			s.connection.log.Info().Str("notice", relayText(read.text)).Msg("relay notice")
		}
	}
}

// subscription returns the REQ an id belongs to, if it is open on this socket.
func (s *socket) subscription(id string) (w *wireSubscription, standing bool) {
	s.connection.mu.Lock()
	defer s.connection.mu.Unlock()
	w = s.connection.subscriptions[id]
	if w == nil || w.state != wireOpen {
		return nil, false
	}
	return w, w.standing
}

// eventOverhead is what an event takes in memory beside its text, in bytes.
const eventOverhead = 512

// onEvent drops what the REQ did not ask for and passes the rest to verification.
// After EOSE since and until are no longer compared.
func (s *socket) onEvent(read frame, size int) {
	w, standing := s.subscription(read.id)
	if w == nil {
		return
	}
	matches := standing && w.filter.MatchesIgnoringTimestampConstraints(read.event) || w.filter.Matches(read.event)
	if size += eventOverhead; matches && w.receiver.admit(read.event, size) {
		w.sequence.add(read.event, size)
	}
}

func (s *socket) onEOSE(read frame) {
	c := s.connection
	w, _ := s.subscription(read.id)
	switch {
	case w == nil:
	case w.live:
		c.mu.Lock()
		w.standing = true
		c.mu.Unlock()
		w.sequence.after(w.receiver.stored)
		c.tellRestored(w)
	default:
		c.finish(w, EndEOSE, "")
	}
}

// onClosed reacts by the prefix of the reason (NIP-01): some pass after an AUTH or
// a pause, the others end the REQ.
func (s *socket) onClosed(read frame) {
	c, reason := s.connection, relayText(read.text)
	reaction := reactionTo(reason)
	c.mu.Lock()
	w := c.subscriptions[read.id]
	if w == nil || w.state != wireOpen {
		c.mu.Unlock()
		return
	}
	w.state, w.reason = wireRetrying, reason
	pause := s.nextPause(w)
	hadRound := w.authRound == s
	if reaction == authenticateFirst {
		w.authRound = s
	}
	c.mu.Unlock()
	switch {
	case reaction == giveUp:
		c.finish(w, EndClosed, reason)
	case reaction == askLater:
		s.tasks.Go(func() {
			if wait(s.ctx, c.client.clock, pause) == nil {
				c.resend(w, s)
			}
		})
	case hadRound:
		s.refuse(w, reason)
	default:
		s.tasks.Go(func() { s.authenticateFor(w, reason) })
	}
}

// nextPause returns how long a closed REQ waits before it is sent again; one that
// had stood for a while starts anew. The lock is held.
func (s *socket) nextPause(w *wireSubscription) time.Duration {
	client := s.connection.client
	if client.clock.Now().Sub(w.sentAt) > settled {
		w.retries = 0
	}
	w.retries++
	return backoff(w.retries-1, client.jitter())
}

// authenticateFor does the one AUTH round of a REQ on this socket.
func (s *socket) authenticateFor(w *wireSubscription, reason string) {
	c := s.connection
	c.mu.Lock()
	generation := w.generation
	c.mu.Unlock()
	if err := s.authenticateAgain(s.ctx, generation); err != nil {
		if s.ctx.Err() == nil {
			s.refuse(w, reason)
		}
		return
	}
	c.resend(w, s)
}

// refuse ends a query, and lets a live REQ rest until an AUTH succeeds.
func (s *socket) refuse(w *wireSubscription, reason string) {
	c := s.connection
	if !w.live {
		c.finish(w, EndClosed, reason)
		return
	}
	c.mu.Lock()
	rests := w.state == wireRetrying
	if rests {
		w.state = wireDormant
	}
	c.mu.Unlock()
	if rests {
		w.sequence.after(func() { w.receiver.refused(reason) })
	}
}

func (s *socket) onOK(read frame) {
	answer := okAnswer{accepted: read.accepted, text: relayText(read.text)}
	c := s.connection
	c.mu.Lock()
	defer c.mu.Unlock()
	waits := s.publishes[read.id]
	if len(waits) == 0 {
		return
	}
	answered := waits[:1]
	if read.accepted {
		answered = waits
	}
	for _, waiting := range answered {
		waiting <- answer
	}
	if s.publishes[read.id] = waits[len(answered):]; len(waits) == len(answered) {
		delete(s.publishes, read.id)
	}
}
