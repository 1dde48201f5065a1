package daemon_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"hostr-daemon/internal/daemon"
	"hostr-daemon/internal/request"
)

func callLine(id any, action string) string {
	return fmt.Sprintf(`{"id":%v,"method":"callAction","params":{"action":"%s"}}`, id, action)
}

func cancelLine(id, requestID any) string {
	return fmt.Sprintf(`{"id":"%v","method":"cancel","params":{"requestId":%v}}`, id, requestID)
}

func (b *blocker) awaitStart(t *testing.T) string {
	t.Helper()
	return receive(t, b.started, "no action started")
}

// TestSixteenRunTheSeventeenthWaits (spec 10 §4.1).
func TestSixteenRunTheSeventeenthWaits(t *testing.T) {
	t.Parallel()
	b := newBlocker()
	p := newPeer(t, &product{call: b.call})
	for i := range 17 {
		p.send(callLine(i, fmt.Sprint(i)))
	}
	running := make(map[string]bool)
	for range 16 {
		running[b.awaitStart(t)] = true
	}
	if running["16"] {
		t.Error("the seventeenth runs before one of the first sixteen is done")
	}
	p.send(cancelLine("c", `"nobody"`)) // never queues
	p.expect(`{"id":"c","result":{"cancelled":false,"requestId":"nobody"}}`)
	p.send(`{"id":"d","method":"describe"}`) // has slots of its own
	p.next()
	b.release <- struct{}{}
	if started := b.awaitStart(t); started != "16" {
		t.Errorf("%s started, not the seventeenth", started)
	}
	close(b.release)
	p.nextFrames(17)
	p.finish()
}

func TestQueueIsFirstInFirstOut(t *testing.T) {
	t.Parallel()
	b := newBlocker()
	p := newPeer(t, &product{call: b.call}, withLimits(daemon.Limits{Slots: 1}))
	var want []string
	for i := range 200 {
		action := fmt.Sprint(i)
		p.send(callLine(i, action))
		want = append(want, action)
	}
	p.send(cancelLine("c", 100)) // from the middle of the queue
	want = slices.Delete(want, 100, 101)
	p.expect(`{"id":"c","result":{"cancelled":true,"requestId":"100"}}`)
	p.expect(`{"id":100,"error":{"code":"request_cancelled","message":"the request was cancelled","retryable":false}}`)
	for _, action := range want {
		if started := b.awaitStart(t); started != action {
			t.Fatalf("%s started, it was the turn of %s", started, action)
		}
		b.release <- struct{}{}
		if f := parse(t, p.next()); string(f.ID) != action {
			t.Fatalf("%s was answered, %s had run", f.ID, action)
		}
	}
	p.finish()
}

func TestBusyPastTheQueue(t *testing.T) {
	t.Parallel()
	b := newBlocker()
	p := newPeer(t, &product{
		call:   b.call,
		logout: func(ctx context.Context, _ string) (request.Outcome, error) { return b.call(ctx, request.Action{}) },
	}, withLimits(daemon.Limits{Slots: 2, Queue: 3}))
	for i := range 5 {
		p.send(callLine(i, "x"))
	}
	p.send(`{"id":"a","traceId":"t","method":"callAction","params":{"action":"x"}}`, `{"id":"b","method":"logoutSession","params":{"pubkey":"p"}}`)
	f := parse(t, p.next())
	if e := f.envelope(t); string(f.ID) != `"a"` || e.OK || e.Command != "x" || e.TraceID != "t" || e.Errors[0].Code != "busy" || !*e.Errors[0].Retryable {
		t.Errorf("envelope: %+v", e)
	}
	if f := parse(t, p.next()); string(f.ID) != `"b"` || f.Error == nil || f.Error.Code != "busy" || !*f.Error.Retryable {
		t.Errorf("error frame: %+v", f)
	}
	p.send(cancelLine("c", 4), callLine(5, "x")) // room for one more
	p.next()
	p.next()
	close(b.release)
	p.nextFrames(5)
	p.finish()
}

