package hostrrelay

import (
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/nbd-wtf/go-nostr"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction(KhatruGoroutine))
}

// TestServeObeysUntilItsInputEnds plays the parent of the relay process.
func TestServeObeysUntilItsInputEnds(t *testing.T) {
	t.Parallel()
	ordersIn, orders := io.Pipe()
	reports, reportsOut := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- Serve("ws://127.0.0.1:1", ordersIn, reportsOut) }()
	answers := json.NewDecoder(reports)
	read := func() (answer report) {
		t.Helper()
		if err := answers.Decode(&answer); err != nil {
			t.Fatal(err)
		}
		return answer
	}
	ask := func(next order) report {
		t.Helper()
		if err := json.NewEncoder(orders).Encode(next); err != nil {
			t.Fatal(err)
		}
		return read()
	}

	if first := read(); !strings.HasPrefix(first.URL, "ws://127.0.0.1:") {
		t.Fatalf("the first report is %+v", first)
	}
	ask(order{Insert: []nostr.Event{event("a", 0, "host", 1, nostr.Tag{"t"}), event("b", 0, "guest", 2)}})
	found := ask(order{Query: &nostr.Filter{Authors: []string{"host"}}}).Events
	if len(found) != 1 || found[0].ID != "a" || len(found[0].Tags) != 1 {
		t.Errorf("the query found %v", found)
	}
	if err := orders.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("it ended with %v", err)
	}
}

func TestServeEndsOnUnreadableOrders(t *testing.T) {
	t.Parallel()
	err := Serve("ws://127.0.0.1:1", strings.NewReader("nonsense\n"), io.Discard)
	if err == nil || !strings.Contains(err.Error(), "unreadable order") {
		t.Errorf("it ended with %v", err)
	}
}
