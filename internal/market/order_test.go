package market_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/market"
)

func instant(t testing.TB, text string) time.Time {
	t.Helper()
	parsed, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func orderEvent(content string, tags ...nostr.Tag) *nostr.Event {
	if len(tags) == 0 {
		tags = nostr.Tags{{"a", "30402:" + author + ":cabin"}}
	}
	return &nostr.Event{PubKey: author, Kind: market.KindOrder, Tags: tags, Content: content}
}

// Each content is read and written anew; what is written is canonical.
func TestOrderContent(t *testing.T) {
	t.Parallel()
	profile := `{"id":"","pubkey":"","created_at":1,"kind":0,"tags":[],"content":"","sig":null}`
	event := `{"id":"01","pubkey":"02","created_at":3,"kind":30402,"tags":[["d","x"]],"content":"c","sig":"04"}`
	for name, test := range map[string]struct{ content, want string }{
		"least":              {`{"stage":"negotiate"}`, `{"proof":null,"stage":"negotiate","quantity":1}`},
		"null is absence":    {`{"stage":"cancel","start":null,"end":null,"proof":null,"quantity":null,"amount":null,"recipient":null,"commitAuthorization":null}`, `{"proof":null,"stage":"cancel","quantity":1}`},
		"unknown keys":       {`{"stage":"commit","Stage":"x","START":7,"more":{}}`, `{"proof":null,"stage":"commit","quantity":1}`},
		"order of keys":      {`{"quantity":2,"end":"2027-04-07","stage":"commit","start":"2027-04-05"}`, `{"start":"2027-04-05T00:00:00.000Z","end":"2027-04-07T00:00:00.000Z","proof":null,"stage":"commit","quantity":2}`},
		"last of repeated":   {`{"stage":"negotiate","stage":"commit"}`, `{"proof":null,"stage":"commit","quantity":1}`},
		"start after end":    {`{"stage":"commit","start":"2027-04-07","end":"2027-04-05"}`, `{"start":"2027-04-07T00:00:00.000Z","end":"2027-04-05T00:00:00.000Z","proof":null,"stage":"commit","quantity":1}`},
		"offset":             {`{"stage":"commit","start":"2027-04-05T01:30:00+02:00"}`, `{"start":"2027-04-04T23:30:00.000Z","proof":null,"stage":"commit","quantity":1}`},
		"offset to the west": {`{"stage":"commit","end":"2027-04-05T23:30:00 -0500"}`, `{"end":"2027-04-06T04:30:00.000Z","proof":null,"stage":"commit","quantity":1}`},
		"microseconds":       {`{"stage":"commit","start":"2027-04-05T00:00:00.0000019Z"}`, `{"start":"2027-04-05T00:00:00.000001Z","proof":null,"stage":"commit","quantity":1}`},
		"milliseconds":       {`{"stage":"commit","start":"20270405 12:30:15,12"}`, `{"start":"2027-04-05T12:30:15.120Z","proof":null,"stage":"commit","quantity":1}`},
		"amount":             {`{"stage":"commit","amount":{"decimals":0,"value":"5","denomination":"BTC"}}`, `{"proof":null,"stage":"commit","quantity":1,"amount":{"value":"5.0","denomination":"BTC","decimals":0}}`},
		"amount integer":     {`{"stage":"commit","amount":{"decimals":8,"value":7,"denomination":"BTC"}}`, `{"proof":null,"stage":"commit","quantity":1,"amount":{"value":"0.00000007","denomination":"BTC","decimals":8}}`},
		"amount number":      {`{"stage":"commit","amount":{"decimals":2,"value":5.0,"denomination":"BTC"}}`, `{"proof":null,"stage":"commit","quantity":1,"amount":{"value":"5.00","denomination":"BTC","decimals":2}}`},
		"raw characters":     {"{\"stage\":\"commit\",\"recipient\":\"\\u2028<é>\\u0001\\b\\/\"}", "{\"proof\":null,\"stage\":\"commit\",\"quantity\":1,\"recipient\":\"\u2028<é>\\u0001\\b/\"}"},
		"proof":              {`{"stage":"commit","proof":{"escrow":7,"listing":` + event + `}}`, `{"proof":{"listing":` + event + `,"paymentProof":null},"stage":"commit","quantity":1}`},
		"escrow":             {`{"stage":"commit","proof":{"listing":` + event + `,"escrow":{"sellerEscrowMethod":"m","escrowService":"s"},"paymentProof":{"params":{"txHash":"0x"},"method":"EVM"}}}`, `{"proof":{"listing":` + event + `,"paymentProof":{"method":"evm","params":{"txHash":"0x"}},"escrow":{"escrowService":"s","sellerEscrowMethod":"m"}},"stage":"commit","quantity":1}`},
		"zap":                {`{"stage":"commit","proof":{"listing":` + event + `,"escrow":null,"paymentProof":{"params":{"recipientProfile":{"kind":0,"created_at":1},"receipt":"r"},"method":"Zap"}}}`, `{"proof":{"listing":` + event + `,"paymentProof":{"method":"zap","params":{"receipt":"r","recipientProfile":` + profile + `}}},"stage":"commit","quantity":1}`},
		"proof of the NIP":   {`{"stage":"commit","proof":{"listing":` + event + `,"seller":{},"zapProof":{},"escrowProof":{"txHash":"0x"}}}`, `{"proof":{"listing":` + event + `,"paymentProof":null},"stage":"commit","quantity":1}`},
		"authorization":      {`{"stage":"commit","commitAuthorization":{"kind":1328,"created_at":1,"content":"{\"commitHash\":\"h\"}"}}`, `{"proof":null,"stage":"commit","quantity":1,"commitAuthorization":{"id":"","pubkey":"","created_at":1,"kind":1328,"tags":[],"content":"{\"commitHash\":\"h\"}","sig":null}}`},
		"negative quantity":  {`{"stage":"commit","quantity":-2}`, `{"proof":null,"stage":"commit","quantity":-2}`},
	} {
		order, err := market.DecodeOrder(orderEvent(test.content))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(test.want, order.Encode()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestOrderContentRefused(t *testing.T) {
	t.Parallel()
	event := `{"created_at":3,"kind":30402}`
	payment := func(text string) string {
		return `{"stage":"commit","proof":{"listing":` + event + `,"paymentProof":` + text + `}}`
	}
	for name, content := range map[string]string{
		"empty": ``, "no object": `[]`, "null": `null`, "behind": `{"stage":"commit"} x`,
		"no stage": `{}`, "null stage": `{"stage":null}`, "stage": `{"stage":"Commit"}`, "stage number": `{"stage":1}`,
		"day that is not": `{"stage":"commit","start":"2027-02-30"}`, "hour 24": `{"stage":"commit","end":"2027-02-20T24:00:00Z"}`,
		"date number": `{"stage":"commit","start":20270405}`, "date words": `{"stage":"commit","start":"May 4"}`,
		"date with blanks": `{"stage":"commit","start":" 2027-04-05"}`, "year 0": `{"stage":"commit","start":"0000-01-01"}`,
		"offset of a day": `{"stage":"commit","start":"2027-04-05T00:00:00+24:00"}`, "before year 1": `{"stage":"commit","start":"0001-01-01T00:00:00+01:00"}`,
		"huge year": `{"stage":"commit","start":"177785-28-00"}`, "long date": `{"stage":"commit","start":"2027-04-05T00:00:00.` + strings.Repeat("0", 100) + `"}`,
		"quantity fraction": `{"stage":"commit","quantity":1.0}`, "quantity text": `{"stage":"commit","quantity":"1"}`,
		"quantity exponent": `{"stage":"commit","quantity":1e3}`, "quantity huge": `{"stage":"commit","quantity":9223372036854775808}`,
		"amount text": `{"stage":"commit","amount":"5"}`, "amount decimals": `{"stage":"commit","amount":{"value":"1","denomination":"BTC","decimals":999999999}}`,
		"amount value": `{"stage":"commit","amount":{"value":"1x","denomination":"BTC","decimals":8}}`, "amount denomination": `{"stage":"commit","amount":{"value":"1","decimals":8}}`,
		"recipient": `{"stage":"commit","recipient":7}`, "proof": `{"stage":"commit","proof":"x"}`, "proof without listing": `{"stage":"commit","proof":{}}`,
		"listing": `{"stage":"commit","proof":{"listing":"x"}}`, "payment": payment(`7`), "payment method": payment(`{"method":"cash","params":{}}`),
		"payment params": payment(`{"method":"evm"}`), "txHash": payment(`{"method":"evm","params":{}}`), "receipt": payment(`{"method":"zap","params":{"recipientProfile":` + event + `}}`),
		"recipient profile": payment(`{"method":"zap","params":{"receipt":"r"}}`), "escrow": payment(`{"method":"evm","params":{"txHash":"0x"}},"escrow":7`),
		"escrow service": payment(`{"method":"evm","params":{"txHash":"0x"}},"escrow":{"escrowService":{},"sellerEscrowMethod":"m"}`),
		"escrow method":  payment(`{"method":"evm","params":{"txHash":"0x"}},"escrow":{"escrowService":"s"}`),
		"authorization":  `{"stage":"commit","commitAuthorization":[]}`, "authorization kind": `{"stage":"commit","commitAuthorization":{"created_at":1}}`,
		"authorization content":  `{"stage":"commit","commitAuthorization":{"kind":1328,"created_at":1,"content":"{}"}}`,
		"longer than a mebibyte": `{"stage":"commit","more":"` + strings.Repeat("x", 1<<20) + `"}`,
		"nested without end":     `{"stage":"commit","more":` + strings.Repeat("[", 100_000),
	} {
		if order, err := market.DecodeOrder(orderEvent(content)); !errors.Is(err, market.ErrNotOrder) {
			t.Errorf("%s: %v, %+v", name, err, order.OrderContent)
		}
	}
}

func TestDecodeOrderTags(t *testing.T) {
	t.Parallel()
	content := `{"stage":"negotiate"}`
	anchor := "30402:" + author + ":a:b"
	order := readOrder(t, orderEvent(content,
		nostr.Tag{"a"}, nostr.Tag{"a", anchor}, nostr.Tag{"a", "30402:other:x"}, nostr.Tag{"d"}, nostr.Tag{"d", "trade"}, nostr.Tag{"d", "other"},
		nostr.Tag{"p"}, nostr.Tag{"p", "1"}, nostr.Tag{"p", "2", "wss://hint", "seller", "more"}, nostr.Tag{"p", "3", "", "seller"},
		nostr.Tag{"participant_proof", "buyer", "p", "r", "nip44", "hash"},
		nostr.Tag{"participant_proof", "buyer", "p", "r", "nip44", "hash", "payload", "more"},
		nostr.Tag{"published_at", "17"}, nil,
	))
	if listing, ok := order.Listing(); !ok || listing.Identifier != "a:b" || listing.PubKey != author {
		t.Errorf("%+v", listing)
	}
	if order.Anchor() != "32122:"+author+":trade" || *order.PublishedAt != 17 {
		t.Errorf("%s %v", order.Anchor(), order.PublishedAt)
	}
	participants := []market.Participant{{Pubkey: "1"}, {Pubkey: "2", RelayHint: "wss://hint", Role: market.RoleSeller}, {Pubkey: "3", Role: market.RoleSeller}}
	if diff := cmp.Diff(participants, order.Participants); diff != "" {
		t.Error(diff)
	}
	if order.ParticipantOf(market.RoleSeller) != "2" || order.ParticipantOf(market.RoleBuyer) != "" {
		t.Error("wrong participants")
	}
	proofs := []market.ParticipantProof{{Role: "buyer", Participant: "p", Recipient: "r", Scheme: "nip44", PayloadHash: "hash", Payload: "payload"}}
	if diff := cmp.Diff(proofs, order.Proofs); diff != "" {
		t.Error(diff)
	}
	for _, unusable := range []string{"", "naddr1x", "30402:" + author, "x:" + author + ":d", "30402:" + strings.ToUpper(author) + ":d", "030402:" + author + ":d"} {
		order := readOrder(t, orderEvent(content, nostr.Tag{"a", unusable}))
		if listing, ok := order.Listing(); ok {
			t.Errorf("%q is %v", unusable, listing)
		}
	}
}

func TestDecodeOrderRefuses(t *testing.T) {
	t.Parallel()
	listing := orderEvent(`{"stage":"commit"}`)
	listing.Kind = market.KindListing
	for name, event := range map[string]*nostr.Event{
		"nothing": nil, "another kind": listing, "no listing": orderEvent(`{"stage":"commit"}`, nostr.Tag{"a"}, nostr.Tag{"d", "x"}),
	} {
		if _, err := market.DecodeOrder(event); !errors.Is(err, market.ErrNotOrder) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOrdersOfTheVectors(t *testing.T) {
	t.Parallel()
	vectors := readTradeVectors(t)
	public := vectors.PublicTrade
	for i, raw := range [][]byte{
		vectors.NegotiateOrder, vectors.SellerAcceptOrder, vectors.PrivateCancellation,
		public.CommitOrder, public.EscrowConfirmOrder, public.SellerCancelOrder,
	} {
		event := eventOf(t, raw)
		order := readOrder(t, event)
		if !market.IsSigned(event) || order.Encode() != event.Content || order.TradeID != vectors.Parties.TradeID {
			t.Errorf("%d: %s", i, cmp.Diff(event.Content, order.Encode()))
		}
		if got := market.EncodeEmbeddedEvent(event); got != compact(t, raw) {
			t.Errorf("%d: %s", i, cmp.Diff(compact(t, raw), got))
		}
	}
}

func TestCommitHash(t *testing.T) {
	t.Parallel()
	for _, vector := range readTradeVectors(t).CommitHash {
		// The terms are content without stage.
		content := strings.TrimSuffix(vector.Preimage, "}") + `,"stage":"negotiate"}`
		order := readOrder(t, orderEvent(content))
		if got := order.CommitHash(); got != vector.SHA256 {
			t.Errorf("%s: %s", vector.Name, got)
		}
		order.Stage, order.CommitAuthorization = market.StageCommit, &nostr.Event{}
		order.Proof = &market.OrderProof{Listing: &nostr.Event{}}
		if got := order.CommitHash(); got != vector.SHA256 {
			t.Errorf("%s changes with the stage", vector.Name)
		}
	}
}

func TestAmountsInOrders(t *testing.T) {
	t.Parallel()
	for _, vector := range readTradeVectors(t).AmountCodec {
		order := readOrder(t, orderEvent(fmt.Sprintf(`{"stage":"commit","amount":%s}`, vector.Input)))
		if order.Amount.Value.String() != vector.Smallest || !strings.Contains(order.Encode(), `{"value":"`+vector.Encoded+`",`) {
			t.Errorf("%s: %s", vector.Input, order.Encode())
		}
	}
}

func FuzzOrderContent(f *testing.F) {
	// Small seeds: go test shrinks what it finds, which takes minutes for real orders.
	f.Add(`{"stage":"commit","proof":{"listing":{"kind":1,"created_at":2},"paymentProof":{"method":"evm","params":{"txHash":"0x"}},"escrow":{"escrowService":"s","sellerEscrowMethod":"m"}}}`)
	f.Add(`{"stage":"commit","proof":{"listing":{"kind":1,"created_at":2},"paymentProof":{"method":"zap","params":{"receipt":"r","recipientProfile":{"kind":0,"created_at":1}}}}}`)
	f.Add(`{"stage":"negotiate","end":"2027-04-07","quantity":2,"commitAuthorization":{"kind":1328,"created_at":1,"tags":[["a","b"]],"content":"{\"commitHash\":\"h\"}"}}`)
	f.Add(`{"stage":"commit","start":"20270405 12:30","amount":{"value":-1e2,"denomination":"\u2028","decimals":0},"recipient":"\ud800"}`)
	f.Fuzz(func(t *testing.T, content string) {
		order, err := market.DecodeOrder(orderEvent(content))
		if err != nil {
			if !errors.Is(err, market.ErrNotOrder) {
				t.Fatal(err)
			}
			return
		}
		encoded := order.Encode()
		again, err := market.DecodeOrder(orderEvent(encoded))
		if err != nil {
			if len(encoded) > 1<<20 {
				return // the canonical text is longer than the one read
			}
			t.Fatalf("%q is read, %q is not: %v", content, encoded, err)
		}
		if again.Encode() != encoded || again.CommitHash() != order.CommitHash() {
			t.Fatalf("%q is written as %q and then as %q", content, encoded, again.Encode())
		}
		cancelled := readOrder(t, market.CancelNegotiation(order, author, 1))
		if cancelled.CommitHash() != order.CommitHash() || cancelled.Stage != market.StageCancel {
			t.Fatalf("the terms of %q change", content)
		}
		_ = order.CheckCommitAuthorization()
	})
}
