package relayproxy

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

// Counters tell what has come in and gone out since the relay was started.
type Counters struct {
	Connections int `json:"connections"` // WebSocket connections made
	Refused     int `json:"refused"`     // attempts turned away by a fault
	Open        int `json:"open"`        // connections open now
	REQs        int `json:"reqs"`
	CLOSEs      int `json:"closes"`
	EVENTs      int `json:"events"`
	AUTHs       int `json:"auths"`
	SentEvents  int `json:"sentEvents"` // EVENT frames sent to clients
	SentEOSEs   int `json:"sentEoses"`
}

// Frame is one frame a client has sent.
type Frame struct {
	// Connection counts from 1 in the order connections were made.
	Connection int
	// Label is REQ, EVENT, AUTH, CLOSE or whatever the client wrote.
	Label string
	Text  string
}

// maxFrames is how many received frames are kept; the oldest go first.
const maxFrames = 4096

// ledger keeps the counters and wakes those who wait for them.
type ledger struct {
	mu       sync.Mutex
	counters Counters
	frames   []Frame
	changed  chan struct{}
}

func newLedger() *ledger { return &ledger{changed: make(chan struct{})} }

func (l *ledger) count(change func(*Counters)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(&l.counters)
	l.wake()
}

func (l *ledger) received(frame Frame) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch frame.Label {
	case "REQ":
		l.counters.REQs++
	case "CLOSE":
		l.counters.CLOSEs++
	case "EVENT":
		l.counters.EVENTs++
	case "AUTH":
		l.counters.AUTHs++
	}
	if len(l.frames) == maxFrames {
		l.frames = slices.Delete(l.frames, 0, maxFrames/4)
	}
	l.frames = append(l.frames, frame)
	l.wake()
}

// wake tells waiting goroutines that something changed; the caller holds mu.
func (l *ledger) wake() {
	close(l.changed)
	l.changed = make(chan struct{})
}

func (l *ledger) snapshot() (Counters, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.counters, l.changed
}

func (l *ledger) copyFrames() []Frame {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.frames)
}

func (l *ledger) wait(ctx context.Context, reached func(Counters) bool) (Counters, error) {
	for {
		counters, changed := l.snapshot()
		if reached(counters) {
			return counters, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return counters, fmt.Errorf("the relay did not come to what was waited for, it stands at %+v: %w", counters, ctx.Err())
		}
	}
}
