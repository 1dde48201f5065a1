package market_test

import (
	"encoding/json"
	"testing"

	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/market"
	"hostr-daemon/internal/money"
)

func TestFirstOffer(t *testing.T) {
	t.Parallel()
	vectors := readTradeVectors(t)
	want := readOrder(t, eventOf(t, vectors.NegotiateOrder))
	offer := market.FirstOffer{
		ListingAnchor: vectors.Parties.ListingAnchor, TradeID: vectors.Parties.TradeID,
		TradeKey: vectors.Parties.TradeKey.PublicKey, Start: *want.Start, End: *want.End, Amount: money.Satoshis(200000),
		Participants: vectors.plan(t, "", 1),
	}
	checkDraft(t, offer.Event(1800000000), vectors.NegotiateOrder)
}

func TestSellerAccepts(t *testing.T) {
	t.Parallel()
	vectors := readTradeVectors(t)
	previous := readOrder(t, eventOf(t, vectors.NegotiateOrder))
	counter := sellerCounter(t, vectors, previous)
	checkDraft(t, counter.DraftAuthorization(1800000100), vectors.CommitAuthorization)
	counter.Authorization = eventOf(t, vectors.CommitAuthorization)
	checkDraft(t, counter.Event(1800000100), vectors.SellerAcceptOrder)
}

