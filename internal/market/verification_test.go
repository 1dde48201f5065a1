package market_test

import (
	"strings"
	"testing"

	"github.com/btcsuite/btcd/btcutil/bech32"
	"github.com/google/go-cmp/cmp"
	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/market"
)

// proofs are what a guest may put into an order, by the names of the tables.
func proofs(name string) *market.OrderProof {
	proof := escrowProof()
	switch name {
	case "none":
		return nil
	case "honest":
	case "unpaid":
		proof.Payment, proof.Escrow = nil, nil
	case "without escrow":
		proof.Escrow = nil
	case "other listing":
		proof.Listing = signed(hostKey, &nostr.Event{Kind: market.KindListing, Tags: nostr.Tags{{"d", "other"}}})
	case "own listing":
		proof.Listing = signed(tradeKey, &nostr.Event{Kind: market.KindListing, Tags: nostr.Tags{{"d", "cabin"}}})
	case "changed listing":
		changed := *events().listing
		changed.Tags = nostr.Tags{{"d", "cabin"}, {"price", "0.00000001", "BTC", "day"}}
		proof.Listing = &changed
	case "own method":
		proof.Escrow.SellerMethod = market.EncodeEmbeddedEvent(events().foreignMethod)
	case "method without him":
		proof.Escrow.SellerMethod = market.EncodeEmbeddedEvent(events().methodWithoutEscrow)
	case "changed method":
		changed := *events().method
		changed.CreatedAt++
		proof.Escrow.SellerMethod = market.EncodeEmbeddedEvent(&changed)
	case "service by another":
		service := signed(strangerKey, &nostr.Event{Kind: market.KindEscrowService, Content: `{"pubkey":"` + escrow + `"}`})
		proof.Escrow.Service = market.EncodeEmbeddedEvent(service)
	case "changed service":
		changed := *events().service
		changed.CreatedAt++
		proof.Escrow.Service = market.EncodeEmbeddedEvent(&changed)
	case "unreadable service":
		proof.Escrow.Service = "{}"
	default:
		panic(name)
	}
	return proof
}

var (
	chainYes  market.ChainVerifier = func(market.Order) market.ChainVerdict { return market.ChainVerdict{Valid: true} }
	chainNo   market.ChainVerifier = func(market.Order) market.ChainVerdict { return market.ChainVerdict{Reason: "too little"} }
	chainDown market.ChainVerifier = func(market.Order) market.ChainVerdict {
		return market.ChainVerdict{Reason: "no answer", Transient: true}
	}
	chainUnasked market.ChainVerifier = func(market.Order) market.ChainVerdict { panic("the chain was asked") }
)

