// Package hostrdaemon holds the tests of the whole product: the built binary, as a
// child process over three pipes.
package hostrdaemon

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"hostr-daemon/internal/sandbox"
)

var record = flag.Bool("record", false, "write the answers of the daemon into testdata/protocol instead of comparing them")

// patience bounds every wait for the daemon; it is never what is measured.
const patience = 60 * time.Second

// TestProtocol plays the conversations of testdata/protocol to the built daemon.
//
// A fixture is read from top to bottom: "#" a remark, "$" the options of the
// daemon, ">" a line sent, ">>" the same as a quoted Go string (for bytes that are
// no text), "<" a line that came back, "." the end of input, "!" a signal, "=" how
// the process ended. Lines sent together are answered in any order; they are
// compared sorted. What differs from run to run or is long stands in <brackets>.
// After an intended change:
//
//	go test . -run TestProtocol -record
func TestProtocol(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/protocol/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no fixtures under testdata/protocol: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := play(t, string(want))
			if *record {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
				t.Errorf("%s (-fixture +daemon):\n%s", file, diff)
			}
		})
	}
}

// conversation is one daemon under a fixture.
type conversation struct {
	t        *testing.T
	played   strings.Builder
	replacer *strings.Replacer
	flags    []string
	command  *exec.Cmd
	in       io.WriteCloser
	out      *bufio.Reader
	stderr   bytes.Buffer
	pending  int
	// unterminated is set while the last line sent lacks its end: only the end of
	// input completes it.
	unterminated bool
}

func play(t *testing.T, fixture string) string {
	c := &conversation{t: t}
	for line := range strings.Lines(fixture) {
		line = strings.TrimSuffix(line, "\n")
		mark, rest, _ := strings.Cut(line, " ")
		if mark != ">" && mark != ">>" && mark != "<" && !(mark == "." && c.unterminated) {
			c.collect()
		}
		switch mark {
		case "$":
			c.start(strings.Fields(rest))
		case ">":
			c.send(rest + "\n")
		case ">>":
			text, err := strconv.Unquote(rest)
			if err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			c.send(text)
		case "<", "=":
			continue // what the daemon does is written anew
		case ".":
			c.in.Close()
		case "!":
			c.signal(rest)
		}
		c.played.WriteString(line + "\n")
		if mark == "." || mark == "!" {
			c.collect()
			c.exit()
		}
	}
	c.collect()
	return c.played.String()
}

func (c *conversation) start(flags []string) {
	state := c.t.TempDir()
	c.replacer = strings.NewReplacer(state, "<state-dir>")
	arguments := []string{"--stdio", "--state-dir", filepath.Join(state, "state")}
	for _, flag := range flags {
		if flag == "[market]" {
			config := filepath.Join(state, "market.json")
			open := market(c.t)
			if err := open.WriteConfig(config); err != nil {
				c.t.Fatal(err)
			}
			c.replacer = strings.NewReplacer(state, "<state-dir>", open.BlossomURL, "<blossom>")
			arguments = append(arguments, "--config", config)
			continue
		}
		arguments = append(arguments, flag)
	}
	c.command = exec.Command(daemonBinary(c.t), arguments...)
	c.command.Env = append(os.Environ(), "HOSTR_DAEMON_CONFIG=", "HOSTR_EVM_CONFIG=")
	c.command.Stderr = &c.stderr
	var err error
	if c.in, err = c.command.StdinPipe(); err != nil {
		c.t.Fatal(err)
	}
	out, err := c.command.StdoutPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	c.out = bufio.NewReader(out)
	if err := c.command.Start(); err != nil {
		c.t.Fatal(err)
	}
	// The deadline of every read: a daemon that stays silent is killed, and the read
	// ends with it.
	watchdog := time.AfterFunc(patience, func() { _ = c.command.Process.Kill() })
	c.t.Cleanup(func() {
		watchdog.Stop()
		_ = c.command.Process.Kill()
		_ = c.command.Wait()
	})
}

func (c *conversation) send(text string) {
	if _, err := io.WriteString(c.in, text); err != nil {
		c.t.Fatalf("sending %q: %v", text, err)
	}
	c.unterminated = !strings.HasSuffix(text, "\n")
	for line := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == '\n' || r == '\r' }) {
		if strings.Trim(line, " \t\ufeff") != "" {
			c.pending++
		}
	}
}

// collect reads the answers to all that was sent and writes them down.
func (c *conversation) collect() {
	var answers []string
	for ; c.pending > 0; c.pending-- {
		line, err := c.out.ReadString('\n')
		if err != nil {
			c.t.Fatalf("reading an answer: %v\nso far:\n%s\nstderr:\n%s", err, c.played.String(), c.stderr.String())
		}
		if !gjson.Valid(line) {
			c.t.Fatalf("not a JSON line: %q", line)
		}
		answers = append(answers, c.replacer.Replace(elide("", gjson.Parse(line))))
	}
	slices.Sort(answers)
	for _, answer := range answers {
		c.played.WriteString("< " + answer + "\n")
	}
}

func (c *conversation) signal(name string) {
	signals := map[string]syscall.Signal{"SIGTERM": syscall.SIGTERM, "SIGINT": syscall.SIGINT}
	if err := c.command.Process.Signal(signals[name]); err != nil {
		c.t.Fatal(err)
	}
}

func (c *conversation) exit() {
	rest, err := io.ReadAll(c.out)
	if err != nil || len(rest) > 0 {
		c.t.Fatalf("after the end: %q, %v", rest, err)
	}
	err = c.command.Wait()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		c.t.Fatal(err)
	}
	fmt.Fprintf(&c.played, "= exit %d\n", c.command.ProcessState.ExitCode())
}

var eventID = regexp.MustCompile("^[0-9a-f]{64}$")

// elided are the keys whose long values a reader need not see.
var elided = []string{"actions", "availableActions", "visibleActionIds", "tags", "specifications", "content", "description"}

// elide writes a frame as it came, long values shortened.
func elide(key string, value gjson.Result) string {
	switch {
	case key == "id" && eventID.MatchString(value.Str):
		return `"<event id>"` // it changes with the address of the picture server
	case value.IsArray() && slices.Contains(elided, key) && len(value.Array()) > 3:
		return fmt.Sprintf(`"<%d %s>"`, len(value.Array()), key)
	case value.IsObject() && slices.Contains(elided, key):
		return fmt.Sprintf(`"<%d %s>"`, len(value.Map()), key)
	case value.Type == gjson.String && len(value.Raw) > 200 && slices.Contains(elided, key):
		return fmt.Sprintf(`"<%s of %d bytes>"`, key, len(value.Str))
	case !value.IsArray() && !value.IsObject():
		return value.Raw
	}
	var parts []string
	value.ForEach(func(name, element gjson.Result) bool {
		if value.IsObject() {
			parts = append(parts, name.Raw+":"+elide(name.Str, element))
		} else {
			parts = append(parts, elide(key, element))
		}
		return true
	})
	if value.IsObject() {
		return "{" + strings.Join(parts, ",") + "}"
	}
	return "[" + strings.Join(parts, ",") + "]"
}

func market(t *testing.T) *sandbox.Market {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	started, err := sandbox.Start(ctx, sandbox.Options{Listings: 25, Seed: 1})
	if err != nil {
		t.Fatalf("starting the sandbox market: %v", err)
	}
	t.Cleanup(func() {
		if err := started.Close(); err != nil {
			t.Errorf("closing the sandbox market: %v", err)
		}
	})
	return started
}
