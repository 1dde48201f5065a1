package relay

import (
	"context"
	"time"
)

// Clock is the time a client runs on, so that tests can hold it still.
type Clock interface {
	Now() time.Time
	// AfterFunc calls f in a goroutine of its own once d has passed. The returned
	// function keeps that from happening and reports whether it did.
	AfterFunc(d time.Duration, f func()) (stop func() bool)
}

// SystemClock is the clock of the machine.
type SystemClock struct{}

// Now returns the present time.
func (SystemClock) Now() time.Time { return time.Now() }

// AfterFunc is time.AfterFunc.
func (SystemClock) AfterFunc(d time.Duration, f func()) func() bool {
	return time.AfterFunc(d, f).Stop
}

// wait returns once d has passed, or earlier with the reason the context ended.
func wait(ctx context.Context, clock Clock, d time.Duration) error {
	fired, stop := timer(clock, d)
	defer stop()
	select {
	case <-fired:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// timer returns a channel that is closed once d has passed.
func timer(clock Clock, d time.Duration) (fired <-chan struct{}, stop func() bool) {
	channel := make(chan struct{})
	return channel, clock.AfterFunc(d, func() { close(channel) })
}

// limit returns a context that ends with the given cause once d has passed.
func limit(ctx context.Context, clock Clock, d time.Duration, cause error) (context.Context, context.CancelFunc) {
	limited, cancel := context.WithCancelCause(ctx)
	stop := clock.AfterFunc(d, func() { cancel(cause) })
	return limited, func() {
		stop()
		cancel(context.Canceled)
	}
}

// backoff grows from half a second by doubling to 8 s and is spread by a fifth
// to either side, so that clients which lost a relay together do not return
// together. spread is in [0,1).
func backoff(attempt int, spread float64) time.Duration {
	const first, longest = 500 * time.Millisecond, 8 * time.Second
	delay := longest
	if attempt < 4 {
		delay = first << attempt
	}
	return time.Duration(float64(delay) * (0.8 + 0.4*spread))
}

// stopwatch adds up spans of time that may overlap.
type stopwatch struct {
	running int
	since   time.Time
	spent   time.Duration
}

func (s *stopwatch) start(now time.Time) {
	if s.running == 0 {
		s.since = now
	}
	s.running++
}

func (s *stopwatch) stop(now time.Time) {
	s.running--
	if s.running == 0 {
		s.spent += now.Sub(s.since)
	}
}

func (s *stopwatch) total(now time.Time) time.Duration {
	if s.running > 0 {
		return s.spent + now.Sub(s.since)
	}
	return s.spent
}
