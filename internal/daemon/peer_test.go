package daemon_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"hostr-daemon/internal/daemon"
	"hostr-daemon/internal/request"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what must happen at once.
const patience = 20 * time.Second

// product is a Product whose answers a test scripts; what is not scripted answers
// at once.
type product struct {
	describe func(ctx context.Context) (json.RawMessage, error)
	visible  func(ctx context.Context, pubkey string) (any, error)
	call     func(ctx context.Context, call request.Action) (request.Outcome, error)
	upload   func(ctx context.Context, upload request.Upload) (request.Outcome, error)
	logout   func(ctx context.Context, pubkey string) (request.Outcome, error)
	start    func(ctx context.Context, start request.OAuthNostrConnect) (request.Outcome, error)
	complete func(ctx context.Context, complete request.OAuthNostrConnect) (request.Outcome, error)
	nsec     func(ctx context.Context, complete request.OAuthNSec) (request.Outcome, error)
	limit    func(call request.Action) time.Duration
	person   func(call request.Action) bool
}

type object = map[string]any

func outcome(data any) (request.Outcome, error) { return request.Outcome{Data: data}, nil }

func (p *product) Describe(ctx context.Context) (json.RawMessage, error) {
	if p.describe != nil {
		return p.describe(ctx)
	}
	return json.RawMessage(`{"version":1,"actions":[]}`), nil
}

func (p *product) VisibleActions(ctx context.Context, pubkey string) (any, error) {
	if p.visible != nil {
		return p.visible(ctx, pubkey)
	}
	return object{"version": 1, "pubkey": pubkey}, nil
}

func (p *product) CallAction(ctx context.Context, call request.Action) (request.Outcome, error) {
	if p.call != nil {
		return p.call(ctx, call)
	}
	return outcome(object{"action": call.ID})
}

func (p *product) UploadImage(ctx context.Context, upload request.Upload) (request.Outcome, error) {
	if p.upload != nil {
		return p.upload(ctx, upload)
	}
	return outcome(object{"size": len(upload.Base64)})
}

func (p *product) LogoutSession(ctx context.Context, pubkey string) (request.Outcome, error) {
	if p.logout != nil {
		return p.logout(ctx, pubkey)
	}
	return outcome(object{"pubkey": pubkey, "signedOut": true})
}

func (p *product) StartOAuthNostrConnect(ctx context.Context, start request.OAuthNostrConnect) (request.Outcome, error) {
	if p.start != nil {
		return p.start(ctx, start)
	}
	return outcome(object{"requestId": start.RequestID, "regenerate": start.Regenerate})
}

func (p *product) CompleteOAuthNostrConnect(ctx context.Context, complete request.OAuthNostrConnect) (request.Outcome, error) {
	if p.complete != nil {
		return p.complete(ctx, complete)
	}
	return outcome(object{"requestId": complete.RequestID, "seconds": complete.Timeout.Seconds()})
}

func (p *product) CompleteOAuthNSec(ctx context.Context, complete request.OAuthNSec) (request.Outcome, error) {
	if p.nsec != nil {
		return p.nsec(ctx, complete)
	}
	return outcome(object{"requestId": complete.RequestID})
}

func (p *product) TimeLimit(call request.Action) time.Duration {
	if p.limit != nil {
		return p.limit(call)
	}
	return 0
}

func (p *product) WaitsForPerson(call request.Action) bool { return p.person != nil && p.person(call) }

// blocker is an action that reports its start and waits to be let go.
type blocker struct {
	started chan string
	release chan struct{}
	// ignoresContext makes it wait for release only.
	ignoresContext bool
}

func newBlocker() *blocker {
	return &blocker{started: make(chan string, 1000), release: make(chan struct{})}
}

func (b *blocker) call(ctx context.Context, call request.Action) (request.Outcome, error) {
	b.started <- call.ID
	done := ctx.Done()
	if b.ignoresContext {
		done = nil
	}
	select {
	case <-b.release:
		return outcome(object{"action": call.ID})
	case <-done:
		return request.Outcome{}, ctx.Err()
	}
}

// peer plays the bridge: it writes lines and reads frames.
type peer struct {
	t      testing.TB
	daemon *daemon.Daemon
	in     io.WriteCloser
	out    io.ReadCloser
	frames chan string
	ended  chan error
	cancel context.CancelCauseFunc
	log    *logBuffer
}

type setting func(*daemon.Config)

func withLimits(limits daemon.Limits) setting { return func(c *daemon.Config) { c.Limits = limits } }

// newPeer starts a daemon whose frames are collected as they come.
func newPeer(t testing.TB, p *product, settings ...setting) *peer {
	t.Helper()
	peer := newStalledPeer(t, p, settings...)
	peer.collect()
	return peer
}

