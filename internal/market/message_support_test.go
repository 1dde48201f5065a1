package market_test

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/market"
)

// Public keys of the messaging vectors: of the secret keys 1 to 5.
const (
	messageGuest    = "79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798"
	messageHost     = "c6047f9441ed7d6d3045406e95c07cd85c778e4b8cef3ca7abac09b95c709ee5"
	messageEscrow   = "f9308a019258c31049344f85f89d5229b531c845836f99b08601f113bce036f9"
	messageTradeKey = "e493dbf1c10d80f3581e4904930b1404cc6c13900ee0758474fa94abe8c4cd13"
	messageOutsider = "2f8bde4d1a07209355b4a7250a5c5128e88b84bddc619ab7cba8d569b240efe4"
	messageTrade    = "5f2a9c0e7b1d4f6883a2c5e1d90b74f6a8c3e2d1f0b9a8c7d6e5f4a3b2c1d0e9"
)

type messageVectors struct {
	ConversationIDs []struct {
		ID, Tag      string
		Participants []string
	}
	GiftWraps []struct {
		Name   string
		Rumor  json.RawMessage
		Expect struct{ Result, Class, RumorID string }
	}
}

func readMessageVectors(t testing.TB) messageVectors {
	t.Helper()
	data, err := os.ReadFile("testdata/messaging-vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var read messageVectors
	if err := json.Unmarshal(data, &read); err != nil {
		t.Fatal(err)
	}
	if len(read.ConversationIDs) == 0 || len(read.GiftWraps) == 0 {
		t.Fatal("vectors are missing")
	}
	return read
}

// ownsTradeKey is the account of the guest in the trade of the vectors.
func ownsTradeKey(pubkey, tradeID string) bool {
	return pubkey == messageTradeKey && tradeID == messageTrade
}

// sent is a message as it is written in these tests.
type sent struct {
	from string
	at   nostr.Timestamp
	// kind is that of a text message unless it is given.
	kind int
	text string
	tag  string
	to   []string
	tags nostr.Tags
}

func (s sent) event() *nostr.Event {
	if s.kind == 0 {
		s.kind = market.KindTextMessage
	}
	draft := market.MessageDraft{Kind: s.kind, Content: s.text, Conversation: s.tag, Extra: s.tags, Recipients: s.to}
	return draft.Event(s.from, s.at)
}

func (s sent) rumor(t testing.TB) market.Rumor {
	t.Helper()
	rumor, err := market.ReadRumor(s.event())
	if err != nil {
		t.Fatal(err)
	}
	return rumor
}

// childOrder is the JSON of an order by a key for a listing of the host.
func childOrder(author, tradeID string, createdAt nostr.Timestamp) string {
	return market.EncodeEmbeddedEvent(&nostr.Event{
		ID: fmt.Sprintf("%s-%d", author[:8], createdAt), PubKey: author, CreatedAt: createdAt, Kind: market.KindOrder,
		Tags:    nostr.Tags{{"a", "30402:" + messageHost + ":cabin"}, {"d", tradeID}},
		Content: `{"stage":"negotiate"}`,
	})
}

const readableService = `{"pubkey":"p","type":"EVM","maxDuration":5,` +
	`"params":{"arbiterAddress":"0x1","contractAddress":"0x2","contractBytecodeHash":"ab","chainId":30}}`

// childSelection is the JSON of the selection of an escrow service.
func childSelection(serviceID, service string) string {
	content, err := json.Marshal(map[string]string{
		"service": market.EncodeEmbeddedEvent(&nostr.Event{
			ID: serviceID, PubKey: messageEscrow, Kind: market.KindEscrowService, Content: service,
		}),
		"sellerMethods": market.EncodeEmbeddedEvent(&nostr.Event{
			PubKey: messageHost, Kind: market.KindSellerConfiguration,
		}),
	})
	if err != nil {
		panic(err)
	}
	return market.EncodeEmbeddedEvent(&nostr.Event{
		PubKey: messageGuest, Kind: market.KindEscrowServiceSelected,
		Tags: nostr.Tags{{"d", messageTrade}, {"a", "30402:" + messageHost + ":cabin"}}, Content: string(content),
	})
}

func rumorIDs(rumors []market.Rumor) []string {
	ids := make([]string, len(rumors))
	for i, rumor := range rumors {
		ids[i] = rumor.Event.ID
	}
	return ids
}

func requestIDs(requests []market.OrderRequest) []string {
	ids := make([]string, len(requests))
	for i, request := range requests {
		ids[i] = request.Order.Event.ID
	}
	return ids
}
