package trades

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nbd-wtf/go-nostr"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"hostr-daemon/internal/derivation"
	"hostr-daemon/internal/inbox"
	"hostr-daemon/internal/market"
	"hostr-daemon/internal/money"
	"hostr-daemon/internal/relay"
	"hostr-daemon/internal/sandbox"
	"hostr-daemon/internal/signer"
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
const patience = 30 * time.Second

func patient(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func eventually(t testing.TB, what string, reached func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !reached(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
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

func randomKey(t testing.TB) string {
	t.Helper()
	raw := make([]byte, 32)
	if _, err := rand.Read(raw); err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(raw)
}

func newLocal(t testing.TB, key string) *signer.Local {
	t.Helper()
	local, err := signer.NewLocal(key)
	if err != nil {
		t.Fatal(err)
	}
	return local
}

// indexPlace is where the highest index rests.
type indexPlace struct {
	mu      sync.Mutex
	highest int
}

func (p *indexPlace) MaxAccountIndex(context.Context) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.highest, nil
}

func (p *indexPlace) RaiseMaxAccountIndex(_ context.Context, index int) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.highest = max(p.highest, index)
	return p.highest, nil
}

// seedPlace gives the keys, once it is told to.
type seedPlace struct {
	keys *derivation.Keys
	// held, if not nil, holds the answer back until it is closed.
	held chan struct{}
	// absent is true while the keys would have to be made, made counts how often they were.
	absent atomic.Bool
	made   atomic.Int64
}

func (p *seedPlace) Stored(context.Context) (bool, error) { return !p.absent.Load(), nil }

func (p *seedPlace) Keys(ctx context.Context) (*derivation.Keys, error) {
	if p.absent.Load() {
		p.made.Add(1)
	}
	if p.held != nil {
		select {
		case <-p.held:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return p.keys, nil
}

// testAccount may answer in the signer's place, and counts its decryptions.
type testAccount struct {
	Signer
	remote bool

	mu        sync.Mutex
	decrypted int
	refuse    error
}

func (a *testAccount) IsRemote() bool { return a.remote }

func (a *testAccount) NIP44Decrypt(ctx context.Context, peer, payload string) (string, error) {
	a.mu.Lock()
	a.decrypted++
	refuse := a.refuse
	a.mu.Unlock()
	if refuse != nil {
		return "", refuse
	}
	return a.Signer.NIP44Decrypt(ctx, peer, payload)
}

func (a *testAccount) decryptions() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.decrypted
}

func (a *testAccount) refuseWith(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.refuse = err
}

// person is an account with everything of it that survives a restart.
type person struct {
	t       testing.TB
	market  *sandbox.Market
	key     string
	local   *signer.Local
	account *testAccount
	public  string
	seed    *seedPlace
	indexes *indexPlace
	chains  Chains
	// publisher is the client of publish, made when first needed.
	publisher func() *relay.Client
}

func newPerson(t testing.TB, at *sandbox.Market) *person {
	t.Helper()
	key := randomKey(t)
	parsed, err := derivation.ParsePrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	seed, err := derivation.SeedFromPrivateKey(parsed)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := derivation.NewKeys(seed)
	if err != nil {
		t.Fatal(err)
	}
	local := newLocal(t, key)
	p := &person{
		t: t, market: at, key: key, local: local, account: &testAccount{Signer: local}, public: local.PublicKey(),
		seed: &seedPlace{keys: keys}, indexes: &indexPlace{highest: noIndex},
	}
	p.publisher = sync.OnceValue(p.client)
	return p
}

func (p *person) client() *relay.Client {
	p.t.Helper()
	verifier := relay.NewVerifier(nil, zerolog.Nop())
	client, err := relay.NewClient(relay.Config{HostrRelay: p.market.RelayURL, Account: p.local, Verifier: verifier})
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		client.Close()
		verifier.Close()
	})
	return client
}

// process is one run of the daemon for a person.
type process struct {
	*Service
	*person
	client *relay.Client
	inbox  *inbox.Service
}

