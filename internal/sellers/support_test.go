package sellers

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nbd-wtf/go-nostr"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"hostr-daemon/internal/boltz"
	"hostr-daemon/internal/derivation"
	"hostr-daemon/internal/environment"
	"hostr-daemon/internal/evm"
	"hostr-daemon/internal/relay"
	"hostr-daemon/internal/sandbox"
	"hostr-daemon/internal/signer"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction(sandbox.KhatruGoroutine))
}

const (
	patience = 30 * time.Second
	// vectorKey and vectorAddress are those of spec 20 §9.
	vectorKey     = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
	vectorPubkey  = "6d6caac248af96f6afa7f904f550253a0f3ef3f5aa2fe6838a95b216691468e2"
	vectorAddress = "0x4B13fAE76Df8f42EDFa22AEF5d6b534746beE960"
	vectorProof   = "0xe5d54ea4fb09aa23806d271222f00032a73fa54d49c73ac0661461cd319ca1727cd749f82c0b687c099dcfd04ff86902449b72392b065d7f06bd267b1003e9971b"

	escrowPubkey = "c51b0c80ab4ec70cee8746fa0175ea439152bb8cf2d37ef84d13eaa095112f0c"
	// code is what stands at the escrow contract's address, codeHash its SHA-256.
	code     = "0x6080604052"
	codeHash = "12c1c6c1622ef139f7be5e75d22b0af0c26c294582e9a761716a7444d64bff39"
)