// TestVerificationMatrix has a line per rule of spec 50 §13.1 and §13.2. Stages
// are n, c and x for negotiate, commit and cancel, - for no order.
func TestVerificationMatrix(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		buyer, seller, escrow, proof string
		listing                      string // auto, manual, or - for unknown
		force                        bool
		chain                        market.ChainVerifier
		want                         string // valid, confirmed, or a part of the reason
	}{
		// 13.1: the buyer alone.
		{"c", "-", "-", "honest", "auto", false, nil, "valid"},
		{"c", "-", "-", "honest", "-", false, nil, "valid"},
		{"c", "-", "-", "honest", "manual", false, nil, "automatically"},
		{"c", "-", "-", "none", "auto", false, nil, "no proof"},
		{"c", "-", "-", "unpaid", "auto", false, nil, "no payment"},
		{"c", "-", "-", "without escrow", "auto", false, nil, "no escrow"},
		{"c", "-", "-", "other listing", "auto", false, nil, "host has signed"},
		{"c", "-", "-", "own listing", "auto", false, nil, "host has signed"},
		{"c", "-", "-", "changed listing", "auto", false, nil, "host has signed"},
		// Nobody who could book.
		{"-", "-", "c", "none", "auto", false, nil, "no order"},
		{"-", "-", "c", "none", "auto", true, nil, "no order"},
		// The seller counts at any stage.
		{"c", "c", "-", "none", "manual", false, nil, "confirmed"},
		{"c", "n", "-", "none", "manual", false, nil, "valid"},
		{"-", "c", "-", "none", "manual", false, nil, "confirmed"},
		{"-", "c", "-", "none", "manual", true, chainUnasked, "confirmed"},
		{"-", "n", "-", "none", "manual", false, nil, "valid"},
		// The escrow counts at commit, under the seller's configuration.
		{"c", "-", "c", "honest", "manual", false, chainUnasked, "confirmed"},
		{"c", "-", "n", "honest", "manual", false, nil, "automatically"},
		{"c", "-", "c", "none", "manual", false, nil, "automatically"},
		{"c", "-", "c", "none", "auto", false, nil, "no proof"},
		{"c", "-", "c", "own method", "manual", false, nil, "automatically"},
		{"c", "-", "c", "method without him", "manual", false, nil, "automatically"},
		{"c", "-", "c", "changed method", "manual", false, nil, "automatically"},
		{"c", "-", "c", "service by another", "manual", false, nil, "automatically"},
		{"c", "-", "c", "changed service", "manual", false, nil, "automatically"},
		{"c", "-", "c", "unreadable service", "manual", false, nil, "automatically"},
		{"c", "-", "c", "own method", "auto", false, nil, "valid"},
		{"c", "-", "c", "own method", "auto", false, chainNo, "too little"},
		// Force looks at the buyer's order in any case.
		{"c", "c", "-", "none", "manual", true, nil, "no proof"},
		{"c", "c", "-", "honest", "manual", true, nil, "confirmed"},
		{"c", "-", "c", "honest", "manual", true, nil, "automatically"},
		{"c", "-", "c", "honest", "auto", true, nil, "confirmed"},
		{"c", "-", "c", "honest", "auto", true, chainNo, "too little"},
		{"c", "c", "-", "honest", "auto", true, chainNo, "too little"},
		{"c", "c", "-", "honest", "auto", true, chainYes, "confirmed"},
		// 13.2: the chain.
		{"c", "-", "-", "honest", "auto", false, chainYes, "confirmed"},
		{"c", "-", "-", "honest", "auto", false, chainNo, "too little"},
		{"c", "-", "-", "honest", "auto", false, chainDown, "no answer"},
		{"c", "c", "-", "honest", "auto", false, chainUnasked, "confirmed"},
		{"c", "n", "-", "honest", "auto", false, chainNo, "valid"},
		{"c", "n", "-", "honest", "auto", false, chainYes, "confirmed"},
		{"c", "n", "-", "unpaid", "auto", false, chainUnasked, "valid"},
		{"c", "n", "-", "without escrow", "auto", false, chainUnasked, "valid"},
		// Cancelled groups are valid, unless the chain shows the buyer's proof false.
		{"x", "-", "-", "none", "manual", false, chainUnasked, "valid"},
		{"x", "-", "-", "honest", "auto", false, nil, "valid"},
		{"x", "-", "-", "honest", "auto", false, chainYes, "confirmed"},
		{"x", "-", "-", "honest", "auto", false, chainNo, "too little"},
		{"x", "x", "-", "honest", "auto", false, chainNo, "valid"},
		{"c", "x", "-", "honest", "auto", false, chainNo, "valid"},
		{"c", "x", "-", "none", "manual", true, nil, "valid"},
		{"c", "x", "c", "honest", "auto", false, chainUnasked, "confirmed"},
		{"-", "x", "-", "none", "auto", true, nil, "valid"},
		{"c", "-", "x", "none", "manual", false, nil, "valid"},
	} {
		var orders []market.Order
		for _, party := range []struct{ author, stage string }{{trader, test.buyer}, {host, test.seller}, {escrow, test.escrow}} {
			stage, present := map[string]market.Stage{"n": market.StageNegotiate, "c": market.StageCommit, "x": market.StageCancel}[party.stage]
			if !present {
				continue
			}
			terms := orderTerms{author: party.author, stage: stage, tags: allParties()}
			if party.author == trader {
				terms.proof = proofs(test.proof)
			}
			orders = append(orders, terms.order(t))
		}
		var listing *market.Listing
		switch test.listing {
		case "auto":
			listing = pointer(listingOf(t, events().listing))
		case "manual":
			listing = pointer(listingOf(t, events().manual))
		}
		got := groupOf(t, orders...).Verify(listing, test.force, test.chain)
		outcome := got.Reason
		switch {
		case got.Valid && got.ConfirmedCommitted:
			outcome = "confirmed"
		case got.Valid:
			outcome = "valid"
		}
		if !strings.Contains(outcome, test.want) || got.Valid != (got.Reason == "") || !got.Valid && got.ConfirmedCommitted {
			t.Errorf("buyer %s, seller %s, escrow %s, proof %s, listing %s, force %t: %+v, want %s",
				test.buyer, test.seller, test.escrow, test.proof, test.listing, test.force, got, test.want)
		}
	}
}

func TestVerificationTellsWhenTheChainIsDown(t *testing.T) {
	t.Parallel()
	group := groupOf(t, orderTerms{author: trader, stage: market.StageCommit, tags: allParties(), proof: escrowProof()}.order(t))
	if got := group.Verify(nil, false, chainDown); got.Valid || !got.Transient {
		t.Errorf("%+v", got)
	}
	if got := group.Verify(nil, false, chainNo); got.Valid || got.Transient {
		t.Errorf("%+v", got)
	}
}

