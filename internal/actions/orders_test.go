package actions

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nbd-wtf/go-nostr"
	"github.com/rs/zerolog"

	"hostr-daemon/internal/derivation"
	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/market"
	"hostr-daemon/internal/relay"
	"hostr-daemon/internal/request"
	"hostr-daemon/internal/sandbox"
	"hostr-daemon/internal/signer"
)

// cabin is a market with a host who lets a cabin, and a guest, both signed in.
type cabin struct {
	t           testing.TB
	market      *sandbox.Market
	product     *Product
	relays      *relay.Client
	host, guest string
	hostKey     string
	guestKeys   *derivation.Keys
	listing     nostr.Event
	anchor      string
}

func newCabin(t testing.TB) *cabin {
	t.Helper()
	c := &cabin{t: t, market: startMarket(t, sandbox.Options{Hosts: 1, Guests: 1})}
	c.product = onMarket(t, c.market)
	c.hostKey = c.market.Hosts[0].PrivateKey
	c.host, c.guest = signIn(t, c.product, c.hostKey), signIn(t, c.product, c.market.Guests[0].PrivateKey)
	key, err := derivation.ParsePrivateKey(c.market.Guests[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	seed, err := derivation.SeedFromPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	if c.guestKeys, err = derivation.NewKeys(seed); err != nil {
		t.Fatal(err)
	}
	c.newRelays(c.hostKey)
	c.anchor = "30402:" + c.host + ":cabin"
	c.listing = c.publish(c.hostKey, nostr.Event{Kind: market.KindListing, CreatedAt: nostr.Now(), Tags: nostr.Tags{
		{"d", "cabin"}, {"title", "Lake cabin"}, {"autoAccept", "true"}, {"negotiable", "true"}, {"price", "0.00100000", "BTC", "day"},
	}})
	return c
}

// publish signs an event and publishes it, so that subscribers see it.
func (c *cabin) publish(key string, event nostr.Event) nostr.Event {
	c.t.Helper()
	if err := event.Sign(key); err != nil {
		c.t.Fatal(err)
	}
	if _, err := c.relays.Publish(patient(c.t), event, relay.PublishOptions{}); err != nil {
		c.t.Fatal(err)
	}
	return event
}

// newRelays is what the people use beside the daemon.
func (c *cabin) newRelays(key string) {
	c.t.Helper()
	local, err := signer.NewLocal(key)
	if err != nil {
		c.t.Fatal(err)
	}
	verifier := relay.NewVerifier(nil, zerolog.Nop())
	if c.relays, err = relay.NewClient(relay.Config{HostrRelay: c.market.RelayURL, Account: local, Verifier: verifier}); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() {
		c.relays.Close()
		verifier.Close()
	})
}

func (c *cabin) messages() int {
	c.t.Helper()
	wraps, err := c.market.Relay.Query(patient(c.t), nostr.Filter{Kinds: []int{market.KindGiftWrap}})
	if err != nil {
		c.t.Fatal(err)
	}
	return len(wraps)
}

// public is how many public orders, transitions and reviews there are.
func (c *cabin) public() int {
	c.t.Helper()
	events, err := c.market.Relay.Query(patient(c.t), nostr.Filter{Kinds: []int{market.KindOrder, market.KindOrderTransition, market.KindReview}})
	if err != nil {
		c.t.Fatal(err)
	}
	return len(events)
}

// wantKeys checks the keys of an action's result, in order, and returns the result.
func (c *cabin) wantKeys(id, pubkey, input string, keys ...string) map[string]json.RawMessage {
	c.t.Helper()
	text, outcome := callAs(c.t, c.product, id, pubkey, input)
	if diff := cmp.Diff(keys, keysOf(c.t, text)); diff != "" {
		c.t.Errorf("the keys of %s: %s", id, diff)
	}
	result := read[map[string]json.RawMessage](c.t, text)
	if dryRun, shown := result["dryRun"]; shown && string(dryRun) != fmt.Sprint(outcome.DryRun) {
		c.t.Errorf("%s: dryRun is %s in the result and %t around it", id, dryRun, outcome.DryRun)
	}
	return result
}

func (c *cabin) wantCode(id, pubkey, input string, code fault.Code) *fault.Error {
	c.t.Helper()
	_, failure := call(c.t, c.product, id, pubkey, input)
	if failure == nil || failure.Code != code {
		c.t.Fatalf("%s fails with %v, want %s", id, failure, code)
	}
	return failure
}

// offer sends the guest's first offer and returns the trade id and the event.
func (c *cabin) offer() (string, nostr.Event) {
	c.t.Helper()
	input := `{"listingAnchor":"` + c.anchor + `","start":"2027-04-05T00:00:00Z","end":"2027-04-07T00:00:00Z","dryRun":false}`
	result := c.wantKeys("hostr.orders.negotiateOffer", c.guest, input, "dryRun", "delivery", "event", "tradeId", "tradeContext", "relayResponses")
	return read[string](c.t, string(result["tradeId"])), read[nostr.Event](c.t, string(result["event"]))
}

// arrives waits until the account can answer in the trade.
func (c *cabin) arrives(pubkey, tradeID string) {
	c.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; {
		text, _ := callAs(c.t, c.product, "hostr.orders.negotiateAccept", pubkey, `{"tradeId":"`+tradeID+`"}`)
		if _, missing := read[map[string]any](c.t, text)["reason"]; !missing {
			return
		}
		if time.Now().After(deadline) {
			c.t.Fatal("the offer never came")
		}
	}
}

func TestOfferActions(t *testing.T) {
	t.Parallel()
	c := newCabin(t)
	first := `{"listingAnchor":"` + c.anchor + `","start":"2027-04-05","end":"2027-04-07"`
	const offer, accept = "hostr.orders.negotiateOffer", "hostr.orders.negotiateAccept"
	c.wantKeys(offer, c.guest, first+`}`, "dryRun", "delivery", "event", "tradeId", "tradeContext", "listing")
	preview := c.wantKeys(offer, c.guest, first+`,"amount":{"value":"0.0015","currency":"BTC"}}`,
		"dryRun", "delivery", "event", "tradeId", "tradeContext", "listing", "amount")
	if got := string(preview["amount"]); got != `{"value":"0.00150000","smallestUnitValue":"150000","denomination":"BTC","decimals":8}` {
		t.Errorf("amount %s", got)
	}
	if diff := cmp.Diff([]string{"id", "pubkey", "created_at", "kind", "tags", "content", "sig"}, keysOf(t, string(preview["event"]))); diff != "" {
		t.Errorf("the keys of the event: %s", diff)
	}
	if diff := cmp.Diff([]string{"tradeId", "listingAnchor", "sellerPubkey", "order"}, keysOf(t, string(preview["tradeContext"]))); diff != "" {
		t.Errorf("the keys of the context: %s", diff)
	}
	if c.messages() != 0 {
		t.Errorf("previews sent %d messages", c.messages())
	}
	tradeID, _ := c.offer()
	if string(preview["tradeId"]) != `"`+tradeID+`"` || c.messages() != 2 {
		t.Errorf("trade %s, previewed %s, %d messages", tradeID, preview["tradeId"], c.messages())
	}

	inTrade := `{"tradeId":"` + tradeID + `"`
	missing := c.wantKeys(offer, c.guest, inTrade+`}`, "dryRun", "willPublish", "tradeId", "reason", "message")
	if string(missing["reason"]) != `"amount_required"` || string(missing["willPublish"]) != "false" {
		t.Errorf("the result is %s", missing)
	}
	c.wantCode(offer, c.guest, inTrade+`,"dryRun":false}`, fault.AmountRequired)
	c.wantKeys(accept, c.guest, `{"tradeId":"unknown","timeoutSeconds":1}`, "dryRun", "willPublish", "tradeId", "reason", "message")
	c.wantCode(accept, c.guest, `{"tradeId":"unknown","timeoutSeconds":1,"dryRun":false}`, fault.NotFound)

	c.arrives(c.host, tradeID)
	answer := c.wantKeys(accept, c.host, inTrade+`}`, "dryRun", "event", "tradeId", "recipientPubkeys")
	if string(answer["recipientPubkeys"]) != `["`+c.guest+`"]` {
		t.Errorf("recipients %s", answer["recipientPubkeys"])
	}
	accepted := c.wantKeys(accept, c.host, inTrade+`,"dryRun":false}`, "dryRun", "event", "tradeId", "relayResponses")
	if event := read[nostr.Event](t, string(accepted["event"])); event.PubKey != c.host {
		t.Errorf("the answer is by %s", event.PubKey)
	}
	c.wantKeys(offer, c.host, inTrade+`,"amount":{"value":"0.0019","currency":"BTC"},"dryRun":false}`, "dryRun", "event", "tradeId", "relayResponses")

	const cancel = "hostr.orders.cancel"
	private := c.wantKeys(cancel, c.guest, inTrade+`}`, "mode", "dryRun", "event", "tradeId", "recipientPubkeys")
	if string(private["mode"]) != `"negotiation"` {
		t.Errorf("mode %s", private["mode"])
	}
	c.wantKeys(cancel, c.guest, inTrade+`,"dryRun":false}`, "mode", "dryRun", "event", "tradeId", "relayResponses")
	c.wantCode(cancel, c.guest, `{"tradeId":"unknown","timeoutSeconds":1}`, fault.OrderNotFound)
	if c.public() != 0 {
		t.Errorf("%d events of the negotiation are public", c.public())
	}
}

// commit puts the guest's paid order on the relay.
func (c *cabin) commit(tradeID string, offer nostr.Event) {
	c.t.Helper()
	index := uint32(1)
	for id := ""; id != tradeID; index++ {
		var err error
		if id, err = c.guestKeys.TradeID(index); err != nil || index > 64 {
			c.t.Fatalf("no index for trade %s: %v", tradeID, err)
		}
	}
	key, err := c.guestKeys.Trade(index - 1)
	if err != nil {
		c.t.Fatal(err)
	}
	negotiated, err := market.DecodeOrder(&offer)
	if err != nil {
		c.t.Fatal(err)
	}
	escrow := nostr.Event{
		Kind: market.KindEscrowService, CreatedAt: nostr.Now(), Tags: nostr.Tags{{"d", "s"}},
		Content: `{"pubkey":"` + c.market.Escrow.PublicKey + `","type":"EVM"}`,
	}
	method := nostr.Event{Kind: market.KindSellerConfiguration, CreatedAt: nostr.Now(), Tags: nostr.Tags{{"p", c.market.Escrow.PublicKey}}}
	if err := errors.Join(escrow.Sign(c.market.Escrow.PrivateKey), method.Sign(c.hostKey)); err != nil {
		c.t.Fatal(err)
	}
	event := market.Commit{
		Negotiated: negotiated, TradeKey: key.PublicKey(), Participants: offer.Tags[2 : len(offer.Tags)-1],
		Proof: market.OrderProof{
			Listing: &c.listing, Payment: &market.PaymentProof{Method: market.PaymentEVM, TxHash: "0x01"},
			Escrow: &market.EscrowContext{Service: market.EncodeEmbeddedEvent(&escrow), SellerMethod: market.EncodeEmbeddedEvent(&method)},
		},
	}.Event(nostr.Now())
	c.publish(key.Hex(), *event)
}

// lookupKeys are the keys of a look-up of a committed trade.
var lookupKeys = []string{"tradeId", "found", "committed", "count", "group", "listing", "committedOrder", "orders"}

func TestBookingActions(t *testing.T) {
	t.Parallel()
	c := newCabin(t)
	const review, trips, bookings, cancel = "hostr.orders.review", "hostr.trips.list", "hostr.bookings.list", "hostr.orders.cancel"
	tradeID, offer := c.offer()
	inTrade := `{"tradeId":"` + tradeID + `"`
	stars := inTrade + `,"rating":4,"content":" Quiet place. ","timeoutSeconds":1`

	pending := c.wantKeys(trips, c.guest, inTrade+`,"waitSeconds":0}`, "mode", "tradeId", "found", "committed", "count", "orders")
	if string(pending["found"]) != "false" || string(pending["mode"]) != `"trips"` {
		t.Errorf("the look-up is %s", pending)
	}
	c.wantKeys(review, c.guest, stars+`}`, "dryRun", "willPublish", "tradeId", "reason", "message", "orderLookup")
	if details := encoded(t, c.wantCode(review, c.guest, stars+`,"dryRun":false}`, fault.OrderNotReviewable).Details); len(keysOf(t, details)) != 2 {
		t.Errorf("details %s", details)
	}

	c.commit(tradeID, offer)
	found := c.wantKeys(bookings, c.host, inTrade+`,"waitSeconds":60}`, append([]string{"mode"}, lookupKeys...)...)
	if string(found["found"]) != "true" {
		t.Errorf("the look-up is %s", found)
	}
	// The other process has published it, so the guest's list may be a moment behind.
	c.wantKeys(trips, c.guest, inTrade+`,"waitSeconds":60}`, append([]string{"mode"}, lookupKeys...)...)
	c.wantKeys(review, c.guest, stars+`}`, "dryRun", "willPublish", "tradeId", "reason", "message", "event", "orderLookup")
	c.wantList(trips, c.guest, "trips", "userSubscriptions.myResolvedTripsList")
	c.wantList(bookings, c.host, "bookings", "userSubscriptions.myResolvedHostingsList")
	c.publish(c.hostKey, *market.BlankOrder{
		Author: c.host, ListingAnchor: c.anchor, TradeID: tradeID, Participants: nostr.Tags(offer.Tags[2:4]),
	}.Confirm(nostr.Now()))
	preview := c.wantKeys(review, c.guest, stars+`}`,
		"dryRun", "willPublish", "tradeId", "rating", "content", "listingAnchor", "orderAnchor", "event", "orderLookup")
	if string(preview["content"]) != `"Quiet place."` || string(preview["rating"]) != "4" || string(preview["orderAnchor"]) != `"32122:`+offer.PubKey+`:`+tradeID+`"` {
		t.Errorf("the preview is %s", preview)
	}
	c.wantKeys(review, c.guest, stars+`,"dryRun":false}`,
		"dryRun", "tradeId", "rating", "content", "listingAnchor", "orderAnchor", "event", "relayResponses")

	ending := c.wantKeys(cancel, c.host, inTrade+`}`, "mode", "dryRun", "willPublish", "tradeId", "orderGroup")
	if string(ending["mode"]) != `"committed"` || string(ending["willPublish"]) != "true" {
		t.Errorf("the preview is %s", ending)
	}
	c.wantKeys(cancel, c.host, inTrade+`,"dryRun":false}`, "mode", "dryRun", "event", "tradeId")
	if details := encoded(t, c.wantCode(cancel, c.host, inTrade+`}`, fault.AlreadyCancelled).Details); cmp.Diff([]string{"tradeId", "orderGroup"}, keysOf(t, details)) != "" {
		t.Errorf("details %s", details)
	}
}

// wantList checks a list of the one trade.
func (c *cabin) wantList(id, pubkey, mode, source string) {
	c.t.Helper()
	list := c.wantKeys(id, pubkey, `{"waitSeconds":60}`, "mode", "source", "count", "invalidCount", "results")
	if string(list["mode"]) != `"`+mode+`"` || string(list["source"]) != `"`+source+`"` || string(list["count"]) != "1" || string(list["invalidCount"]) != "0" {
		c.t.Fatalf("the list is %s", list)
	}
	item := string(read[[]json.RawMessage](c.t, string(list["results"]))[0])
	if diff := cmp.Diff([]string{"found", "mode", "tradeId", "valid", "group", "listing", "participants"}, keysOf(c.t, item)); diff != "" {
		c.t.Errorf("the keys of the item: %s", diff)
	}
	participants := string(read[map[string]json.RawMessage](c.t, item)["participants"])
	wantKeys := []string{"rawGroupId", "resolvedGroupId", "rawParticipantSet", "resolvedParticipantSet", "hasResolvedParticipants", "roles", "profiles"}
	if diff := cmp.Diff(wantKeys, keysOf(c.t, participants)); diff != "" {
		c.t.Errorf("the keys of the participants: %s", diff)
	}
	roles := string(read[map[string]json.RawMessage](c.t, participants)["roles"])
	if want := `{"seller":"` + c.host + `","buyer":"` + c.guest + `","escrow":"` + c.market.Escrow.PublicKey + `"}`; roles != want {
		c.t.Errorf("roles %s, want %s", roles, want)
	}
}

// A list may wait longer than other actions.
func TestListLimit(t *testing.T) {
	t.Parallel()
	for input, want := range map[string]time.Duration{`{}`: defaultLimit, `{"waitSeconds":300}`: 6 * time.Minute, `[`: defaultLimit} {
		if got := table()["hostr.trips.list"].limit(request.Action{Input: json.RawMessage(input)}); got != want {
			t.Errorf("%s may take %s, want %s", input, got, want)
		}
	}
}