// newProcess makes a process that is not started yet. The inbox decrypts with the
// person's own key, so that the account counts proofs alone.
func (p *person) newProcess() *process {
	p.t.Helper()
	run := &process{person: p, client: p.client()}
	run.inbox = inbox.New(inbox.Config{
		Relays: run.client, Account: p.local, Logger: zerolog.Nop(),
		Controls: func(pubkey, tradeID string) bool { return run.Service.Controls(pubkey, tradeID) },
	})
	run.Service = New(Config{
		Relays: run.client, Account: p.account, Inbox: run.inbox, Keys: p.seed, Indexes: p.indexes, Chains: p.chains,
		Logger: zerolog.Nop(),
	})
	run.Service.limits.debounce = 10 * time.Millisecond
	run.Service.limits.retryFirst = 50 * time.Millisecond
	run.Service.limits.retryLongest = 200 * time.Millisecond
	p.t.Cleanup(run.stop)
	return run
}

func (r *process) stop() {
	r.Service.Close()
	r.inbox.Close()
}

// start starts a process and waits until it knows its trades.
func (p *person) start() *process {
	p.t.Helper()
	run := p.newProcess()
	run.settle()
	return run
}

func (r *process) settle() {
	r.t.Helper()
	if settled, err := r.awaitSettled(patient(r.t), patience); err != nil || !settled {
		r.t.Fatalf("settled %t, %v", settled, err)
	}
}

// publish signs an event with a key and puts it on the relay, as any client does.
func (p *person) publish(key Signer, event *nostr.Event) *nostr.Event {
	p.t.Helper()
	signed := *event
	if err := key.SignEvent(patient(p.t), &signed); err != nil {
		p.t.Fatal(err)
	}
	if _, err := p.publisher().Publish(patient(p.t), signed, relay.PublishOptions{}); err != nil {
		p.t.Fatal(err)
	}
	return &signed
}

// place is a listing with what it takes to book it.
type place struct {
	listing, method, service *nostr.Event
	anchor                   market.Anchor
}

// offer publishes a listing of the person that the escrow may serve.
func (p *person) offer(escrow *person) place {
	p.t.Helper()
	listing := p.publish(p.local, &nostr.Event{PubKey: p.public, Kind: market.KindListing, CreatedAt: nostr.Now(), Tags: nostr.Tags{
		{"d", "cabin"}, {"title", "Cabin"}, {"autoAccept", "true"}, {"price", "0.00100000", "BTC", "day"},
	}})
	method := p.publish(p.local, &nostr.Event{PubKey: p.public, Kind: market.KindSellerConfiguration, CreatedAt: nostr.Now(), Tags: nostr.Tags{
		{"p", escrow.public},
	}})
	service := escrow.publish(escrow.local, &nostr.Event{
		PubKey: escrow.public, Kind: market.KindEscrowService, CreatedAt: nostr.Now(), Tags: nostr.Tags{{"d", "s"}},
		Content: `{"pubkey":"` + escrow.public + `","type":"EVM"}`,
	})
	return place{listing, method, service, market.Anchor{Kind: market.KindListing, PubKey: p.public, Identifier: "cabin"}}
}

// booking is a trade that a guest has begun.
type booking struct {
	keys   TradeKeys
	offer  market.Order
	place  place
	guest  *process
	escrow string
}

func (b booking) tradeID() string { return b.keys.TradeID }

// begin has a guest reserve a trade account and send a first offer to the host.
func (r *process) begin(at place, escrow *person) booking {
	r.t.Helper()
	keys, err := r.Reserve(patient(r.t), true)
	if err != nil {
		r.t.Fatal(err)
	}
	begun := booking{keys: keys, place: at, guest: r, escrow: escrow.public}
	offer := market.FirstOffer{
		ListingAnchor: at.anchor.String(), TradeID: keys.TradeID, TradeKey: keys.Key.PublicKey(),
		Start: day(5), End: day(7), Amount: money.Satoshis(200_000), Participants: begun.participants(false),
	}.Event(nostr.Now())
	if err := keys.Key.SignEvent(patient(r.t), offer); err != nil {
		r.t.Fatal(err)
	}
	if begun.offer, err = market.DecodeOrder(offer); err != nil {
		r.t.Fatal(err)
	}
	if _, err := r.inbox.Send(patient(r.t), market.NewOrderMessage(offer, keys.TradeID, []string{at.anchor.PubKey})); err != nil {
		r.t.Fatal(err)
	}
	return begun
}

