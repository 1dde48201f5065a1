package daemon

import (
	"fmt"
	"strings"
	"sync"
)

// place is where a call stands in the schedule.
type place int

const (
	arriving place = iota
	queued
	running
	// left is a call that has been answered before its turn or before its work ended.
	left
)

// schedule decides which calls run: in each lane so many at once, and so many more
// that wait, in order of arrival. A call that was answered before its work returned
// gives its slot back at once; its goroutine counts as abandoned until it ends, and
// its line as kept.
type schedule struct {
	work func(*call)

	mu      sync.Mutex
	actions lane
	catalog lane
	// kept is the length of the lines of all calls that wait or have a goroutine.
	kept, maxKept int
	// goroutines counts those that run or are abandoned.
	goroutines int
	stopped    bool
	// quiet is closed when the last goroutine ends; nil while nobody waits for that.
	quiet chan struct{}
}

// lane is a number of slots with a queue behind them.
type lane struct {
	slots, queue, abandonable  int
	running, queued, abandoned int
	first, last                *call
}

func newSchedule(limits Limits, work func(*call)) *schedule {
	return &schedule{
		work:    work,
		maxKept: limits.QueueBytes,
		actions: lane{slots: limits.Slots, queue: limits.Queue, abandonable: limits.Abandoned},
		catalog: lane{slots: limits.CatalogSlots, queue: limits.Queue, abandonable: limits.Abandoned},
	}
}

// admit starts the call, or queues it. It refuses when the queue is full, when too
// many goroutines are abandoned, and when too many bytes are kept; a single line is
// never too long for that. A call that was answered while it arrived counts as
// admitted.
func (s *schedule) admit(c *call) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.place == left {
		return true
	}
	l := s.laneOf(c)
	switch {
	case s.stopped, l.abandoned > l.abandonable, s.kept > 0 && s.kept+c.size > s.maxKept:
		return false
	case l.running < l.slots:
		s.start(l, c)
	case l.queued < l.queue:
		c.place = queued
		l.push(c)
	default:
		return false
	}
	s.kept += c.size
	return true
}

// leave takes an answered call out: of the queue, or of its slot.
func (s *schedule) leave(c *call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.laneOf(c)
	switch c.place {
	case queued:
		l.remove(c)
		s.kept -= c.size
	case running:
		l.abandoned++
		l.running--
		s.startNext(l)
	}
	c.place = left
}

// ended is called by a call's goroutine when it ends.
func (s *schedule) ended(c *call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.laneOf(c)
	if c.place == running {
		l.running--
		s.startNext(l)
	} else {
		l.abandoned--
	}
	c.place = left
	s.kept -= c.size
	if s.goroutines--; s.goroutines == 0 && s.quiet != nil {
		close(s.quiet)
		s.quiet = nil
	}
}

// stop lets nothing start any more and returns a channel that is closed when no
// goroutine is left.
func (s *schedule) stop() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	if s.quiet == nil {
		s.quiet = make(chan struct{})
	}
	quiet := s.quiet
	if s.goroutines == 0 {
		close(quiet)
		s.quiet = nil
	}
	return quiet
}

// load tells in words what stands in the way of a call of the same lane.
func (s *schedule) load(c *call) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.laneOf(c)
	var parts []string
	tell := func(count int, format string) {
		if count > 0 {
			parts = append(parts, fmt.Sprintf(format, count))
		}
	}
	tell(l.running, "%d run")
	tell(l.queued, "%d wait")
	tell(l.abandoned, "%d still end after they were answered")
	tell(s.kept>>20, "their lines take %d MiB")
	if len(parts) == 0 {
		return "the daemon is shutting down"
	}
	return strings.Join(parts, ", ")
}

func (s *schedule) laneOf(c *call) *lane {
	if c.method.catalog {
		return &s.catalog
	}
	return &s.actions
}

func (s *schedule) startNext(l *lane) {
	if c := l.first; c != nil && !s.stopped {
		l.remove(c)
		s.start(l, c)
	}
}

func (s *schedule) start(l *lane, c *call) {
	c.place = running
	l.running++
	s.goroutines++
	go s.work(c)
}

func (l *lane) push(c *call) {
	c.previous = l.last
	if l.last == nil {
		l.first = c
	} else {
		l.last.next = c
	}
	l.last = c
	l.queued++
}

func (l *lane) remove(c *call) {
	if c.previous == nil {
		l.first = c.next
	} else {
		c.previous.next = c.next
	}
	if c.next == nil {
		l.last = c.previous
	} else {
		c.next.previous = c.previous
	}
	c.previous, c.next = nil, nil
	l.queued--
}
