package conversation

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// stderrTail is how much of the child's log is kept, in bytes.
const stderrTail = 16 << 10

// Child is a daemon spawned as the bridge spawns it: over three pipes, speaking
// lines of JSON (spec 10 §2).
type Child struct {
	command *exec.Cmd
	stdin   io.WriteCloser
	stdout  io.ReadCloser
	log     *tail
	read    chan struct{} // closed when stdout has ended

	mu      sync.Mutex
	answers map[string]*slot // by id as JSON text
	stray   []string         // lines nobody had asked for
}

// slot is where the one answer to a request goes.
type slot struct {
	frame  chan Frame // holds one
	filled bool
}

// Spawn starts the daemon. env is added to the parent's environment, from which
// every HOSTR_ variable is dropped, so that a run does not depend on them.
func Spawn(path string, arguments, env []string) (*Child, error) {
	child := &Child{
		command: exec.Command(path, arguments...),
		log:     &tail{},
		read:    make(chan struct{}),
		answers: make(map[string]*slot),
	}
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "HOSTR_") {
			child.command.Env = append(child.command.Env, variable)
		}
	}
	child.command.Env = append(child.command.Env, env...)
	child.command.Stderr = child.log
	stdin, err := child.command.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("daemon: %w", err)
	}
	stdout, err := child.command.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("daemon: %w", err)
	}
	child.stdin, child.stdout = stdin, stdout
	if err := child.command.Start(); err != nil {
		return nil, fmt.Errorf("the daemon cannot be started: %w", err)
	}
	go func() {
		defer close(child.read)
		child.readAll()
	}()
	return child, nil
}

// Send writes one request.
func (c *Child) Send(request Request) error {
	line, err := json.Marshal(request)
	if err != nil {
		return fmt.Errorf("request %s: %w", request.ID, err)
	}
	c.expect(string(request.ID))
	return c.SendLine(string(line))
}

// SendLine writes a line as it is.
func (c *Child) SendLine(line string) error {
	if _, err := io.WriteString(c.stdin, line+"\n"); err != nil {
		return fmt.Errorf("the daemon takes no more requests: %w", err)
	}
	return nil
}

// Await waits for the answer to the request with this id (as JSON text), which
// Send or Expect has made ready for.
func (c *Child) Await(ctx context.Context, id string) (Frame, error) {
	answer := c.expect(id).frame
	select {
	case frame := <-answer:
		return frame, nil
	case <-c.read: // stdout has ended
		select {
		case frame := <-answer: // it came just before the end
			return frame, nil
		default:
			return Frame{}, fmt.Errorf("the daemon ended before it answered request %s", id)
		}
	case <-ctx.Done():
		return Frame{}, fmt.Errorf("no answer to request %s: %w", id, ctx.Err())
	}
}

// Expect makes ready for an answer to a line sent with SendLine.
func (c *Child) Expect(id string) { c.expect(id) }

// Ended reports whether the daemon has closed its output.
func (c *Child) Ended() bool {
	select {
	case <-c.read:
		return true
	default:
		return false
	}
}

// End closes the daemon's input, waits for it to exit and returns its exit code.
// A daemon that is still there when ctx ends is killed.
func (c *Child) End(ctx context.Context) (code int, err error) {
	_ = c.stdin.Close()
	defer context.AfterFunc(ctx, func() {
		_ = c.command.Process.Kill()
		_ = c.stdout.Close()
	})()
	<-c.read
	err = c.command.Wait()
	if ctx.Err() != nil {
		return -1, fmt.Errorf("the daemon did not exit: %w", ctx.Err())
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode(), nil
	}
	return 0, err
}

// Stray returns what came on stdout and answers nothing.
func (c *Child) Stray() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.stray...)
}

// Log returns the end of what the daemon wrote to stderr.
func (c *Child) Log() string { return c.log.String() }

func (c *Child) expect(id string) *slot {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.answers[id] == nil {
		c.answers[id] = &slot{frame: make(chan Frame, 1)}
	}
	return c.answers[id]
}

func (c *Child) readAll() {
	lines := bufio.NewReaderSize(c.stdout, 1<<16)
	for {
		line, err := lines.ReadBytes('\n')
		if line = bytes.TrimSpace(line); len(line) > 0 {
			c.take(line)
		}
		if err != nil {
			return
		}
	}
}

// take hands a line to whoever waits for it. A second answer to one request is
// stray.
func (c *Child) take(line []byte) {
	var frame Frame
	err := json.Unmarshal(line, &frame)
	frame.text, frame.came = line, time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil && len(frame.ID) > 0 {
		if answer := c.answers[string(frame.ID)]; answer != nil && !answer.filled {
			answer.filled = true
			answer.frame <- frame
			return
		}
	}
	c.stray = append(c.stray, string(line))
}

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

// Write implements io.Writer.
func (t *tail) Write(data []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, data...)
	if extra := len(t.text) - stderrTail; extra > 0 {
		t.text = append([]byte(nil), t.text[extra:]...)
	}
	return len(data), nil
}

// String returns what is kept.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}
