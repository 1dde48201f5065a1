package relay

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"
)

// patience is how long a test waits for what must happen at once.
const patience = 20 * time.Second

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
	return &manualClock{now: time.Unix(1_767_225_600, 0), changed: make(chan struct{})}
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

// advance moves the clock and runs what has become due.
func (c *manualClock) advance(d time.Duration) {
	c.mu.Lock()
	c.now = c.now.Add(d)
	var due []*manualTimer
	c.timers = slices.DeleteFunc(c.timers, func(t *manualTimer) bool {
		if t.due.After(c.now) {
			return false
		}
		due = append(due, t)
		return true
	})
	c.mu.Unlock()
	slices.SortStableFunc(due, func(a, b *manualTimer) int { return a.due.Compare(b.due) })
	for _, t := range due {
		t.f()
	}
}

// jump moves the clock once no frame is being written: a write that has just reached
// the relay would otherwise seem to have taken all that time.
func (c *manualClock) jump(t testing.TB, d time.Duration) {
	t.Helper()
	c.awaitWrites(t)
	c.advance(d)
}

func (c *manualClock) awaitWrites(t testing.TB) {
	t.Helper()
	eventually(t, "no frame is being written", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return !slices.ContainsFunc(c.timers, func(timer *manualTimer) bool { return timer.span == writeLimit })
	})
}

// fire waits until somebody waits for just this span and moves the clock to its end.
func (c *manualClock) fire(t testing.TB, span time.Duration) {
	t.Helper()
	if span != writeLimit {
		c.awaitWrites(t)
	}
	deadline := time.After(patience)
	for {
		c.mu.Lock()
		at := slices.IndexFunc(c.timers, func(timer *manualTimer) bool { return timer.span == span })
		changed := c.changed
		var left time.Duration
		if at >= 0 {
			left = c.timers[at].due.Sub(c.now)
		}
		c.mu.Unlock()
		if at >= 0 {
			c.advance(left)
			return
		}
		select {
		case <-changed:
		case <-deadline:
			t.Fatalf("nobody waits for %v", span)
		}
	}
}

func TestBackoff(t *testing.T) {
	t.Parallel()
	for attempt, want := range []time.Duration{
		500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 8 * time.Second,
	} {
		if got := backoff(attempt, 0.5); got != want {
			t.Errorf("attempt %d waits %v, want %v", attempt, got, want)
		}
	}
	if low, high := backoff(0, 0), backoff(0, 0.999); low != 400*time.Millisecond || high <= 590*time.Millisecond || high > 600*time.Millisecond {
		t.Errorf("the spread is %v to %v, want a fifth to either side", low, high)
	}
}

func TestLimitTellsWhy(t *testing.T) {
	t.Parallel()
	clock, reason := newManualClock(), errors.New("too slow")
	ctx, cancel := limit(context.Background(), clock, time.Second, reason)
	defer cancel()
	clock.fire(t, time.Second)
	<-ctx.Done()
	if context.Cause(ctx) != reason {
		t.Errorf("the cause is %v", context.Cause(ctx))
	}
}
