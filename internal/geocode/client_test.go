package geocode

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"
	"golang.org/x/time/rate"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/location"
	"hostr-daemon/internal/trace"
)

func alwaysExported(reflect.Type) bool { return true }

func TestRequestHeaders(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, userAgent, traceID, wantAgent, wantTrace string }{
		{"default", "", "", DefaultUserAgent, ""},
		{"own name and trace", "hostr-daemon/2.0", "4bf92f35-trace", "hostr-daemon/2.0", "4bf92f35-trace"},
		{"trace that would break the header", "", "a\r\nb: c", DefaultUserAgent, ""},
		{"trace that is no ASCII", "", "späti", DefaultUserAgent, ""},
		{"trace without end", "", strings.Repeat("a", 10_000), DefaultUserAgent, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			server := newGeocoder(t, reply{body: sanSalvador})
			client := server.client(t, func(config *Config) { config.UserAgent = test.userAgent })
			if _, err := client.Point(trace.With(t.Context(), test.traceID), "San Salvador"); err != nil {
				t.Fatal(err)
			}
			request := server.awaitRequest(t)
			if got := request.Header.Get("User-Agent"); got != test.wantAgent {
				t.Errorf("User-Agent %q, want %q", got, test.wantAgent)
			}
			if got := request.Header.Get("x-trace-id"); got != test.wantTrace {
				t.Errorf("x-trace-id %q, want %q", got, test.wantTrace)
			}
			if request.Method != http.MethodGet || request.URL.Path != "/search" {
				t.Errorf("%s %s, want GET /search", request.Method, request.URL.Path)
			}
		})
	}
}

func TestBaseURL(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"nominatim.example/search", "ftp://host/search", "http://", "://", "http://a b/"} {
		if _, err := New(Config{BaseURL: bad}); err == nil {
			t.Errorf("%q was taken as a base URL", bad)
		}
	}
	client, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if client.base.String() != DefaultBaseURL || client.limiter.Limit() != 1 || client.limiter.Burst() != 1 {
		t.Errorf("the default client asks %s at %v a second", client.base, client.limiter.Limit())
	}
}

func TestBaseURLKeepsItsQueryAndItsKey(t *testing.T) {
	t.Parallel()
	server := newGeocoder(t, reply{drop: true}, reply{drop: true}, reply{drop: true}, reply{status: 403})
	client := server.client(t, func(config *Config) { config.BaseURL = server.URL + "/v1/find?key=hidden#top" })
	_, err := client.Point(t.Context(), "Rome")
	request := server.awaitRequest(t)
	if got, want := request.URL.String(), "/v1/find?key=hidden&q=Rome&format=json&limit=1&addressdetails=0"; got != want {
		t.Errorf("asked %s, want %s", got, want)
	}
	_, second := client.Point(t.Context(), "Rome")
	for _, err := range []error{err, second} {
		if err == nil || strings.Contains(err.Error(), "hidden") {
			t.Errorf("error %v, want one that does not tell the key", err)
		}
	}
	server.CloseClientConnections()
	server.Close()
	if _, err := client.Point(t.Context(), "Rome"); err == nil || strings.Contains(err.Error(), "hidden") {
		t.Errorf("error %v, want one that does not tell the key", err)
	}
}

func TestRetryWaits(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		rate rate.Limit
		want []time.Duration
	}{
		{"without a rate", rate.Inf, []time.Duration{250 * time.Millisecond, time.Second}},
		// The wait for the turn fills the first retry's up to a second.
		{"at one a second", 0, []time.Duration{250 * time.Millisecond, 750 * time.Millisecond, time.Second}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			server := newGeocoder(t, reply{status: 503}, reply{status: 503}, reply{body: lisbon})
			clock := &heldClock{}
			client := server.client(t, func(config *Config) { config.Clock, config.Rate = clock, test.rate })
			if _, err := client.Place(t.Context(), "Lisbon"); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, clock.waits()); diff != "" {
				t.Errorf("waits (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRetriedStatuses(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]int{
		204: 1, 304: 1, 400: 1, 404: 1, 408: 3, 418: 1, 425: 3, 429: 3, 499: 1, 500: 3, 502: 3, 599: 3,
	} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			server := newGeocoder(t, reply{status: status}, reply{status: status}, reply{status: status})
			if _, err := server.client(t).Place(t.Context(), "Lisbon"); err == nil {
				t.Error("a place was found")
			}
			if sent := len(server.queries()); sent != want {
				t.Errorf("%d requests, want %d", sent, want)
			}
		})
	}
}

