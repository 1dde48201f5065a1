package threads_test

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"slices"
	"sync"
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
	"hostr-daemon/internal/threads"
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
	for deadline := time.Now().Add(patience); !reached(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it never came about that %s", what)
		}
	}
}

// hurriedClock runs forty times faster than the machine's, for relay clients that
// wait in vain.
type hurriedClock struct {
	relay.SystemClock
	started time.Time
}

const hurry = 40

func (c hurriedClock) Now() time.Time { return c.started.Add(hurry * time.Since(c.started)) }

func (c hurriedClock) AfterFunc(d time.Duration, f func()) func() bool {
	return c.SystemClock.AfterFunc(d/hurry, f)
}

// indexPlace is where the highest trade account index rests.
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

type seedPlace struct{ keys *derivation.Keys }

func (p seedPlace) Keys(context.Context) (*derivation.Keys, error) { return p.keys, nil }

func (p seedPlace) Stored(context.Context) (bool, error) { return true, nil }

// person is an account with everything the service stands on, as in a daemon.
type person struct {
	*threads.Service
	t      testing.TB
	local  *signer.Local
	public string
	client *relay.Client
	inbox  *inbox.Service
	trades *trades.Service
}

func newPerson(t testing.TB, at *sandbox.Market) *person {
	t.Helper()
	return newPersonBy(t, at, relay.SystemClock{})
}

