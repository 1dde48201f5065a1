package evm

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"hostr-daemon/internal/fault"
)

func code(t testing.TB, client *Client, address string) string {
	t.Helper()
	code, err := client.Code(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	return "0x" + hex.EncodeToString(code)
}

func TestCode(t *testing.T) {
	t.Parallel()
	node := startNode(t)
	client, _, lines := newTestClient(t, node)
	if got := code(t, client, escrow); got != escrowCode {
		t.Errorf("code %s, want %s", got, escrowCode)
	}
	if got := code(t, client, strings.ToLower(escrow)); got != escrowCode {
		t.Errorf("code %s, want %s", got, escrowCode)
	}
	if asked := node.asked(); asked != "eth_chainId eth_getCode" {
		t.Errorf("asked for %s", asked)
	}
	if !strings.Contains(lines.String(), `"method":"eth_getCode"`) {
		t.Errorf("log: %s", lines)
	}
}

func TestAbsentCodeIsNotRemembered(t *testing.T) {
	t.Parallel()
	node := startNode(t)
	client, _, _ := newTestClient(t, node)
	const later = "0x1111111111111111111111111111111111111111"
	if got := code(t, client, later); got != "0x" {
		t.Errorf("code %s where there is none", got)
	}
	node.setCode(later, "0xfe")
	if got := code(t, client, later); got != "0xfe" {
		t.Errorf("code %s, want 0xfe", got)
	}
}

func TestBadAddressIsNotAsked(t *testing.T) {
	t.Parallel()
	node := startNode(t)
	client, _, _ := newTestClient(t, node)
	for _, bad := range []string{"", "0x", escrow[2:], escrow + "00", "0x" + strings.Repeat("g", 40)} {
		if _, err := client.Code(t.Context(), bad); !fault.Is(err, fault.UnexpectedError) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if asked := node.asked(); asked != "" {
		t.Errorf("asked for %s", asked)
	}
}

func TestEqualReadsAreOne(t *testing.T) {
	t.Parallel()
	node := startNode(t)
	client, _, _ := newTestClient(t, node)
	const readers = 8
	release, waiting := make(chan struct{}), make(chan struct{})
	node.misbehave(func(w http.ResponseWriter, call rpcCall) bool {
		if call.Method == "eth_getCode" {
			close(waiting)
			receive(t, release)
		}
		return false
	})
	var reading sync.WaitGroup
	for range readers {
		reading.Go(func() {
			if got := code(t, client, escrow); got != escrowCode {
				t.Errorf("code %s, want %s", got, escrowCode)
			}
		})
	}
	receive(t, waiting)
	close(release)
	reading.Wait()
	if asked := node.asked(); asked != "eth_chainId eth_getCode" {
		t.Errorf("asked for %s", asked)
	}
}

// What a node does wrong, and whether one more attempt at the same node is made.
func TestFailures(t *testing.T) {
	t.Parallel()
	status := func(code int, body string) func(http.ResponseWriter, rpcCall) {
		return func(w http.ResponseWriter, _ rpcCall) {
			w.WriteHeader(code)
			fmt.Fprint(w, body)
		}
	}
	text := func(body string) func(http.ResponseWriter, rpcCall) { return status(http.StatusOK, body) }
	rpc := func(code int, message string) func(http.ResponseWriter, rpcCall) {
		return func(w http.ResponseWriter, call rpcCall) { refuse(w, call, code, message) }
	}
	result := func(value string) func(http.ResponseWriter, rpcCall) {
		return func(w http.ResponseWriter, call rpcCall) {
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, call.ID, value)
		}
	}
	for _, test := range []struct {
		name      string
		answer    func(http.ResponseWriter, rpcCall)
		transient bool
		want      string
	}{
		{"rate limit by code", rpc(429, "slow down"), true, "the node answered error 429: slow down"},
		{"rate limit by text", rpc(-32005, "Rate limit reached"), true, "error -32005: Rate limit reached"},
		{"server error", rpc(-32000, "header not found"), true, "error -32000: header not found"},
		{"internal error", rpc(-32603, "Internal"), true, "error -32603"},
		{"invalid parameters", rpc(-32602, "invalid argument 0"), false, "error -32602: invalid argument 0"},
		{"reverted", rpc(3, "execution reverted"), false, "error 3: execution reverted"},
		{"key in the text", rpc(-32001, "no project "+apiKey+"\nfound"), false, "error -32001: no project [redacted] found"},
		{"HTTP with an RPC error", func(w http.ResponseWriter, call rpcCall) {
			w.WriteHeader(http.StatusTooManyRequests)
			refuse(w, call, -32016, "over rate limit")
		}, true, "error -32016: over rate limit"},
		{"error without id", text(`{"error":{"code":-32700,"message":"parse error"},"id":null}`), false, "error -32700: parse error"},
		{"error without anything", text(`{"error":{}}`), false, "error 0:"},
		{"HTTP 503", status(503, "<html>"), true, "HTTP 503 Service Unavailable"},
		{"HTTP 401", status(401, apiKey), true, "HTTP 401 Unauthorized"},
		{"redirect", func(w http.ResponseWriter, _ rpcCall) {
			w.Header().Set("Location", "http://elsewhere.example/")
			w.WriteHeader(http.StatusTemporaryRedirect)
		}, true, "HTTP 307 Temporary Redirect"},
		{"page", text("<html>welcome</html>"), true, "the answer is no JSON-RPC response"},
		{"nothing", text(""), true, "the answer is no JSON-RPC response"},
		{"list", text("[]"), true, "the answer is no JSON-RPC response"},
		{"other id", text(`{"jsonrpc":"2.0","id":0,"result":"0x"}`), true, "the answer is one to another request"},
		{"neither", func(w http.ResponseWriter, call rpcCall) { fmt.Fprintf(w, `{"id":%s,"error":null}`, call.ID) }, true,
			"the answer has neither a result nor an error"},
		{"null", result("null"), false, "the result is no hex text"},
		{"number", result("12"), false, "the result is no hex text"},
		{"no prefix", result(`"6080"`), false, "the result is no hex text"},
		{"odd digits", result(`"0x608"`), false, "the result is no hex text of whole bytes"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			node := startNode(t)
			node.misbehave(onlyOn("eth_getCode", 0, test.answer))
			client, waited, _ := newTestClient(t, node)
			_, err := client.Code(t.Context(), escrow)
			var failure *Failure
			if !errors.As(err, &failure) || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("error %v, want %s", err, test.want)
			}
			if coded := fault.From(err); coded.Retryable != test.transient || failure.Transient != test.transient {
				t.Errorf("retryable %t, want %t", coded.Retryable, test.transient)
			}
			if strings.Contains(err.Error(), apiKey) || !strings.Contains(err.Error(), "chain 412346: eth_getCode") {
				t.Errorf("error %v", err)
			}
			wantAsked, wantWaits := "eth_chainId eth_getCode", 0
			if test.transient {
				wantAsked, wantWaits = wantAsked+" eth_getCode", 1
			}
			if asked, waits := node.asked(), waited.waits(); asked != wantAsked || len(waits) != wantWaits {
				t.Errorf("asked for %s, waited %v", asked, waits)
			}
		})
	}
}