func TestOneRequestASecond(t *testing.T) {
	t.Parallel()
	server := newGeocoder(t)
	clock := &heldClock{}
	client := server.client(t, func(config *Config) { config.Clock, config.Rate = clock, 0 })
	if _, err := client.Place(t.Context(), "Atlantis"); err == nil {
		t.Fatal("Atlantis was found")
	}
	if diff := cmp.Diff([]time.Duration{time.Second, time.Second, time.Second}, clock.waits()); diff != "" {
		t.Errorf("waits between four requests (-want +got):\n%s", diff)
	}
}

func TestLookUpsThatWouldWaitTooLongAreRefused(t *testing.T) {
	t.Parallel()
	server := newGeocoder(t, reply{body: sanSalvador}, reply{body: sanSalvador})
	client := server.client(t, func(config *Config) { config.Rate = rate.Every(time.Hour) })
	if _, err := client.Point(t.Context(), "first"); err != nil {
		t.Fatal(err)
	}
	_, err := client.Point(t.Context(), "second")
	if coded := fault.From(err); coded == nil || !coded.Retryable || !strings.Contains(coded.Message, "too many look-ups") {
		t.Errorf("%v, want a retryable refusal", err)
	}
}

func TestCancelEndsTheWaitForARetry(t *testing.T) {
	t.Parallel()
	server := newGeocoder(t, reply{status: 503})
	clock := stuckClock{make(chan time.Duration, 1)}
	client := server.client(t, func(config *Config) { config.Clock = clock })
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := client.Place(ctx, "Lisbon")
		ended <- err
	}()
	if wait := receive(t, clock.sleeping); wait != 250*time.Millisecond {
		t.Errorf("first wait %s, want 250ms", wait)
	}
	cancel()
	if err := receive(t, ended); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), `"Lisbon"`) {
		t.Errorf("%v, want context.Canceled", err)
	}
	if sent := len(server.queries()); sent != 1 {
		t.Errorf("%d requests, want 1", sent)
	}
}

func TestCancelEndsARequestUnderWay(t *testing.T) {
	t.Parallel()
	server := newGeocoder(t, reply{hold: make(chan struct{})})
	client := server.client(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := client.Point(ctx, "1 Main St")
		ended <- err
	}()
	request := server.awaitRequest(t)
	cancel()
	if err := receive(t, ended); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want context.Canceled", err)
	}
	// The geocoder sees that nobody waits for it any more.
	receive(t, request.Context().Done())
	if sent := len(server.queries()); sent != 1 {
		t.Errorf("%d requests, want 1: no fallback for somebody who left", sent)
	}
}

func TestCallersContextThatHasEndedAsksNothing(t *testing.T) {
	t.Parallel()
	server := newGeocoder(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := server.client(t).Place(ctx, "Lisbon"); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want context.Canceled", err)
	}
	server.wantQueries(t)
}

func TestEqualLookUpsInFlightAreOne(t *testing.T) {
	t.Parallel()
	gate := make(chan struct{})
	server := newGeocoder(t, reply{body: lisbon, hold: gate})
	client := server.client(t)
	var waiting sync.WaitGroup
	places := make([]Place, 5)
	for i := range places {
		waiting.Go(func() {
			var err error
			if places[i], err = client.Place(t.Context(), "LISBON"); err != nil {
				t.Errorf("caller %d: %v", i, err)
			}
		})
	}
	server.awaitRequest(t)
	close(gate)
	waiting.Wait()
	for _, place := range places {
		samePlace(t, Place{Geometry: outline(t, lisbonOutline), DisplayName: "Lisbon, Portugal", PlaceID: "123", Feature: "country"}, place)
	}
	if sent := len(server.queries()); sent != 1 {
		t.Errorf("%d requests, want 1", sent)
	}
}

func TestAbandonedLookUpIsStartedAnew(t *testing.T) {
	t.Parallel()
	server := newGeocoder(t, reply{hold: make(chan struct{})}, reply{body: lisbon})
	client := server.client(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := client.Place(ctx, "Lisbon")
		ended <- err
	}()
	server.awaitRequest(t)
	cancel()
	receive(t, ended)
	if _, err := client.Place(t.Context(), "Lisbon"); err != nil {
		t.Errorf("the next caller got %v", err)
	}
}

func TestTimeLimits(t *testing.T) {
	t.Parallel()
	held := func() reply { return reply{hold: make(chan struct{})} }
	t.Run("of one attempt", func(t *testing.T) {
		t.Parallel()
		server := newGeocoder(t, held(), reply{body: lisbon})
		client := server.client(t)
		client.limits.attempt = time.Second
		if _, err := client.Place(t.Context(), "Lisbon"); err != nil {
			t.Errorf("no second attempt after one without answer: %v", err)
		}
	})
	t.Run("of all attempts", func(t *testing.T) {
		t.Parallel()
		server := newGeocoder(t, held(), held(), held())
		client := server.client(t)
		client.limits.attempt = 20 * time.Millisecond
		_, err := client.Place(t.Context(), "Lisbon")
		if coded := fault.From(err); coded == nil || !coded.Retryable || !strings.Contains(coded.Message, "no answer within 20ms (tried 3 times)") {
			t.Errorf("%v, want a retryable failure that tells the limit", err)
		}
	})
	t.Run("of the look-up", func(t *testing.T) {
		t.Parallel()
		server := newGeocoder(t, held(), held(), held())
		client := server.client(t)
		client.limits.lookup = 50 * time.Millisecond
		_, err := client.Point(t.Context(), "1 Main St")
		if coded := fault.From(err); coded == nil || !coded.Retryable || !strings.Contains(coded.Message, "gave no answer within 50ms") {
			t.Errorf("%v, want a retryable failure that tells the limit", err)
		}
	})
	t.Run("of the caller", func(t *testing.T) {
		t.Parallel()
		server := newGeocoder(t, held(), held(), held())
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		_, err := server.client(t).Point(ctx, "1 Main St")
		if coded := fault.From(err); !errors.Is(err, context.DeadlineExceeded) || !coded.Retryable || coded.Code != fault.UnexpectedError {
			t.Errorf("%v, want a retryable failure", err)
		}
	})
}

func TestHugeAnswerIsNotReadToItsEnd(t *testing.T) {
	t.Parallel()
	server := newGeocoder(t, reply{body: `[{"display_name":"` + strings.Repeat("x", 4096) + `"}]`}, reply{body: lisbon})
	client := server.client(t)
	client.limits.answer = 1024
	_, err := client.Place(t.Context(), "Lisbon")
	if coded := fault.From(err); coded == nil || coded.Retryable || !strings.Contains(coded.Message, "larger than 1024 bytes") {
		t.Errorf("%v, want a failure that tells the limit", err)
	}
	if sent := len(server.queries()); sent != 1 {
		t.Errorf("%d requests, want 1: the next answer would be no smaller", sent)
	}
}

func TestCloseEndsLookUps(t *testing.T) {
	t.Parallel()
	server := newGeocoder(t, reply{hold: make(chan struct{})})
	client := server.client(t)
	ended := make(chan error, 1)
	go func() {
		_, err := client.Place(t.Context(), "Lisbon")
		ended <- err
	}()
	server.awaitRequest(t)
	client.Close()
	if err := receive(t, ended); !errors.Is(err, errClosed) {
		t.Errorf("look-up under way: %v, want errClosed", err)
	}
	if _, err := client.Point(t.Context(), "1 Main St"); !errors.Is(err, errClosed) {
		t.Errorf("look-up after Close: %v, want errClosed", err)
	}
}

