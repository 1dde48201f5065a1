package orders

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nbd-wtf/go-nostr"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"hostr-daemon/internal/derivation"
	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/inbox"
	"hostr-daemon/internal/listings"
	"hostr-daemon/internal/market"
	"hostr-daemon/internal/money"
	"hostr-daemon/internal/profiles"
	"hostr-daemon/internal/relay"
	"hostr-daemon/internal/relaylists"
	"hostr-daemon/internal/sandbox"
	"hostr-daemon/internal/signer"
	"hostr-daemon/internal/store"
	"hostr-daemon/internal/trades"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(withRelay{m}, goleak.IgnoreAnyFunction(sandbox.KhatruGoroutine))
}

// commonRelay is the sandbox's Hostr relay, in good health, for all tests: each has
// accounts of its own there.
var commonRelay *sandbox.Market

// withRelay runs the tests while there is a commonRelay.
type withRelay struct{ *testing.M }

func (w withRelay) Run() int {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	var err error
	if commonRelay, err = sandbox.Start(ctx, sandbox.Options{Hosts: 1, Guests: 1}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := w.M.Run()
	if err := commonRelay.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// patience is how long a test waits for what should come at once.
const patience = time.Minute

func patient(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func eventually(t testing.TB, what string, reached func() bool) {
	t.Helper()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	deadline := time.After(patience)
	for !reached() {
		select {
		case <-ticker.C:
		case <-deadline:
			t.Fatalf("it never came about that %s", what)
		}
	}
}

// startRelay runs a relay of the test's own, to be broken.
func startRelay(t testing.TB) *sandbox.Market {
	t.Helper()
	started, err := sandbox.Start(patient(t), sandbox.Options{Hosts: 1, Guests: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := started.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return started
}

// ticked is how often the clock of all processes was read.
var ticked atomic.Int64

// tick is a clock that goes on by a second with each look, so that messages have an
// order however fast the test is.
func tick() time.Time {
	return started.Add(time.Duration(ticked.Add(1)) * time.Second)
}

var started = time.Now().Add(-6 * time.Hour)

// account is what all services need of an account's signer.
type account interface {
	relay.Account
	Signer
}

// person is an account with everything of it that survives a restart.
type person struct {
	t        testing.TB
	market   *sandbox.Market
	key      string
	local    *signer.Local
	public   string
	database string
	store    *store.Store
	keys     *derivation.Keys
	// account signs; connect, if not nil, gets it ready to.
	account account
	connect func(client *relay.Client)

	mu      sync.Mutex
	highest int
}

func newPerson(t testing.TB, at *sandbox.Market) *person {
	t.Helper()
	raw := make([]byte, 32)
	_, _ = rand.Read(raw) // it never fails
	p := &person{
		t: t, market: at, key: hex.EncodeToString(raw), highest: -1,
		database: filepath.Join(t.TempDir(), "test.sqlite3"),
	}
	p.local = newLocal(t, p.key)
	p.account, p.public = p.local, p.local.PublicKey()
	parsed, err := derivation.ParsePrivateKey(p.key)
	if err != nil {
		t.Fatal(err)
	}
	seed, err := derivation.SeedFromPrivateKey(parsed)
	if err != nil {
		t.Fatal(err)
	}
	if p.keys, err = derivation.NewKeys(seed); err != nil {
		t.Fatal(err)
	}
	if p.store, err = store.Open(patient(t), p.database); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.store.Close() })
	return p
}

func newLocal(t testing.TB, key string) *signer.Local {
	t.Helper()
	local, err := signer.NewLocal(key)
	if err != nil {
		t.Fatal(err)
	}
	return local
}

// Keys implements trades.Keys.
func (p *person) Keys(context.Context) (*derivation.Keys, error) { return p.keys, nil }

// Stored implements trades.Keys.
func (p *person) Stored(context.Context) (bool, error) { return true, nil }

// MaxAccountIndex implements trades.Indexes.
func (p *person) MaxAccountIndex(context.Context) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.highest, nil
}

// RaiseMaxAccountIndex implements trades.Indexes.
func (p *person) RaiseMaxAccountIndex(_ context.Context, index int) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.highest = max(p.highest, index)
	return p.highest, nil
}

// PutTrade implements Records.
func (p *person) PutTrade(ctx context.Context, tradeID string, state json.RawMessage) error {
	return p.store.PutOperation(ctx, p.public, store.Operation{Namespace: "order_trade", ID: tradeID, Data: state})
}

// trade returns the record of a trade, "" when there is none.
func (p *person) trade(tradeID string) string {
	p.t.Helper()
	db, err := sql.Open("sqlite3", "file:"+p.database+"?mode=ro&_busy_timeout=5000")
	if err != nil {
		p.t.Fatal(err)
	}
	defer db.Close()
	var state string
	err = db.QueryRow("SELECT data FROM operations WHERE pubkey = ? AND namespace = 'order_trade' AND id = ?", p.public, tradeID).Scan(&state)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		p.t.Fatal(err)
	}
	return state
}

