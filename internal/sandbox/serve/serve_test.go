package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"sync"
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

func TestServeTellsHowToUseTheMarketAndLeavesNothing(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	out := &screen{shown: make(chan struct{})}
	ended := make(chan error, 1)
	go func() {
		ended <- Run(ctx, Options{Market: sandbox.Options{Listings: 9, Seed: 1}, Out: out})
	}()
	select {
	case <-out.shown:
	case err := <-ended:
		t.Fatalf("it ended at once: %v", err)
	case <-time.After(time.Minute):
		t.Fatal("no welcome")
	}
	text := out.String()
	for _, want := range []string{
		"9 listings of 3 hosts", "ws://127.0.0.1:", "hostr-daemon --stdio --env development --state-dir ",
		`"action":"hostr.listings.search"`, "nsec1", "npub1", "(no profile)", "/relay/faults",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the welcome does not hold %q", want)
		}
	}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "{") && !json.Valid([]byte(line)) {
			t.Errorf("an example request is no JSON: %s", line)
		}
	}
	config := regexp.MustCompile(`--config (\S+)`).FindStringSubmatch(text)
	if config == nil {
		t.Fatal("no config is named")
	}
	if content, err := os.ReadFile(config[1]); err != nil || !json.Valid(content) {
		t.Errorf("config %s: %v", content, err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("it ended with %v", err)
	}
	if _, err := os.Stat(config[1]); !os.IsNotExist(err) {
		t.Errorf("the temporary directory is left: %v", err)
	}
}
