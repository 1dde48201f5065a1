package boltz

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/trace"
)

// patience is how long a test waits for what should come at once.
const patience = 30 * time.Second

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const apiKey = "5ecre7-k3y-0f-the-pr0vider"

func contracts(t testing.TB) []byte {
	t.Helper()
	text, err := os.ReadFile("testdata/contracts.json")
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// provider answers GET /v2/<key>/chain/contracts as the real one does, unless odd is set.
type provider struct {
	url   string
	asked atomic.Int32
	odd   atomic.Pointer[http.HandlerFunc]
}

func startProvider(t testing.TB) *provider {
	t.Helper()
	p := &provider{}
	body := contracts(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		p.asked.Add(1)
		if odd := p.odd.Load(); odd != nil {
			(*odd)(w, request)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		switch {
		case request.Method != http.MethodGet || request.URL.Path != "/v2/"+apiKey+"/chain/contracts":
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"error":"not found"}`)
		case request.Header.Get("referral") != "boltz_webapp_desktop":
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"error":"no referral"}`)
		default:
			_, _ = w.Write(body)
		}
	}))
	t.Cleanup(server.Close)
	p.url = server.URL + "/v2/" + apiKey
	return p
}

func (p *provider) misbehave(odd http.HandlerFunc) { p.odd.Store(&odd) }
func (p *provider) heal()                          { p.odd.Store(nil) }

func newTestClient(t testing.TB, url string) *Client {
	t.Helper()
	var lines strings.Builder
	client, err := New(Config{APIURL: url + "/", Logger: zerolog.New(zerolog.SyncWriter(&lines))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		client.Close()
		if strings.Contains(lines.String(), apiKey) {
			t.Error("the API key is in the log")
		}
	})
	return client
}

// wantChains is what testdata/contracts.json holds.
var wantChains = []Chain{
	{
		Key: "arbitrum", ChainID: 412346,
		EtherSwap: "0x4f1efc2d53c0f71ee7bd8a23d3c0bb98c03b0d11",
		ERC20Swap: "0x9d3a53f0b7d9e8ff4e2af48d0e5f4a9d11c0f022",
		Tokens: []Token{
			{Name: "TBTC", Address: "0x948b3c65b89df0b4894abe91e6d02fe579834f8f"},
			{Name: "AAA", Address: "0x1111111111111111111111111111111111111111"},
		},
	},
	{
		Key: "rsk", ChainID: 33,
		EtherSwap: "0x5FbDB2315678afecb367f032d93F642f64180aa3",
		ERC20Swap: "0x5FbDB2315678afecb367f032d93F642f64180aa3",
	},
}

func TestChains(t *testing.T) {
	t.Parallel()
	provider := startProvider(t)
	client := newTestClient(t, provider.url)
	for range 2 {
		chains, err := client.Chains(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(wantChains, chains); diff != "" {
			t.Errorf("chains (-want +got):\n%s", diff)
		}
	}
	if asked := provider.asked.Load(); asked != 1 {
		t.Errorf("asked %d times", asked)
	}
	arbitrum, ok := Find(wantChains, 412346)
	if !ok || !arbitrum.Supports("0x948B3C65B89DF0B4894ABE91E6D02FE579834F8F") || arbitrum.Supports("0x712516e61c8b383df4a63cfe83d7701bce54b03e") {
		t.Error("the tokens of arbitrum are told apart wrongly")
	}
	if _, ok := Find(wantChains, 1); ok {
		t.Error("chain 1 was found")
	}
}

func TestFailuresAreNotRemembered(t *testing.T) {
	t.Parallel()
	answer := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			fmt.Fprint(w, body)
		}
	}
	for _, test := range []struct {
		name      string
		odd       http.HandlerFunc
		retryable bool
		want      string
	}{
		{"refusal", answer(400, `{"error":"unknown\nreferral"}`), false, "HTTP 400 unknown referral"},
		{"overload", answer(503, `<html>`), true, "HTTP 503 Service Unavailable"},
		{"rate limit", answer(429, `{"error":5}`), true, "HTTP 429 Too Many Requests"},
		{"cut off", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, true, "gave no answer to /chain/contracts"},
		{"broken", answer(200, `{"arbitrum":`), true, "no list of chains"},
		{"list", answer(200, `[]`), true, "no list of chains"},
		{"nothing", answer(200, ``), true, "no list of chains"},
		{"null", answer(200, `null`), true, "no list of chains"},
		{"large", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(make([]byte, maxAnswerBytes+1))
		}, true, "larger than"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			provider := startProvider(t)
			client := newTestClient(t, provider.url)
			provider.misbehave(test.odd)
			_, err := client.Chains(t.Context())
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), apiKey) {
				t.Errorf("error %v, want %s", err, test.want)
			}
			if coded := fault.From(err); coded.Retryable != test.retryable {
				t.Errorf("retryable %t, want %t", coded.Retryable, test.retryable)
			}
			provider.heal()
			if chains, err := client.Chains(t.Context()); err != nil || len(chains) != 2 {
				t.Errorf("once healed: %d chains, error %v", len(chains), err)
			}
		})
	}
}

