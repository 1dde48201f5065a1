//go:build unix

package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// pollInterval is how soon a reader that went away is noticed, in milliseconds.
const pollInterval = 100

// watchReader calls gone when out is a pipe that nobody reads any more: a market
// that is served writes nothing for hours and would never learn it by writing.
// The function it returns ends the watch.
func watchReader(out *os.File, gone func()) (end func()) {
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		// No event is asked for: that the other end is closed is always told.
		poll := []unix.PollFd{{Fd: int32(out.Fd())}}
		for {
			select {
			case <-stop:
				return
			default:
			}
			if n, err := unix.Poll(poll, pollInterval); err != nil && err != unix.EINTR {
				return
			} else if n > 0 {
				if poll[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0 {
					gone()
				}
				return
			}
		}
	}()
	return func() {
		close(stop)
		<-ended
	}
}