// TestBusyPastTheQueuesBytes: what waits, runs or is abandoned is bounded in bytes too,
// but a single request is always taken.
func TestBusyPastTheQueuesBytes(t *testing.T) {
	t.Parallel()
	b := newBlocker()
	b.ignoresContext = true
	p := newPeer(t, &product{call: b.call}, withLimits(daemon.Limits{Slots: 1, QueueBytes: 2000}))
	line := func(id, length int) string { return callLine(id, strings.Repeat("x", length)) }
	p.send(line(1, 5000)) // more than the bound, but alone
	b.awaitStart(t)
	p.send(line(2, 1))
	if f := parse(t, p.next()); string(f.ID) != "2" || f.failure(t) != "busy" {
		t.Errorf("%+v", f)
	}
	p.send(cancelLine("c", 1), line(3, 1)) // its work goes on and keeps the line
	p.next()
	p.next()
	if f := parse(t, p.next()); string(f.ID) != "3" || f.failure(t) != "busy" {
		t.Errorf("%+v", f)
	}
	b.release <- struct{}{}
	for id := 4; ; id++ { // until its goroutine has ended
		p.send(line(id, 1), cancelLine("c", id))
		f, _ := parse(t, p.next()), p.next()
		if string(f.ID) == `"c"` {
			break
		}
		runtime.Gosched()
	}
	close(b.release)
	p.finish()
}

// TestQueuedBytesAreGivenBack by those that are cancelled and those that are done.
func TestQueuedBytesAreGivenBack(t *testing.T) {
	t.Parallel()
	b := newBlocker()
	p := newPeer(t, &product{call: b.call}, withLimits(daemon.Limits{Slots: 1, QueueBytes: 2000}))
	long := strings.Repeat("x", 1500)
	p.send(callLine(1, "x"))
	b.awaitStart(t)
	for range 3 {
		p.send(callLine(2, long), callLine(3, long))
		if f := parse(t, p.next()); string(f.ID) != "3" || f.failure(t) != "busy" {
			t.Errorf("%+v", f)
		}
		p.send(cancelLine("c", 2))
		p.nextFrames(2)
	}
	close(b.release)
	p.next()
	p.finish()
}

func TestBusyTellsNoZeroes(t *testing.T) {
	t.Parallel()
	b := newBlocker()
	p := newPeer(t, &product{call: b.call}, withLimits(daemon.Limits{Slots: 1, Queue: 1}))
	p.send(callLine(1, "x"), callLine(2, "x"), callLine(3, "x"))
	if message := parse(t, p.next()).envelope(t).Errors[0].Message; message != "too many requests are under way: 1 run, 1 wait" {
		t.Error(message)
	}
	close(b.release)
	p.nextFrames(2)
	p.finish()
}

func TestCatalogQueueIsBoundedToo(t *testing.T) {
	t.Parallel()
	b := newBlocker()
	p := newPeer(t, &product{visible: func(ctx context.Context, _ string) (any, error) {
		o, err := b.call(ctx, request.Action{})
		return o.Data, err
	}}, withLimits(daemon.Limits{CatalogSlots: 2, Queue: 3}))
	for i := range 6 {
		p.send(fmt.Sprintf(`{"id":%d,"method":"visibleActions"}`, i))
	}
	if f := parse(t, p.next()); string(f.ID) != "5" || f.Error == nil || f.Error.Code != "busy" {
		t.Errorf("%+v", f)
	}
	close(b.release)
	p.nextFrames(5)
	p.finish()
}

func TestCancelRunning(t *testing.T) {
	t.Parallel()
	b := newBlocker()
	b.ignoresContext = true // the answer comes at once all the same
	p := newPeer(t, &product{call: b.call}, withLimits(daemon.Limits{Slots: 1}))
	p.send(callLine(`"one"`, "x"))
	b.awaitStart(t)
	p.send(callLine(`"two"`, "y"), cancelLine("c", `"one"`))
	p.expect(`{"id":"c","result":{"cancelled":true,"requestId":"one"}}`)
	p.expect(`{"id":"one","error":{"code":"request_cancelled","message":"the request was cancelled","retryable":false}}`)
	if started := b.awaitStart(t); started != "y" { // the slot is free
		t.Errorf("%s started", started)
	}
	p.send(cancelLine("c", `"one"`))
	p.expect(`{"id":"c","result":{"cancelled":false,"requestId":"one"}}`)
	close(b.release)
	if f := parse(t, p.next()); string(f.ID) != `"two"` {
		t.Errorf("%s was answered", f.ID)
	}
	p.finish()
}

