package market_test

import (
	"encoding/json"
	"os"
	"sync"
	"testing"

	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/market"
	"hostr-daemon/internal/money"
)

// The people of a test trade; the keys are nobody's.
const (
	hostKey     = "1111111111111111111111111111111111111111111111111111111111111111"
	guestKey    = "2222222222222222222222222222222222222222222222222222222222222222"
	tradeKey    = "3333333333333333333333333333333333333333333333333333333333333333"
	escrowKey   = "4444444444444444444444444444444444444444444444444444444444444444"
	strangerKey = "5555555555555555555555555555555555555555555555555555555555555555"

	testTradeID = "0be0b82d05f9b8d6324e9950b8beb1492b7f8fdaa127ac0459fc4d3d56cd44ca"
)

func publicKey(key string) string {
	pubkey, err := nostr.GetPublicKey(key)
	if err != nil {
		panic(err)
	}
	return pubkey
}

var host, guest, trader, escrow, stranger = publicKey(hostKey), publicKey(guestKey), publicKey(tradeKey),
	publicKey(escrowKey), publicKey(strangerKey)

func signed(key string, event *nostr.Event) *nostr.Event {
	if err := event.Sign(key); err != nil {
		panic(err)
	}
	return event
}

// bookable are the signed events that trades of these tests stand on.
type bookable struct {
	listing, manual     *nostr.Event // manual does not accept automatically
	method, service     *nostr.Event
	foreignMethod       *nostr.Event // by the guest, for the escrow
	methodWithoutEscrow *nostr.Event
}

var events = sync.OnceValue(func() bookable {
	listing := func(autoAccept string) *nostr.Event {
		return signed(hostKey, &nostr.Event{Kind: market.KindListing, CreatedAt: 100, Tags: nostr.Tags{
			{"d", "cabin"}, {"title", "Cabin"}, {"autoAccept", autoAccept}, {"price", "0.00100000", "BTC", "day"},
		}})
	}
	method := func(key string, trusted ...string) *nostr.Event {
		event := &nostr.Event{Kind: market.KindSellerConfiguration, CreatedAt: 100}
		for _, pubkey := range trusted {
			event.Tags = append(event.Tags, nostr.Tag{"p", pubkey})
		}
		return signed(key, event)
	}
	return bookable{
		listing: listing("true"), manual: listing("false"),
		method: method(hostKey, stranger, escrow), foreignMethod: method(tradeKey, escrow), methodWithoutEscrow: method(hostKey, stranger),
		service: signed(escrowKey, &nostr.Event{Kind: market.KindEscrowService, CreatedAt: 100, Tags: nostr.Tags{{"d", "s"}},
			Content: `{"pubkey":"` + escrow + `","type":"EVM"}`}),
	}
})

func listingOf(t testing.TB, event *nostr.Event) market.Listing {
	t.Helper()
	listing, err := market.DecodeListing(event)
	if err != nil {
		t.Fatal(err)
	}
	return listing
}

func orderOf(t testing.TB, event *nostr.Event) market.Order {
	t.Helper()
	order, err := market.DecodeOrder(event)
	if err != nil {
		t.Fatalf("%s: %v", event.Content, err)
	}
	return order
}

func listingAnchor() string { return "30402:" + host + ":cabin" }

// parties are p tags in the order seller, buyer, escrow.
func parties(pubkeys ...string) nostr.Tags {
	var tags nostr.Tags
	for i, pubkey := range pubkeys {
		tags = append(tags, nostr.Tag{"p", pubkey, "", []string{"seller", "buyer", "escrow"}[i]})
	}
	return tags
}

func allParties() nostr.Tags { return parties(host, trader, escrow) }

// orderTerms is an order to be made; what is empty has an ordinary value.
type orderTerms struct {
	author  string
	stage   market.Stage
	at      nostr.Timestamp
	anchor  string
	tradeID string
	tags    nostr.Tags
	proof   *market.OrderProof
	amount  *money.Amount
	undated bool
}

// order makes an order with a right id, unsigned: groups take events that relays
// have checked.
func (o orderTerms) order(t testing.TB) market.Order {
	t.Helper()
	content := market.OrderContent{Stage: o.stage, Quantity: 1, Proof: o.proof, Amount: o.amount}
	if !o.undated {
		content.Start, content.End = pointer(date("2027-04-05")), pointer(date("2027-04-07"))
	}
	if o.anchor == "" {
		o.anchor = listingAnchor()
	}
	if o.tradeID == "" {
		o.tradeID = testTradeID
	}
	tags := nostr.Tags{{"a", o.anchor}}
	if o.tradeID != "none" {
		tags = append(tags, nostr.Tag{"d", o.tradeID})
	}
	event := &nostr.Event{PubKey: o.author, CreatedAt: max(o.at, 1000), Kind: market.KindOrder, Tags: append(tags, o.tags...), Content: content.Encode()}
	event.ID = event.GetID()
	return orderOf(t, event)
}

// escrowProof is the proof of an honest booking.
func escrowProof() *market.OrderProof {
	return &market.OrderProof{
		Listing: events().listing,
		Payment: &market.PaymentProof{Method: market.PaymentEVM, TxHash: "0x01"},
		Escrow: &market.EscrowContext{
			Service:      market.EncodeEmbeddedEvent(events().service),
			SellerMethod: market.EncodeEmbeddedEvent(events().method),
		},
	}
}

func groupOf(t testing.TB, orders ...market.Order) market.OrderGroup {
	t.Helper()
	group, ok := market.NewOrderGroup(orders)
	if !ok {
		t.Fatal("no order can stand in a group")
	}
	return group
}

// groupVectors are the parts of testdata/orders-vectors.json about groups.
type groupVectors struct {
	Parties struct {
		Buyer struct {
			Pubkey string `json:"publicKey"`
		} `json:"buyer"`
	} `json:"parties"`
	GroupID []struct {
		Name     string `json:"name"`
		Preimage string `json:"preimage"`
		SHA256   string `json:"sha256"`
	} `json:"groupId"`
	ExpectedAmount []struct {
		ListPrice  json.RawMessage `json:"listPrice"`
		Amount     json.RawMessage `json:"amount"`
		Authorized bool            `json:"authorized"`
		Negotiable bool            `json:"negotiable"`
		Expected   json.RawMessage `json:"expected"`
		Off        bool            `json:"off"`
		Below      bool            `json:"below"`
		OK         bool            `json:"ok"`
		Allowed    bool            `json:"allowed"`
		Failure    string          `json:"failure"`
	} `json:"expectedAmount"`
	PublicTrade struct {
		Listing            json.RawMessage `json:"listing"`
		CommitOrder        json.RawMessage `json:"commitOrder"`
		EscrowConfirmOrder json.RawMessage `json:"escrowConfirmOrder"`
		SellerCancelOrder  json.RawMessage `json:"sellerCancelOrder"`
		Groups             []struct {
			Orders                 []string `json:"orders"`
			GroupID                string   `json:"groupId"`
			SellerPubkey           string   `json:"sellerPubkey"`
			BuyerPubkey            *string  `json:"buyerPubkey"`
			EscrowPubkey           string   `json:"escrowPubkey"`
			Stage                  string   `json:"stage"`
			Cancelled              bool     `json:"cancelled"`
			Active                 bool     `json:"active"`
			Confirmed              bool     `json:"confirmed"`
			CommitConfirmation     bool     `json:"commitConfirmation"`
			Start                  string   `json:"start"`
			End                    string   `json:"end"`
			Valid                  bool     `json:"valid"`
			ValidIfAutoAcceptFalse bool     `json:"validIfAutoAcceptFalse"`
		} `json:"groups"`
	} `json:"publicTrade"`
}

func readGroupVectors(t testing.TB) groupVectors {
	t.Helper()
	data, err := os.ReadFile("testdata/orders-vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var read groupVectors
	if err := json.Unmarshal(data, &read); err != nil {
		t.Fatal(err)
	}
	if len(read.GroupID) == 0 || len(read.ExpectedAmount) == 0 || len(read.PublicTrade.Groups) == 0 {
		t.Fatal("vectors are missing")
	}
	return read
}

func (v groupVectors) event(t testing.TB, raw json.RawMessage) *nostr.Event {
	t.Helper()
	event, err := market.DecodeEmbeddedEvent(string(raw))
	if err != nil {
		t.Fatal(err)
	}
	return event
}

func (v groupVectors) orders(t testing.TB, names ...string) []market.Order {
	t.Helper()
	known := map[string]json.RawMessage{
		"commitOrder":        v.PublicTrade.CommitOrder,
		"escrowConfirmOrder": v.PublicTrade.EscrowConfirmOrder,
		"sellerCancelOrder":  v.PublicTrade.SellerCancelOrder,
	}
	var orders []market.Order
	for _, name := range names {
		orders = append(orders, orderOf(t, v.event(t, known[name])))
	}
	return orders
}
