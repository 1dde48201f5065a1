package daemon_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"hostr-daemon/internal/daemon"
	"hostr-daemon/internal/logsink"
	"hostr-daemon/internal/request"
)

// TestEndOfInputDrains: what runs and what waits is finished first.
func TestEndOfInputDrains(t *testing.T) {
	t.Parallel()
	b := newBlocker()
	p := newPeer(t, &product{call: b.call}, withLimits(daemon.Limits{Slots: 1}))
	p.send(callLine(1, "x"), callLine(2, "y"), callLine(3, "z"))
	b.awaitStart(t)
	p.in.Close()
	close(b.release)
	for _, id := range []string{"1", "2", "3"} {
		if f := parse(t, p.next()); string(f.ID) != id || f.failure(t) != "" {
			t.Errorf("%s: %+v", id, f)
		}
	}
	p.finish()
}

// TestEndOfInputCancelsWhatWaitsForAPerson, queued or running.
func TestEndOfInputCancelsWhatWaitsForAPerson(t *testing.T) {
	t.Parallel()
	b, person := newBlocker(), newBlocker()
	p := newPeer(t, &product{
		call: func(ctx context.Context, call request.Action) (request.Outcome, error) {
			if call.ID == "connect" {
				return person.call(ctx, call)
			}
			return b.call(ctx, call)
		},
		complete: func(ctx context.Context, _ request.OAuthNostrConnect) (request.Outcome, error) {
			return person.call(ctx, request.Action{})
		},
		person: func(call request.Action) bool { return call.ID == "connect" },
	}, withLimits(daemon.Limits{Slots: 3}))
	p.send(callLine(1, "x"), callLine(2, "connect"), `{"id":3,"method":"completeOAuthNostrConnect","params":{"requestId":"r"}}`)
	b.awaitStart(t)
	person.awaitStart(t)
	person.awaitStart(t)
	p.send(callLine(4, "connect"), callLine(5, "y"))
	p.in.Close()
	frames := p.nextFrames(3)
	for _, id := range []string{"2", "3", "4"} {
		if f, ok := frames[id]; !ok || f.failure(t) != "request_cancelled" || !strings.Contains(f.Error.Message, "shutting down") {
			t.Errorf("%s: %+v", id, f)
		}
	}
	close(b.release)
	for id, f := range p.nextFrames(2) {
		if f.failure(t) != "" {
			t.Errorf("%s: %+v", id, f)
		}
	}
	p.finish()
}

// TestDrainIsBounded plays in a bubble: after 30 s the rest is cancelled.
func TestDrainIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBlocker()
		b.ignoresContext = true
		p := newPeer(t, &product{call: b.call})
		p.send(callLine(1, "x"))
		<-b.started
		begin := time.Now()
		p.in.Close()
		if f := parse(t, <-p.frames); f.failure(t) != "request_cancelled" {
			t.Errorf("%+v", f)
		}
		if err := <-p.ended; err != nil {
			t.Errorf("run: %v", err)
		}
		if took := time.Since(begin); took < 30*time.Second || took > 31*time.Second {
			t.Errorf("the drain took %s", took)
		}
		close(b.release)
		p.out.Close()
	})
}

// TestAbandonedWorkIsWaitedFor at the end of the input.
func TestAbandonedWorkIsWaitedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBlocker()
		b.ignoresContext = true
		p := newPeer(t, &product{call: b.call})
		p.send(callLine(1, "x"))
		<-b.started
		p.send(cancelLine("c", 1))
		<-p.frames
		<-p.frames
		p.in.Close()
		synctest.Wait()
		select {
		case err := <-p.ended:
			t.Fatalf("Run returned before the work did: %v", err)
		default:
		}
		close(b.release)
		if err := <-p.ended; err != nil {
			t.Errorf("run: %v", err)
		}
		p.out.Close()
	})
}

// TestAbandonedWorkIsNotWaitedForLong: nobody hears of it any more.
func TestAbandonedWorkIsNotWaitedForLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBlocker()
		b.ignoresContext = true
		p := newPeer(t, &product{call: b.call})
		p.send(callLine(1, "x"))
		<-b.started
		p.send(cancelLine("c", 1))
		<-p.frames
		<-p.frames
		begin := time.Now()
		p.in.Close()
		if err := <-p.ended; err != nil {
			t.Errorf("run: %v", err)
		}
		if took := time.Since(begin); took < time.Second || took > 1500*time.Millisecond {
			t.Errorf("it took %s", took)
		}
		close(b.release)
		p.out.Close()
	})
}