func TestUnreachableProvider(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener.Close()
	client := newTestClient(t, "http://user:"+apiKey+"@"+listener.Addr().String())
	_, err = client.Chains(t.Context())
	if err == nil || !fault.From(err).Retryable || strings.Contains(err.Error(), apiKey) {
		t.Errorf("error %v", err)
	}
}

func TestAnswersAreBoundedInTime(t *testing.T) {
	t.Parallel()
	provider := startProvider(t)
	release := make(chan struct{})
	defer close(release)
	provider.misbehave(func(http.ResponseWriter, *http.Request) { <-release })
	client := newTestClient(t, provider.url)
	client.timeout = 20 * time.Millisecond
	if _, err := client.Chains(t.Context()); err == nil || !strings.Contains(err.Error(), "no answer within 20ms") {
		t.Errorf("error %v", err)
	}
}

func TestEqualRequestsAreOneAndCarryTheTrace(t *testing.T) {
	t.Parallel()
	provider := startProvider(t)
	client := newTestClient(t, provider.url)
	release, waiting := make(chan struct{}), make(chan string, 9)
	provider.misbehave(func(w http.ResponseWriter, request *http.Request) {
		waiting <- request.Header.Get("X-Trace-Id")
		receive(t, release)
		fmt.Fprint(w, `{}`)
	})
	ctx := trace.With(t.Context(), "trace-7")
	var asking sync.WaitGroup
	for range 8 {
		asking.Go(func() {
			if chains, err := client.Chains(ctx); err != nil || len(chains) != 0 {
				t.Errorf("%d chains, error %v", len(chains), err)
			}
		})
	}
	if id := receive(t, waiting); id != "trace-7" {
		t.Errorf("trace id %q", id)
	}
	close(release)
	asking.Wait()
	if asked := provider.asked.Load(); asked != 1 {
		t.Errorf("asked %d times", asked)
	}
}

