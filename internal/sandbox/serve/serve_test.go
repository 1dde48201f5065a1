package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"hostr-daemon/internal/sandbox"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction(sandbox.KhatruGoroutine))
}

// screen collects the output and tells when the last line of the welcome is there.
type screen struct {
	mu    sync.Mutex
	text  bytes.Buffer
	shown chan struct{}
}

func (p *screen) Write(data []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := strings.Contains(p.text.String(), "Ctrl-C")
	n, err := p.text.Write(data)
	if !before && strings.Contains(p.text.String(), "Ctrl-C") {
		close(p.shown)
	}
	return n, err
}

func (p *screen) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

// open serves a market and returns its welcome. end closes it and returns what
// Run did.
func open(t *testing.T, accounts bool) (welcome string, end func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	out := &screen{shown: make(chan struct{})}
	ended := make(chan error, 1)
	go func() {
		ended <- Run(ctx, Options{Market: sandbox.Options{Listings: 9, Seed: 1}, Accounts: accounts, Out: out})
	}()
	select {
	case <-out.shown:
	case err := <-ended:
		t.Fatalf("it ended at once: %v", err)
	case <-time.After(time.Minute):
		t.Fatal("no welcome")
	}
	return out.String(), func() error {
		cancel()
		return <-ended
	}
}

func TestServeTellsHowToUseTheMarketAndLeavesNothing(t *testing.T) {
	t.Parallel()
	text, end := open(t, false)
	for _, want := range []string{
		"9 listings of 3 hosts", "ws://127.0.0.1:", "\n  export HOSTR_DAEMON_ENV=development HOSTR_CLI_ALLOW_INSECURE_STORAGE=1\n",
		"\n  export HOSTR_STATE_DIR=", "\n  ./hostr-daemon call hostr.listings.search location=Lisbon\n", "\n  ./hostr-daemon --stdio\n",
		"--accounts", "curl http://127.0.0.1:",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the welcome does not hold %q", want)
		}
	}
	if strings.Contains(text, "nsec1") {
		t.Error("the welcome holds keys that were not asked for")
	}
	if lines := strings.Count(text, "\n"); lines > 23 {
		t.Errorf("%d lines are too many for a screen", lines)
	}
	checkLines(t, text)
	config := regexp.MustCompile(`HOSTR_DAEMON_CONFIG=(\S+)`).FindStringSubmatch(text)
	if config == nil {
		t.Fatal("no config is named")
	}
	if content, err := os.ReadFile(config[1]); err != nil || !json.Valid(content) {
		t.Errorf("config %s: %v", content, err)
	}
	if err := end(); err != nil {
		t.Errorf("it ended with %v", err)
	}
	if _, err := os.Stat(config[1]); !os.IsNotExist(err) {
		t.Errorf("the temporary directory is left: %v", err)
	}
}

func TestAccountsComeBeforeTheStart(t *testing.T) {
	t.Parallel()
	text, end := open(t, true)
	keys, start := strings.LastIndex(text, "nsec1"), strings.Index(text, "HOSTR_DAEMON_ENV")
	if keys < 0 || keys > start || !strings.Contains(text, "npub1") || !strings.Contains(text, "(no profile)") {
		t.Errorf("the accounts are not above the start:\n%s", text)
	}
	checkLines(t, text)
	if err := end(); err != nil {
		t.Errorf("it ended with %v", err)
	}
}

// checkLines wants what a terminal of 80 columns breaks nowhere, a path alone on
// its line excepted, and JSON where it looks like it.
func checkLines(t *testing.T, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if len([]rune(line)) > 80 && !regexp.MustCompile(`^  export HOSTR_\w+=/`).MatchString(line) {
			t.Errorf("wider than a terminal: %s", line)
		}
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "{") && !json.Valid([]byte(line)) {
			t.Errorf("an example request is no JSON: %s", line)
		}
	}
}

// shut takes no text.
type shut struct{}

func (shut) Write([]byte) (int, error) { return 0, syscall.EPIPE }

func TestServeEndsWhenNobodyReads(t *testing.T) {
	t.Parallel()
	err := Run(context.Background(), Options{Market: sandbox.Options{Listings: 1, Seed: 1}, Out: shut{}})
	if !errors.Is(err, syscall.EPIPE) {
		t.Errorf("it ended with %v", err)
	}
}

func TestQuote(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"/var/a-b_1/state": "/var/a-b_1/state",
		"/var/a b":         "'/var/a b'",
		"/it's":            `'/it'\''s'`,
		"/$HOME":           "'/$HOME'",
	} {
		if got := quote(path); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}
