package listings_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nbd-wtf/go-nostr"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"
	"golang.org/x/time/rate"

	"hostr-daemon/internal/geocode"
	"hostr-daemon/internal/listings"
	"hostr-daemon/internal/market"
	"hostr-daemon/internal/relay"
	"hostr-daemon/internal/sandbox"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(withMarket{m}, goleak.IgnoreAnyFunction(sandbox.KhatruGoroutine))
}

// commonMarket is a market in good health and without listings, for tests that have an
// account of their own there.
var commonMarket *sandbox.Market

// withMarket runs the tests while there is a commonMarket.
type withMarket struct{ *testing.M }

func (w withMarket) Run() int {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var err error
	if commonMarket, err = sandbox.Start(ctx, sandbox.Options{Hosts: 1, Guests: 1}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := w.M.Run()
	if err := commonMarket.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// patience bounds every wait of these tests.
const patience = time.Minute

func patient(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func start(t testing.TB, options sandbox.Options) *sandbox.Market {
	t.Helper()
	started, err := sandbox.Start(patient(t), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := started.Close(); err != nil {
			t.Errorf("closing the market: %v", err)
		}
	})
	return started
}

// newService builds the service as the daemon does, on the market's servers.
func newService(t testing.TB, relayURL, geocoderURL string) *listings.Service {
	t.Helper()
	return listings.New(newRelays(t, relayURL), newCells(t, newGeocoder(t, geocoderURL)))
}

func newCells(t testing.TB, places listings.Places) *listings.Cells {
	t.Helper()
	cells := listings.NewCells(places)
	t.Cleanup(cells.Close)
	return cells
}

func newRelays(t testing.TB, url string) *relay.Client {
	t.Helper()
	return newAccountRelays(t, url, nil)
}

// newAccountRelays is newRelays for an account, which may be nil.
func newAccountRelays(t testing.TB, url string, account relay.Account) *relay.Client {
	t.Helper()
	verifier := relay.NewVerifier(nil, zerolog.Nop())
	client, err := relay.NewClient(relay.Config{
		HostrRelay: url, Account: account, Verifier: verifier, Clock: slowClock{started: time.Now()}, Logger: zerolog.Nop(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		client.Close()
		verifier.Close()
	})
	return client
}

// slowClock runs at a tenth of the machine's speed, so that a relay's answer is in
// time on a machine that is busy with other things.
type slowClock struct {
	relay.SystemClock
	started time.Time
}

const slowness = 10

func (c slowClock) Now() time.Time { return c.started.Add(time.Since(c.started) / slowness) }

func (c slowClock) AfterFunc(d time.Duration, f func()) func() bool {
	return c.SystemClock.AfterFunc(d*slowness, f)
}

func newGeocoder(t testing.TB, url string) *geocode.Client {
	t.Helper()
	transport := &http.Transport{}
	geocoder, err := geocode.New(geocode.Config{
		BaseURL: url, HTTPClient: &http.Client{Transport: transport}, Clock: impatient{}, Rate: rate.Inf,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		geocoder.Close()
		transport.CloseIdleConnections()
	})
	return geocoder
}

// impatient is a clock on which the waits between attempts take no time.
type impatient struct{}

func (impatient) Now() time.Time { return time.Now() }

func (impatient) Sleep(ctx context.Context, _ time.Duration) error { return ctx.Err() }

// deadline is a context whose deadline comes when the test says so.
type deadline struct {
	context.Context
	reached chan struct{}
	reach   func()
}

func newDeadline(t testing.TB) *deadline {
	reached := make(chan struct{})
	return &deadline{patient(t), reached, sync.OnceFunc(func() { close(reached) })}
}

func (d *deadline) Done() <-chan struct{} { return d.reached }

func (d *deadline) Err() error {
	select {
	case <-d.reached:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// outcome is what a search gave.
type outcome struct {
	listings.Found
	err error
}

// searches runs so many searches at the same time.
func searches(ctx context.Context, service *listings.Service, criteria listings.Criteria, count int) <-chan outcome {
	outcomes := make(chan outcome, count)
	for range count {
		go func() {
			found, err := service.Search(ctx, criteria)
			outcomes <- outcome{found, err}
		}()
	}
	return outcomes
}

func search(t testing.TB, service *listings.Service, criteria listings.Criteria) outcome {
	t.Helper()
	return receive(patient(t), t, searches(patient(t), service, criteria, 1))
}

func mustSearch(t testing.TB, service *listings.Service, criteria listings.Criteria) listings.Found {
	t.Helper()
	got := search(t, service, criteria)
	if got.err != nil {
		t.Fatalf("search: %v", got.err)
	}
	return got.Found
}

func receive[T any](ctx context.Context, t testing.TB, from <-chan T) T {
	t.Helper()
	select {
	case value := <-from:
		return value
	case <-ctx.Done():
		t.Fatal("nothing came")
		panic("unreachable")
	}
}

// anywhere asks for everything the limit lets through.
func anywhere() listings.Criteria {
	return listings.Criteria{Market: market.SearchCriteria{Limit: 50}}
}

func in(place string) listings.Criteria {
	criteria := anywhere()
	criteria.Location = place
	return criteria
}

// dTags are the names of the listings found.
func dTags(found listings.Found) []string {
	names := []string{}
	for _, listing := range found.Listings {
		if listing.DTag != nil {
			names = append(names, *listing.DTag)
		}
	}
	return names
}

// seeded are the names of the seeded listings that pass, in the relay's order.
func seeded(market *sandbox.Market, passes func(sandbox.Listing) bool) []string {
	names := []string{}
	for _, listing := range market.Listings {
		if passes(listing) {
			names = append(names, listing.DTag)
		}
	}
	return names
}

func lookedUp(market *sandbox.Market) int { return len(market.Geocoder.Switch.Requests()) }

func signed(t testing.TB, key string, createdAt nostr.Timestamp, d, title string, tags ...nostr.Tag) nostr.Event {
	t.Helper()
	event := nostr.Event{
		Kind: market.KindListing, CreatedAt: createdAt,
		Tags: append(nostr.Tags{{"d", d}, {"title", title}, {"t", market.Category}}, tags...),
	}
	if err := event.Sign(key); err != nil {
		t.Fatal(err)
	}
	return event
}

func sorted(names []string) []string { return slices.Sorted(slices.Values(names)) }

// gate stands in front of a geocoder: each request tells that it has entered, then
// waits for the gate to open, or for its client to give up.
type gate struct {
	url     string
	entered chan struct{}
	open    chan struct{}
}

func newGate(t testing.TB, geocoderURL string) *gate {
	t.Helper()
	behind, err := url.Parse(geocoderURL)
	if err != nil {
		t.Fatal(err)
	}
	gate := &gate{entered: make(chan struct{}, 64), open: make(chan struct{})}
	transport := &http.Transport{}
	proxy := &httputil.ReverseProxy{Transport: transport, Rewrite: func(request *httputil.ProxyRequest) {
		request.Out.URL.Scheme, request.Out.URL.Host = behind.Scheme, behind.Host
	}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		gate.entered <- struct{}{}
		select {
		case <-gate.open:
			proxy.ServeHTTP(w, request)
		case <-request.Context().Done():
		}
	}))
	t.Cleanup(func() {
		server.Close()
		transport.CloseIdleConnections()
	})
	gate.url = server.URL + behind.Path
	return gate
}