func TestCallerMayGiveUpAndCloseEndsTheRest(t *testing.T) {
	t.Parallel()
	provider := startProvider(t)
	client := newTestClient(t, provider.url)
	release, waiting := make(chan struct{}), make(chan struct{}, 9)
	defer close(release)
	provider.misbehave(func(http.ResponseWriter, *http.Request) {
		waiting <- struct{}{}
		receive(t, release)
	})
	gone := errors.New("the caller is gone")
	ctx, leave := context.WithCancelCause(t.Context())
	go func() {
		receive(t, waiting)
		leave(gone)
	}()
	if _, err := client.Chains(ctx); !errors.Is(err, gone) {
		t.Errorf("error %v", err)
	}
	client.Close()
	if _, err := client.Chains(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

func TestNewChecksTheURL(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", "ws://boltz.example/" + apiKey, "https:///" + apiKey, apiKey + "\x7f"} {
		if _, err := New(Config{APIURL: bad}); err == nil || strings.Contains(err.Error(), apiKey) {
			t.Errorf("error %v", err)
		}
	}
}

func TestDecodeChains(t *testing.T) {
	t.Parallel()
	const network, swap = `"network":{"chainId":33}`, `"swapContracts":{"EtherSwap":"0x5FbDB2315678afecb367f032d93F642f64180aa3"}`
	const whole = `{` + network + `,` + swap + `}`
	for _, test := range []struct{ name, text, want string }{
		{"order", `{"z":` + whole + `,"a":` + whole + `}`, "z a"},
		{"repeated", `{"z":` + whole + `,"a":` + whole + `,"z":{}}`, "a"},
		{"no network", `{"a":{` + swap + `}}`, ""},
		{"network of another shape", `{"a":{"network":7,` + swap + `}}`, ""},
		{"null network", `{"a":{"network":null,` + swap + `}}`, ""},
		{"no contracts", `{"a":{` + network + `}}`, ""},
		{"empty contract", `{"a":{` + network + `,"swapContracts":{"EtherSwap":""}}}`, ""},
		{"contract is no address", `{"a":{` + network + `,"swapContracts":{"EtherSwap":"0x12"}}}`, ""},
		{"second contract is no address", `{"a":{` + network + `,` + strings.TrimSuffix(swap, "}") + `,"ERC20Swap":"0x12"}}}`, ""},
		{"null second contract", `{"a":{` + network + `,` + strings.TrimSuffix(swap, "}") + `,"ERC20Swap":null}}}`, "a"},
		{"chain id of text", `{"a":{"network":{"chainId":"33"},` + swap + `}}`, ""},
		{"chain id with a fraction", `{"a":{"network":{"chainId":33.5},` + swap + `}}`, ""},
		{"chain id below one", `{"a":{"network":{"chainId":0},` + swap + `}}`, ""},
		{"chain id too large", `{"a":{"network":{"chainId":1e99},` + swap + `}}`, ""},
		{"chain id as a number", `{"a":{"network":{"chainId":3.3e1},` + swap + `}}`, "a"},
		{"other shapes", `{"a":1,"b":null,"c":[],"d":"x","e":` + whole + `}`, "e"},
	} {
		chains, err := decodeChains([]byte(test.text))
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
		var keys []string
		for _, chain := range chains {
			keys = append(keys, chain.Key)
		}
		if got := strings.Join(keys, " "); got != test.want {
			t.Errorf("%s: chains %q, want %q", test.name, got, test.want)
		}
	}
}

func TestDecodeTokens(t *testing.T) {
	t.Parallel()
	const address = `"0x5FbDB2315678afecb367f032d93F642f64180aa3"`
	for _, test := range []struct{ text, want string }{
		{`{"Z":` + address + `,"A":{"contractAddress":` + address + `}}`, "Z A"},
		{`{"A":{"contractAddress":7},"B":7,"C":null,"D":[` + address + `],"E":"","F":"0x12","G":` + address + `}`, "G"},
		{`null`, ""}, {`[]`, ""}, {``, ""},
	} {
		var names []string
		for _, token := range decodeTokens([]byte(test.text)) {
			names = append(names, token.Name)
		}
		if got := strings.Join(names, " "); got != test.want {
			t.Errorf("%s: tokens %q, want %q", test.text, got, test.want)
		}
	}
}

func FuzzDecodeChains(f *testing.F) {
	f.Add(contracts(f))
	f.Add([]byte(`{"a":{"network":{"chainId":1e2},"swapContracts":{"EtherSwap":"0x5FbDB2315678afecb367f032d93F642f64180aa3"},"tokens":{"T":{}}}}`))
	f.Add([]byte(`{"a":{}} x`))
	f.Add([]byte(`{`))
	f.Fuzz(func(t *testing.T, body []byte) {
		chains, err := decodeChains(body)
		if err != nil && len(chains) > 0 {
			t.Fatal("chains beside an error")
		}
		for _, chain := range chains {
			if chain.ChainID <= 0 || !addressForm.MatchString(chain.EtherSwap) || !addressForm.MatchString(chain.ERC20Swap) {
				t.Fatalf("chain %+v", chain)
			}
		}
	})
}

func FuzzErrorText(f *testing.F) {
	f.Add([]byte(`{"error":"swap not found"}`))
	f.Add([]byte(`{"error":"a\u0000b\u2028c"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		text := errorText(body)
		if len([]rune(text)) > 301 || strings.ContainsAny(text, "\n\r\x00") {
			t.Fatalf("%q", text)
		}
		if !json.Valid(body) && text != "" {
			t.Fatalf("%q of what is no JSON", text)
		}
	})
}

func BenchmarkDecodeChains(b *testing.B) {
	body := contracts(b)
	for b.Loop() {
		if _, err := decodeChains(body); err != nil {
			b.Fatal(err)
		}
	}
}

// receive waits for what should come at once. It may be called in any goroutine.
func receive[T any](t testing.TB, from <-chan T) T {
	t.Helper()
	select {
	case value := <-from:
		return value
	case <-time.After(patience):
		t.Error("nothing came")
		var none T
		return none
	}
}

// A redirect leads on, but does not tell the next host the URL it comes from.
func TestRedirectsTellNoKey(t *testing.T) {
	t.Parallel()
	body := contracts(t)
	var told atomic.Pointer[string]
	next := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		referer := request.Header.Get("Referer")
		told.Store(&referer)
		_, _ = w.Write(body)
	}))
	t.Cleanup(next.Close)
	p := startProvider(t)
	p.misbehave(func(w http.ResponseWriter, request *http.Request) {
		http.Redirect(w, request, next.URL+"/elsewhere", http.StatusTemporaryRedirect)
	})
	chains, err := newTestClient(t, p.url).Chains(t.Context())
	if err != nil || len(chains) != len(wantChains) {
		t.Fatalf("%d chains, %v", len(chains), err)
	}
	if referer := told.Load(); referer == nil || *referer != "" {
		t.Error("the next host was told where the redirect comes from")
	}
	p.misbehave(func(w http.ResponseWriter, request *http.Request) {
		http.Redirect(w, request, request.URL.Path, http.StatusTemporaryRedirect)
	})
	if _, err := newTestClient(t, p.url).Chains(t.Context()); err == nil || !strings.Contains(err.Error(), "more than 10 redirects") {
		t.Errorf("a loop: %v", err)
	}
}
