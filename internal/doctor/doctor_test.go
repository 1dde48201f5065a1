package doctor_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"hostr-daemon/internal/doctor"
	"hostr-daemon/internal/environment"
	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/runtime"
	"hostr-daemon/internal/sandbox"
	"hostr-daemon/internal/secrets"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction(sandbox.KhatruGoroutine))
}

func patient(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func startMarket(t testing.TB) *sandbox.Market {
	t.Helper()
	market, err := sandbox.Start(patient(t), sandbox.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := market.Close(); err != nil {
			t.Errorf("closing the market: %v", err)
		}
	})
	return market
}

// startState runs a daemon without any requests on the directory.
func startState(t testing.TB, dir string) *runtime.Runtime {
	t.Helper()
	running, err := runtime.Start(context.Background(), runtime.Options{
		Environment: environment.Options{Name: "test", Getenv: noVariables}, StateDir: dir, Getenv: noVariables,
		Logger: zerolog.Nop(), RelayLogger: zerolog.Nop(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := running.Close(); err != nil {
			t.Errorf("closing the daemon: %v", err)
		}
	})
	return running
}

func noVariables(string) string { return "" }

// serve answers every request with the status and the body.
func serve(t testing.TB, status int, body string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		_, _ = io.Copy(io.Discard, request.Body)
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// facts is the test environment at the market's addresses, without chains.
func facts(t testing.TB, relay, blossom, geocoder string, chains ...environment.Chain) environment.Environment {
	t.Helper()
	resolved, err := environment.Resolve("test")
	if err != nil {
		t.Fatal(err)
	}
	return resolved.Apply(environment.Overrides{
		HostrRelay: &relay, BootstrapRelays: &[]string{}, Blossom: &[]string{blossom}, GeocoderURL: &geocoder,
		EVM: &environment.EVMConfig{Chains: chains},
	})
}

func chain(id string, number int64, urls ...string) environment.Chain {
	chain := environment.Chain{ID: id, ChainID: number}
	for _, url := range urls {
		chain.RPCURLs = append(chain.RPCURLs, environment.Endpoint(url))
	}
	return chain
}

// allowFile lets private keys rest in a file, so that the finding does not depend on
// the machine.
var allowFile = secrets.Options{AllowPlainFile: true, Getenv: noVariables}

func examine(t testing.TB, config doctor.Config) []doctor.Finding {
	t.Helper()
	if config.State == nil {
		config.State = startState(t, t.TempDir())
	}
	config.Secrets = allowFile
	findings, err := doctor.Examine(patient(t), config)
	if err != nil {
		t.Fatal(err)
	}
	return findings
}

// wantFinding checks that the subject's finding says the text; "" wants it to work.
func wantFinding(t testing.TB, findings []doctor.Finding, subject, text string) {
	t.Helper()
	for _, finding := range findings {
		if finding.Subject != subject {
			continue
		}
		switch {
		case text == "" && finding.Err != nil:
			t.Errorf("%s: %v, want it to work", subject, finding.Err)
		case text != "" && (finding.Err == nil || !strings.Contains(finding.Err.Error(), text)):
			t.Errorf("%s: %v, want %q", subject, finding.Err, text)
		}
		return
	}
	t.Errorf("there is no finding about %s", subject)
}

func report(t testing.TB, findings []doctor.Finding) (text string, healthy bool) {
	t.Helper()
	var out bytes.Buffer
	healthy, err := doctor.Report(&out, findings, 0)
	if err != nil {
		t.Fatal(err)
	}
	return out.String(), healthy
}

func TestEverythingWorks(t *testing.T) {
	t.Parallel()
	market, public := startMarket(t), startMarket(t)
	node := serve(t, 200, `{"jsonrpc":"2.0","id":1,"result":"0x64aba"}`)
	boltz := serve(t, 200, `{"BTC":{"RBTC":{}},"L-BTC":{}}`)
	examined := facts(t, market.RelayURL, market.BlossomURL, market.GeocoderURL, chain("regtest", 412346, node, node))
	examined.EVM.Boltz = &environment.Boltz{APIURL: environment.Endpoint(boltz)}
	examined.BootstrapRelays = []string{public.RelayURL}
	dir := t.TempDir()
	findings := examine(t, doctor.Config{Environment: examined, State: startState(t, dir)})
	for _, finding := range findings {
		if finding.Err != nil {
			t.Errorf("%s %s: %v", finding.Subject, finding.Target, finding.Err)
		}
	}
	text, healthy := report(t, findings)
	text = strings.NewReplacer(dir, "DIR", market.RelayURL, "RELAY", public.RelayURL, "PUBLIC", market.BlossomURL, "BLOSSOM",
		market.GeocoderURL, "GEOCODER", node, "NODE", boltz, "BOLTZ").Replace(text)
	text = regexp.MustCompile(` +`).ReplaceAllString(regexp.MustCompile(`\d+ ms`).ReplaceAllString(text, "TIME"), " ")
	want := strings.Join([]string{
		"environment test ok TIME ",
		"state directory DIR ok TIME ",
		"private keys DIR ok TIME file",
		"accounts test ok TIME nobody is signed in",
		"Hostr relay RELAY ok TIME ",
		"relay PUBLIC ok TIME ",
		"Blossom BLOSSOM ok TIME ",
		"geocoder GEOCODER ok TIME ",
		"chain regtest NODE ok TIME chain 412346",
		"chain regtest NODE ok TIME chain 412346",
		"swap provider BOLTZ ok TIME currencies: 2",
		"",
		"hostr-daemon can do its main work from here.",
		"",
	}, "\n")
	if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(text, "\n")); diff != "" || !healthy {
		t.Errorf("healthy %v, report (-want +got):\n%s", healthy, diff)
	}
}

func TestRelayTroubles(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		faults sandbox.Faults
		want   string
	}{
		"turns away":      {sandbox.Faults{HandshakeStatus: 503}, "could not be reached"},
		"resets":          {sandbox.Faults{RefuseConnections: true}, "could not be reached"},
		"refuses to read": {sandbox.Faults{Closed: "restricted: members only"}, "members only"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			market := startMarket(t)
			market.Relay.Break(c.faults)
			findings := examine(t, doctor.Config{Environment: facts(t, market.RelayURL, market.BlossomURL, market.GeocoderURL)})
			wantFinding(t, findings, "Hostr relay", c.want)
			wantFinding(t, findings, "Blossom", "")
			text, healthy := report(t, findings)
			if healthy || !strings.Contains(text, "FAILED") || !strings.Contains(text, "cannot do its main work") {
				t.Errorf("without its relay the daemon is of no use, but the report says:\n%s", text)
			}
		})
	}
}