// TestSignal: without a drain, whatever actions, input and output do. The limit of
// 200 ms is checked in a bubble, where only the daemon's own timers take time.
func TestSignal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBlocker()
		b.ignoresContext = true
		p := newStalledPeer(t, &product{call: b.call}, withLimits(daemon.Limits{Slots: 1}))
		p.send(callLine(1, "x"), callLine(2, "y"), `{"id":3,"method":"nope"}`)
		<-b.started
		synctest.Wait() // the writer hangs now
		begin := time.Now()
		reason := errors.New("terminated")
		p.cancel(reason)
		if err := <-p.ended; !errors.Is(err, reason) {
			t.Errorf("run: %v", err)
		}
		if took := time.Since(begin); took > 200*time.Millisecond {
			t.Errorf("it took %s", took)
		}
		close(b.release)
	})
}

// TestSignalAnswersWhatIsOpen as long as the output takes it.
func TestSignalAnswersWhatIsOpen(t *testing.T) {
	t.Parallel()
	b := newBlocker()
	p := newPeer(t, &product{call: b.call}, withLimits(daemon.Limits{Slots: 1, Stop: patience}))
	p.send(callLine(1, "x"), callLine(2, "y"), cancelLine("c", `"nobody"`))
	b.awaitStart(t)
	p.next() // the second has arrived
	p.cancel(context.Canceled)
	for id, f := range p.nextFrames(2) {
		if f.failure(t) != "request_cancelled" {
			t.Errorf("%s: %+v", id, f)
		}
	}
	if err := p.wait(); !errors.Is(err, context.Canceled) {
		t.Errorf("run: %v", err)
	}
}

func TestSignalEndsADrain(t *testing.T) {
	t.Parallel()
	b := newBlocker()
	p := newPeer(t, &product{call: b.call})
	p.send(callLine(1, "x"))
	b.awaitStart(t)
	p.in.Close()
	reason := errors.New("terminated")
	p.cancel(reason)
	if err := p.wait(); !errors.Is(err, reason) {
		t.Errorf("run: %v", err)
	}
	p.next()
}

// TestReleasesPipesWithDeadlines: on operating system pipes neither a blocked read
// nor a blocked write outlives Run.
func TestReleasesPipesWithDeadlines(t *testing.T) {
	t.Parallel()
	stdin, toDaemon := osPipe(t)
	_, stdout := osPipe(t)
	ctx, cancel := context.WithCancel(context.Background())
	d := daemon.New(daemon.Config{Product: &product{}, Environment: "test", Logger: zerolog.Nop(), In: stdin, Out: stdout, Limits: daemon.Limits{Stop: time.Millisecond}})
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	for range 100 { // more than the pipe holds
		fmt.Fprintf(toDaemon, `{"id":"%s","method":"nope"}`+"\n", strings.Repeat("x", 4000))
	}
	cancel()
	if err := receive(t, ended, "Run did not return"); !errors.Is(err, context.Canceled) {
		t.Errorf("run: %v", err)
	}
	if err := stdin.SetReadDeadline(time.Time{}); err != nil {
		t.Error(err)
	}
}

func osPipe(t testing.TB) (*os.File, *os.File) {
	t.Helper()
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { reader.Close(); writer.Close() })
	return reader, writer
}

// TestBrokenOutputEnds, and cancels what runs.
func TestBrokenOutputEnds(t *testing.T) {
	t.Parallel()
	b := newBlocker()
	p := newStalledPeer(t, &product{call: b.call})
	p.send(callLine(1, "x"))
	b.awaitStart(t)
	p.out.Close()
	p.send(`{"id":2,"method":"nope"}`)
	if err := p.wait(); !errors.Is(err, daemon.ErrOutput) || !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("run: %v", err)
	}
}

func TestBrokenInputDrainsAndTells(t *testing.T) {
	t.Parallel()
	b := newBlocker()
	broken := errors.New("no more")
	in := io.MultiReader(strings.NewReader(callLine(1, "x")+"\n"+callLine(2, "y")), failingReader{broken})
	p := newPeer(t, &product{call: b.call}, func(c *daemon.Config) { c.In = in })
	close(b.release)
	p.nextFrames(2)
	if err := p.wait(); !errors.Is(err, broken) {
		t.Errorf("run: %v", err)
	}
}

type failingReader struct{ err error }