func TestCancelQueuedNeverRuns(t *testing.T) {
	t.Parallel()
	b := newBlocker()
	p := newPeer(t, &product{call: b.call}, withLimits(daemon.Limits{Slots: 1}))
	p.send(callLine(1, "one"))
	b.awaitStart(t)
	p.send(callLine(2, "two"), callLine(3, "three"), `{"id":"c","traceId":"t","method":"cancel","params":{"requestId":2}}`)
	p.expect(`{"id":"c","traceId":"t","result":{"cancelled":true,"requestId":"2"}}`)
	p.expect(`{"id":2,"error":{"code":"request_cancelled","message":"the request was cancelled","retryable":false}}`)
	b.release <- struct{}{}
	if started := b.awaitStart(t); started != "three" {
		t.Errorf("%s started", started)
	}
	close(b.release)
	p.nextFrames(2)
	p.finish()
}

// TestCancelFindsIDsByTheirText: a number and a string of the same text are one
// name, so are two requests of one id.
func TestCancelFindsIDsByTheirText(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ ids, requestID, key string }{
		"number by string":   {`7`, `"7"`, "7"},
		"string by number":   {`"7"`, `7`, "7"},
		"blanks around":      {`"7"`, `" 7 "`, "7"},
		"escapes":            {`"\u0061"`, `"a"`, "a"},
		"object":             {`{"a":1}`, `"{\"a\":1}"`, `{\"a\":1}`},
		"two of one id":      {`7 7`, `7`, "7"},
		"number and string":  {`7 "7" 7`, `7`, "7"},
		"beyond 64 bits":     {`123456789012345678901234567890`, `123456789012345678901234567890`, "123456789012345678901234567890"},
		"not the same texts": {`"7"`, `7.0`, "7.0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBlocker()
			p := newPeer(t, &product{call: b.call}, withLimits(daemon.Limits{Slots: 2}))
			ids := strings.Fields(test.ids)
			for _, id := range ids {
				p.send(callLine(id, "x"))
			}
			p.send(cancelLine("c", test.requestID))
			found := name != "not the same texts"
			p.expect(fmt.Sprintf(`{"id":"c","result":{"cancelled":%v,"requestId":"%s"}}`, found, test.key))
			if found {
				for _, id := range ids {
					p.expect(fmt.Sprintf(`{"id":%s,"error":{"code":"request_cancelled","message":"the request was cancelled","retryable":false}}`, id))
				}
			}
			close(b.release)
			if !found {
				p.next()
			}
			p.finish()
		})
	}
}

// TestTwinStaysCancellable: when one of two requests with one id is done the other
// can still be cancelled.
func TestTwinStaysCancellable(t *testing.T) {
	t.Parallel()
	b := newBlocker()
	quick := newBlocker()
	p := newPeer(t, &product{call: func(ctx context.Context, call request.Action) (request.Outcome, error) {
		if call.ID == "quick" {
			return quick.call(ctx, call)
		}
		return b.call(ctx, call)
	}})
	for _, order := range [][]string{{"quick", "slow", "slow"}, {"slow", "quick", "slow"}, {"slow", "slow", "quick"}} {
		for _, action := range order {
			p.send(callLine(1, action))
		}
		quick.awaitStart(t)
		quick.release <- struct{}{}
		if f := parse(t, p.next()); !f.envelope(t).OK {
			t.Errorf("%v: %+v", order, f)
		}
		p.send(cancelLine("c", 1))
		p.expect(`{"id":"c","result":{"cancelled":true,"requestId":"1"}}`)
		for range 2 {
			p.expect(`{"id":1,"error":{"code":"request_cancelled","message":"the request was cancelled","retryable":false}}`)
		}
	}
	p.finish()
}

func TestRequestsWithoutKeyCannotBeCancelled(t *testing.T) {
	t.Parallel()
	b := newBlocker()
	p := newPeer(t, &product{call: b.call})
	p.send(callLine(`null`, "x"), callLine(`""`, "x"), `{"method":"callAction","params":{"action":"x"}}`, cancelLine("c", `"null"`))
	p.expect(`{"id":"c","result":{"cancelled":false,"requestId":"null"}}`)
	close(b.release)
	for range 3 {
		p.next()
	}
	p.finish()
}