func TestOneFailureIsOutlived(t *testing.T) {
	t.Parallel()
	node := startNode(t)
	node.misbehave(onlyOn("eth_getCode", 1, func(http.ResponseWriter, rpcCall) { panic(http.ErrAbortHandler) }))
	client, waited, _ := newTestClient(t, node)
	if got := code(t, client, escrow); got != escrowCode {
		t.Errorf("code %s, want %s", got, escrowCode)
	}
	if waits := waited.waits(); !slices.Equal(waits, []time.Duration{retryPause}) {
		t.Errorf("waited %v", waits)
	}
}

func TestNextNodeIsAskedAndStays(t *testing.T) {
	t.Parallel()
	limited, dead, good := startNode(t), startNode(t), startNode(t)
	limited.misbehave(onlyOn("eth_getCode", 0, func(w http.ResponseWriter, call rpcCall) { refuse(w, call, 429, "too many requests") }))
	dead.misbehave(onlyOn("eth_chainId", 0, func(http.ResponseWriter, rpcCall) { panic(http.ErrAbortHandler) }))
	client, waited, _ := newTestClient(t, limited, dead, good)
	if got := code(t, client, escrow); got != escrowCode {
		t.Errorf("code %s, want %s", got, escrowCode)
	}
	if waits := waited.waits(); !slices.Equal(waits, []time.Duration{retryPause, 2 * retryPause}) {
		t.Errorf("waited %v", waits)
	}
	if got := code(t, client, "0x1111111111111111111111111111111111111111"); got != "0x" {
		t.Errorf("code %s", got)
	}
	for _, check := range []struct{ got, want string }{
		{limited.asked(), "eth_chainId eth_getCode"},
		{dead.asked(), "eth_chainId"},
		{good.asked(), "eth_chainId eth_getCode eth_getCode"},
	} {
		if check.got != check.want {
			t.Errorf("asked for %s, want %s", check.got, check.want)
		}
	}
}

