package signer

import (
	"context"
	"time"

	"hostr-daemon/internal/relay"
)

// timer returns a channel that is closed once d has passed.
func timer(clock relay.Clock, d time.Duration) (fired <-chan struct{}, stop func() bool) {
	channel := make(chan struct{})
	return channel, clock.AfterFunc(d, func() { close(channel) })
}

// wait returns false when the context ends before d has passed.
func wait(ctx context.Context, clock relay.Clock, d time.Duration) bool {
	fired, stop := timer(clock, d)
	defer stop()
	select {
	case <-fired:
		return true
	case <-ctx.Done():
		return false
	}
}

// doubled returns first, doubled n times, at most longest.
func doubled(first, longest time.Duration, n int) time.Duration {
	for ; n > 0 && first < longest; n-- {
		first *= 2
	}
	return min(first, longest)
}