// A relay that takes connections and answers nothing does not pass.
func TestSilentRelayDoesNotPass(t *testing.T) {
	t.Parallel()
	market := startMarket(t)
	market.Relay.Break(sandbox.Faults{NoEOSE: true})
	ctx, cancel := context.WithTimeout(patient(t), time.Second)
	defer cancel()
	findings, err := doctor.Examine(ctx, doctor.Config{
		Environment: facts(t, market.RelayURL, market.BlossomURL, market.GeocoderURL),
		State:       startState(t, t.TempDir()), Secrets: allowFile,
	})
	if err != nil {
		t.Fatal(err)
	}
	wantFinding(t, findings, "Hostr relay", "did not answer in full")
}

func TestTroublesOfOptionalParts(t *testing.T) {
	t.Parallel()
	market := startMarket(t)
	const closed = "http://127.0.0.1:1"
	for name, c := range map[string]struct {
		blossom, geocoder, node, boltz string
		want                           map[string]string
	}{
		"nobody listens": {closed, closed, closed, closed, map[string]string{
			"Blossom": "connection refused", "geocoder": "connection refused", "chain regtest": "connection refused", "swap provider": "connection refused",
		}},
		"out of order": {serve(t, 502, ""), serve(t, 502, ""), serve(t, 502, ""), serve(t, 502, ""), map[string]string{
			"Blossom": "HTTP 502", "geocoder": "HTTP 502", "chain regtest": "HTTP 502", "swap provider": "HTTP 502",
		}},
		"something else": {serve(t, 404, ""), serve(t, 200, "<html>"), serve(t, 200, "<html>"), serve(t, 200, "<html>"), map[string]string{
			"Blossom": "", "geocoder": "not what such a server sends", "chain regtest": "not what such a server sends", "swap provider": "not what such a server sends",
		}},
		"empty answers": {serve(t, 200, ""), serve(t, 200, "[]"), serve(t, 200, "{}"), serve(t, 200, "{}"), map[string]string{
			"Blossom": "", "geocoder": "does not know Lisbon", "chain regtest": "names no chain id", "swap provider": "swaps nothing",
		}},
		"another chain": {closed, closed, serve(t, 200, `{"result":"0x1"}`), closed, map[string]string{
			"chain regtest": "it serves chain 1, not 412346",
		}},
		"a chain that refuses": {closed, closed, serve(t, 200, `{"error":{"code":-32000,"message":"daily limit reached"}}`), closed, map[string]string{
			"chain regtest": "daily limit reached",
		}},
		"a chain without a number": {closed, closed, serve(t, 200, `{"result":"412346"}`), closed, map[string]string{
			"chain regtest": "names no chain id",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			examined := facts(t, market.RelayURL, c.blossom, c.geocoder, chain("regtest", 412346, c.node))
			examined.EVM.Boltz = &environment.Boltz{APIURL: environment.Endpoint(c.boltz)}
			findings := examine(t, doctor.Config{Environment: examined})
			for subject, text := range c.want {
				wantFinding(t, findings, subject, text)
			}
			wantFinding(t, findings, "Hostr relay", "")
			if text, healthy := report(t, findings); !healthy || strings.Contains(text, "FAILED") {
				t.Errorf("optional parts must not fail the whole:\n%s", text)
			}
		})
	}
}