// TestPanics: an action that panics, or ends its goroutine, is answered, and what
// it panicked with is neither sent nor shown in the log.
func TestPanics(t *testing.T) {
	t.Parallel()
	p := newPeer(t, &product{call: func(_ context.Context, call request.Action) (request.Outcome, error) {
		switch call.ID {
		case "panic":
			panic("secret=canary")
		case "exit":
			runtime.Goexit()
		}
		var none map[string]int
		none["x"] = 1
		return outcome(none)
	}})
	for _, action := range []string{"panic", "exit", "write"} {
		p.send(callLine(1, action))
		p.expect(`{"id":1,"result":{"ok":false,"command":"` + action + `","environment":"test","dryRun":false,"errors":[{"code":"unexpected_error","message":"` + action +
			` failed by a mistake in the daemon","hint":"What it was doing may be done in part; look before you repeat it. The daemon's log has the particulars.","retryable":false}]}}`)
	}
	p.finish()
	for _, event := range p.log.events(t, "unexpectedError") {
		if stack, _ := event["stack"].(string); !strings.Contains(stack, "concurrency_test.go") {
			t.Errorf("no stack in %v", event)
		}
	}
	if text := p.log.String(); strings.Contains(text, "canary") || !strings.Contains(text, "assignment to entry in nil map") {
		t.Errorf("log: %s", text)
	}
}

// TestPanicInTheReadersQuestions: the reader survives a product that panics when it
// is asked for a limit.
func TestPanicInTheReadersQuestions(t *testing.T) {
	t.Parallel()
	p := newPeer(t, &product{
		limit:  func(request.Action) time.Duration { panic("limit") },
		person: func(request.Action) bool { panic("person") },
	})
	p.send(callLine(1, "x"))
	p.next()
	p.finish()
}

// TestTimeLimits plays in a bubble with a clock of its own.
func TestTimeLimits(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		line  string
		limit time.Duration // of the product
		want  time.Duration
		code  string
	}{
		"default":           {line: callLine(1, "x"), want: 110 * time.Second},
		"of the action":     {line: callLine(1, "x"), limit: time.Hour, want: time.Hour},
		"upload":            {line: `{"id":1,"method":"uploadImage","params":{"base64":"QUJD"}}`, limit: time.Hour, want: 110 * time.Second},
		"logout":            {line: `{"id":1,"method":"logoutSession","params":{"pubkey":"p"}}`, want: 110 * time.Second},
		"OAuth by default":  {line: `{"id":1,"method":"completeOAuthNostrConnect","params":{"requestId":"r"}}`, want: 190 * time.Second},
		"OAuth as asked":    {line: `{"id":1,"method":"completeOAuthNostrConnect","params":{"requestId":"r","timeoutSeconds":600}}`, want: 610 * time.Second},
		"visibleActions":    {line: `{"id":1,"method":"visibleActions"}`, want: 110 * time.Second},
		"ended by the work": {line: `{"id":1,"method":"completeOAuthNsec","params":{"requestId":"r","nsec":"n"}}`, want: 110 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBlocker()
				b.ignoresContext = true
				hang := func(ctx context.Context) (request.Outcome, error) { return b.call(ctx, request.Action{}) }
				p := newPeer(t, &product{
					limit:    func(request.Action) time.Duration { return test.limit },
					call:     func(ctx context.Context, _ request.Action) (request.Outcome, error) { return hang(ctx) },
					upload:   func(ctx context.Context, _ request.Upload) (request.Outcome, error) { return hang(ctx) },
					logout:   func(ctx context.Context, _ string) (request.Outcome, error) { return hang(ctx) },
					complete: func(ctx context.Context, _ request.OAuthNostrConnect) (request.Outcome, error) { return hang(ctx) },
					visible:  func(ctx context.Context, _ string) (any, error) { return hang(ctx) },
					nsec: func(ctx context.Context, _ request.OAuthNSec) (request.Outcome, error) {
						<-ctx.Done()
						return request.Outcome{}, fmt.Errorf("waiting: %w", ctx.Err())
					},
				})
				begin := time.Now()
				p.send(test.line)
				f := parse(t, <-p.frames)
				if took := time.Since(begin); took != test.want {
					t.Errorf("answered after %s, the limit is %s", took, test.want)
				}
				problem := f.Error
				if problem == nil {
					problem = &f.envelope(t).Errors[0]
				}
				if problem.Code != "unexpected_error" || !*problem.Retryable || !strings.Contains(problem.Message, "timed out") {
					t.Errorf("%+v", problem)
				}
				close(b.release)
				p.finish()
			})
		})
	}
}

