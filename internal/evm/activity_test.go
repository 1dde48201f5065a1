package evm

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/rs/zerolog"

	"hostr-daemon/internal/fault"
)

// The account of index 1 of the vectors (spec 73 §2) and contracts around it.
const (
	ownerAddress = "0x48232E523b42f1dcdC520aF1c19D140071700353"
	smartAddress = "0x5555555555555555555555555555555555555555"
	entryPoint   = "0x0000000071727De22E5E9d8BAf0edAc6f37da032"
	factory      = "0x91E60e0613810449d098b0b5Ec8b51A0FE8c8985"
	oneToken     = "0x948b3c65b89df0b4894abe91e6d02fe579834f8f"
)

// ledger is a node that knows balances and answers batches, in reverse order.
type ledger struct {
	url string

	mu sync.Mutex
	// answers are results by method, or by method and what follows in the parameters,
	// the longest fitting key first; what has none is nothing.
	answers map[string]string
	// failures are how many more batches lack their last item.
	failures int
	// refusals are how many more batches are refused as a whole.
	refusals int
	batches  int
	// hideReverts leaves the data of reverts out; inObject puts it into an object.
	hideReverts, inObject bool
}

func startLedger(t testing.TB) *ledger {
	t.Helper()
	node := &ledger{answers: map[string]string{}}
	server := httptest.NewServer(node)
	t.Cleanup(server.Close)
	node.url = server.URL
	return node
}

func (l *ledger) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var calls []rpcCall
	if json.Unmarshal(body, &calls) != nil {
		var call rpcCall
		if json.Unmarshal(body, &call) == nil {
			fmt.Fprint(w, l.answer(call))
		}
		return
	}
	l.batches++
	if l.refusals > 0 {
		l.refusals--
		fmt.Fprint(w, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"batch too large"}}`)
		return
	}
	var answers []string
	for _, call := range calls {
		answers = append([]string{l.answer(call)}, answers...)
	}
	if l.failures > 0 {
		l.failures--
		answers = answers[1:]
	}
	fmt.Fprint(w, "["+strings.Join(answers, ",")+"]")
}

func (l *ledger) answer(call rpcCall) string {
	var params []string
	for _, param := range call.Params {
		params = append(params, strings.ToLower(string(param)))
	}
	said := call.Method + " " + strings.Join(params, " ")
	switch {
	case call.Method == "eth_chainId":
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":"0x%x"}`, call.ID, testChainID)
	case strings.Contains(said, "9b249f69"):
		return l.revert(call)
	}
	result, longest := "0x0", 0
	if call.Method == "eth_getCode" {
		result = "0x"
	}
	for key, answer := range l.answers {
		method, rest, _ := strings.Cut(key, " ")
		if call.Method == method && strings.Contains(said, strings.ToLower(rest)) && len(key) > longest {
			result, longest = answer, len(key)
		}
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%q}`, call.ID, result)
}

func (l *ledger) revert(call rpcCall) string {
	data := fmt.Sprintf(`"0x6ca7b806%s"`, addressWord(smartAddress))
	switch {
	case l.hideReverts:
		data = "null"
	case l.inObject:
		data = `{"message":"reverted","data":` + data + `}`
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":3,"message":"execution reverted","data":%s}}`, call.ID, data)
}