func TestGeocoderFaults(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		faults sandbox.HTTPFaults
		want   string
	}{
		"status":   {sandbox.HTTPFaults{Status: 429}, "HTTP 429"},
		"web page": {sandbox.HTTPFaults{NotJSON: true}, "not what such a server sends"},
		"hangs up": {sandbox.HTTPFaults{HangUp: true}, "EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			market := startMarket(t)
			market.Geocoder.Switch.Break(c.faults)
			wantFinding(t, examine(t, doctor.Config{Environment: facts(t, market.RelayURL, market.BlossomURL, market.GeocoderURL)}), "geocoder", c.want)
		})
	}
}

// Whatever a check meets, keys in addresses do not show.
func TestKeysInAddressesAreNotShown(t *testing.T) {
	t.Parallel()
	market := startMarket(t)
	withKeys := func(address string) string {
		scheme, rest, _ := strings.Cut(address, "://")
		return scheme + "://user:PASSWORD@" + rest + "?key=QUERYKEY#FRAGMENT"
	}
	for name, addresses := range map[string][3]string{
		"working":        {market.BlossomURL, market.GeocoderURL, serve(t, 200, `{"result":"0x1"}`)},
		"nobody listens": {"http://127.0.0.1:1", "http://127.0.0.1:1/search", "http://127.0.0.1:1"},
		"unreadable":     {"http://127.0.0.1:99999", "http://127.0.0.1:99999", "http://127.0.0.1:99999"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			node := addresses[2] + "/v3/PATHKEY?key=QUERYKEY"
			examined := facts(t, market.RelayURL+"/v1?key=QUERYKEY", withKeys(addresses[0]), withKeys(addresses[1]), chain("regtest", 1, node))
			examined.EVM.Boltz = &environment.Boltz{APIURL: environment.Endpoint(addresses[2] + "/PATHKEY")}
			findings := examine(t, doctor.Config{Environment: examined})
			text, _ := report(t, findings)
			for _, finding := range findings {
				text += fmt.Sprintf("%+v", finding)
			}
			for _, key := range []string{"PASSWORD", "QUERYKEY", "FRAGMENT", "PATHKEY"} {
				if strings.Contains(text, key) {
					t.Errorf("%s shows in:\n%s", key, text)
				}
			}
		})
	}
}

// A daemon that runs is no fault, and hides nothing else.
func TestStateDirectoryInUse(t *testing.T) {
	t.Parallel()
	market := startMarket(t)
	dir := t.TempDir()
	if err := startState(t, dir).OpenState(patient(t)); err != nil {
		t.Fatal(err)
	}
	findings := examine(t, doctor.Config{
		Environment: facts(t, market.RelayURL, market.BlossomURL, "http://127.0.0.1:1"),
		State:       startState(t, dir),
	})
	wantFinding(t, findings, "state directory", "")
	wantFinding(t, findings, "Hostr relay", "")
	wantFinding(t, findings, "geocoder", "connection refused")
	text, healthy := report(t, findings)
	if !healthy || !strings.Contains(text, fmt.Sprintf("in use for test by another hostr-daemon (process %d", os.Getpid())) {
		t.Errorf("healthy %v, report:\n%s", healthy, text)
	}
	for _, subject := range []string{"state directory", "accounts"} {
		if line := lineOf(text, subject); !strings.Contains(line, "  in use  ") || strings.Contains(line, " ms") {
			t.Errorf("what another process has is no answer of its own: %q", line)
		}
	}
}

func lineOf(text, beginning string) string {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, beginning) {
			return line
		}
	}
	return ""
}