func (r failingReader) Read([]byte) (int, error) { return 0, r.err }

func TestInputThatNeverYieldsIsBroken(t *testing.T) {
	t.Parallel()
	p := newPeer(t, &product{}, func(c *daemon.Config) { c.In = failingReader{nil} })
	if err := p.wait(); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("run: %v", err)
	}
}

// shortWriter takes a few bytes at a time.
type shortWriter struct{ next io.Writer }

func (w shortWriter) Write(p []byte) (int, error) { return w.next.Write(p[:min(len(p), 7)]) }

type stuckWriter struct{}

func (stuckWriter) Write([]byte) (int, error) { return 0, nil }

func TestShortWrites(t *testing.T) {
	t.Parallel()
	p := newPeer(t, &product{}, func(c *daemon.Config) { c.Out = shortWriter{c.Out} })
	for i := range 100 {
		p.send(callLine(i, "x"))
	}
	p.nextFrames(100)
	p.finish()
	stuck := newPeer(t, &product{}, func(c *daemon.Config) { c.Out = stuckWriter{} })
	stuck.send(callLine(1, "x"))
	if err := stuck.wait(); !errors.Is(err, daemon.ErrOutput) {
		t.Errorf("run: %v", err)
	}
}

// TestStalledOutput: work goes on, the reader pauses, memory stays bounded, and
// everything arrives in order afterwards.
func TestStalledOutput(t *testing.T) {
	t.Parallel()
	const limit = 1 << 20
	var p *peer
	p = newStalledPeer(t, &product{call: func(context.Context, request.Action) (request.Outcome, error) {
		return outcome(object{"text": strings.Repeat("x", 10_000)})
	}}, withLimits(daemon.Limits{Slots: 1, BacklogBytes: limit}))
	const count = 1500
	sent := make(chan int, count)
	go func() {
		for i := range count {
			p.send(fmt.Sprintf(`{"id":%d,"method":"nope","params":{"x":"%s"}}`, i, strings.Repeat("y", 1000)),
				fmt.Sprintf(`{"id":"%s","method":"cancel","params":{"requestId":"x"}}`, strings.Repeat("i", 1000)))
			sent <- i
		}
	}()
	// The notifications are refused once the backlog is full; before that they arrive
	// in order.
	notified := 0
	for before := ""; ; notified++ {
		p.daemon.Notify("n", object{"number": notified, "text": strings.Repeat("z", 1000)})
		if text := p.log.String(); strings.Contains(text, "notificationsDropped") && text != before {
			break
		}
	}
	if got := len(sent); got == count {
		t.Error("the reader read on")
	}
	p.collect()
	next, number := 0, 0
	for next < count {
		f := parse(t, p.next())
		switch {
		case f.Method == "n":
			var params struct{ Number int }
			mustDecode(t, f.Params, &params)
			if params.Number != number {
				t.Fatalf("notification %d came, not %d", params.Number, number)
			}
			number++
		case f.Error != nil:
			if string(f.ID) != fmt.Sprint(next) {
				t.Fatalf("%s was answered, not %d", f.ID, next)
			}
			next++
		}
	}
	p.next() // the last cancel
	p.daemon.Notify("n", object{})
	if f := parse(t, p.next()); f.Method != "n" {
		t.Errorf("%+v", f)
	}
	p.finish()
	if number != notified {
		t.Errorf("%d notifications arrived of %d", number, notified)
	}
}

// TestAcceptedWorkGoesOnWhileTheOutputStalls and its frames wait.
func TestAcceptedWorkGoesOnWhileTheOutputStalls(t *testing.T) {
	t.Parallel()
	var done sync.WaitGroup
	const count = 40
	done.Add(count)
	p := newStalledPeer(t, &product{call: func(context.Context, request.Action) (request.Outcome, error) {
		done.Done()
		return outcome(object{"text": strings.Repeat("x", 100_000)})
	}}, withLimits(daemon.Limits{BacklogBytes: 64 << 20}))
	for i := range count {
		p.send(callLine(i, "x"))
	}
	finished := make(chan struct{})
	go func() { done.Wait(); close(finished) }()
	receive(t, finished, "the work did not go on")
	p.collect()
	p.nextFrames(count)
	p.finish()
}