func day(of int) time.Time { return time.Date(2027, 4, of, 0, 0, 0, 0, time.UTC) }

// participants are the tags of an order by the trade key, with proofs.
func (b booking) participants(withEscrow bool) nostr.Tags {
	t := b.guest.t
	t.Helper()
	authorization := market.DraftTradeKeyAuthorization(market.TradeKeyTerms{
		Identity: b.guest.public, Participant: b.keys.Key.PublicKey(), Role: market.RoleBuyer,
		ListingAnchor: b.place.anchor.String(), TradeID: b.keys.TradeID,
	}, nostr.Now())
	if err := b.guest.local.SignEvent(patient(t), authorization); err != nil {
		t.Fatal(err)
	}
	parties := market.TradeParties{Seller: b.place.anchor.PubKey, Buyer: b.keys.Key.PublicKey(), BuyerIdentity: b.guest.public}
	if withEscrow {
		parties.Escrow = b.escrow
	}
	planned := parties.Participants()
	planned[1].Authorization = market.EncodeEmbeddedEvent(authorization)
	tags, err := market.PlanParticipants(planned, func(recipient, plaintext string) (string, error) {
		return b.keys.Key.NIP44Encrypt(patient(t), recipient, plaintext)
	})
	if err != nil {
		t.Fatal(err)
	}
	return tags
}

// commitment is the paid order.
func (b booking) commitment() *nostr.Event {
	return market.Commit{
		Negotiated: b.offer, TradeKey: b.keys.Key.PublicKey(), Participants: b.participants(true),
		Proof: market.OrderProof{
			Listing: b.place.listing, Payment: &market.PaymentProof{Method: market.PaymentEVM, TxHash: "0x01"},
			Escrow: &market.EscrowContext{
				Service: market.EncodeEmbeddedEvent(b.place.service), SellerMethod: market.EncodeEmbeddedEvent(b.place.method),
			},
		},
	}.Event(nostr.Now())
}

// commit publishes the paid order and its transition.
func (b booking) commit() Published {
	b.guest.t.Helper()
	published, err := b.guest.Publish(patient(b.guest.t), Publication{
		Order: b.commitment(), Key: b.keys.Key, Role: market.RoleBuyer,
		Type: market.TransitionCommit, From: market.StageNegotiate,
	})
	if err != nil {
		b.guest.t.Fatal(err)
	}
	return published
}

func (r *process) trips() List {
	r.t.Helper()
	list, err := r.Trips(patient(r.t), patience)
	if err != nil {
		r.t.Fatal(err)
	}
	return list
}

func (r *process) hostings() List {
	r.t.Helper()
	list, err := r.Hostings(patient(r.t), patience)
	if err != nil {
		r.t.Fatal(err)
	}
	return list
}

// awaitStage waits until a list shows the one trade at a stage.
func (r *process) awaitStage(tradeID string, stage market.Stage, list func() List) Item {
	r.t.Helper()
	var found Item
	eventually(r.t, fmt.Sprintf("the trade is at %s", stage), func() bool {
		items := list().Items
		at := slices.IndexFunc(items, func(item Item) bool { return item.TradeID() == tradeID && item.Group.Stage() == stage })
		if at >= 0 {
			found = items[at]
		}
		return at >= 0
	})
	return found
}

// strangerOrder is an order under somebody else's trade id.
func (p *person) strangerOrder(b booking, stage market.Stage, tags ...nostr.Tag) *nostr.Event {
	content := market.OrderContent{Stage: stage, Quantity: 1}
	return p.publish(p.local, &nostr.Event{
		PubKey: p.public, Kind: market.KindOrder, CreatedAt: nostr.Now() + 5, Content: content.Encode(),
		Tags: append(nostr.Tags{{"a", b.place.anchor.String()}, {"d", b.tradeID()}}, tags...),
	})
}