func TestNodeOfAnotherChain(t *testing.T) {
	t.Parallel()
	wrong, right := startNode(t), startNode(t)
	wrong.chainID = 1
	client, _, _ := newTestClient(t, wrong, right)
	if got := code(t, client, escrow); got != escrowCode || wrong.asked() != "eth_chainId" {
		t.Errorf("code %s, the wrong node was asked for %s", got, wrong.asked())
	}
	alone, waited, _ := newTestClient(t, wrong)
	_, err := alone.Code(t.Context(), escrow)
	var mismatch *WrongChainError
	if !errors.As(err, &mismatch) || mismatch.Got != 1 || fault.From(err).Retryable || len(waited.waits()) != 0 {
		t.Errorf("error %v, waited %v", err, waited.waits())
	}
	if err := alone.Check(t.Context()); !errors.As(err, &mismatch) {
		t.Errorf("check: %v", err)
	}
	if err := client.Check(t.Context()); err != nil {
		t.Errorf("check: %v", err)
	}
	for _, bad := range []string{`null`, `"412346"`, `"0x"`, `"0xzz"`, `"0x10000000000000000"`} {
		right.misbehave(onlyOn("eth_chainId", 0, func(w http.ResponseWriter, call rpcCall) {
			fmt.Fprintf(w, `{"id":%s,"result":%s}`, call.ID, bad)
		}))
		if err := client.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "no hex number") {
			t.Errorf("chain id %s: %v", bad, err)
		}
	}
}

func TestUnreachableNode(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	node := &testNode{url: "http://user:" + apiKey + "@" + listener.Addr().String() + "/" + apiKey}
	listener.Close()
	client, _, _ := newTestClient(t, node)
	_, err = client.Code(t.Context(), escrow)
	if err == nil || !fault.From(err).Retryable || strings.Contains(err.Error(), apiKey) || !strings.Contains(err.Error(), listener.Addr().String()) {
		t.Errorf("error %v", err)
	}
}

func TestAnswersAreBoundedInTime(t *testing.T) {
	t.Parallel()
	node := startNode(t)
	release := make(chan struct{})
	defer close(release)
	node.misbehave(onlyOn("eth_chainId", 0, func(http.ResponseWriter, rpcCall) { <-release }))
	client, _, _ := newTestClient(t, node)
	client.limits.attempt = 20 * time.Millisecond
	err := client.Check(t.Context())
	if err == nil || !strings.Contains(err.Error(), "no answer within 20ms") || !fault.From(err).Retryable {
		t.Errorf("error %v", err)
	}
}

