// Package logsink stands between the loggers and stderr, so that nobody ever waits
// for whoever reads stderr: lines are copied into a bounded buffer and written by
// one goroutine. When the buffer is full whole lines are dropped, and as soon as
// there is room again one line tells how many were.
//
// It knows lines and nothing of what is in them; redaction is the business of the
// writer it is given. Put together, so that no request waits for redaction either:
//
//	sink := logsink.New(redact.Writer(os.Stderr), 0, time.Now)
//	logger := zerolog.New(sink).Hook(logsink.NewTimestamp(time.Now))
//	…
//	sink.Close(ctx) // last of all, with a deadline
package logsink

import (
	"bytes"
	"context"
	"io"
	"strconv"
	"sync"
	"time"
)

// DefaultLimit is how many bytes of lines wait at most when New is given 0.
const DefaultLimit = 4 << 20

// batch is how much is written at once. Where somebody reads slowly it is also how
// much room comes free at once.
const batch = 64 << 10

// gather is how long the goroutine lets lines collect before it writes them: one
// system call for many lines, at the price of a delay nobody notices in a log.
const gather = 2 * time.Millisecond

// Sink is an io.Writer that never blocks and never fails.
type Sink struct {
	next  io.Writer
	limit int
	now   func() time.Time

	mu      sync.Mutex
	waiting []byte
	// held counts the bytes in waiting and those being written.
	held    int
	dropped uint64
	closed  bool
	broken  bool

	wake chan struct{}
	done chan struct{}
}

// New starts a sink that writes to next and holds at most limit bytes (0 =
// DefaultLimit). The time stands in the line that tells of dropped lines. Close
// ends its goroutine.
func New(next io.Writer, limit int, now func() time.Time) *Sink {
	if limit <= 0 {
		limit = DefaultLimit
	}
	s := &Sink{next: next, limit: limit, now: now, wake: make(chan struct{}, 1), done: make(chan struct{})}
	go s.run()
	return s
}

// Write takes one or more whole lines, or drops them when there is no room. It
// keeps no reference to them, and reports them written either way.
func (s *Sink) Write(lines []byte) (int, error) {
	wake := false
	s.mu.Lock()
	switch {
	case s.closed || s.broken:
	case s.held+len(lines) > s.limit:
		s.dropped += uint64(max(1, bytes.Count(lines, newline)))
		wake = true
	default:
		wake = len(s.waiting) == 0
		s.waiting = append(s.waiting, lines...)
		s.held += len(lines)
	}
	s.mu.Unlock()
	if wake {
		s.signal()
	}
	return len(lines), nil
}

// Close writes what waits and ends the goroutine, at the latest when ctx does; it
// then returns ctx's error, and the goroutine ends when its write returns. Lines
// written after Close are discarded.
func (s *Sink) Close(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.signal()
	select {
	case <-s.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

var newline = []byte{'\n'}

func (s *Sink) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *Sink) run() {
	defer close(s.done)
	var spare []byte
	for range s.wake {
		for {
			lines, dropped, closed := s.take(spare)
			s.write(lines)
			if dropped > 0 {
				s.writeOut(s.droppedLine(dropped))
			}
			if len(lines) == 0 {
				if closed {
					return
				}
				spare = unlessLarge(spare)
				break
			}
			spare = lines
			if !closed {
				time.Sleep(gather)
			}
		}
	}
}

// take hands the waiting lines over and puts the spare buffer in their place. When
// none wait, the buffers stay where they are.
func (s *Sink) take(spare []byte) (lines []byte, dropped uint64, closed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) > 0 {
		lines, s.waiting = s.waiting, spare[:0]
	} else {
		s.waiting = unlessLarge(s.waiting)
	}
	dropped, s.dropped = s.dropped, 0
	return lines, dropped, s.closed
}

// unlessLarge lets go of a buffer that a burst has made large.
func unlessLarge(buffer []byte) []byte {
	if cap(buffer) > 4*batch {
		return nil
	}
	return buffer
}

// write writes the lines in batches of whole lines and makes room after each.
func (s *Sink) write(lines []byte) {
	for len(lines) > 0 {
		size := len(lines)
		if size > batch {
			if end := bytes.LastIndexByte(lines[:batch], '\n'); end >= 0 {
				size = end + 1
			} else if end := bytes.IndexByte(lines, '\n'); end >= 0 {
				size = end + 1
			}
		}
		s.writeOut(lines[:size])
		s.mu.Lock()
		s.held -= size
		s.mu.Unlock()
		lines = lines[size:]
	}
}

// writeOut writes once. After a failure, which means that nobody will ever read
// again, everything is discarded.
func (s *Sink) writeOut(lines []byte) {
	s.mu.Lock()
	broken := s.broken
	s.mu.Unlock()
	if broken {
		return
	}
	if _, err := s.next.Write(lines); err != nil {
		s.mu.Lock()
		s.broken = true
		s.mu.Unlock()
	}
}

func (s *Sink) droppedLine(count uint64) []byte {
	line := []byte(`{"level":"warn","time":"`)
	line = s.now().UTC().AppendFormat(line, time.RFC3339Nano)
	line = append(line, `","event":"logDropped","count":`...)
	line = strconv.AppendUint(line, count, 10)
	return append(line, "}\n"...)
}