// TestStalledStderr: with the log in a logsink nothing waits for who reads stderr.
func TestStalledStderr(t *testing.T) {
	t.Parallel()
	reader, stderr := osPipe(t)
	sink := logsink.New(stderr, 64<<10, time.Now)
	p := newPeer(t, &product{}, func(c *daemon.Config) { c.Logger = zerolog.New(sink) })
	const count = 2000
	go func() {
		for i := range count {
			p.send(callLine(i, "x"))
		}
	}()
	p.nextFrames(count)
	p.finish()
	lines := make(chan string, 1)
	go func() {
		defer close(lines)
		text := bufio.NewScanner(reader)
		for text.Scan() {
			if strings.Contains(text.Text(), "logDropped") {
				lines <- text.Text()
				return
			}
		}
	}()
	receive(t, lines, "nothing tells of dropped lines")
	go func() { _, _ = io.Copy(io.Discard, reader) }()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := sink.Close(ctx); err != nil {
		t.Error(err)
	}
}

func TestNotify(t *testing.T) {
	t.Parallel()
	p := newStalledPeer(t, &product{})
	p.daemon.Notify("hostr.booking.state", object{"state": "<é\u2028>", "operationToken": nil})
	p.daemon.Notify("list", []int{1})
	p.daemon.Notify("nothing", nil)
	p.daemon.Notify("broken", object{"f": func() {}})
	p.daemon.Notify("panics", panicker{})
	p.collect()
	p.expect(`{"method":"hostr.booking.state","params":{"operationToken":null,"state":"<é\u2028>"}}`)
	p.send(callLine(1, "x"))
	p.next()
	p.finish()
	p.daemon.Notify("late", object{})
	if got := len(p.log.events(t, "unexpectedError")); got != 4 {
		t.Errorf("%d of 4 broken notifications are logged: %s", got, p.log)
	}
}

// TestNotificationsOfACallComeBeforeItsAnswer and in order.
func TestNotificationsOfACallComeBeforeItsAnswer(t *testing.T) {
	t.Parallel()
	var p *peer
	ready := make(chan struct{})
	p = newPeer(t, &product{call: func(context.Context, request.Action) (request.Outcome, error) {
		<-ready
		for i := range 100 {
			p.daemon.Notify("n", object{"number": i})
		}
		return outcome(object{})
	}})
	close(ready)
	p.send(callLine(1, "x"))
	for i := range 100 {
		p.expect(fmt.Sprintf(`{"method":"n","params":{"number":%d}}`, i))
	}
	p.next()
	p.finish()
}

// TestLongLines: a line above the limit costs itself only.
func TestLongLines(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{100, 200_000} {
		p := newPeer(t, &product{}, withLimits(daemon.Limits{LineBytes: limit}))
		line := func(id, length int) string {
			text := fmt.Sprintf(`{"id":%d,"method":"uploadImage","params":{"base64":""}}`, id)
			return strings.Replace(text, `""`, `"`+strings.Repeat("A", length-len(text))+`"`, 1)
		}
		tooLong := fmt.Sprintf(`{"id":null,"error":{"code":"invalid_request","message":"a request line may have %d bytes at most; this one is longer and was skipped","retryable":false}}`, limit)
		p.send(line(1, limit))
		if f := parse(t, p.next()); string(f.ID) != "1" || f.failure(t) != "" {
			t.Errorf("at the limit: %+v", f)
		}
		for _, length := range []int{limit + 1, limit + 70_000, 10*limit + 1_000_000} {
			p.send(line(2, length))
			p.expect(tooLong)
			p.send(line(3, 80))
			if f := parse(t, p.next()); string(f.ID) != "3" || f.failure(t) != "" {
				t.Errorf("behind a line of %d: %+v", length, f)
			}
		}
		if _, err := io.WriteString(p.in, line(4, limit+1)); err != nil { // never ended
			t.Fatal(err)
		}
		p.in.Close()
		p.expect(tooLong)
		p.finish()
	}
}

// TestLargeUpload sends a line of many reads.
func TestLargeUpload(t *testing.T) {
	t.Parallel()
	p := newPeer(t, &product{})
	const size = 10 << 20
	go p.send(`{"id":1,"method":"uploadImage","params":{"base64":"` + strings.Repeat("A", size) + `"}}`)
	p.expect(fmt.Sprintf(`{"id":1,"result":{"ok":true,"command":"hostr.upload.image","environment":"test","dryRun":false,"data":{"size":%d}}}`, size))
	p.send(`{"id":2,"method":"describe"}`)
	p.next()
	p.finish()
	if text := p.log.String(); len(text) > 10_000 {
		t.Errorf("the log has %d bytes", len(text))
	}
}