func TestAnswersAreBoundedInSize(t *testing.T) {
	t.Parallel()
	node := startNode(t)
	node.setCode(escrow, "0x"+strings.Repeat("fe", 1000))
	client, _, _ := newTestClient(t, node)
	client.limits.answer = 1000
	if _, err := client.Code(t.Context(), escrow); err == nil || !strings.Contains(err.Error(), "larger than 1000 bytes") {
		t.Errorf("error %v", err)
	}
}

func TestCallerMayGiveUp(t *testing.T) {
	t.Parallel()
	node := startNode(t)
	release := make(chan struct{})
	started := make(chan struct{}, 4)
	node.misbehave(func(http.ResponseWriter, rpcCall) bool {
		started <- struct{}{}
		receive(t, release)
		return false
	})
	client, _, _ := newTestClient(t, node)
	gone := errors.New("the caller is gone")
	for name, call := range map[string]func(context.Context) error{
		"check": client.Check,
		"code":  func(ctx context.Context) error { _, err := client.Code(ctx, escrow); return err },
	} {
		ctx, leave := context.WithCancelCause(t.Context())
		go func() {
			receive(t, started)
			leave(gone)
		}()
		if err := call(ctx); !errors.Is(err, gone) {
			t.Errorf("%s: %v", name, err)
		}
	}
	close(release)
}

