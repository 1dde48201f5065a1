package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// child is a line server under measurement.
type child struct {
	command *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
	// stderr counts the log lines, unless they go to the null device.
	stderr *counter
	state  string
}

// counter swallows log lines as an attentive parent would, and counts them.
type counter struct{ bytes, lines int }

func (c *counter) Write(p []byte) (int, error) {
	c.bytes += len(p)
	c.lines += bytes.Count(p, []byte{'\n'})
	return len(p), nil
}

func startDaemon(ctx context.Context, binary string, flags ...string) (*child, error) {
	state, err := os.MkdirTemp("", "hostr-bench-state-")
	if err != nil {
		return nil, err
	}
	arguments := append([]string{"--stdio", "--env", "development", "--state-dir", state}, flags...)
	started, err := start(ctx, binary, arguments...)
	if err != nil {
		return nil, err
	}
	started.state = state
	return started, nil
}

// unread sends the log of what is started next to the null device: the daemon does all
// its work for it, and this process, which shares the cores, does none.
func unread(started *exec.Cmd) error {
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err == nil {
		started.Stderr = null
	}
	return err
}

func start(ctx context.Context, binary string, arguments ...string) (*child, error) {
	command := exec.CommandContext(ctx, binary, arguments...)
	in, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	started := &child{command: command, in: in, out: bufio.NewReaderSize(out, 1<<20), stderr: &counter{}}
	command.Stderr = started.stderr
	if readsNoLog(ctx) {
		if err := unread(command); err != nil {
			return nil, err
		}
	}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", binary, err)
	}
	return started, nil
}

type noLogKey struct{}

// withoutLog marks a measurement whose log nobody reads.
func withoutLog(ctx context.Context) context.Context {
	return context.WithValue(ctx, noLogKey{}, true)
}

func readsNoLog(ctx context.Context) bool { return ctx.Value(noLogKey{}) != nil }

// ask sends one frame and returns the next line.
func (c *child) ask(frame string) (string, error) {
	if _, err := io.WriteString(c.in, frame+"\n"); err != nil {
		return "", err
	}
	return c.out.ReadString('\n')
}

// pipeline sends n frames as fast as the child takes them and reads n lines.
func (c *child) pipeline(n int, frame func(i int) string) (time.Duration, error) {
	var all bytes.Buffer
	for i := range n {
		all.WriteString(frame(i))
		all.WriteByte('\n')
	}
	begin := time.Now()
	sent := make(chan error, 1)
	go func() {
		_, err := c.in.Write(all.Bytes())
		sent <- err
	}()
	for range n {
		if _, err := c.out.ReadSlice('\n'); err != nil && err != bufio.ErrBufferFull {
			return 0, err
		} else if err == bufio.ErrBufferFull {
			if _, err := c.out.ReadString('\n'); err != nil {
				return 0, err
			}
		}
	}
	return time.Since(begin), <-sent
}

// windowed pipelines n frames with at most window of them unanswered, as a bridge
// that respects the daemon's queue does.
func (c *child) windowed(n, window int, frame func(i int) string) (time.Duration, error) {
	var total time.Duration
	for from := 0; from < n; from += window {
		took, err := c.pipeline(min(window, n-from), func(i int) string { return frame(from + i) })
		if err != nil {
			return 0, err
		}
		total += took
	}
	return total, nil
}

// residentMiB reads the child's resident memory; 0 where the system does not tell.
func (c *child) residentMiB() float64 {
	status, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(c.command.Process.Pid), "status"))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, _ := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 64)
			return kib / 1024
		}
	}
	return 0
}

func (c *child) stop() error {
	c.in.Close()
	_, _ = io.Copy(io.Discard, c.out)
	err := c.command.Wait()
	if c.state != "" {
		os.RemoveAll(c.state)
	}
	return err
}