func newPersonBy(t testing.TB, at *sandbox.Market, clock relay.Clock) *person {
	t.Helper()
	raw := make([]byte, 32)
	_, _ = rand.Read(raw) // It never fails.
	key := hex.EncodeToString(raw)
	local, err := signer.NewLocal(key)
	if err != nil {
		t.Fatal(err)
	}
	verifier := relay.NewVerifier(nil, zerolog.Nop())
	client, err := relay.NewClient(relay.Config{HostrRelay: at.RelayURL, Account: local, Verifier: verifier, Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	p := &person{t: t, local: local, public: local.PublicKey(), client: client}
	p.inbox = inbox.New(inbox.Config{
		Relays: client, Account: local, Logger: zerolog.Nop(),
		Controls: func(pubkey, tradeID string) bool { return p.trades.Controls(pubkey, tradeID) },
	})
	p.trades = trades.New(trades.Config{
		Relays: client, Account: local, Inbox: p.inbox, Keys: keysOf(t, key), Indexes: &indexPlace{highest: -1}, Logger: zerolog.Nop(),
	})
	p.Service = threads.New(threads.Config{
		Me: p.public, Inbox: p.inbox, Trades: publicTrades{p.trades}, Relays: client, Send: p.send,
		Profile: func(context.Context, string) (*market.Profile, error) { return nil, nil },
	})
	t.Cleanup(func() {
		p.trades.Close()
		p.inbox.Close()
		client.Close()
		verifier.Close()
	})
	return p
}

func keysOf(t testing.TB, key string) seedPlace {
	t.Helper()
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
	return seedPlace{keys}
}

func (p *person) send(ctx context.Context, draft market.MessageDraft) (market.Rumor, error) {
	sent, err := p.inbox.Send(ctx, draft)
	return sent.Rumor, err
}

// start returns a person whose history is read.
func start(t testing.TB, at *sandbox.Market) *person {
	t.Helper()
	p := newPerson(t, at)
	p.await()
	return p
}

func (p *person) await() {
	p.t.Helper()
	if err := p.Await(patient(p.t), patience); err != nil {
		p.t.Fatal(err)
	}
	if !p.inbox.Live() {
		p.t.Fatal("the history never came")
	}
}

// publicTrades is the trades service as the threads service wants it.
type publicTrades struct{ *trades.Service }

func (s publicTrades) Trips(ctx context.Context, limit time.Duration) ([]market.TradeItem, error) {
	list, err := s.Service.Trips(ctx, limit)
	return tradeItems(list), err
}

func (s publicTrades) Bookings(ctx context.Context, limit time.Duration) ([]market.TradeItem, error) {
	list, err := s.Service.Hostings(ctx, limit)
	return tradeItems(list), err
}

func tradeItems(list trades.List) []market.TradeItem {
	var items []market.TradeItem
	for _, item := range list.Items {
		items = append(items, market.TradeItem{Group: item.Group, Valid: item.Verification.Valid, Participants: item.Participants})
	}
	return items
}

func (s publicTrades) Resolve(ctx context.Context, tradeID string, limit time.Duration) (threads.TradePeople, error) {
	resolved, err := s.ResolveTrade(ctx, tradeID, limit)
	return threads.TradePeople{
		Seller: resolved.Seller, Buyer: resolved.Buyer, Escrow: resolved.Escrow, Participants: resolved.Participants,
	}, err
}

// write sends a text to exactly these others.
func (p *person) write(text, tag string, others ...string) threads.Sent {
	p.t.Helper()
	to, err := p.Address(patient(p.t), threads.Addressee{Query: threads.Query{Conversation: tag, Pubkeys: others}})
	if err != nil {
		p.t.Fatal(err)
	}
	return p.say(to, text)
}

func (p *person) say(to threads.Addressed, text string) threads.Sent {
	p.t.Helper()
	sent, err := p.Send(patient(p.t), to.Thread, text, patience)
	if err != nil {
		p.t.Fatal(err)
	}
	return sent
}

// find returns the thread that is meant, nil when there is none.
func (p *person) find(query threads.Query) *market.Thread {
	p.t.Helper()
	found, err := p.Find(patient(p.t), query, patience)
	if err != nil {
		p.t.Fatal(err)
	}
	return found
}

// awaitText waits until a thread ends with the text.
func (p *person) awaitText(anchor, text string) *market.Thread {
	p.t.Helper()
	var thread *market.Thread
	eventually(p.t, fmt.Sprintf("%q arrives", text), func() bool {
		if thread = p.find(threads.Query{Anchor: anchor}); thread == nil {
			return false
		}
		texts := thread.TextMessages()
		return len(texts) > 0 && texts[len(texts)-1].Event.Content == text
	})
	return thread
}

// anchors returns the ids of all threads.
func (p *person) anchors() []string {
	var anchors []string
	p.inbox.Read(func(all *market.Threads) {
		for _, thread := range all.All() {
			anchors = append(anchors, thread.Anchor)
		}
	})
	return anchors
}

// publish signs an event and puts it on the relay.
func (p *person) publish(key trades.Signer, event *nostr.Event) *nostr.Event {
	p.t.Helper()
	signed := *event
	if err := key.SignEvent(patient(p.t), &signed); err != nil {
		p.t.Fatal(err)
	}
	if _, err := p.client.Publish(patient(p.t), signed, relay.PublishOptions{}); err != nil {
		p.t.Fatal(err)
	}
	return &signed
}

// stay is a listing of the host with what it takes to book it.
type stay struct {
	listing, method, service *nostr.Event
	anchor                   market.Anchor
}

func (p *person) offer(escrow *person) stay {
	p.t.Helper()
	listing := p.publish(p.local, &nostr.Event{PubKey: p.public, Kind: market.KindListing, CreatedAt: nostr.Now(), Tags: nostr.Tags{
		{"d", "cabin"}, {"title", "Cabin"}, {"autoAccept", "true"}, {"price", "0.00100000", "BTC", "day"}, {"t", market.Category},
	}})
	method := p.publish(p.local, &nostr.Event{PubKey: p.public, Kind: market.KindSellerConfiguration, CreatedAt: nostr.Now(), Tags: nostr.Tags{
		{"p", escrow.public},
	}})
	service := escrow.publish(escrow.local, &nostr.Event{
		PubKey: escrow.public, Kind: market.KindEscrowService, CreatedAt: nostr.Now(), Tags: nostr.Tags{{"d", "s"}},
		Content: `{"pubkey":"` + escrow.public + `","type":"EVM"}`,
	})
	return stay{listing, method, service, market.Anchor{Kind: market.KindListing, PubKey: p.public, Identifier: "cabin"}}
}

// booking is a trade that a guest has begun.
type booking struct {
	id     string
	key    trades.Signer
	offer  market.Order
	at     stay
	guest  *person
	escrow string
}

// begin has a guest send a first offer to the host.
func (p *person) begin(at stay, escrow *person) booking {
	p.t.Helper()
	keys, err := p.trades.Reserve(patient(p.t), true)
	if err != nil {
		p.t.Fatal(err)
	}
	begun := booking{id: keys.TradeID, key: keys.Key, at: at, guest: p, escrow: escrow.public}
	offer := market.FirstOffer{
		ListingAnchor: at.anchor.String(), TradeID: begun.id, TradeKey: begun.key.PublicKey(),
		Start: day(5), End: day(7), Amount: money.Satoshis(200000), Participants: begun.participants(false),
	}.Event(nostr.Now())
	if err := begun.key.SignEvent(patient(p.t), offer); err != nil {
		p.t.Fatal(err)
	}
	if begun.offer, err = market.DecodeOrder(offer); err != nil {
		p.t.Fatal(err)
	}
	if _, err := p.inbox.Send(patient(p.t), market.NewOrderMessage(offer, begun.id, []string{at.anchor.PubKey})); err != nil {
		p.t.Fatal(err)
	}
	return begun
}

func day(of int) time.Time { return time.Date(2027, 4, of, 0, 0, 0, 0, time.UTC) }

// participants are the tags of an order by the trade key, with proofs.
func (b booking) participants(withEscrow bool) nostr.Tags {
	t := b.guest.t
	t.Helper()
	authorization := market.DraftTradeKeyAuthorization(market.TradeKeyTerms{
		Identity: b.guest.public, Participant: b.key.PublicKey(), Role: market.RoleBuyer,
		ListingAnchor: b.at.anchor.String(), TradeID: b.id,
	}, nostr.Now())
	if err := b.guest.local.SignEvent(patient(t), authorization); err != nil {
		t.Fatal(err)
	}
	parties := market.TradeParties{Seller: b.at.anchor.PubKey, Buyer: b.key.PublicKey(), BuyerIdentity: b.guest.public}
	if withEscrow {
		parties.Escrow = b.escrow
	}
	planned := parties.Participants()
	planned[1].Authorization = market.EncodeEmbeddedEvent(authorization)
	tags, err := market.PlanParticipants(planned, func(recipient, plaintext string) (string, error) {
		return b.key.NIP44Encrypt(patient(t), recipient, plaintext)
	})
	if err != nil {
		t.Fatal(err)
	}
	return tags
}

// commit publishes the paid order.
func (b booking) commit() {
	b.guest.t.Helper()
	order := market.Commit{
		Negotiated: b.offer, TradeKey: b.key.PublicKey(), Participants: b.participants(true),
		Proof: market.OrderProof{
			Listing: b.at.listing, Payment: &market.PaymentProof{Method: market.PaymentEVM, TxHash: "0x01"},
			Escrow: &market.EscrowContext{
				Service: market.EncodeEmbeddedEvent(b.at.service), SellerMethod: market.EncodeEmbeddedEvent(b.at.method),
			},
		},
	}.Event(nostr.Now())
	b.guest.publish(b.key, order)
}

// booked is a paid trade of three people.
type booked struct {
	booking
	guest, host, escrow *person
}

func book(t testing.TB) booked {
	t.Helper()
	b := booked{guest: start(t, commonRelay), host: start(t, commonRelay), escrow: start(t, commonRelay)}
	b.booking = b.guest.begin(b.host.offer(b.escrow), b.escrow)
	b.commit()
	eventually(t, "guest and host know the trade", func() bool {
		return b.guest.knows(b.id) && b.host.knows(b.id)
	})
	return b
}

func (b booked) everybody() []string { return sorted(b.guest.public, b.host.public, b.escrow.public) }

func (p *person) knows(tradeID string) bool {
	p.t.Helper()
	updates, err := p.Updates(patient(p.t), 50, patience)
	if err != nil {
		p.t.Fatal(err)
	}
	return slices.ContainsFunc(slices.Concat(updates.Trips, updates.Bookings), func(item market.TradeItem) bool {
		return item.Group.TradeID() == tradeID
	})
}

func sorted(texts ...string) []string { return slices.Sorted(slices.Values(texts)) }
