package signer

import (
	"slices"
	"sync"
	"testing"
	"time"
)

// manualClock stands still until a test moves it.
type manualClock struct {
	mu      sync.Mutex
	now     time.Time
	timers  []*manualTimer
	changed chan struct{}
}

type manualTimer struct {
	due  time.Time
	span time.Duration
	f    func()
}

func newManualClock() *manualClock {
	return &manualClock{now: time.Now(), changed: make(chan struct{})}
}

func (c *manualClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *manualClock) AfterFunc(d time.Duration, f func()) func() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	added := &manualTimer{due: c.now.Add(d), span: d, f: f}
	c.timers = append(c.timers, added)
	close(c.changed)
	c.changed = make(chan struct{})
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		before := len(c.timers)
		c.timers = slices.DeleteFunc(c.timers, func(t *manualTimer) bool { return t == added })
		return len(c.timers) < before
	}
}

// fire waits until somebody waits for just this span and ends that wait. The clock
// moves on by the span, other waits go on.
func (c *manualClock) fire(t testing.TB, span time.Duration) {
	t.Helper()
	deadline := time.After(patience)
	for {
		c.mu.Lock()
		at := slices.IndexFunc(c.timers, func(timer *manualTimer) bool { return timer.span == span })
		changed := c.changed
		if at >= 0 {
			fired := c.timers[at]
			c.timers = slices.Delete(c.timers, at, at+1)
			c.now = c.now.Add(span)
			c.mu.Unlock()
			fired.f()
			return
		}
		c.mu.Unlock()
		select {
		case <-changed:
		case <-deadline:
			t.Fatalf("nobody waits for %v", span)
		}
	}
}

func TestDoubled(t *testing.T) {
	t.Parallel()
	for n, want := range []time.Duration{10 * time.Second, 20 * time.Second, 40 * time.Second, time.Minute, time.Minute} {
		if got := doubled(repeatFirst, repeatLongest, n); got != want {
			t.Errorf("wait %d is %v, want %v", n, got, want)
		}
	}
}
