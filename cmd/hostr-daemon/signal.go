package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// lastMoment is when a signal ends the process whatever still holds it: the bridge
// waits one second, we promise half of one.
const lastMoment = 450 * time.Millisecond

// signalCause is why a context ended.
type signalCause struct{ signal syscall.Signal }

func (c signalCause) Error() string { return "ended by " + c.signal.String() }

// endOnSignal returns a context that SIGTERM and SIGINT end. From then on the
// process has until lastMoment. The function gives the signals back.
func endOnSignal() (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	stopped := make(chan struct{})
	go func() {
		select {
		case received := <-signals:
			number, _ := received.(syscall.Signal)
			time.AfterFunc(lastMoment, func() { os.Exit(exitSignal + int(number)) })
			cancel(signalCause{number})
		case <-stopped:
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(stopped)
		cancel(nil)
	}
}

// orSignal is the exit by the signal that has ended the context, else err.
func orSignal(ctx context.Context, err error) error {
	var cause signalCause
	if errors.As(context.Cause(ctx), &cause) {
		return exit(exitSignal + int(cause.signal))
	}
	return err
}

// failOnBrokenPipe makes a reader that is gone an error of the write, so that the
// database is closed, instead of the signal that kills the process. Unlike ignoring
// the signal that is not handed on to child processes.
func failOnBrokenPipe() {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
}