// TestTimeLimitCountsFromArrival: a request that waits for a slot until its time is
// up is answered and never runs.
func TestTimeLimitCountsFromArrival(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBlocker()
		p := newPeer(t, &product{call: b.call, limit: func(call request.Action) time.Duration {
			if call.ID == "long" {
				return time.Hour
			}
			return time.Minute
		}}, withLimits(daemon.Limits{Slots: 1}))
		p.send(callLine(1, "long"), callLine(2, "short"))
		if f := parse(t, <-p.frames); string(f.ID) != "2" || f.failure(t) != "unexpected_error" {
			t.Errorf("%+v", f)
		}
		close(b.release)
		<-p.frames
		p.finish()
		if len(b.started) != 1 {
			t.Errorf("%d started", len(b.started))
		}
	})
}

// TestEncodingHasALimitToo: data whose encoding hangs is answered like work that
// hangs.
func TestEncodingHasALimitToo(t *testing.T) {
	t.Parallel()
	hang := make(chan struct{})
	p := newPeer(t, &product{call: func(context.Context, request.Action) (request.Outcome, error) { return outcome(hanger{hang}) }},
		withLimits(daemon.Limits{Time: 10 * time.Millisecond}))
	p.send(callLine(1, "x"))
	if f := parse(t, p.next()); f.failure(t) != "unexpected_error" {
		t.Errorf("%+v", f)
	}
	close(hang)
	p.finish()
}

type hanger struct{ until chan struct{} }

func (h hanger) MarshalJSON() ([]byte, error) {
	<-h.until
	return []byte("{}"), nil
}

// TestManyAbandonedGoroutinesRefuseNewWork: work that was answered for it but does
// not end is bounded.
func TestManyAbandonedGoroutinesRefuseNewWork(t *testing.T) {
	t.Parallel()
	b := newBlocker()
	b.ignoresContext = true
	p := newPeer(t, &product{call: b.call}, withLimits(daemon.Limits{Slots: 1, Abandoned: 5}))
	for i := range 6 {
		p.send(callLine(i, "x"))
		b.awaitStart(t)
		p.send(cancelLine("c", i))
		p.next()
		p.next()
	}
	p.send(callLine(6, "x"))
	if f := parse(t, p.next()); f.failure(t) != "busy" {
		t.Errorf("%+v", f)
	}
	close(b.release) // they end, one by one
	for {
		p.send(callLine(7, "x"))
		if f := parse(t, p.next()); f.failure(t) == "" {
			break
		}
		runtime.Gosched()
	}
	p.finish()
}

// TestExactlyOneAnswer lets cancels, limits and results race.
func TestExactlyOneAnswer(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	turn := 0
	p := newPeer(t, &product{
		limit: func(call request.Action) time.Duration { return time.Duration(len(call.ID)) * 100 * time.Microsecond },
		call: func(ctx context.Context, call request.Action) (request.Outcome, error) {
			mu.Lock()
			turn++
			mine := turn
			mu.Unlock()
			switch mine % 4 {
			case 0:
				panic("x")
			case 1:
				<-ctx.Done()
				return request.Outcome{}, ctx.Err()
			default:
				runtime.Gosched()
				return outcome(object{})
			}
		},
	}, withLimits(daemon.Limits{Abandoned: 1 << 20}))
	const count = 1000
	go func() {
		for i := range count {
			p.send(callLine(i, strings.Repeat("x", 1+i%20)), cancelLine(fmt.Sprint("c", i), i-i%3))
		}
	}()
	answers := make(map[string]int)
	for range 2 * count {
		answers[string(parse(t, p.next()).ID)]++
	}
	p.finish()
	for id, n := range answers {
		if n != 1 {
			t.Errorf("%s was answered %d times", id, n)
		}
	}
	if len(answers) != 2*count {
		t.Errorf("%d ids of %d were answered", len(answers), 2*count)
	}
}