// process is one run of the daemon for a person.
type process struct {
	*Service
	*person
	client *relay.Client
	inbox  *inbox.Service
	trades *trades.Service
	stop   func()
}

// start makes a process.
func (p *person) start() *process {
	p.t.Helper()
	return p.startWith(func(*Config) {})
}

// startWith makes a process whose parts may be exchanged.
func (p *person) startWith(change func(*Config)) *process {
	p.t.Helper()
	verifier := relay.NewVerifier(nil, zerolog.Nop())
	client, err := relay.NewClient(relay.Config{HostrRelay: p.market.RelayURL, Account: p.account, Verifier: verifier})
	if err != nil {
		p.t.Fatal(err)
	}
	if p.connect != nil {
		p.connect(client)
	}
	run := &process{person: p, client: client}
	run.inbox = inbox.New(inbox.Config{
		Relays: client, Account: p.account, Memory: p.store.MessageCache(p.public), Now: tick, Logger: zerolog.Nop(),
		Controls: func(pubkey, tradeID string) bool { return run.trades.Controls(pubkey, tradeID) },
	})
	run.trades = trades.New(trades.Config{
		Relays: client, Account: p.account, Inbox: run.inbox, Keys: p, Indexes: p, Now: tick, Logger: zerolog.Nop(),
	})
	profile := profiles.New(client, p.market.RelayURL, nil, profiles.NewCache(time.Now))
	config := Config{
		Relays: client, Account: p.account, Inbox: testInbox{run.inbox}, Trades: testTrades{run.trades},
		Listings: testListings{listings.New(client, nil)},
		People:   testPeople{profile, relaylists.New(client, []string{p.market.RelayURL}, relaylists.NewCache(time.Now))},
		Records:  p, SeedReady: func(context.Context) error { return nil },
		Now: tick, Logger: zerolog.Nop(),
	}
	change(&config)
	run.Service = New(config)
	var once sync.Once
	run.stop = func() {
		once.Do(func() {
			run.Service.Close()
			run.trades.Close()
			run.inbox.Close()
			profile.Close()
			client.Close()
			verifier.Close()
		})
	}
	p.t.Cleanup(run.stop)
	return run
}

// What follows does what package sessions does for the daemon.

type testInbox struct{ *inbox.Service }

func (i testInbox) Send(ctx context.Context, draft market.MessageDraft) ([]relay.Receipt, error) {
	sent, err := i.Service.Send(ctx, draft)
	return sent.Receipts, err
}

type testTrades struct{ *trades.Service }

func (t testTrades) Reserve(ctx context.Context, persist bool) (TradeKey, error) {
	keys, err := t.Service.Reserve(ctx, persist)
	return TradeKey{TradeID: keys.TradeID, Key: keys.Key}, err
}

func (t testTrades) Release(key TradeKey) { t.Service.Release(trades.TradeKeys{TradeID: key.TradeID}) }

func (t testTrades) OwnKey(ctx context.Context, listing market.Anchor, tradeID string) (Signer, error) {
	return t.Service.OwnKey(ctx, listing, tradeID)
}