// TestBuyerCannotConfirmHimself has the guest write all orders of the group.
func TestBuyerCannotConfirmHimself(t *testing.T) {
	t.Parallel()
	ownAnchor := "30402:" + trader + ":mine"
	everybody := parties(host, trader, stranger)
	accomplice := orderTerms{author: stranger, stage: market.StageCommit, tags: everybody}.order(t)
	for name, orders := range map[string][]market.Order{
		"with a proof that only the escrow shows": {
			orderTerms{author: trader, stage: market.StageCommit, tags: allParties()}.order(t),
			orderTerms{author: escrow, stage: market.StageCommit, tags: allParties(), proof: escrowProof()}.order(t),
		},
		"with an escrow of his own": {
			orderTerms{author: trader, stage: market.StageCommit, tags: everybody}.order(t), accomplice,
		},
		"as owner of another listing": {
			accomplice, orderTerms{author: trader, stage: market.StageCommit, tags: everybody, anchor: ownAnchor}.order(t),
		},
	} {
		group := groupOf(t, orders...)
		if group.SellerPubkey() != host {
			t.Fatalf("%s: seller %s", name, group.SellerPubkey())
		}
		if got := group.Verify(pointer(listingOf(t, events().listing)), false, nil); got.Valid {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestVerifyOrderFields(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		author, proof string
		want          []string // names of the checks, with ! where they failed
	}{
		"the host needs no proof":   {host, "none", []string{"publisher"}},
		"no proof":                  {trader, "none", []string{"!proof"}},
		"no payment":                {trader, "unpaid", []string{"proof", "!paymentProof"}},
		"no escrow":                 {trader, "without escrow", []string{"proof", "paymentProof", "!escrow"}},
		"foreign listing as well":   {trader, "own listing", []string{"!proof", "paymentProof", "escrow"}},
		"everything":                {trader, "honest", []string{"proof", "paymentProof", "escrow"}},
		"the escrow is a guest too": {escrow, "none", []string{"!proof"}},
	} {
		got := market.VerifyOrder(orderTerms{author: test.author, stage: market.StageCommit, proof: proofs(test.proof)}.order(t))
		var names []string
		for _, field := range got.Fields {
			if field.OK != (field.Message == "") {
				t.Errorf("%s: %+v", name, field)
			}
			if !field.OK {
				field.Name = "!" + field.Name
			}
			names = append(names, field.Name)
		}
		if diff := cmp.Diff(test.want, names); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if got.Valid() != !strings.Contains(strings.Join(names, ""), "!") || got.Valid() != (got.Reason() == "") {
			t.Errorf("%s: valid %t, %q", name, got.Valid(), got.Reason())
		}
	}
}

func TestVerifyOrderByZap(t *testing.T) {
	t.Parallel()
	lnurl := func(name string) string {
		text, err := bech32.EncodeFromBase256("lnurl", []byte("https://example.com/.well-known/lnurlp/"+name))
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	receipt := func(invoice, recipient, lnurl string) string {
		request := market.EncodeEmbeddedEvent(&nostr.Event{Kind: nostr.KindZapRequest, Tags: nostr.Tags{{"lnurl", lnurl}}})
		return market.EncodeEmbeddedEvent(&nostr.Event{Kind: nostr.KindZap, Tags: nostr.Tags{
			{"p", recipient}, {"bolt11", invoice}, {"description", request},
		}})
	}
	profile := func(pubkey string) *nostr.Event {
		return &nostr.Event{PubKey: pubkey, Content: `{"lud16":"host@example.com"}`}
	}
	const enough = "lnbc2m1qqqq" // 200000 sat, two nights
	for name, test := range map[string]struct {
		receipt string
		profile *nostr.Event
		want    string // names of the failed checks
	}{
		"by address":          {receipt(enough, host, "host@example.com"), profile(host), ""},
		"more than enough":    {receipt("LNBC1"+"1QQQQ", host, "host@example.com"), profile(host), ""},
		"in small units":      {receipt("lnbcrt2000000n1qqqq", host, "host@example.com"), profile(host), ""},
		"too little":          {receipt("lnbc1999999n1qqqq", host, "host@example.com"), profile(host), "zapAmount"},
		"no amount":           {receipt("lnbc1qqqq", host, "host@example.com"), profile(host), "zapAmount"},
		"to somebody else":    {receipt(enough, guest, "host@example.com"), profile(host), "zapRecipient"},
		"profile of another":  {receipt(enough, host, "host@example.com"), profile(guest), "recipientProfile"},
		"to another address":  {receipt(enough, host, "guest@example.com"), profile(host), "zapLnurl"},
		"to another as lnurl": {receipt(enough, host, lnurl("guest")), profile(host), "zapLnurl"},
		"by lnurl":            {receipt(enough, host, lnurl("host")), profile(host), ""},
		"no receipt":          {"nope", profile(host), "zapAmount zapRecipient zapLnurl"},
	} {
		proof := escrowProof()
		proof.Escrow = nil
		proof.Payment = &market.PaymentProof{Method: market.PaymentZap, ZapReceipt: test.receipt, RecipientProfile: test.profile}
		got := market.VerifyOrder(orderTerms{author: trader, stage: market.StageCommit, proof: proof}.order(t))
		var failed []string
		for _, field := range got.Fields {
			if !field.OK {
				failed = append(failed, field.Name)
			}
		}
		if strings.Join(failed, " ") != test.want {
			t.Errorf("%s: %v, want %s", name, failed, test.want)
		}
	}
}
