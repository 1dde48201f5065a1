package geocode

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/time/rate"
)

// geocoder is a server that speaks the search API over answers given in advance.
type geocoder struct {
	*httptest.Server
	mu       sync.Mutex
	answers  []reply
	requests []*http.Request
	arrived  chan *http.Request
}

// reply answers one request. The zero value is an empty list.
type reply struct {
	status int
	body   string
	// drop ends the connection without an answer.
	drop bool
	// hold waits until the client gives up, or until the channel is closed.
	hold chan struct{}
}

func newGeocoder(t *testing.T, answers ...reply) *geocoder {
	t.Helper()
	server := &geocoder{answers: answers, arrived: make(chan *http.Request, 64)}
	server.Server = httptest.NewServer(http.HandlerFunc(server.serve))
	t.Cleanup(server.Close)
	return server
}

func (g *geocoder) serve(writer http.ResponseWriter, request *http.Request) {
	g.mu.Lock()
	g.requests = append(g.requests, request)
	var next reply
	if len(g.answers) > 0 {
		next, g.answers = g.answers[0], g.answers[1:]
	}
	g.mu.Unlock()
	g.arrived <- request
	if next.hold != nil {
		select {
		case <-next.hold:
		case <-request.Context().Done():
			return
		}
	}
	if next.drop {
		panic(http.ErrAbortHandler)
	}
	if next.body == "" {
		next.body = "[]"
	}
	writer.Header().Set("Content-Type", "application/json")
	writer.WriteHeader(max(next.status, http.StatusOK))
	fmt.Fprint(writer, next.body)
}

// queries returns the query of each request so far, as sent.
func (g *geocoder) queries() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	queries := []string{}
	for _, request := range g.requests {
		queries = append(queries, request.URL.RawQuery)
	}
	return queries
}

func (g *geocoder) wantQueries(t *testing.T, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, g.queries(), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

// awaitRequest waits for the next request to arrive.
func (g *geocoder) awaitRequest(t *testing.T) *http.Request {
	t.Helper()
	select {
	case request := <-g.arrived:
		return request
	case <-time.After(10 * time.Second):
		t.Fatal("no request arrived")
		return nil
	}
}

// client returns a client of the server, without a rate unless one is given.
func (g *geocoder) client(t *testing.T, configure ...func(*Config)) *Client {
	t.Helper()
	config := Config{BaseURL: g.URL + "/search", Rate: rate.Inf, Clock: &heldClock{}}
	for _, change := range configure {
		change(&config)
	}
	client, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// heldClock moves only when somebody sleeps, and then at once.
type heldClock struct {
	mu    sync.Mutex
	now   time.Duration
	slept []time.Duration
}

func (c *heldClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Unix(1700000000, 0).Add(c.now)
}

func (c *heldClock) Sleep(ctx context.Context, d time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	c.now += d
	c.slept = append(c.slept, d)
	return nil
}

func (c *heldClock) waits() []time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.slept)
}

// stuckClock sleeps until the context ends and tells when a sleep has begun.
type stuckClock struct {
	sleeping chan time.Duration
}

func (c stuckClock) Now() time.Time { return time.Unix(1700000000, 0) }

func (c stuckClock) Sleep(ctx context.Context, d time.Duration) error {
	c.sleeping <- d
	<-ctx.Done()
	return ctx.Err()
}