func sellerCounter(t *testing.T, vectors tradeVectors, previous market.Order) market.CounterOffer {
	t.Helper()
	participants, err := market.PlanParticipants(market.TradeParties{
		Seller: vectors.Parties.Seller.PublicKey, Buyer: previous.BuyerPubkey(),
	}.Participants(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return market.CounterOffer{
		Previous: previous, Author: vectors.Parties.Seller.PublicKey, Amount: money.Satoshis(200000), Participants: participants,
	}
}

// A seller who counters an own offer still names the buyer.
func TestSellerCountersOwnOffer(t *testing.T) {
	t.Parallel()
	vectors := readTradeVectors(t)
	counter := sellerCounter(t, vectors, readOrder(t, eventOf(t, vectors.SellerAcceptOrder)))
	order := readOrder(t, counter.Event(1800000150))
	if got := order.ParticipantOf(market.RoleBuyer); got != vectors.Parties.TradeKey.PublicKey {
		t.Errorf("the buyer is %s", got)
	}
}

func TestBuyerPubkey(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		tags    nostr.Tags
		content string
		want    string
	}{
		"marker":    {nostr.Tags{{"a", "x"}, {"p", "seller", "", "seller"}, {"p", "buyer", "", "buyer"}}, `{"stage":"negotiate","recipient":"key"}`, "buyer"},
		"recipient": {nostr.Tags{{"a", "x"}, {"p", "buyer"}}, `{"stage":"negotiate","recipient":"key"}`, "key"},
		"author":    {nostr.Tags{{"a", "x"}}, `{"stage":"negotiate"}`, "author"},
	} {
		order := readOrder(t, &nostr.Event{PubKey: "author", Kind: market.KindOrder, Tags: test.tags, Content: test.content})
		if got := order.BuyerPubkey(); got != test.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// A buyer who accepts the seller's offer keeps the seller's word, as long as it
// is for the same terms (spec 50 §10.2, §22 no. 9).
func TestBuyerCarriesTheAuthorization(t *testing.T) {
	t.Parallel()
	vectors := readTradeVectors(t)
	offer := readOrder(t, eventOf(t, vectors.NegotiateOrder))
	accepted := readOrder(t, eventOf(t, vectors.SellerAcceptOrder))
	foreign := accepted
	foreign.CommitAuthorization = signedBy(t, accepted.CommitAuthorization, vectors.Parties.Buyer.PrivateKey)
	for name, test := range map[string]struct {
		sats   int64
		thread []market.Order
		kept   bool
	}{
		"same terms":              {200000, []market.Order{offer, accepted}, true},
		"a later offer without":   {200000, []market.Order{offer, accepted, offer}, true},
		"another amount":          {190000, []market.Order{offer, accepted}, false},
		"no authorization":        {200000, []market.Order{offer}, false},
		"nothing before":          {200000, nil, false},
		"the latest is no seller": {200000, []market.Order{accepted, foreign}, false},
	} {
		counter := market.CounterOffer{
			Previous: accepted, Author: vectors.Parties.TradeKey.PublicKey, Amount: money.Satoshis(test.sats),
			Participants: vectors.plan(t, "", 1),
		}
		counter.Authorization = counter.CarriedAuthorization(test.thread)
		order := readOrder(t, counter.Event(1800000150))
		if err := order.CheckCommitAuthorization(); (err == nil) != test.kept || (counter.Authorization != nil) != test.kept {
			t.Errorf("%s: %v", name, err)
		}
		if order.Event.PubKey != vectors.Parties.TradeKey.PublicKey || len(order.Proofs) != 2 || *order.PublishedAt != 1800000150 {
			t.Errorf("%s: %+v", name, order.Event)
		}
	}
}

func TestCancelNegotiation(t *testing.T) {
	t.Parallel()
	vectors := readTradeVectors(t)
	offer := readOrder(t, eventOf(t, vectors.NegotiateOrder))
	checkDraft(t, market.CancelNegotiation(offer, vectors.Parties.TradeKey.PublicKey, 1800000050), vectors.PrivateCancellation)

	bySeller := readOrder(t, market.CancelNegotiation(offer, vectors.Parties.Seller.PublicKey, 1800000050))
	if bySeller.Stage != market.StageCancel || bySeller.Event.PubKey != vectors.Parties.Seller.PublicKey {
		t.Errorf("%+v", bySeller.Event)
	}
	for _, proof := range bySeller.Proofs {
		if _, err := bySeller.OpenProof(proof, decryptWith(vectors.Parties.Seller.PrivateKey)); err == nil {
			t.Error("a proof copied by another author was opened")
		}
	}
}

func TestCommit(t *testing.T) {
	t.Parallel()
	vectors := readTradeVectors(t)
	public := vectors.PublicTrade
	commit := market.Commit{
		Negotiated: readOrder(t, eventOf(t, vectors.NegotiateOrder)),
		TradeKey:   vectors.Parties.TradeKey.PublicKey,
		Proof: market.OrderProof{
			Listing: eventOf(t, public.Listing),
			Payment: &market.PaymentProof{
				Method: market.PaymentEVM,
				TxHash: "0xabababababababababababababababababababababababababababababababab",
			},
			Escrow: &market.EscrowContext{
				Service:      market.EncodeEmbeddedEvent(eventOf(t, public.EscrowService)),
				SellerMethod: market.EncodeEmbeddedEvent(eventOf(t, public.SellerEscrowMethod)),
			},
		},
		Participants: vectors.plan(t, vectors.Parties.Escrow.PublicKey, 3),
	}
	event := commit.Event(1800000200)
	checkDraft(t, event, public.CommitOrder)

	order := readOrder(t, event)
	if got := order.Proof.Escrow.EscrowPubkey(); got != vectors.Parties.Escrow.PublicKey {
		t.Errorf("the escrow is %q", got)
	}
	for _, read := range []func() (*nostr.Event, error){order.Proof.Escrow.ServiceEvent, order.Proof.Escrow.SellerMethodEvent} {
		if event, err := read(); err != nil || !market.IsSigned(event) {
			t.Errorf("%v, %v", event, err)
		}
	}
	cancelled := market.CancelOwnOrder(order, public.BuyerCancelOrder.CreatedAt)
	if cancelled.ID != public.BuyerCancelOrder.ID {
		t.Errorf("cancelled: %+v", cancelled)
	}
}

func TestBlankOrders(t *testing.T) {
	t.Parallel()
	vectors := readTradeVectors(t)
	participants, err := market.PlanParticipants(market.TradeParties{
		Seller: vectors.Parties.Seller.PublicKey, Buyer: vectors.Parties.TradeKey.PublicKey, Escrow: vectors.Parties.Escrow.PublicKey,
	}.Participants(), nil)
	if err != nil {
		t.Fatal(err)
	}
	blank := market.BlankOrder{
		ListingAnchor: vectors.Parties.ListingAnchor, TradeID: vectors.Parties.TradeID, Participants: participants,
	}
	blank.Author = vectors.Parties.Escrow.PublicKey
	checkDraft(t, blank.Confirm(1800000250), vectors.PublicTrade.EscrowConfirmOrder)
	blank.Author = vectors.Parties.Seller.PublicKey
	committed := readOrder(t, eventOf(t, vectors.PublicTrade.CommitOrder))
	checkDraft(t, blank.Cancel(committed.Start, committed.End, 1800000300), vectors.PublicTrade.SellerCancelOrder)
}

func TestReplacingOrdersAreNewer(t *testing.T) {
	t.Parallel()
	own := readOrder(t, eventOf(t, readTradeVectors(t).PublicTrade.CommitOrder))
	for now, want := range map[nostr.Timestamp]nostr.Timestamp{1800000199: 1800000201, 1800000200: 1800000201, 1800000300: 1800000300} {
		for _, event := range []*nostr.Event{market.CancelOwnOrder(own, now), market.ConfirmOwnOrder(own, now)} {
			order := readOrder(t, event)
			if event.CreatedAt != want || *order.PublishedAt != 1800000200 || order.Proof == nil {
				t.Errorf("at %d: %+v", now, event)
			}
		}
	}
}

func TestTransitionDrafts(t *testing.T) {
	t.Parallel()
	vectors := readTradeVectors(t)
	public := vectors.PublicTrade
	for name, raw := range map[string]json.RawMessage{
		"transition": vectors.Transition, "commit": public.CommitTransition, "confirm": public.EscrowConfirmTransition,
		"seller's cancel": public.SellerCancelTransition, "buyer's cancel": public.BuyerCancelTransition,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			event := eventOf(t, raw)
			transition, err := market.DecodeOrderTransition(event)
			if err != nil || !market.IsSigned(event) {
				t.Fatal(err)
			}
			checkDraft(t, transition.Draft(event.PubKey, event.CreatedAt), raw)
		})
	}
}