// newStalledPeer is newPeer that does not read yet.
func newStalledPeer(t testing.TB, p *product, settings ...setting) *peer {
	t.Helper()
	stdin, toDaemon := io.Pipe()
	fromDaemon, stdout := io.Pipe()
	log := &logBuffer{}
	config := daemon.Config{Product: p, Environment: "test", Logger: zerolog.New(log), In: stdin, Out: stdout}
	for _, set := range settings {
		set(&config)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	peer := &peer{
		t: t, daemon: daemon.New(config), in: toDaemon, out: fromDaemon, log: log, cancel: cancel,
		frames: make(chan string, 200_000), ended: make(chan error, 1),
	}
	go func() { peer.ended <- peer.daemon.Run(ctx) }()
	t.Cleanup(func() {
		toDaemon.Close()
		fromDaemon.Close()
		cancel(errTestOver)
	})
	return peer
}

var errTestOver = errors.New("the test is over")

func (p *peer) collect() {
	go func() {
		defer close(p.frames)
		lines := bufio.NewReader(p.out)
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				if line != "" {
					p.t.Errorf("the last frame is not whole: %.200q", line)
				}
				return
			}
			p.frames <- strings.TrimSuffix(line, "\n")
		}
	}()
}

// send writes text to the daemon, as it is.
func (p *peer) send(lines ...string) {
	p.t.Helper()
	for _, line := range lines {
		if _, err := io.WriteString(p.in, line+"\n"); err != nil {
			p.t.Fatalf("sending %.100q: %v", line, err)
		}
	}
}

// next returns the next frame.
func (p *peer) next() string {
	p.t.Helper()
	select {
	case frame, ok := <-p.frames:
		if !ok {
			p.t.Fatal("the output ended, a frame was expected")
		}
		return frame
	case <-time.After(patience):
		p.t.Fatalf("no frame came; log:\n%s", p.log)
	}
	return ""
}

// nextFrames returns the next n frames by their ids, as JSON text.
func (p *peer) nextFrames(n int) map[string]frame {
	p.t.Helper()
	frames := make(map[string]frame, n)
	for range n {
		f := parse(p.t, p.next())
		if _, twice := frames[string(f.ID)]; twice {
			p.t.Fatalf("%s was answered twice", f.ID)
		}
		frames[string(f.ID)] = f
	}
	return frames
}

// expect checks that the next frame is this text.
func (p *peer) expect(want string) {
	p.t.Helper()
	if got := p.next(); got != want {
		p.t.Errorf("\n got %s\nwant %s", got, want)
	}
}

// finish ends the input and checks that nothing but the expected end comes.
func (p *peer) finish() {
	p.t.Helper()
	p.in.Close()
	if err := p.wait(); err != nil {
		p.t.Errorf("run: %v", err)
	}
	p.out.Close()
	for frame := range p.frames {
		p.t.Errorf("unexpected frame %s", frame)
	}
}

// wait returns what Run returns.
func (p *peer) wait() error {
	p.t.Helper()
	return receive(p.t, p.ended, "Run did not return")
}

// receive returns what comes from a channel.
func receive[T any](t testing.TB, from <-chan T, complaint string) T {
	t.Helper()
	select {
	case value := <-from:
		return value
	case <-time.After(patience):
		t.Fatal(complaint)
	}
	panic("unreachable")
}

// frame is any frame, taken apart.
type frame struct {
	ID      json.RawMessage `json:"id"`
	TraceID string          `json:"traceId"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
	Result  json.RawMessage `json:"result"`
	Error   *issue          `json:"error"`
}

type issue struct {
	Code      string          `json:"code"`
	Message   string          `json:"message"`
	Path      string          `json:"path"`
	Hint      string          `json:"hint"`
	Retryable *bool           `json:"retryable"`
	Details   json.RawMessage `json:"details"`
}

type envelope struct {
	OK          bool            `json:"ok"`
	Command     string          `json:"command"`
	Environment string          `json:"environment"`
	DryRun      *bool           `json:"dryRun"`
	TraceID     string          `json:"traceId"`
	Data        json.RawMessage `json:"data"`
	Warnings    []issue         `json:"warnings"`
	Errors      []issue         `json:"errors"`
}

func parse(t testing.TB, line string) frame {
	t.Helper()
	var f frame
	if err := json.Unmarshal([]byte(line), &f); err != nil {
		t.Fatalf("%v in frame %.300q", err, line)
	}
	return f
}

func (f frame) envelope(t testing.TB) envelope {
	t.Helper()
	var e envelope
	if err := json.Unmarshal(f.Result, &e); err != nil {
		t.Fatalf("%v in result %.300q, error %+v", err, f.Result, f.Error)
	}
	return e
}

// failure returns the code of an error frame or of a failed envelope.
func (f frame) failure(t testing.TB) string {
	t.Helper()
	if f.Error != nil {
		return f.Error.Code
	}
	if e := f.envelope(t); !e.OK && len(e.Errors) == 1 {
		return e.Errors[0].Code
	}
	return ""
}

// logBuffer collects log lines.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// events returns the log lines of an event.
func (b *logBuffer) events(t testing.TB, event string) []object {
	t.Helper()
	var found []object
	for line := range strings.Lines(b.String()) {
		var fields object
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Fatalf("%v in log line %.300q", err, line)
		}
		if fields["event"] == event {
			found = append(found, fields)
		}
	}
	return found
}

func mustDecode(t testing.TB, raw json.RawMessage, into any) {
	t.Helper()
	if err := json.Unmarshal(raw, into); err != nil {
		t.Fatalf("%v in %.300q", err, raw)
	}
}