func TestBrokenStateDirectory(t *testing.T) {
	t.Parallel()
	market := startMarket(t)
	dir := filepath.Join(t.TempDir(), "state")
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	findings := examine(t, doctor.Config{
		Environment: facts(t, market.RelayURL, market.BlossomURL, market.GeocoderURL),
		State:       startState(t, dir),
	})
	wantFinding(t, findings, "state directory", "not a directory")
	wantFinding(t, findings, "Hostr relay", "")
	if text, healthy := report(t, findings); healthy {
		t.Errorf("report:\n%s", text)
	}
}

// With a bad override file there are no addresses to try; what is local still counts.
func TestBadOverrideFileIsAFinding(t *testing.T) {
	t.Parallel()
	resolved, err := environment.Resolve("test")
	if err != nil {
		t.Fatal(err)
	}
	problem := fault.New(fault.UnexpectedError, "hostrRelay is no URL").WithHint("For example wss://relay.example.org.")
	findings := examine(t, doctor.Config{Environment: resolved, EnvironmentError: problem})
	wantFinding(t, findings, "environment", "hostrRelay is no URL")
	wantFinding(t, findings, "state directory", "")
	if len(findings) != 3 {
		t.Errorf("%d findings, want the three of this machine", len(findings))
	}
	if text, healthy := report(t, findings); healthy || !strings.Contains(text, "For example wss://relay.example.org.") {
		t.Errorf("report:\n%s", text)
	}
}

func TestUnusableKeyFileIsAFinding(t *testing.T) {
	t.Parallel()
	resolved, err := environment.Resolve("test")
	if err != nil {
		t.Fatal(err)
	}
	missing := filepath.Join(t.TempDir(), "key")
	findings, err := doctor.Examine(patient(t), doctor.Config{
		Environment: resolved, EnvironmentError: errors.New("no network here"), State: startState(t, t.TempDir()),
		Secrets: secrets.Options{KeyFile: missing, Getenv: noVariables},
	})
	if err != nil {
		t.Fatal(err)
	}
	wantFinding(t, findings, "private keys", missing)
}

// What outside systems say stays on its line.
func TestReportIsOneLineForEachFinding(t *testing.T) {
	t.Parallel()
	text, healthy := report(t, []doctor.Finding{
		{Subject: "relay", Target: "wss://relay.example.org", Optional: true, Err: errors.New("first\nsecond\tthird\r\nfourth"), Took: 1500 * time.Millisecond},
		{Subject: "geocoder", Target: "https://geo.example.org", Detail: "many\n\nlines"},
	})
	want := "relay     wss://relay.example.org  not now  1500 ms  first second third fourth\n" +
		"geocoder  https://geo.example.org  ok       0 ms     many lines\n\nhostr-daemon can do its main work from here.\n"
	if text != want || !healthy {
		t.Errorf("healthy %v:\n%s\nwant\n%s", healthy, text, want)
	}
	if _, err := doctor.Report(brokenWriter{}, nil, 0); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("a report nobody reads: %v", err)
	}
}

// On a narrow terminal what there is to tell stands below the finding it belongs to.
func TestNarrowReport(t *testing.T) {
	t.Parallel()
	findings := []doctor.Finding{
		{Subject: "environment", Target: "test"},
		{Subject: "Hostr relay", Target: "wss://relay.example.org", Took: 12 * time.Millisecond, Err: fault.New(
			fault.UnexpectedError, "It could not be reached: the name relay.example.org is not known here.").WithHint("Look at the network.")},
		{Subject: "private keys", Target: "/home/somebody/.hostr-cli", Detail: "file", Took: time.Millisecond},
	}
	const narrow = `environment   ok      0 ms   test
Hostr relay   FAILED  12 ms  wss://relay.example.org
    It could not be reached: the name relay.example.org is
    not known here. Look at the network.
private keys  ok      1 ms   /home/somebody/.hostr-cli
    file

hostr-daemon cannot do its main work from here: mend what FAILED.
`
	var out, wide, whole bytes.Buffer
	for width, page := range map[int]*bytes.Buffer{60: &out, 1000: &wide, 0: &whole} {
		if healthy, err := doctor.Report(page, findings, width); healthy || err != nil {
			t.Errorf("width %d: healthy %t, %v", width, healthy, err)
		}
	}
	if out.String() != narrow {
		t.Errorf("narrow:\n%s", out.String())
	}
	if wide.String() != whole.String() || strings.Count(whole.String(), "\n") != len(findings)+2 {
		t.Errorf("wide:\n%s", wide.String())
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }
