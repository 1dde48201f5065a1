package control_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"hostr-daemon/internal/sandbox"
	"hostr-daemon/internal/sandbox/control"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction(sandbox.KhatruGoroutine))
}

func TestControlSwitchesTheMarket(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	market, err := sandbox.Start(ctx, sandbox.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer market.Close()
	server, err := control.Serve(0, market, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	call := func(method, path, body string) (int, string) {
		t.Helper()
		request, err := http.NewRequestWithContext(ctx, method, server.URL()+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, string(text)
	}
	for _, c := range []struct {
		method, path, body string
		status             int
		reached            func() bool
	}{
		{"PUT", "/relay/faults", `{"noEose":true,"delayMillis":5,"times":3}`, 200, func() bool {
			return market.Relay.Faults() == sandbox.Faults{NoEOSE: true, DelayMillis: 5, Times: 3}
		}},
		{"PUT", "/relay/faults", `{"noEOS":true}`, 400, func() bool { return market.Relay.Faults().NoEOSE }},
		{"PUT", "/relay/faults", `noise`, 400, func() bool { return market.Relay.Faults().NoEOSE }},
		{"DELETE", "/relay/faults", ``, 204, func() bool { return market.Relay.Faults() == sandbox.Faults{} }},
		{"POST", "/relay/stop", ``, 204, market.Relay.Stopped},
		{"POST", "/relay/resume", ``, 204, func() bool { return !market.Relay.Stopped() }},
		{"POST", "/relay/resume", ``, 204, func() bool { return !market.Relay.Stopped() }},
		{"PUT", "/geocoder/faults", `{"status":503,"times":2}`, 200, func() bool {
			return market.Geocoder.Switch.Faults() == sandbox.HTTPFaults{Status: 503, Times: 2}
		}},
		{"DELETE", "/geocoder/faults", ``, 204, func() bool { return market.Geocoder.Switch.Faults() == sandbox.HTTPFaults{} }},
		{"PUT", "/blossom/faults", `{"hangUp":true}`, 200, func() bool { return market.Blossom.Switch.Faults().HangUp }},
		{"GET", "/nowhere", ``, 404, func() bool { return true }},
		{"GET", "/relay/stop", ``, 405, func() bool { return !market.Relay.Stopped() }},
	} {
		if status, text := call(c.method, c.path, c.body); status != c.status || !c.reached() {
			t.Errorf("%s %s %s: %d %s", c.method, c.path, c.body, status, text)
		}
	}

	connection, _, err := websocket.Dial(ctx, market.RelayURL, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer connection.CloseNow()
	if _, err := market.Relay.WaitFor(ctx, func(c sandbox.Counters) bool { return c.Open == 1 }); err != nil {
		t.Fatal(err)
	}
	var status control.Status
	if _, text := call("GET", "/status", ""); json.Unmarshal([]byte(text), &status) != nil ||
		status.Relay.URL != market.RelayURL || status.Relay.Counters.Open != 1 || !status.Blossom.Faults.HangUp {
		t.Errorf("status %s", text)
	}
	if code, _ := call("POST", "/relay/drop", ""); code != 204 || market.Relay.Counters().Open != 0 {
		t.Errorf("drop: %d, %+v", code, market.Relay.Counters())
	}
}

// TestHelpNamesEveryFault keeps the help text and the fault structs together.
func TestHelpNamesEveryFault(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	market, err := sandbox.Start(ctx, sandbox.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer market.Close()
	server, err := control.Serve(0, market, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Get(server.URL() + "/")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	help, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, faults := range []any{sandbox.Faults{}, sandbox.HTTPFaults{}} {
		kind := reflect.TypeOf(faults)
		for i := range kind.NumField() {
			name, _, _ := strings.Cut(kind.Field(i).Tag.Get("json"), ",")
			if name == "" || !strings.Contains(string(help), name) {
				t.Errorf("the help does not name %s (%q)", kind.Field(i).Name, name)
			}
		}
	}
}
