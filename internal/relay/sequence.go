package relay

import (
	"sync"

	"github.com/nbd-wtf/go-nostr"
)

// sequence verifies the events of one REQ in parallel and hands them on in the
// order of their frames. Adding never blocks; what may wait in it is bounded by
// the receiver, which is asked before.
type sequence struct {
	verifier *Verifier
	// deliver is called for each event, one at a time, in order, and must not block.
	deliver func(event *nostr.Event, size int, genuine bool)

	mu    sync.Mutex
	items []*sequenced
	// taken is how many of items were given to workers or need none.
	taken     int
	scheduled bool
	flushing  bool
	closed    bool
}

// sequenced is one event on its way through a sequence, or a mark between events.
type sequenced struct {
	event   *nostr.Event
	size    int
	genuine bool
	done    bool
	mark    func()
}

func newSequence(verifier *Verifier, deliver func(*nostr.Event, int, bool)) *sequence {
	return &sequence{verifier: verifier, deliver: deliver}
}

// add queues an event that took size bytes on the wire.
func (s *sequence) add(event *nostr.Event, size int) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return
	}
	s.items = append(s.items, &sequenced{event: event, size: size})
	schedule := !s.scheduled
	s.scheduled = true
	s.mu.Unlock()
	if schedule {
		s.verifier.add(s)
	}
}

// after calls mark once every event added before was handed on.
func (s *sequence) after(mark func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.items = append(s.items, &sequenced{mark: mark, done: true})
	s.flush()
}

// close drops what has not been handed on. A delivery under way may still end.
func (s *sequence) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.items, s.taken = nil, 0
}

// take gives a worker up to most events; more tells that others are left.
func (s *sequence) take(most int) (batch []*sequenced, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.taken < len(s.items) && len(batch) < most {
		if item := s.items[s.taken]; item.mark == nil {
			batch = append(batch, item)
		}
		s.taken++
	}
	more = s.taken < len(s.items)
	s.scheduled = more
	return batch, more
}

// checked takes a batch back from a worker.
func (s *sequence) checked(batch []*sequenced) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, item := range batch {
		item.done = true
	}
	s.flush()
}

// flush hands on what is done at the head. The lock is held on entry and exit but
// not during the calls; one caller flushes, the others leave it to him.
func (s *sequence) flush() {
	if s.flushing {
		return
	}
	s.flushing = true
	for ready := s.pop(); len(ready) > 0; ready = s.pop() {
		s.mu.Unlock()
		for _, item := range ready {
			s.hand(item)
		}
		s.mu.Lock()
	}
	s.flushing = false
}

func (s *sequence) hand(item *sequenced) {
	defer s.verifier.survive()
	if item.mark != nil {
		item.mark()
		return
	}
	s.deliver(item.event, item.size, item.genuine)
}

func (s *sequence) pop() []*sequenced {
	count := 0
	for count < len(s.items) && s.items[count].done {
		count++
	}
	ready := s.items[:count:count]
	s.items = s.items[count:]
	s.taken = max(0, s.taken-count)
	return ready
}