func TestCloseEndsCalls(t *testing.T) {
	t.Parallel()
	node := startNode(t)
	release, started := make(chan struct{}), make(chan struct{}, 4)
	defer close(release)
	node.misbehave(func(http.ResponseWriter, rpcCall) bool {
		started <- struct{}{}
		receive(t, release)
		return false
	})
	client, _, _ := newTestClient(t, node)
	outcomes := make(chan error, 2)
	go func() { outcomes <- client.Check(context.Background()) }()
	go func() {
		_, err := client.Code(context.Background(), escrow)
		outcomes <- err
	}()
	receive(t, started)
	receive(t, started)
	client.Close()
	for range 2 {
		if err := receive(t, outcomes); !errors.Is(err, ErrClosed) {
			t.Errorf("error %v", err)
		}
	}
	if _, err := client.Code(t.Context(), escrow); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	if err := client.Check(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

func TestSelfSignedNodeNeedsTheRule(t *testing.T) {
	t.Parallel()
	node := startNode(t)
	server := httptest.NewTLSServer(node)
	t.Cleanup(server.Close)
	url := server.URL + "/" + apiKey
	strict, err := New(Config{ChainID: testChainID, URLs: []string{url}})
	if err != nil {
		t.Fatal(err)
	}
	defer strict.Close()
	strict.pause = (&pauses{}).pause
	if err := strict.Check(t.Context()); err == nil {
		t.Error("a self-signed certificate was taken")
	}
	lenient, err := New(Config{ChainID: testChainID, URLs: []string{url}, Transport: server.Client().Transport.(*http.Transport)})
	if err != nil {
		t.Fatal(err)
	}
	defer lenient.Close()
	if err := lenient.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestPauseEndsWithItsContext(t *testing.T) {
	t.Parallel()
	if err := pause(t.Context(), time.Nanosecond); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("the caller is gone")
	cancel(gone)
	if err := pause(ctx, time.Hour); !errors.Is(err, gone) {
		t.Errorf("error %v", err)
	}
}

func TestNewChecksItsConfiguration(t *testing.T) {
	t.Parallel()
	for _, config := range []Config{
		{ChainID: 0, URLs: []string{"https://rpc.example"}},
		{ChainID: -1, URLs: []string{"https://rpc.example"}},
		{ChainID: 1},
		{ChainID: 1, URLs: []string{"wss://rpc.example/" + apiKey}},
		{ChainID: 1, URLs: []string{"https://rpc.example", "https:///" + apiKey}},
		{ChainID: 1, URLs: []string{"https://rpc.example:port/" + apiKey}},
		{ChainID: 1, URLs: []string{apiKey + "\x7f"}},
	} {
		client, err := New(config)
		if err == nil || client != nil || strings.Contains(err.Error(), apiKey) {
			t.Errorf("chain %d: %v", config.ChainID, err)
		}
	}
}

func TestChains(t *testing.T) {
	t.Parallel()
	node := startNode(t)
	chains, err := NewChains([]Config{{ChainID: testChainID, URLs: []string{node.url}}, {ChainID: 33, URLs: []string{node.url}}})
	if err != nil {
		t.Fatal(err)
	}
	defer chains.Close()
	if code, err := chains.Code(t.Context(), testChainID, escrow); err != nil || len(code) != 5 {
		t.Errorf("code %x, error %v", code, err)
	}
	if client, ok := chains.Client(33); !ok || client.ChainID() != 33 {
		t.Error("chain 33 is not there")
	}
	if _, err := chains.Code(t.Context(), 1, escrow); err == nil || !strings.Contains(err.Error(), "chain 1 is not configured") {
		t.Errorf("error %v", err)
	}
	if _, ok := chains.Client(1); ok {
		t.Error("chain 1 is there")
	}
	twice := Config{ChainID: 33, URLs: []string{node.url}}
	for _, bad := range [][]Config{{twice, twice}, {twice, {}}} {
		if _, err := NewChains(bad); err == nil {
			t.Error("a bad configuration was taken")
		}
	}
}

func FuzzDecodeResponse(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"result":"0x6080"}`, `{"id":1,"error":{"code":-32000,"message":"header not found","data":"0x"}}`,
		`{"id":1,"error":{"code":"429","message":"x"}}`, `[{"id":1}]`, `null`, `{"id":1,"result":null}`, `{"id":1,"error":{"code":1e400}}`, ``,
	} {
		f.Add([]byte(seed), 200)
	}
	node, err := parseNode("https://rpc.example/" + apiKey)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, body []byte, status int) {
		result, err := decodeResponse(node, 1, status, body)
		if err == nil && (!json.Valid(result) || status != 200) {
			t.Fatalf("HTTP %d gave the result %q", status, result)
		}
		if err != nil && (strings.Contains(err.Error(), apiKey) || len(err.Error()) > 2000) {
			t.Fatalf("error of %d bytes", len(err.Error()))
		}
	})
}

func FuzzParseResult(f *testing.F) {
	for _, seed := range []string{`"0x"`, `"0x6080"`, `"0x1"`, `"0X10"`, `null`, `"0x+1"`, `"\u0030x10"`, `"0x_1"`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, result []byte) {
		if data, err := parseBytes(result); err == nil {
			text, _ := parseString(result)
			if !strings.EqualFold(text, "0x"+hex.EncodeToString(data)) {
				t.Fatalf("%q gave %x", result, data)
			}
		}
		if quantity, err := parseQuantity(result); err == nil {
			text, _ := parseString(result)
			if trimmed := strings.TrimLeft(text[2:], "0"); !strings.EqualFold(trimmed, strings.TrimLeft(fmt.Sprintf("%x", quantity), "0")) {
				t.Fatalf("%q gave %d", result, quantity)
			}
		}
	})
}

func BenchmarkCode(b *testing.B) {
	node := startNode(b)
	client, err := New(Config{ChainID: testChainID, URLs: []string{node.url}})
	if err != nil {
		b.Fatal(err)
	}
	defer client.Close()
	b.Run("asked", func(b *testing.B) {
		for b.Loop() {
			if _, err := client.readCode(b.Context(), strings.ToLower(escrow)); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("remembered", func(b *testing.B) {
		for b.Loop() {
			if _, err := client.Code(b.Context(), escrow); err != nil {
				b.Fatal(err)
			}
		}
	})
}
