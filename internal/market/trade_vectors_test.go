package market_test

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/nbd-wtf/go-nostr"
	"github.com/nbd-wtf/go-nostr/nip44"

	"hostr-daemon/internal/market"
)

// tradeVectors are testdata/orders-vectors.json, the figures of spec 50.
type tradeVectors struct {
	Parties struct {
		Seller, Buyer, Escrow, TradeKey party
		TradeID, ListingAnchor          string
	}
	CommitHash []struct{ Name, Preimage, SHA256 string }

	TradeKeyAuthorization struct {
		Event                  json.RawMessage
		Plaintext, PayloadHash string
	}
	ParticipantProofs []struct {
		Name string
		Tag  nostr.Tag
	}
	NegotiateOrder      json.RawMessage
	CommitAuthorization json.RawMessage
	SellerAcceptOrder   json.RawMessage
	PrivateCancellation json.RawMessage
	Transition          json.RawMessage
	Review              json.RawMessage
	RatingTagValue      []struct {
		Stars int
		Value string
	}
	AmountCodec []struct {
		Input             json.RawMessage
		Smallest, Encoded string
	}
	PublicTrade struct {
		Listing                 json.RawMessage
		EscrowService           json.RawMessage
		SellerEscrowMethod      json.RawMessage
		CommitOrder             json.RawMessage
		CommitTransition        json.RawMessage
		EscrowConfirmOrder      json.RawMessage
		EscrowConfirmTransition json.RawMessage
		SellerCancelOrder       json.RawMessage
		SellerCancelTransition  json.RawMessage
		BuyerCancelOrder        struct {
			ID        string
			CreatedAt nostr.Timestamp `json:"created_at"`
		}
		BuyerCancelTransition json.RawMessage
	}
	TransitionChains []struct {
		Name  string
		Input []struct {
			ID, Prev string
			Type     market.TransitionType
			From, To market.Stage
		}
		Ordered []string
		chainVerdict
		AsEscrow chainVerdict
	}
}

type party struct{ PrivateKey, PublicKey string }

type chainVerdict struct {
	Valid       bool
	FailedIndex *int
}

func readTradeVectors(t testing.TB) tradeVectors {
	t.Helper()
	data, err := os.ReadFile("testdata/orders-vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var read tradeVectors
	if err := json.Unmarshal(data, &read); err != nil {
		t.Fatal(err)
	}
	for name, count := range map[string]int{
		"parties":             len(read.Parties.TradeID) * len(read.Parties.ListingAnchor),
		"commitHash":          len(read.CommitHash),
		"participantProofs":   len(read.ParticipantProofs),
		"ratingTagValue":      len(read.RatingTagValue),
		"amountCodec":         len(read.AmountCodec),
		"transitionChains":    len(read.TransitionChains),
		"publicTrade":         len(read.PublicTrade.BuyerCancelOrder.ID),
		"tradeKeyPlaintext":   len(read.TradeKeyAuthorization.Plaintext),
		"commitAuthorization": len(read.CommitAuthorization),
	} {
		if count == 0 {
			t.Fatalf("no vectors of %s", name)
		}
	}
	return read
}

func eventOf(t testing.TB, raw json.RawMessage) *nostr.Event {
	t.Helper()
	event, err := market.DecodeEmbeddedEvent(string(raw))
	if err != nil {
		t.Fatal(err)
	}
	return event
}

func readOrder(t testing.TB, event *nostr.Event) market.Order {
	t.Helper()
	order, err := market.DecodeOrder(event)
	if err != nil {
		t.Fatal(err)
	}
	return order
}

// checkDraft compares an unsigned event with one of the vectors.
func checkDraft(t *testing.T, got *nostr.Event, vector json.RawMessage) {
	t.Helper()
	if got.Sig != "" {
		t.Error("a draft has a signature")
	}
	if diff := cmp.Diff(eventOf(t, vector), got, cmpopts.IgnoreFields(nostr.Event{}, "Sig")); diff != "" {
		t.Error(diff)
	}
}

// buyerTerms say that the trade key is the buyer's.
func (v tradeVectors) buyerTerms() market.TradeKeyTerms {
	return market.TradeKeyTerms{
		Identity: v.Parties.Buyer.PublicKey, Participant: v.Parties.TradeKey.PublicKey, Role: market.RoleBuyer,
		ListingAnchor: v.Parties.ListingAnchor, TradeID: v.Parties.TradeID,
	}
}

// plan returns the participants' tags as the trade key writes them, with nonces
// that count up from the first.
func (v tradeVectors) plan(t testing.TB, escrow string, firstNonce byte) nostr.Tags {
	t.Helper()
	participants := market.TradeParties{
		Seller: v.Parties.Seller.PublicKey, Buyer: v.Parties.TradeKey.PublicKey,
		BuyerIdentity: v.Parties.Buyer.PublicKey, Escrow: escrow,
	}.Participants()
	participants[1].Authorization = v.TradeKeyAuthorization.Plaintext
	nonce := firstNonce
	tags, err := market.PlanParticipants(participants, func(recipient, plaintext string) (string, error) {
		conversation, err := nip44.GenerateConversationKey(recipient, v.Parties.TradeKey.PrivateKey)
		if err != nil {
			return "", err
		}
		repeated := bytes.Repeat([]byte{nonce}, 32)
		nonce++
		return nip44.Encrypt(plaintext, conversation, nip44.WithCustomNonce(repeated))
	})
	if err != nil {
		t.Fatal(err)
	}
	return tags
}

// decryptWith decrypts as somebody with one private key.
func decryptWith(privateKey string) market.Decrypt {
	return func(_, sender, payload string) (string, error) {
		conversation, err := nip44.GenerateConversationKey(sender, privateKey)
		if err != nil {
			return "", err
		}
		return nip44.Decrypt(payload, conversation)
	}
}

// signedBy returns a copy of the event signed by the key.
func signedBy(t testing.TB, event *nostr.Event, privateKey string) *nostr.Event {
	t.Helper()
	copied := *event
	if err := copied.Sign(privateKey); err != nil {
		t.Fatal(err)
	}
	return &copied
}
