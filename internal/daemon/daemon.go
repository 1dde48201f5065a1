package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"hostr-daemon/internal/request"
)

// Product is everything behind the protocol. All methods are called concurrently
// and honour ctx: it carries the caller's trace id and a logger, and it ends when
// the request is cancelled, exceeds its time or the daemon ends. A *fault.Error
// travels as it is, any other error as unexpected_error.
type Product interface {
	// Describe returns the catalog, a JSON object (spec 10 §3.1).
	Describe(ctx context.Context) (json.RawMessage, error)
	// VisibleActions returns what encodes to the object of spec 10 §3.2.
	VisibleActions(ctx context.Context, pubkey string) (any, error)
	CallAction(ctx context.Context, call request.Action) (request.Outcome, error)
	UploadImage(ctx context.Context, upload request.Upload) (request.Outcome, error)
	LogoutSession(ctx context.Context, pubkey string) (request.Outcome, error)
	StartOAuthNostrConnect(ctx context.Context, start request.OAuthNostrConnect) (request.Outcome, error)
	CompleteOAuthNostrConnect(ctx context.Context, complete request.OAuthNostrConnect) (request.Outcome, error)
	CompleteOAuthNSec(ctx context.Context, complete request.OAuthNSec) (request.Outcome, error)
	// TimeLimit is the longest this call may take, counted from its arrival, before it
	// is answered for it; 0 means the default. It is called by the reader: it must not
	// wait for anything.
	TimeLimit(call request.Action) time.Duration
	// WaitsForPerson reports whether the call is cancelled at the end of the input
	// instead of waited for: a session connect that waits for a signer.
	WaitsForPerson(call request.Action) bool
}

// Limits bound what the daemon holds and how long it waits. A zero field means its
// default.
type Limits struct {
	Slots         int           // requests that run at once; 16
	Queue         int           // requests that wait for a slot; 512
	QueueBytes    int           // lines of all requests that wait or whose work has not ended; 512 MiB, or one line
	CatalogSlots  int           // describe and visibleActions that run at once, beside the slots; 4
	Abandoned     int           // goroutines still busy with answered requests before new ones are busy; 64
	LineBytes     int           // length of a request line; 256 MiB
	BacklogBytes  int           // frames waiting for the output before the reader pauses; 64 MiB
	BacklogFrames int           // the same, counted in frames; 65,536
	LogBytes      int           // length of params, result and details in one log line; 8 KiB
	CatalogBytes  int           // the same for the results of describe and visibleActions, which repeat; 1 KiB
	Time          time.Duration // of a request for which the product names no limit; 110 s
	Drain         time.Duration // for running requests after the end of the input; 30 s
	Leftover      time.Duration // for the goroutines of answered requests after that; 1 s
	Stop          time.Duration // for frames and goroutines when there is no drain; 100 ms
}