func TestLogTellsNoPlace(t *testing.T) {
	t.Parallel()
	var lines bytes.Buffer
	server := newGeocoder(t, reply{status: 503}, reply{body: lisbon})
	client := server.client(t, func(config *Config) { config.Logger = zerolog.New(&lines) })
	if _, err := client.Place(t.Context(), "Lisbon"); err != nil {
		t.Fatal(err)
	}
	client.Close()
	if got := strings.Count(lines.String(), `"geocoder request"`); got != 2 {
		t.Errorf("%d log lines, want 2:\n%s", got, lines.String())
	}
	if strings.Contains(strings.ToLower(lines.String()), "lisbon") {
		t.Errorf("the log names the place:\n%s", lines.String())
	}
}

func TestSystemClock(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	if err := (systemClock{}).Sleep(ctx, time.Nanosecond); err != nil {
		t.Errorf("a short sleep: %v", err)
	}
	cancel()
	if err := (systemClock{}).Sleep(ctx, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("a sleep whose context has ended: %v", err)
	}
}

func TestPlaceMemoryForgetsTheOldest(t *testing.T) {
	t.Parallel()
	memory := newPlaceMemory(rememberedPlaces, rememberedPositions)
	for i := range rememberedPlaces {
		memory.add(fmt.Sprint(i), Place{PlaceID: fmt.Sprint(i), Geometry: location.Rectangle(0, 1, 0, 1)})
	}
	memory.get("0") // being asked for keeps no place
	memory.add("new", Place{Geometry: location.Rectangle(0, 1, 0, 1)})
	if _, ok := memory.get("0"); ok {
		t.Error("the oldest place is still there")
	}
	if place, ok := memory.get("1"); !ok || place.PlaceID != "1" {
		t.Error("the second oldest place is gone")
	}
	if memory.positions != rememberedPlaces*5 {
		t.Errorf("%d positions are counted, want %d", memory.positions, rememberedPlaces*5)
	}
}

func TestPlaceMemoryIsBoundedInPositions(t *testing.T) {
	t.Parallel()
	memory := newPlaceMemory(rememberedPlaces, 100)
	memory.add("a", Place{Geometry: manyPoints(t, 50)})
	memory.add("b", Place{Geometry: manyPoints(t, 40)})
	memory.add("b", Place{Geometry: manyPoints(t, 50)})
	if _, ok := memory.get("a"); !ok || memory.positions != 100 {
		t.Errorf("%d positions are counted, want 100", memory.positions)
	}
	memory.add("c", Place{Geometry: manyPoints(t, 1)})
	if _, ok := memory.get("a"); ok {
		t.Error("the oldest place is still there")
	}
	memory.add("d", Place{Geometry: manyPoints(t, 101)})
	if _, ok := memory.get("d"); ok {
		t.Error("a place too large to remember is remembered")
	}
	if _, ok := memory.get("c"); !ok || memory.positions != 51 {
		t.Errorf("a place too large to remember has driven out others; %d positions are counted", memory.positions)
	}
}

func manyPoints(t *testing.T, count int) location.Geometry {
	t.Helper()
	return outline(t, `{"type":"MultiPoint","coordinates":[`+strings.Repeat("[1,2],", count-1)+`[1,2]]}`)
}

func receive[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	var value T
	select {
	case value = <-from:
	case <-time.After(10 * time.Second):
		t.Fatal("nothing came in time")
	}
	return value
}

func BenchmarkPlaceRemembered(b *testing.B) {
	client, err := New(Config{})
	if err != nil {
		b.Fatal(err)
	}
	defer client.Close()
	client.memory.add(placeKey("Lisbon"), Place{PlaceID: "123"})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := client.Place(b.Context(), "Lisbon"); err != nil {
			b.Fatal(err)
		}
	}
}
