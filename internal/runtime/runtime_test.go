//go:build unix

package runtime

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/time/rate"

	"hostr-daemon/internal/environment"
	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/geocode"
	"hostr-daemon/internal/imagesource"
	"hostr-daemon/internal/listings"
	"hostr-daemon/internal/market"
	"hostr-daemon/internal/profiles"
	"hostr-daemon/internal/sessions"
)

// config is an override file.
type config string

func newConfig(t testing.TB, text string) config {
	t.Helper()
	c := config(filepath.Join(t.TempDir(), "override.json"))
	c.write(t, text)
	return c
}

func (c config) write(t testing.TB, text string) {
	t.Helper()
	if err := os.WriteFile(string(c), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// startRuntime starts the test environment on the directory. The process environment
// has no say.
func startRuntime(t testing.TB, dir string, override config) *Runtime {
	t.Helper()
	running, err := Start(context.Background(), Options{
		Environment: environment.Options{Name: " Test ", ConfigFile: string(override), Getenv: noVariables},
		StateDir:    dir,
		Getenv:      noVariables,
		Logger:      zerolog.Nop(),
		RelayLogger: zerolog.Nop(),
		Version:     "0",
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := running.Close(); err != nil {
			t.Errorf("closing the runtime: %v", err)
		}
	})
	return running
}

func noVariables(string) string { return "" }

// nowhere points every address of an environment at this machine's closed ports.
const nowhere = `{"hostrRelay":"ws://127.0.0.1:1","bootstrapRelays":[],"bootstrapBlossom":[],"geocoderUrl":"http://127.0.0.1:1/search","evmConfig":{}}`

func TestUnknownEnvironmentIsFatal(t *testing.T) {
	t.Parallel()
	running, err := Start(t.Context(), Options{Environment: environment.Options{Name: "moon"}, StateDir: t.TempDir()})
	var unknown *environment.UnknownNameError
	if running != nil || !errors.As(err, &unknown) || unknown.Name != "moon" {
		t.Errorf("got %v, %v", running, err)
	}
}

func TestEnvironmentAndSession(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state")
	running := startRuntime(t, dir, newConfig(t, nowhere))
	if name := running.EnvironmentName(); name != "test" {
		t.Errorf("name %q", name)
	}
	if resolved, err := running.StateDir(); resolved != dir || err != nil {
		t.Errorf("state directory %q, %v", resolved, err)
	}
	facts, err := running.Environment(t.Context())
	if err != nil || facts.HostrRelay != "ws://127.0.0.1:1" || facts.Name != "test" {
		t.Errorf("environment %+v, %v", facts, err)
	}
	session, err := running.Foreground(t.Context())
	if err != nil || session.Listings == nil || session.Profiles == nil {
		t.Fatalf("session %+v, %v", session, err)
	}
	found, err := session.Listings.Search(t.Context(), listings.Criteria{Market: market.SearchCriteria{Limit: 1}})
	if err != nil || found.Warning == nil || !strings.Contains(found.Warning.Message, "ws://127.0.0.1:1") {
		t.Errorf("a search on a dead relay: %+v, %v", found, err)
	}
}

func TestEveryCallerGetsTheSameSession(t *testing.T) {
	t.Parallel()
	running := startRuntime(t, t.TempDir(), newConfig(t, nowhere))
	const callers = 64
	found := make([]*sessions.Services, callers)
	var group sync.WaitGroup
	for i := range callers {
		group.Go(func() {
			var err error
			if found[i], err = running.Foreground(t.Context()); err != nil {
				t.Error(err)
			}
			if _, err := running.Environment(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	for _, session := range found {
		if session == nil || session != found[0] {
			t.Fatalf("two sessions: %p and %p", session, found[0])
		}
	}
}

// A bad override file is answered to every request that needs the environment, until
// it is mended; from then on it is not read again.
func TestBadOverrideFileIsAnsweredAndHealed(t *testing.T) {
	t.Parallel()
	override := newConfig(t, `{"hostrRelay":"https://relay.example.org"}`)
	running := startRuntime(t, t.TempDir(), override)
	complain := func(part string) {
		t.Helper()
		_, atDescribe := running.Environment(t.Context())
		_, atCall := running.Foreground(t.Context())
		for _, err := range []error{atDescribe, atCall} {
			if coded := fault.From(err); coded == nil || coded.Code != fault.UnexpectedError || !strings.Contains(coded.Message, part) {
				t.Errorf("got %v, want it to say %q", err, part)
			}
		}
	}
	complain("hostrRelay")
	override.write(t, "not JSON")
	complain(string(override))
	if err := os.Remove(string(override)); err != nil {
		t.Fatal(err)
	}
	complain("does not exist")

	override.write(t, nowhere)
	if facts, err := running.Environment(t.Context()); err != nil || facts.HostrRelay != "ws://127.0.0.1:1" {
		t.Fatalf("mended, but %+v, %v", facts, err)
	}
	override.write(t, `{"hostrRelay":"ws://127.0.0.1:2"}`)
	if _, err := running.Foreground(t.Context()); err != nil {
		t.Fatal(err)
	}
	if facts, err := running.Environment(t.Context()); err != nil || facts.HostrRelay != "ws://127.0.0.1:1" {
		t.Errorf("one process works with two environments: %+v, %v", facts, err)
	}
}

func TestUnusableStateDirectoryIsAnsweredAndHealed(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state")
	if err := os.WriteFile(dir, []byte("a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	running := startRuntime(t, dir, newConfig(t, nowhere))
	for range 2 {
		_, atDescribe := running.Environment(t.Context())
		_, atCall := running.Foreground(t.Context())
		for _, err := range []error{atDescribe, atCall, running.OpenState(t.Context())} {
			checkStateProblem(t, err, false, dir, "not a directory")
		}
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := running.Foreground(t.Context()); err != nil {
		t.Errorf("mended, but: %v", err)
	}
}

// While another daemon holds the directory, the catalog is answered and calls are told
// to come back; once it is gone they are served.
func TestLockedStateDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	other := openState(t, StateOptions{Dir: dir})
	mustStore(t, other)
	running := startRuntime(t, dir, newConfig(t, nowhere))
	if _, err := running.Environment(t.Context()); err != nil {
		t.Errorf("the catalog needs no lock, but: %v", err)
	}
	_, err := running.Foreground(t.Context())
	checkStateProblem(t, err, true, dir, "another hostr-daemon")
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := running.Foreground(t.Context()); err != nil {
		t.Errorf("the lock is free, but: %v", err)
	}
}

func TestCallerNeedNotWaitForTheLock(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	mustStore(t, openState(t, StateOptions{Dir: dir}))
	running := startRuntime(t, dir, newConfig(t, nowhere))
	cause := errors.New("the caller has gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	if _, err := running.Foreground(ctx); !errors.Is(err, cause) {
		t.Errorf("got %v", err)
	}
}

func TestCloseDuringStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for range 20 {
		running := startRuntime(t, dir, newConfig(t, nowhere))
		answered := make(chan error, 1)
		go func() {
			_, err := running.Foreground(context.Background())
			answered <- err
		}()
		if err := running.Close(); err != nil {
			t.Fatal(err)
		}
		if err := <-answered; err != nil && !errors.Is(err, errStateClosed) {
			t.Fatalf("a call during the end got %v", err)
		}
		if _, err := running.Foreground(t.Context()); !errors.Is(err, errStateClosed) {
			t.Fatalf("a call after the end got %v", err)
		}
		if _, err := running.Environment(t.Context()); !errors.Is(err, errStateClosed) {
			t.Fatalf("the environment after the end: %v", err)
		}
	}
}

func TestCloseManyTimesAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	running := startRuntime(t, dir, newConfig(t, nowhere))
	if _, err := running.Foreground(t.Context()); err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			if err := running.Close(); err != nil {
				t.Error(err)
			}
			if running.state.latest.lock.file.Locked() {
				t.Error("Close came back before the state directory was free")
			}
		})
	}
	group.Wait()
	mustStore(t, openState(t, StateOptions{Dir: dir}))
}

// Close waits for nobody outside: whatever is under way ends at once.
func TestCloseEndsWhatIsUnderWay(t *testing.T) {
	t.Parallel()
	silent := newSilentServer(t)
	running := startRuntime(t, t.TempDir(), newConfig(t, `{"hostrRelay":"ws://`+silent.address+`","bootstrapRelays":[],`+
		`"geocoderUrl":"http://`+silent.address+`/search"}`))
	session, err := running.Foreground(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	pubkey := strings.Repeat("ab", 32)
	ended := make(chan error, 3)
	go func() { _, err := session.Profiles.Lookup(context.Background(), pubkey); ended <- err }()
	go func() {
		_, err := session.Listings.Search(context.Background(), listings.Criteria{})
		ended <- err
	}()
	go func() {
		_, err := session.Listings.Search(context.Background(), listings.Criteria{Location: "Lisbon"})
		ended <- err
	}()
	for range 2 { // one connection for the relay, one for the geocoder
		receiveInTime(t, silent.connected)
	}
	if err := running.Close(); err != nil {
		t.Fatal(err)
	}
	closed := 0
	for range 3 {
		err := receiveInTime(t, ended)
		if err == nil {
			t.Error("a call that was under way has succeeded")
		}
		if errors.Is(err, profiles.ErrClosed) {
			closed++
		}
	}
	if closed != 1 {
		t.Errorf("%d look-ups ended as closed, want the one", closed)
	}
}

func receiveInTime[T any](t testing.TB, from <-chan T) T {
	t.Helper()
	select {
	case value := <-from:
		return value
	case <-time.After(time.Minute):
		t.Fatal("nothing came")
		panic("unreachable")
	}
}

// silentServer takes connections and never says a word.
type silentServer struct {
	address   string
	connected chan struct{}
}

func newSilentServer(t testing.TB) *silentServer {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &silentServer{address: listener.Addr().String(), connected: make(chan struct{}, 16)}
	var readers sync.WaitGroup
	readers.Go(func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			server.connected <- struct{}{}
			readers.Go(func() {
				_, _ = io.Copy(io.Discard, connection)
				_ = connection.Close()
			})
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		readers.Wait()
	})
	return server
}

func TestGeocoderRate(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]rate.Limit{
		"https://nominatim.openstreetmap.org/search": geocode.DefaultRate,
		"http://127.0.0.1:8080/search":               rate.Inf,
		"http://[::1]/search":                        rate.Inf,
		"http://localhost/search":                    rate.Inf,
		"http://localhost.example.org/search":        geocode.DefaultRate,
		"http://192.168.1.5/search":                  geocode.DefaultRate,
		"://":                                        geocode.DefaultRate,
	} {
		if got := geocoderRate(url); got != want {
			t.Errorf("%s: %v, want %v", url, got, want)
		}
	}
}

// The transport follows the environment's TLS rule.
func TestTransportHasTheEnvironmentsTLSRule(t *testing.T) {
	t.Parallel()
	for name, relaxed := range map[string]bool{"development": true, "production": false} {
		facts, err := environment.Resolve(name)
		if err != nil {
			t.Fatal(err)
		}
		transport := NewTransport(facts)
		if got := transport.TLSClientConfig.VerifyConnection != nil; got != relaxed {
			t.Errorf("%s: own verification %v, want %v", name, got, relaxed)
		}
	}
}

// A server on this machine is addressed by IP, which TLS does not send as a name.
func TestTransportReachesAnAddressOfTheRule(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // it complains of the strict client
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	for name, listed := range map[string]bool{"of the environment": true, "of nobody": false} {
		facts, err := environment.Resolve("development")
		if err != nil {
			t.Fatal(err)
		}
		if listed {
			facts.Blossom = append(facts.Blossom, server.URL)
		}
		transport := NewTransport(facts)
		defer transport.CloseIdleConnections()
		answer, err := (&http.Client{Transport: transport, Timeout: time.Minute}).Get(server.URL)
		if (err == nil) != listed {
			t.Errorf("a server %s: %v", name, err)
		}
		if err == nil {
			answer.Body.Close()
			if answer.ProtoMajor != 2 {
				t.Errorf("a server %s speaks %s", name, answer.Proto)
			}
		}
	}
}

// A redirect does not tell the next host the URL it comes from, which may hold a key.
func TestRedirectsTellNoReferer(t *testing.T) {
	t.Parallel()
	told := make(chan string, 1)
	next := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) { told <- request.Header.Get("Referer") }))
	t.Cleanup(next.Close)
	first := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		to := next.URL
		if request.URL.Path == "/loop" {
			to = "/loop"
		}
		http.Redirect(w, request, to, http.StatusFound)
	}))
	t.Cleanup(first.Close)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, CheckRedirect: withoutReferer, Timeout: time.Minute}
	answer, err := client.Get(first.URL + "/search?key=k3y")
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if referer := <-told; referer != "" {
		t.Errorf("Referer %q", referer)
	}
	if answer, err := client.Get(first.URL + "/loop"); err == nil || !strings.Contains(err.Error(), "more than 10 redirects") {
		t.Errorf("a loop: %v", err)
		answer.Body.Close()
	}
}

// Development and test reach private hosts, elsewhere the operator must allow it; the
// environment's own Blossom server is reached everywhere.
func TestImageRules(t *testing.T) {
	t.Parallel()
	references := map[string]imagesource.Reference{
		"file":    {Path: "front.png"},
		"private": {URL: "http://127.0.0.1/front.png"},
		"blossom": {URL: "http://10.0.0.1:3000/front.png"},
	}
	for _, environmentName := range environment.Names() {
		for _, options := range []ImageOptions{{}, {AllowFiles: true}, {AllowPrivateHosts: true}} {
			facts, err := environment.Resolve(environmentName)
			if err != nil {
				t.Fatal(err)
			}
			facts.Blossom = []string{"http://10.0.0.1:3000"}
			reader := imagesource.New(imageRules(facts, options, ""))
			ownMachines := environmentName == "development" || environmentName == "test"
			for name, allowed := range map[string]bool{
				"file": options.AllowFiles, "private": options.AllowPrivateHosts || ownMachines, "blossom": true,
			} {
				if _, err := reader.Resolve(references[name]); (err == nil) != allowed {
					t.Errorf("%s with %+v: %s: %v", environmentName, options, name, err)
				}
			}
		}
	}
}