func patient(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// world is everything outside: the Hostr relay, a node of the chain and the swap
// provider.
type world struct {
	t       testing.TB
	market  *sandbox.Market
	node    *rpcNode
	boltz   *swapProvider
	chains  []environment.Chain
	log     *testLog
	account *testAccount
	now     time.Time
	clock   relay.Clock
}

func newWorld(t testing.TB) *world {
	t.Helper()
	market, err := sandbox.Start(patient(t), sandbox.Options{Hosts: 1, Guests: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := market.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	facts, err := environment.Resolve("development")
	if err != nil {
		t.Fatal(err)
	}
	local, err := signer.NewLocal(vectorKey)
	if err != nil {
		t.Fatal(err)
	}
	return &world{
		t: t, market: market, node: startNode(t), boltz: startProvider(t), chains: facts.EVM.Chains,
		log: &testLog{}, account: &testAccount{Local: local}, now: time.Unix(1_780_000_000, 0), clock: relay.SystemClock{},
	}
}

// service returns the service of the vectors' account.
func (w *world) service() *Service {
	w.t.Helper()
	var configs []evm.Config
	for _, chain := range w.chains {
		configs = append(configs, evm.Config{ChainID: chain.ChainID, URLs: []string{w.node.url(chain.ChainID)}})
	}
	chains, err := evm.NewChains(configs)
	if err != nil {
		w.t.Fatal(err)
	}
	swaps, err := boltz.New(boltz.Config{APIURL: w.boltz.url})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(chains.Close)
	w.t.Cleanup(swaps.Close)
	return w.serviceWith(Config{Relays: w.client(), Contracts: chains, Swaps: swaps})
}

// serviceWith fills in what a test leaves out.
func (w *world) serviceWith(config Config) *Service {
	w.t.Helper()
	config.Account, config.Keys = w.account, vectorKeys(w.t)
	config.Chains, config.Escrows = w.chains, []string{escrowPubkey}
	config.Now, config.Logger = func() time.Time { return w.now }, zerolog.New(w.log)
	service := New(config)
	w.t.Cleanup(service.Close)
	return service
}

func (w *world) client() *relay.Client {
	w.t.Helper()
	verifier := relay.NewVerifier(nil, zerolog.Nop())
	client, err := relay.NewClient(relay.Config{HostrRelay: w.market.RelayURL, Account: w.account, Verifier: verifier, Clock: w.clock})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		client.Close()
		verifier.Close()
	})
	return client
}

// inForce returns the configuration on the relay.
func (w *world) inForce() nostr.Event {
	w.t.Helper()
	events, err := w.market.Relay.Query(patient(w.t), nostr.Filter{Kinds: []int{kindEscrowMethod}, Authors: []string{vectorPubkey}})
	if err != nil {
		w.t.Fatal(err)
	}
	if len(events) != 1 {
		w.t.Fatalf("%d configurations are on the relay", len(events))
	}
	return events[0]
}

// publish puts a configuration of the account on the relay, as another client would.
func (w *world) publish(content string, tags nostr.Tags) nostr.Event {
	w.t.Helper()
	event := nostr.Event{Kind: kindEscrowMethod, CreatedAt: 1_779_999_999, Content: content, Tags: tags}
	if err := w.account.Local.SignEvent(patient(w.t), &event); err != nil {
		w.t.Fatal(err)
	}
	if err := w.market.Relay.Insert(patient(w.t), event); err != nil {
		w.t.Fatal(err)
	}
	return event
}

// published counts the EVENTs of kind 17388 that clients have sent.
func (w *world) published() int {
	count := 0
	for _, frame := range w.market.Relay.Frames() {
		if frame.Label == "EVENT" && strings.Contains(frame.Text, `"kind":17388`) {
			count++
		}
	}
	return count
}

func (w *world) mustEnsure(service *Service, published bool) {
	w.t.Helper()
	outcome, err := service.Ensure(patient(w.t))
	if err != nil {
		w.t.Fatal(err)
	}
	if outcome.Published != published || outcome.EventID != w.inForce().ID {
		w.t.Errorf("outcome %+v, want published %t", outcome, published)
	}
}

// text returns a tag list as lines.
func text(tags nostr.Tags) string {
	var lines strings.Builder
	for _, tag := range tags {
		fmt.Fprintln(&lines, strings.Join(tag, " "))
	}
	return lines.String()
}

// keysOf are the keys of one seed.
type keysOf struct {
	keys *derivation.Keys
	err  error
}

func (k keysOf) Keys(context.Context) (*derivation.Keys, error) { return k.keys, k.err }

func vectorKeys(t testing.TB) keysOf {
	t.Helper()
	key, err := derivation.ParsePrivateKey(vectorKey)
	if err != nil {
		t.Fatal(err)
	}
	seed, err := derivation.SeedFromPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := derivation.NewKeys(seed)
	if err != nil {
		t.Fatal(err)
	}
	return keysOf{keys: keys}
}

// testAccount may answer in place of the signer; AUTH goes through.
type testAccount struct {
	*signer.Local
	signed atomic.Int32
	refuse atomic.Pointer[func(ctx context.Context) error]
}

func (a *testAccount) refuseWith(refuse func(ctx context.Context) error) { a.refuse.Store(&refuse) }

func (a *testAccount) SignEvent(ctx context.Context, event *nostr.Event) error {
	if event.Kind != nostr.KindClientAuthentication {
		a.signed.Add(1)
		if refuse := a.refuse.Load(); refuse != nil {
			if err := (*refuse)(ctx); err != nil {
				return err
			}
		}
	}
	return a.Local.SignEvent(ctx, event)
}

// rpcNode is a node of every chain, one path each.
type rpcNode struct {
	base string
	mu   sync.Mutex
	code map[string]string
	down bool
}

func startNode(t testing.TB) *rpcNode {
	t.Helper()
	node := &rpcNode{code: map[string]string{"0x663f3ad617193148711d28f5334ee4ed07016602": code}}
	server := httptest.NewServer(node)
	t.Cleanup(server.Close)
	node.base = server.URL
	return node
}

func (n *rpcNode) url(chainID int64) string { return fmt.Sprintf("%s/%d", n.base, chainID) }

func (n *rpcNode) set(change func(n *rpcNode)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	change(n)
}

func (n *rpcNode) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	var call struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params []string        `json:"params"`
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if json.NewDecoder(request.Body).Decode(&call) != nil || n.down {
		http.Error(w, "down for maintenance", http.StatusBadGateway)
		return
	}
	result := "0x"
	switch call.Method {
	case "eth_chainId":
		var chainID int64
		fmt.Sscanf(request.URL.Path, "/%d", &chainID)
		result = fmt.Sprintf("0x%x", chainID)
	case "eth_getCode":
		if found, ok := n.code[strings.ToLower(call.Params[0])]; ok {
			result = found
		}
	default:
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"the method does not exist"}}`, call.ID)
		return
	}
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%q}`, call.ID, result)
}

// swapProvider answers GET /v2/chain/contracts.
type swapProvider struct {
	url  string
	down atomic.Bool
}

func startProvider(t testing.TB) *swapProvider {
	t.Helper()
	contracts, err := os.ReadFile("testdata/contracts.json")
	if err != nil {
		t.Fatal(err)
	}
	provider := &swapProvider{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if provider.down.Load() || request.URL.Path != "/v2/chain/contracts" {
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprint(w, `{"error":"maintenance"}`)
			return
		}
		_, _ = w.Write(contracts)
	}))
	t.Cleanup(server.Close)
	provider.url = server.URL + "/v2"
	return provider
}

type testLog struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *testLog) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

func (l *testLog) String() string {
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