func (l Limits) withDefaults() Limits {
	setDefault(&l.Slots, 16)
	setDefault(&l.Queue, 512)
	setDefault(&l.QueueBytes, 512<<20)
	setDefault(&l.CatalogSlots, 4)
	setDefault(&l.Abandoned, 64)
	setDefault(&l.LineBytes, 256<<20)
	setDefault(&l.BacklogBytes, 64<<20)
	setDefault(&l.BacklogFrames, 64<<10)
	setDefault(&l.LogBytes, 8<<10)
	setDefault(&l.CatalogBytes, 1<<10)
	setDefault(&l.Time, 110*time.Second)
	setDefault(&l.Drain, 30*time.Second)
	setDefault(&l.Leftover, time.Second)
	setDefault(&l.Stop, 100*time.Millisecond)
	return l
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Config is what a Daemon is made of.
type Config struct {
	Product Product
	// Environment stands in every envelope.
	Environment string
	// Logger takes the request log. It must not block, and what it writes must pass
	// redact.Writer: see package logsink.
	Logger zerolog.Logger
	// In and Out are the protocol's two streams, stdin and stdout. Where they can have
	// deadlines (a pipe in non-blocking mode) Run interrupts what still blocks in them
	// at its end; elsewhere one goroutine for each may outlive Run until its read or
	// write returns.
	In  io.Reader
	Out io.Writer
	// Limits are the bounds; zero fields have defaults.
	Limits Limits
}

// Daemon serves the line protocol on one input and one output.
type Daemon struct {
	product     Product
	environment string
	limits      Limits
	journal     journal
	in          io.Reader
	out         *outbox
	calls       *registry
	schedule    *schedule
	catalog     catalogText

	// base is the context of all requests; stop ends it.
	base context.Context
	stop context.CancelCauseFunc

	// dropped counts the notifications that a stalled output has cost since the last
	// one that was sent.
	dropped atomic.Uint64
	ended   atomic.Bool
}

// ErrOutput is wrapped by Run's error when the output could not be written.
var ErrOutput = errors.New("writing to the output failed")

// New returns a daemon that does nothing yet but queue notifications.
func New(config Config) *Daemon {
	limits := config.Limits.withDefaults()
	d := &Daemon{
		product:     config.Product,
		environment: config.Environment,
		limits:      limits,
		journal:     journal{logger: config.Logger, limit: limits.LogBytes},
		in:          config.In,
		out:         newOutbox(config.Out, limits.BacklogBytes, limits.BacklogFrames),
		calls:       newRegistry(),
	}
	d.schedule = newSchedule(limits, d.work)
	return d
}

// Run serves until one of these, and may be called once:
//   - the input ends: what runs and waits is finished within Limits.Drain, except
//     what waits for a person, which is cancelled; then nil. An input that fails ends
//     the same way, with its error;
//   - ctx ends: everything is cancelled, answered as such if the output takes it, and
//     the cause of ctx is returned within 200 ms;
//   - the output fails: everything is cancelled and an error that is ErrOutput is
//     returned.
//
// Goroutines of the product that ignore their context may outlive Run.
func (d *Daemon) Run(ctx context.Context) error {
	d.base, d.stop = context.WithCancelCause(ctx)
	defer d.stop(nil)
	go d.out.run()
	input := &inputEnd{reached: make(chan struct{})}
	go d.read(input)
	select {
	case <-input.reached:
		d.drain(ctx)
	case <-ctx.Done():
	case <-d.out.failed:
	}
	d.halt()
	verdict := d.verdict(ctx, input)
	d.release(input)
	return verdict
}

// inputEnd tells that and why reading has ended.
type inputEnd struct {
	reached chan struct{}
	err     error // set before reached is closed; io.EOF as a rule
}

func (d *Daemon) verdict(ctx context.Context, input *inputEnd) error {
	if err := d.out.failure(); err != nil {
		return fmt.Errorf("%w: %w", ErrOutput, err)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if input.err != io.EOF { // reached: neither of the others ended the run
		return fmt.Errorf("reading the input failed: %w", input.err)
	}
	return nil
}

// drain waits for the answers to what is open and for the output to take them. It
// does not wait long for goroutines behind them: nobody hears of their work.
func (d *Daemon) drain(ctx context.Context) {
	answered := d.calls.close()
	for _, c := range d.calls.all() {
		if d.waitsForPerson(c) {
			d.abandon(c, errEnding)
		}
	}
	timeout := time.NewTimer(d.limits.Drain)
	defer timeout.Stop()
	wait := func(finished <-chan struct{}) bool {
		select {
		case <-finished:
			return true
		case <-timeout.C:
		case <-ctx.Done():
		case <-d.out.failed:
		}
		return false
	}
	if !wait(answered) {
		return
	}
	d.out.close()
	if wait(d.out.done) {
		timeout.Reset(d.limits.Leftover)
		wait(d.schedule.stop())
	}
}

// halt ends what is left: it cancels, and waits for the last answers, the output
// and the goroutines, but altogether no longer than Limits.Stop.
func (d *Daemon) halt() {
	d.ended.Store(true)
	answered := d.calls.close()
	d.stop(errEnding)
	timeout := time.After(d.limits.Stop)
	wait := func(finished <-chan struct{}) bool {
		select {
		case <-finished:
			return true
		case <-timeout:
			return false
		}
	}
	inTime := wait(answered)
	d.out.close()
	quiet := d.schedule.stop()
	_ = inTime && wait(d.out.done) && wait(quiet)
}

// release makes a blocked read or write return, on streams that can have deadlines,
// and waits for their goroutines.
func (d *Daemon) release(input *inputEnd) {
	timeout := time.After(d.limits.Stop)
	wait := func(finished <-chan struct{}) {
		select {
		case <-finished:
		case <-timeout:
		}
	}
	if pipe, ok := d.out.out.(interface{ SetWriteDeadline(time.Time) error }); ok && pipe.SetWriteDeadline(time.Now()) == nil {
		wait(d.out.done)
		_ = pipe.SetWriteDeadline(time.Time{})
	}
	if pipe, ok := d.in.(interface{ SetReadDeadline(time.Time) error }); ok && pipe.SetReadDeadline(time.Now()) == nil {
		wait(input.reached)
		_ = pipe.SetReadDeadline(time.Time{})
	}
}

// Notify sends a notification (spec 10 §5); params must encode to a JSON object. It
// never blocks: while the output is stalled and the backlog is at its bound, and
// after the end, the notification is lost.
func (d *Daemon) Notify(method string, params any) {
	text, err := encodeObject(params)
	if err != nil {
		d.journal.unexpected(header{id: nullText, method: []byte(method)}, fmt.Sprintf("the notification %s was not sent: %v", method, err), nil)
		return
	}
	frame := appendString([]byte(`{"method":`), method)
	frame = append(append(frame, `,"params":`...), text...)
	if !d.out.offer(append(frame, "}\n"...)) {
		if d.dropped.Add(1) == 1 {
			d.journal.notificationsDropped(1)
		}
		return
	}
	if dropped := d.dropped.Swap(0); dropped > 1 {
		d.journal.notificationsDropped(dropped - 1)
	}
}
