package hostrdaemon

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/rs/zerolog"

	"hostr-daemon/internal/sandbox"
	"hostr-daemon/internal/sandbox/signerapp"
)

// home is a market with the state directory of one bridge, on which one daemon after
// another is spawned.
type home struct {
	t      *testing.T
	market *sandbox.Market
	config string
	state  string
}

func newHome(t *testing.T) *home {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	open, err := sandbox.Start(ctx, sandbox.Options{Listings: 1, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := open.Close(); err != nil {
			t.Errorf("closing the sandbox market: %v", err)
		}
	})
	h := &home{t: t, market: open, config: filepath.Join(t.TempDir(), "market.json"), state: filepath.Join(t.TempDir(), "state")}
	if err := open.WriteConfig(h.config); err != nil {
		t.Fatal(err)
	}
	return h
}

// device is another bridge on the same market, with a state directory of its own.
func (h *home) device() *home {
	other := *h
	other.state = filepath.Join(h.t.TempDir(), "state")
	return &other
}

// phone is a signer app with somebody's key in it.
func (h *home) phone(person sandbox.Person) *signerapp.App {
	h.t.Helper()
	app, err := signerapp.New(signerapp.Options{PrivateKey: person.PrivateKey, Logger: zerolog.Nop()})
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(app.Close)
	return app
}

// secretsFile is the path of the stored secrets.
func (h *home) secretsFile() string { return filepath.Join(h.state, "development", "secrets.json") }

// secrets reads the stored secrets, by key.
func (h *home) secrets() map[string]string {
	h.t.Helper()
	text, err := os.ReadFile(h.secretsFile())
	if err != nil {
		h.t.Fatal(err)
	}
	var entries map[string]string
	if err := json.Unmarshal(text, &entries); err != nil {
		h.t.Fatal(err)
	}
	return entries
}

// child is a daemon under the bridge: three pipes, and the bridge's environment.
type child struct {
	t       *testing.T
	command *exec.Cmd
	stdin   io.WriteCloser
	ended   chan struct{} // closed when the daemon has closed its output

	mu      sync.Mutex
	changed chan struct{}
	lastID  int
	frames  []frame
	stdout  bytes.Buffer
	stderr  bytes.Buffer
}

// frame is any line of the daemon's.
type frame struct {
	ID     string        `json:"id"`
	Result *envelope     `json:"result"`
	Error  *problem      `json:"error"`
	Method string        `json:"method"`
	Params signerPending `json:"params"`
}

// envelope is the result of a request (spec 10 §3.3).
type envelope struct {
	OK        bool            `json:"ok"`
	DryRun    bool            `json:"dryRun"`
	Cancelled bool            `json:"cancelled"`
	Data      json.RawMessage `json:"data"`
	Errors    []problem       `json:"errors"`
}

type problem struct {
	Code      string          `json:"code"`
	Path      string          `json:"path"`
	Message   string          `json:"message"`
	Retryable bool            `json:"retryable"`
	Details   json.RawMessage `json:"details"`
}

// signerPending are the params of hostr.signer.pending (spec 10 §5.1).
type signerPending struct {
	OperationToken string `json:"operationToken"`
	TokenPubkey    string `json:"tokenPubkey"`
	ActivePubkey   string `json:"activePubkey"`
	RequestID      string `json:"requestId"`
	SignerMethod   string `json:"signerMethod"`
	EventKind      *int   `json:"eventKind"`
	Message        string `json:"message"`
}

// actionParams are those of callAction.
type actionParams struct {
	Action            string `json:"action"`
	Pubkey            string `json:"pubkey,omitempty"`
	Input             any    `json:"input"`
	NotificationToken string `json:"notificationToken,omitempty"`
}

// spawn starts a daemon on the state directory, with all its logs on.
func (h *home) spawn() *child {
	h.t.Helper()
	c := &child{t: h.t, ended: make(chan struct{}), changed: make(chan struct{})}
	c.command = exec.Command(daemonBinary(h.t), "--stdio", "--env", "development", "--state-dir", h.state, "--config", h.config)
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "HOSTR_") {
			c.command.Env = append(c.command.Env, variable)
		}
	}
	c.command.Env = append(c.command.Env, "HOSTR_CLI_ALLOW_INSECURE_STORAGE=1", "HOSTR_CLI_STORAGE=insecure-file", "HOSTR_DAEMON_LOGS=1")
	var err error
	if c.stdin, err = c.command.StdinPipe(); err != nil {
		h.t.Fatal(err)
	}
	stdout, err := c.command.StdoutPipe()
	if err != nil {
		h.t.Fatal(err)
	}
	stderr, err := c.command.StderrPipe()
	if err != nil {
		h.t.Fatal(err)
	}
	if err := c.command.Start(); err != nil {
		h.t.Fatal(err)
	}
	var reading sync.WaitGroup
	reading.Go(func() { c.read(stdout, c.take) })
	reading.Go(func() { c.read(stderr, func(line []byte) { c.stderr.Write(line) }) })
	go func() {
		reading.Wait()
		_ = c.command.Wait()
		close(c.ended)
	}()
	h.t.Cleanup(func() {
		c.kill()
		// A panic of the daemon, or a race if HOSTR_DAEMON names one built with -race.
		if log := c.log(); strings.Contains(log, "goroutine ") {
			c.t.Errorf("the daemon broke:\n%s", log)
		}
	})
	return c
}

