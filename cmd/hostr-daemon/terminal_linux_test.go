package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/rs/zerolog"
	"golang.org/x/sys/unix"

	"hostr-daemon/internal/sandbox"
	"hostr-daemon/internal/sandbox/signerapp"
)

// pseudoTerminal is a terminal of which the test is the person in front.
type pseudoTerminal struct {
	device *os.File // the program's side

	mu      sync.Mutex
	shown   bytes.Buffer
	changed chan struct{} // closed at each change, then replaced
}

func newPseudoTerminal(t *testing.T) *pseudoTerminal {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	if err := unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	device, err := os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	terminal := &pseudoTerminal{device: device, changed: make(chan struct{})}
	var reading sync.WaitGroup
	reading.Go(func() { _, _ = io.Copy(terminal, person) }) // ends when nobody has the device open
	t.Cleanup(func() {
		_ = device.Close()
		reading.Wait()
		_ = person.Close()
	})
	return terminal
}

// Write takes what the program shows.
func (p *pseudoTerminal) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.changed)
	p.changed = make(chan struct{})
	return p.shown.Write(text)
}

// await returns what is shown once that passes.
func (p *pseudoTerminal) await(t *testing.T, passes func(shown string) bool) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		p.mu.Lock()
		shown, changed := p.shown.String(), p.changed
		p.mu.Unlock()
		if passes(shown) {
			return shown
		}
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatalf("the terminal shows %q and no more", shown)
		}
	}
}

// command runs the daemon on the market, with stderr at the terminal.
func (p *pseudoTerminal) command(t *testing.T, market *sandbox.Market, arguments ...string) *exec.Cmd {
	t.Helper()
	dir := t.TempDir()
	config := filepath.Join(dir, "market.json")
	if err := market.WriteConfig(config); err != nil {
		t.Fatal(err)
	}
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	command := exec.CommandContext(ctx, executable)
	// TestMain runs what it is called.
	command.Args = append([]string{"hostr-daemon", "--env", "test", "--config", config, "--state-dir", filepath.Join(dir, "state")}, arguments...)
	command.Stderr = p.device
	return command
}

// A call that takes its time shows that it is still going on, and Ctrl-C ends it.
func TestCallShowsProgressAndEndsOnInterrupt(t *testing.T) {
	t.Parallel()
	market := startMarket(t, sandbox.Options{Listings: 3})
	market.Relay.Break(sandbox.Faults{NoEOSE: true})
	terminal := newPseudoTerminal(t)
	command := terminal.command(t, market, "call", "hostr.listings.search")
	var stdout bytes.Buffer
	command.Stdout = &stdout
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	terminal.await(t, func(shown string) bool { return strings.Contains(shown, "hostr.listings.search … 1 s") })
	if err := command.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = command.Wait()
	if code := command.ProcessState.ExitCode(); code != 130 {
		t.Errorf("exit code %d, want 130", code)
	}
	shown := terminal.await(t, func(shown string) bool { return strings.HasSuffix(shown, " \r") })
	if stdout.Len() > 0 || strings.Contains(shown, "unexpected_error") {
		t.Errorf("an interrupted call says %q and %q", stdout.String(), shown)
	}
}

// At a terminal of any colours the code is dark on light, for signer apps to read.
func TestSignInCodeAtATerminal(t *testing.T) {
	t.Parallel()
	market := startMarket(t, sandbox.Options{Listings: 1})
	terminal := newPseudoTerminal(t)
	command := terminal.command(t, market, "call", "hostr.session.connect", "wait=true", "--allow-insecure-file-secrets")
	command.Stdout = terminal.device
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	link := regexp.MustCompile(`(nostrconnect://\S+)\r\n`)
	shown := terminal.await(t, link.MatchString)
	if strings.Count(shown, "\x1b[30;107m  ") < 20 {
		t.Errorf("the code is shown as\n%q", shown)
	}
	phone, err := signerapp.New(signerapp.Options{PrivateKey: market.Guests[0].PrivateKey, Logger: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(phone.Close)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := phone.Scan(ctx, link.FindStringSubmatch(shown)[1]); err != nil {
		t.Fatal(err)
	}
	if err := command.Wait(); err != nil {
		t.Errorf("signing in: %v", err)
	}
	terminal.await(t, func(shown string) bool { return strings.Contains(shown, "Signed in as "+market.Guests[0].NPub) })
}

// At a terminal log lines are for people; stdout stays for programs.
func TestLogLinesAtATerminalAreReadable(t *testing.T) {
	t.Parallel()
	market := startMarket(t, sandbox.Options{Listings: 3})
	terminal := newPseudoTerminal(t)
	command := terminal.command(t, market)
	command.Stdin = strings.NewReader(`{"id":"1","method":"callAction","params":{"action":"hostr.session.status"}}` + "\n")
	stdout, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(stdout), `{"id":"1","result":{"ok":true`) {
		t.Errorf("stdout %q", stdout)
	}
	shown := terminal.await(t, func(shown string) bool { return strings.Contains(shown, "event=response") })
	if !strings.Contains(shown, "event=request") || strings.Contains(shown, `{"event"`) || strings.Contains(shown, "\x1b") {
		t.Errorf("the terminal shows %q", shown)
	}
}
