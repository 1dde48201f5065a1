package daemon

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/trace"
)

// call is one request between its arrival and its answer.
type call struct {
	header
	method *method
	job    job
	// key is the name under which it can be cancelled, "" for none.
	key string
	// params is JSON text, for the log.
	params []byte
	// size is the length of the line, which the call keeps.
	size    int
	arrived time.Time
	limit   time.Duration

	// cancel ends ctx, with the cause when it is the first to do so.
	ctx    context.Context
	cancel func(cause error)
	// unwatch ends the watch that answers for the call when its context ends first.
	unwatch func() bool

	// settled is set by whoever answers, once.
	settled atomic.Bool

	// place, previous and next belong to the schedule.
	place          place
	previous, next *call
	// twin is the next call of the same key; it belongs to the registry.
	twin *call
}

// header is what a request's answer and its log lines repeat.
type header struct {
	// id is JSON text.
	id      []byte
	method  []byte
	traceID []byte // empty when there is none
}

// settle reports whether the caller is the one to answer.
func (c *call) settle() bool { return c.settled.CompareAndSwap(false, true) }

// Reasons for which a call is answered before its work has returned.
var (
	errCancelled = errors.New("the request was cancelled")
	errEnding    = errors.New("the daemon is shutting down")
	errTimeLimit = errors.New("the request took too long")
)

// open registers a call and lets it run or wait.
func (d *Daemon) open(c *call) {
	c.limit = d.timeLimit(c)
	ctx := trace.With(d.base, string(c.traceID))
	logger := d.journal.logger
	if len(c.traceID) > 0 {
		logger = logger.With().Bytes("traceId", cut(c.traceID)).Logger()
	}
	ctx, release := context.WithDeadlineCause(logger.WithContext(ctx), c.arrived.Add(c.limit), errTimeLimit)
	ctx, cancel := context.WithCancelCause(ctx)
	c.ctx, c.cancel = ctx, func(cause error) { cancel(cause); release() }
	if !d.calls.add(c) {
		c.cancel(errEnding)
		return
	}
	c.unwatch = context.AfterFunc(ctx, func() { d.abandon(c, context.Cause(ctx)) })
	if !d.schedule.admit(c) && c.settle() {
		d.answerBusy(c)
	}
}

// work runs a call in a slot and answers it, whatever becomes of it.
func (d *Daemon) work(c *call) {
	defer d.schedule.ended(c)
	if c.settled.Load() {
		return
	}
	started := time.Now()
	d.journal.request(c.header, c.params, started.Sub(c.arrived))
	buffer := frameBuffers.Get().(*[]byte)
	var a answer
	returned := false
	defer func() {
		if !returned { // a panic, or runtime.Goexit, which recovers nothing
			a = d.answerCrash(c, *buffer, recover())
		}
		d.finish(c, a, started)
		if len(a.frame) <= chunkSize {
			*buffer = a.frame[:0]
			frameBuffers.Put(buffer)
		}
	}()
	a = d.perform(c, (*buffer)[:0])
	returned = true
}

var frameBuffers = sync.Pool{New: func() any { return new([]byte) }}

// perform calls the product and makes the answer. The answer is encoded before the
// call is settled, so that encoding too has a time limit.
func (d *Daemon) perform(c *call, buffer []byte) answer {
	outcome, err := c.job.run(c.ctx, d.product)
	if err != nil {
		return d.answerFailure(c, buffer, err)
	}
	a, err := d.answerSuccess(c, buffer, outcome)
	if err != nil {
		a = d.answerProblem(c, buffer, fault.New(fault.UnexpectedError, "the result of %s could not be sent: %w", c.name(), err))
		a.unexpected = err.Error()
	}
	return a
}

// finish sends the answer of a call whose work has returned, unless it has been
// answered before. A call that was cancelled is answered as such, whatever its work
// has made of it. The answer goes first, its log line after it.
func (d *Daemon) finish(c *call, a answer, started time.Time) {
	if !c.settle() {
		return
	}
	if cause := context.Cause(c.ctx); cause != nil && !errors.Is(cause, errTimeLimit) {
		d.answerAbandoned(c, cause)
		return
	}
	c.unwatch()
	d.out.add(a.frame)
	c.cancel(nil)
	d.journalAnswer(c, a, time.Since(started))
	d.calls.remove(c)
}

// abandon answers a call whose work has not returned.
func (d *Daemon) abandon(c *call, cause error) {
	if c.settle() {
		d.answerAbandoned(c, cause)
	}
}

// answerAbandoned answers a settled call for the cause and gives its slot back.
func (d *Daemon) answerAbandoned(c *call, cause error) {
	c.cancel(cause)
	var a answer
	if errors.Is(cause, errTimeLimit) {
		a = d.answerProblem(c, nil, timeLimitProblem(c))
		a.unexpected = errTimeLimit.Error()
	} else {
		a = errorAnswer(nil, c.header, cancelledProblem(cause))
	}
	d.out.add(a.frame)
	if a.unexpected != "" {
		d.journalAnswer(c, a, time.Since(c.arrived))
	} else {
		d.journal.cancelled(c.header, a.issue.Message)
	}
	d.schedule.leave(c)
	d.calls.remove(c)
}

func (d *Daemon) answerBusy(c *call) {
	c.unwatch()
	c.cancel(nil)
	problem := fault.New(fault.Busy, "too many requests are under way: %s", d.schedule.load(c)).
		WithHint("Wait for answers before you send more, then send this request again.").Transient()
	a := d.answerProblem(c, nil, problem)
	d.out.add(a.frame)
	d.journal.request(c.header, c.params, 0)
	d.journalAnswer(c, a, 0)
	d.calls.remove(c)
}

func (d *Daemon) journalAnswer(c *call, a answer, elapsed time.Duration) {
	if a.unexpected != "" {
		d.journal.unexpected(c.header, a.unexpected, nil)
	}
	switch {
	case a.issue != nil:
		d.journal.failure(c.header, a.issue)
	case a.logged != nil:
		d.journal.redactedResponse(c.header, a.logged, elapsed)
	default:
		d.journal.response(c.header, a.result.Of(a.frame), elapsed)
	}
}

// name is what messages call the request.
func (c *call) name() string {
	if c.job.command != "" {
		return string(cut([]byte(c.job.command)))
	}
	return c.method.name
}

// timeLimit asks the product how long a call may take.
func (d *Daemon) timeLimit(c *call) time.Duration {
	if c.job.limit > 0 {
		return c.job.limit
	}
	if c.job.action != nil {
		if limit := ask(d, c, func() time.Duration { return d.product.TimeLimit(*c.job.action) }); limit > 0 {
			return limit
		}
	}
	return d.limits.Time
}

func (d *Daemon) waitsForPerson(c *call) bool {
	return c.job.waitsForPerson ||
		c.job.action != nil && ask(d, c, func() bool { return d.product.WaitsForPerson(*c.job.action) })
}

// ask returns the product's answer to a question about a call, the zero value when
// it panics.
func ask[T any](d *Daemon, c *call, question func() T) (reply T) {
	defer func() {
		if recovered := recover(); recovered != nil {
			d.journal.unexpected(c.header, fmt.Sprintf("panic: %v", recovered), debug.Stack())
		}
	}()
	return question()
}
