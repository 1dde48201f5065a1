package evm

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"
)

// patience is how long a test waits for what should come at once.
const patience = 30 * time.Second

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	testChainID = 412346
	escrow      = "0x663F3ad617193148711d28f5334eE4Ed07016602"
	escrowCode  = "0x6080604052"
	apiKey      = "5ecre7-k3y-0f-the-n0de"
)

// testNode is a node that answers as geth does, and misbehaves when told to.
type testNode struct {
	url     string
	chainID int64

	mu    sync.Mutex
	code  map[string]string
	calls []string
	// odd, when set, may answer a request in place of the node.
	odd func(w http.ResponseWriter, call rpcCall) bool
}

type rpcCall struct {
	Version string            `json:"jsonrpc"`
	ID      json.RawMessage   `json:"id"`
	Method  string            `json:"method"`
	Params  []json.RawMessage `json:"params"`
}

func startNode(t testing.TB) *testNode {
	t.Helper()
	node := &testNode{chainID: testChainID, code: map[string]string{strings.ToLower(escrow): escrowCode}}
	server := httptest.NewServer(node)
	t.Cleanup(server.Close)
	node.url = server.URL + "/v2/" + apiKey + "?apikey=" + apiKey
	return node
}

func (n *testNode) misbehave(odd func(w http.ResponseWriter, call rpcCall) bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.odd = odd
}

// asked returns the methods that were asked for, in order.
func (n *testNode) asked() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return strings.Join(n.calls, " ")
}

func (n *testNode) setCode(address, code string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.code[strings.ToLower(address)] = code
}

func (n *testNode) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	if request.Method != http.MethodPost || request.Header.Get("Content-Type") != "application/json" {
		http.Error(w, "invalid content type, only application/json is supported", http.StatusUnsupportedMediaType)
		return
	}
	if !strings.Contains(request.URL.String(), apiKey) {
		http.Error(w, "no key", http.StatusUnauthorized)
		return
	}
	var call rpcCall
	if err := json.NewDecoder(request.Body).Decode(&call); err != nil {
		fmt.Fprint(w, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}`)
		return
	}
	n.mu.Lock()
	n.calls = append(n.calls, call.Method)
	odd := n.odd
	n.mu.Unlock()
	if odd == nil || !odd(w, call) {
		n.answer(w, call)
	}
}

func (n *testNode) answer(w http.ResponseWriter, call rpcCall) {
	switch {
	case call.Version != "2.0":
		refuse(w, call, -32600, "invalid request")
	case call.Method == "eth_chainId":
		succeed(w, call, fmt.Sprintf("0x%x", n.chainID))
	case call.Method == "eth_getCode" && len(call.Params) < 2:
		refuse(w, call, -32602, "missing value for required argument 1")
	case call.Method == "eth_getCode":
		var address, block string
		if json.Unmarshal(call.Params[0], &address) != nil || json.Unmarshal(call.Params[1], &block) != nil || block != "latest" {
			refuse(w, call, -32602, "invalid argument 0")
			return
		}
		n.mu.Lock()
		code := n.code[strings.ToLower(address)]
		n.mu.Unlock()
		if code == "" {
			code = "0x"
		}
		succeed(w, call, code)
	default:
		refuse(w, call, -32601, "the method "+call.Method+" does not exist/is not available")
	}
}

func succeed(w http.ResponseWriter, call rpcCall, result string) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%q}`, call.ID, result)
}

func refuse(w http.ResponseWriter, call rpcCall, code int, message string) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%q}}`, call.ID, code, message)
}

// onlyOn returns a hook that answers requests of one method, as often as times says;
// 0 means always.
func onlyOn(method string, times int, answer func(w http.ResponseWriter, call rpcCall)) func(http.ResponseWriter, rpcCall) bool {
	var mu sync.Mutex
	met := 0
	return func(w http.ResponseWriter, call rpcCall) bool {
		mu.Lock()
		meets := call.Method == method && (times == 0 || met < times)
		if meets {
			met++
		}
		mu.Unlock()
		if meets {
			answer(w, call)
		}
		return meets
	}
}

// pauses makes a client wait for nothing, and remembers what it would have waited.
type pauses struct {
	mu   sync.Mutex
	made []time.Duration
}

func (p *pauses) pause(ctx context.Context, d time.Duration) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.made = append(p.made, d)
	return context.Cause(ctx)
}

func (p *pauses) waits() []time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.made)
}

// newTestClient returns a client of the nodes, with its pauses and its log.
func newTestClient(t testing.TB, nodes ...*testNode) (*Client, *pauses, *log) {
	t.Helper()
	waited, lines := &pauses{}, &log{}
	config := Config{ChainID: testChainID, Logger: zerolog.New(lines)}
	for _, node := range nodes {
		config.URLs = append(config.URLs, node.url)
	}
	client, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	client.pause = waited.pause
	t.Cleanup(func() {
		client.Close()
		if strings.Contains(lines.String(), apiKey) {
			t.Error("the API key is in the log")
		}
	})
	return client, waited, lines
}

type log struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *log) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
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