func (t testTrades) WaitPublic(ctx context.Context, tradeID string, wait PublicWait) (PublicOrders, error) {
	public, err := t.Service.WaitPublic(ctx, tradeID, trades.PublicWait(wait))
	return PublicOrders(public), err
}

func (t testTrades) Publish(ctx context.Context, publication Publication) (*nostr.Event, error) {
	published, err := t.Service.Publish(ctx, trades.Publication{
		Order: publication.Order, Key: publication.Key, Role: publication.Role, Type: publication.Type, From: publication.From,
	})
	return published.Order, err
}

func (t testTrades) Trips(ctx context.Context, limit time.Duration) (TradeList, error) {
	return testList(t.Service.Trips(ctx, limit))
}

func (t testTrades) Hostings(ctx context.Context, limit time.Duration) (TradeList, error) {
	return testList(t.Service.Hostings(ctx, limit))
}

func testList(list trades.List, err error) (TradeList, error) {
	items := TradeList{Warning: list.Warning}
	for _, item := range list.Items {
		items.Items = append(items.Items, market.TradeItem{Group: item.Group, Valid: item.Verification.Valid, Participants: item.Participants})
	}
	return items, err
}

type testListings struct{ *listings.Service }

func (l testListings) Find(ctx context.Context, anchor market.Anchor) (*market.Listing, *fault.Error, error) {
	sought, err := l.Service.Find(ctx, anchor)
	return sought.Listing, sought.Warning, err
}

func (l testListings) Available(ctx context.Context, anchor market.Anchor, stay market.DateRange) (*market.Listing, bool, *fault.Error, error) {
	found, err := l.Service.Availability(ctx, []market.Anchor{anchor}, stay)
	if err != nil {
		return nil, false, nil, err
	}
	return found[0].Listing, found[0].Available, found[0].Warning, nil
}

type testPeople struct {
	profiles *profiles.Service
	lists    *relaylists.Lists
}

func (p testPeople) Profile(ctx context.Context, pubkey string) (*market.Profile, error) {
	found, err := p.profiles.Lookup(ctx, pubkey)
	return found.Profile, err
}

func (p testPeople) RelayHint(ctx context.Context, pubkey string) string {
	_, _, _ = p.lists.Load(ctx, pubkey)
	return p.lists.Hint(pubkey)
}

func (p testPeople) WriteRelays(pubkey string) []string { return p.lists.WriteRelays(pubkey) }

// publish signs an event with a key and puts it on the relay.
func (p *person) publish(key Signer, event *nostr.Event) *nostr.Event {
	p.t.Helper()
	signed := *event
	if err := key.SignEvent(patient(p.t), &signed); err != nil {
		p.t.Fatal(err)
	}
	if err := p.market.Relay.Insert(patient(p.t), signed); err != nil {
		p.t.Fatal(err)
	}
	return &signed
}

// stored are the events of a filter on the relay.
func (p *person) stored(filter nostr.Filter) []nostr.Event {
	p.t.Helper()
	events, err := p.market.Relay.Query(patient(p.t), filter)
	if err != nil {
		p.t.Fatal(err)
	}
	return events
}

// messages is how many gift wraps there are for the person.
func (p *person) messages() int {
	return len(p.stored(nostr.Filter{Kinds: []int{market.KindGiftWrap}, Tags: nostr.TagMap{"p": {p.public}}}))
}

// of are the public events of a kind in a trade.
func (p *person) of(kind int, tradeID string) []nostr.Event {
	return p.stored(nostr.Filter{Kinds: []int{kind}, Tags: nostr.TagMap{"d": {tradeID}}})
}

// place is a listing with what it takes to book it.
type place struct {
	listing, method, service *nostr.Event
	anchor                   market.Anchor
}