func (c *child) read(from io.Reader, take func(line []byte)) {
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadBytes('\n')
		c.mu.Lock()
		take(line)
		close(c.changed)
		c.changed = make(chan struct{})
		c.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// take keeps a line of the daemon's output. The lock is held.
func (c *child) take(line []byte) {
	c.stdout.Write(line)
	if len(bytes.TrimSpace(line)) == 0 {
		return
	}
	var received frame
	if err := json.Unmarshal(line, &received); err != nil {
		received = frame{ID: "unreadable", Error: &problem{Message: err.Error()}}
	}
	c.frames = append(c.frames, received)
}

// kill ends the daemon where it stands (SIGKILL).
func (c *child) kill() {
	_ = c.command.Process.Kill()
	<-c.ended
}

// end closes the daemon's input and waits until it has drained.
func (c *child) end() {
	c.t.Helper()
	_ = c.stdin.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	select {
	case <-c.ended:
	case <-ctx.Done():
		c.t.Fatalf("the daemon does not end\n%s", c.log())
	}
	if code := c.command.ProcessState.ExitCode(); code != 0 {
		c.t.Errorf("exit code %d\n%s", code, c.log())
	}
}

func (c *child) log() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stderr.String()
}

func (c *child) output() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stdout.String()
}

// until waits until the daemon has said something; found runs under the lock.
func (c *child) until(what string, found func() bool) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	for {
		c.mu.Lock()
		done, changed := found(), c.changed
		c.mu.Unlock()
		if done {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			c.t.Fatalf("no %s\nstdout:\n%s\nstderr:\n%s", what, c.output(), c.log())
		}
	}
}

// untilLogged waits for a text on stderr.
func (c *child) untilLogged(text string) {
	c.t.Helper()
	c.until("log line with "+text, func() bool { return strings.Contains(c.stderr.String(), text) })
}

// send writes a request and returns its id.
func (c *child) send(method string, params any) string {
	c.t.Helper()
	c.mu.Lock()
	c.lastID++
	id := strconv.Itoa(c.lastID)
	c.mu.Unlock()
	line, err := json.Marshal(struct {
		ID     string `json:"id"`
		Method string `json:"method"`
		Params any    `json:"params"`
	}{id, method, params})
	if err != nil {
		c.t.Fatal(err)
	}
	if _, err := fmt.Fprintf(c.stdin, "%s\n", line); err != nil {
		c.t.Fatalf("sending %s: %v\n%s", method, err, c.log())
	}
	return id
}

// answer waits for the frame that answers a request.
func (c *child) answer(id string) frame {
	c.t.Helper()
	var answered frame
	c.until("answer to request "+id, func() bool {
		for _, received := range c.frames {
			if received.ID == id {
				answered = received
				return true
			}
		}
		return false
	})
	return answered
}

func (c *child) ask(method string, params any) frame {
	c.t.Helper()
	return c.answer(c.send(method, params))
}

// call runs an action for an account, "" for nobody.
func (c *child) call(pubkey, action string, input any) envelope {
	c.t.Helper()
	return c.result(c.ask("callAction", actionParams{Action: action, Pubkey: pubkey, Input: input}))
}

// result is the envelope of a frame that must have one.
func (c *child) result(answered frame) envelope {
	c.t.Helper()
	if answered.Result == nil {
		c.t.Fatalf("request %s has no result: %+v", answered.ID, answered.Error)
	}
	return *answered.Result
}

// pending returns the notifications so far.
func (c *child) pending() []signerPending {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pendingLocked()
}

func (c *child) pendingLocked() (told []signerPending) {
	for _, received := range c.frames {
		if received.Method == "hostr.signer.pending" {
			told = append(told, received.Params)
		}
	}
	return told
}

// data reads the data of a success.
func data[T any](t *testing.T, from envelope) (read T) {
	t.Helper()
	if !from.OK {
		t.Fatalf("failed: %+v", from.Errors)
	}
	if err := json.Unmarshal(from.Data, &read); err != nil {
		t.Fatal(err)
	}
	return read
}

// failure is the one problem of an envelope that must have failed.
func failure(t *testing.T, from envelope) problem {
	t.Helper()
	if from.OK || len(from.Errors) == 0 {
		t.Fatalf("no failure: %s", from.Data)
	}
	return from.Errors[0]
}