func (l *ledger) chains(t testing.TB) *Chains {
	t.Helper()
	chains, err := NewChains([]Config{{ChainID: testChainID, URLs: []string{l.url}, Logger: zerolog.Nop()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(chains.Close)
	client, _ := chains.Client(testChainID)
	client.pause = (&pauses{}).pause
	return chains
}

func plainAccounts() Activity {
	return Activity{ChainID: testChainID, Tokens: []string{oneToken, strings.ToUpper(oneToken[2:])}}
}

func smartAccounts() Activity {
	activity := plainAccounts()
	activity.EntryPoint, activity.Factory = entryPoint, factory
	return activity
}

func TestUsed(t *testing.T) {
	t.Parallel()
	word := strings.Repeat("0", 63)
	for _, test := range []struct {
		name        string
		activity    Activity
		key, answer string
		want        bool
	}{
		{"nothing at all", smartAccounts(), "", "", false},
		{"nothing, in words", smartAccounts(), "eth_call 0x", "0x" + word + "0", false},
		{"no such token", smartAccounts(), "eth_call 0x", "0x", false},
		{"the owner has sent", plainAccounts(), "eth_getTransactionCount " + ownerAddress, "0x1", true},
		{"the owner has coins", plainAccounts(), "eth_getBalance " + ownerAddress, "0x10", true},
		{"the owner is a contract", plainAccounts(), "eth_getCode " + ownerAddress, "0xef0100", true},
		{"the owner has tokens", plainAccounts(), "eth_call " + oneToken, "0x" + word + "1", true},
		{"the smart account has sent", smartAccounts(), "eth_getTransactionCount " + smartAddress, "0x1", true},
		{"the smart account has coins", smartAccounts(), "eth_getBalance " + smartAddress, "0x1", true},
		{"the smart account exists", smartAccounts(), "eth_getCode " + smartAddress, "0x60", true},
		{"the smart account has tokens", smartAccounts(), "eth_call 70a08231" + addressWord(smartAddress), "0x" + word + "1", true},
		{"the smart account has operations", smartAccounts(), "eth_call 35567e1a" + addressWord(smartAddress), "0x" + word + "1", true},
		{"only plain accounts count", plainAccounts(), "eth_getBalance " + smartAddress, "0x1", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			node := startLedger(t)
			if test.key != "" {
				node.answers[test.key] = test.answer
			}
			used, err := node.chains(t).Used(t.Context(), ownerAddress, []Activity{test.activity})
			if err != nil || used != test.want {
				t.Errorf("used %t, %v, want %t", used, err, test.want)
			}
			if node.batches != 1 {
				t.Errorf("%d batches", node.batches)
			}
		})
	}
}

// What one item fails to say leaves the account in doubt, so it is asked once more.
func TestUsedNeedsEveryItem(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name               string
		failures, refusals int
		wantError          bool
	}{
		{"one item is missing once", 1, 0, false},
		{"one item is missing twice", 2, 0, true},
		{"the batch is refused once", 0, 1, false},
		{"the batch is refused twice", 0, 2, true},
	} {
		node := startLedger(t)
		node.failures, node.refusals = test.failures, test.refusals
		used, err := node.chains(t).Used(t.Context(), ownerAddress, []Activity{smartAccounts()})
		if used || (err != nil) != test.wantError {
			t.Errorf("%s: used %t, %v", test.name, used, err)
		}
		if node.batches != 2 {
			t.Errorf("%s: %d batches", test.name, node.batches)
		}
	}
}

func TestUsedDoubtsOddResults(t *testing.T) {
	t.Parallel()
	for _, odd := range []string{"", "12", "0xzz"} {
		node := startLedger(t)
		node.answers["eth_getBalance 0x"] = odd
		if used, err := node.chains(t).Used(t.Context(), ownerAddress, []Activity{plainAccounts()}); used || err == nil {
			t.Errorf("%q: used %t, %v", odd, used, err)
		}
	}
}

func TestUsedRefuses(t *testing.T) {
	t.Parallel()
	chains := startLedger(t).chains(t)
	if _, err := chains.Used(t.Context(), "0x12", []Activity{plainAccounts()}); !fault.Is(err, fault.UnexpectedError) {
		t.Errorf("a bad address: %v", err)
	}
	if _, err := chains.Used(t.Context(), ownerAddress, []Activity{{ChainID: 1}}); !fault.Is(err, fault.UnexpectedError) {
		t.Errorf("an unknown chain: %v", err)
	}
	if used, err := chains.Used(t.Context(), ownerAddress, nil); used || err != nil {
		t.Errorf("no chain: %t, %v", used, err)
	}
}

func TestSmartAccount(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		set  func(*ledger)
	}{
		{"the data of the revert as text", func(*ledger) {}},
		{"the data of the revert in an object", func(l *ledger) { l.inObject = true }},
		{"no data: the factory tells", func(l *ledger) {
			l.hideReverts = true
			l.answers["eth_call 8cb84e18"+addressWord(ownerAddress)+strings.Repeat("0", 64)] = "0x" + addressWord(smartAddress)
		}},
	} {
		node := startLedger(t)
		test.set(node)
		client, _ := node.chains(t).Client(testChainID)
		got, err := client.SmartAccount(t.Context(), ownerAddress, entryPoint, factory)
		if err != nil || got != smartAddress {
			t.Errorf("%s: %s, %v", test.name, got, err)
		}
	}
	node := startLedger(t)
	node.hideReverts = true
	client, _ := node.chains(t).Client(testChainID)
	if got, err := client.SmartAccount(t.Context(), ownerAddress, entryPoint, factory); err == nil {
		t.Errorf("a factory that says nothing: %s", got)
	}
}

func FuzzDecodeBatch(f *testing.F) {
	for _, seed := range []string{
		`[{"id":1,"result":"0x1"},{"id":0,"result":"0x0"}]`, `[{"id":0,"error":{"code":3,"message":"no"}}]`, `{"error":{}}`,
		`[]`, `[null]`, `[{"id":-1,"result":1}]`, `[{"id":9,"result":"0x"}]`, ``,
	} {
		f.Add(seed, 200)
	}
	requests := []rpcRequest{{method: "a"}, {method: "b"}}
	f.Fuzz(func(t *testing.T, body string, status int) {
		results, err := decodeBatch(&node{host: "n"}, requests, status, []byte(body))
		if err == nil && (len(results) != 2 || results[0] == nil || results[1] == nil) {
			t.Errorf("%q: %q", body, results)
		}
		for _, result := range results {
			_, _ = isPositive(result)
		}
		if _, ok := revertedAddress(&RPCError{Data: json.RawMessage(body)}); ok && !strings.Contains(body, "6ca7b806") && !strings.Contains(body, `\u`) {
			t.Errorf("an address out of %q", body)
		}
	})
}