// offers publishes a listing of the person that the escrow may serve.
func (p *person) offers(escrow *person, tags ...nostr.Tag) place {
	p.t.Helper()
	listing := p.publish(p.local, &nostr.Event{PubKey: p.public, Kind: market.KindListing, CreatedAt: nostr.Now(), Tags: append(nostr.Tags{
		{"d", "cabin"}, {"title", "Lake cabin"}, {"autoAccept", "true"}, {"price", "0.00100000", "BTC", "day"},
	}, tags...)})
	method := p.publish(p.local, &nostr.Event{PubKey: p.public, Kind: market.KindSellerConfiguration, CreatedAt: nostr.Now(), Tags: nostr.Tags{
		{"p", escrow.public},
	}})
	service := escrow.publish(escrow.local, &nostr.Event{
		PubKey: escrow.public, Kind: market.KindEscrowService, CreatedAt: nostr.Now(), Tags: nostr.Tags{{"d", "s"}},
		Content: `{"pubkey":"` + escrow.public + `","type":"EVM"}`,
	})
	return place{listing, method, service, market.Anchor{Kind: market.KindListing, PubKey: p.public, Identifier: "cabin"}}
}

func day(of int) time.Time { return time.Date(2027, 4, of, 0, 0, 0, 0, time.UTC) }

func sats(count int64) *money.Amount {
	amount := money.Satoshis(count)
	return &amount
}

// request asks for a stay from the 5th to the 7th.
func (at place) request(dryRun bool) FirstOfferRequest {
	return FirstOfferRequest{Listing: at.anchor, Given: at.anchor.String(), Start: day(5), End: day(7), DryRun: dryRun}
}

// begin sends a first offer.
func (r *process) begin(at place, amount *money.Amount) FirstOffer {
	r.t.Helper()
	request := at.request(false)
	request.Amount = amount
	offer, err := r.FirstOffer(patient(r.t), request)
	if err != nil {
		r.t.Fatal(err)
	}
	return offer
}

// commit publishes the guest's paid order.
func (r *process) commit(at place, negotiated market.Order, escrow *person) *nostr.Event {
	r.t.Helper()
	ctx := patient(r.t)
	key, err := r.trades.OwnKey(ctx, at.anchor, negotiated.TradeID)
	if err != nil {
		r.t.Fatal(err)
	}
	parties := market.TradeParties{Seller: at.anchor.PubKey, Buyer: key.PublicKey(), BuyerIdentity: r.public, Escrow: escrow.public}
	participants, err := r.plan(ctx, key, parties, negotiated.ListingAnchor, negotiated.TradeID)
	if err != nil {
		r.t.Fatal(err)
	}
	order, err := r.config.Trades.Publish(ctx, Publication{
		Order: market.Commit{
			Negotiated: negotiated, TradeKey: key.PublicKey(), Participants: participants,
			Proof: market.OrderProof{
				Listing: at.listing, Payment: &market.PaymentProof{Method: market.PaymentEVM, TxHash: "0x01"},
				Escrow: &market.EscrowContext{
					Service: market.EncodeEmbeddedEvent(at.service), SellerMethod: market.EncodeEmbeddedEvent(at.method),
				},
			},
		}.Event(r.timestamp()),
		Key: key, Role: market.RoleBuyer, Type: market.TransitionCommit, From: market.StageNegotiate,
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return order
}

// accepted has the host accept the newest offer of a trade, once it has come.
func (r *process) accepted(tradeID string) Sent {
	r.t.Helper()
	r.awaitRequests(tradeID, 1)
	sent, err := r.Counter(patient(r.t), CounterRequest{TradeID: tradeID, Accept: true, Wait: patience})
	if err != nil {
		r.t.Fatal(err)
	}
	return sent
}

// awaitRequests waits until a negotiation has so many orders.
func (r *process) awaitRequests(tradeID string, count int) []market.Order {
	r.t.Helper()
	if err := r.inbox.Await(patient(r.t), patience); err != nil {
		r.t.Fatal(err)
	}
	eventually(r.t, fmt.Sprintf("the negotiation has %d orders", count), func() bool {
		return len(r.readNegotiation(tradeID, nil).requests) >= count
	})
	return r.readNegotiation(tradeID, nil).requests
}

// coded returns the coded error that is wanted.
func coded(t testing.TB, err error, code fault.Code) *fault.Error {
	t.Helper()
	failure := fault.From(err)
	if failure == nil || failure.Code != code {
		t.Fatalf("the error is %v, want %s", err, code)
	}
	return failure
}

// jsonOf is a value as JSON text.
func jsonOf(t testing.TB, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
