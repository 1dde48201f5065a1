package hostrdaemon

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/nbd-wtf/go-nostr"
	"github.com/nbd-wtf/go-nostr/nip44"
	"github.com/rs/zerolog"

	"hostr-daemon/internal/derivation"
	hostr "hostr-daemon/internal/market"
	"hostr-daemon/internal/relay"
	"hostr-daemon/internal/signer"
)

// otherClient is another Hostr program of somebody's, signed in at the same relay.
type otherClient struct {
	t      *testing.T
	relays *relay.Client
	key    string
}

func newOtherClient(t *testing.T, url, key string) *otherClient {
	t.Helper()
	local, err := signer.NewLocal(key)
	if err != nil {
		t.Fatal(err)
	}
	verifier := relay.NewVerifier(nil, zerolog.Nop())
	client, err := relay.NewClient(relay.Config{HostrRelay: url, Account: local, Verifier: verifier})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		client.Close()
		verifier.Close()
	})
	return &otherClient{t, client, key}
}

// publish signs an event with a key, the client's own or a trade's, and publishes it.
func (c *otherClient) publish(key string, event *nostr.Event) *nostr.Event {
	c.t.Helper()
	signed := c.sign(key, event)
	if _, err := c.relays.Publish(within(c.t), *signed, relay.PublishOptions{}); err != nil {
		c.t.Fatalf("publishing kind %d: %v", event.Kind, err)
	}
	return signed
}

func (c *otherClient) sign(key string, event *nostr.Event) *nostr.Event {
	c.t.Helper()
	signed := *event
	signed.Tags = slices.Clone(event.Tags)
	if err := signed.Sign(key); err != nil {
		c.t.Fatal(err)
	}
	return &signed
}

// wrap publishes a private message. An honest one is sealed by its author.
func (c *otherClient) wrap(rumor *nostr.Event, recipient string) {
	c.t.Helper()
	seal := c.sign(c.key, &nostr.Event{
		Kind: nostr.KindSeal, CreatedAt: nostr.Now(), Content: c.encrypt(c.key, recipient, hostr.EncodeEmbeddedEvent(rumor)),
	})
	once := nostr.GeneratePrivateKey()
	c.publish(once, &nostr.Event{
		Kind: nostr.KindGiftWrap, CreatedAt: nostr.Now() - nostr.Timestamp(rand.IntN(1000)), Tags: nostr.Tags{{"p", recipient}},
		Content: c.encrypt(once, recipient, hostr.EncodeEmbeddedEvent(seal)),
	})
}

func (c *otherClient) encrypt(key, recipient, text string) string {
	c.t.Helper()
	conversation, err := nip44.GenerateConversationKey(recipient, key)
	if err != nil {
		c.t.Fatal(err)
	}
	payload, err := nip44.Encrypt(text, conversation)
	if err != nil {
		c.t.Fatal(err)
	}
	return payload
}

// place is a listing with what it takes to book it.
type place struct {
	listing, method, service *nostr.Event
	anchor                   string
}

// openPlace has the host publish a listing that the escrow may serve.
func (b *booking) openPlace() place {
	b.t.Helper()
	listing := b.host.other.publish(b.host.PrivateKey, &nostr.Event{Kind: hostr.KindListing, CreatedAt: nostr.Now(), Tags: nostr.Tags{
		{"d", "cabin"}, {"title", "Lake cabin"}, {"autoAccept", "true"}, {"negotiable", "true"}, {"price", "0.00100000", "BTC", "day"},
	}})
	method := b.host.other.publish(b.host.PrivateKey, &nostr.Event{
		Kind: hostr.KindSellerConfiguration, CreatedAt: nostr.Now(), Tags: nostr.Tags{{"p", b.escrow.PublicKey}},
	})
	service := b.escrow.other.publish(b.escrow.PrivateKey, &nostr.Event{
		Kind: hostr.KindEscrowService, CreatedAt: nostr.Now(), Tags: nostr.Tags{{"d", "s"}}, Content: `{"pubkey":"` + b.escrow.PublicKey + `","type":"EVM"}`,
	})
	anchor := hostr.Anchor{Kind: hostr.KindListing, PubKey: b.host.PublicKey, Identifier: "cabin"}
	return place{listing, method, service, anchor.String()}
}

// seedOf is the account seed as the account's device keeps it.
func (b *booking) seedOf(party *party) (string, *derivation.Keys) {
	b.t.Helper()
	_, text, _ := strings.Cut(party.home.secrets()["hostr-session/"+party.PublicKey+"/seed"], ":")
	text = strings.TrimSuffix(text, `"]`)
	seed, err := derivation.ParseSeed(text)
	if err != nil {
		b.t.Fatalf("the seed of the %s: %v", party.Role, err)
	}
	keys, err := derivation.NewKeys(seed)
	if err != nil {
		b.t.Fatal(err)
	}
	return text, keys
}

// tradeKey is the guest's key of a trade.
func (b *booking) tradeKey(tradeID string) string {
	b.t.Helper()
	_, keys := b.seedOf(b.guest)
	for index := range uint32(20) {
		id, err := keys.TradeID(index)
		if err != nil {
			b.t.Fatal(err)
		}
		if id != tradeID {
			continue
		}
		key, err := keys.Trade(index)
		if err != nil {
			b.t.Fatal(err)
		}
		return key.Hex()
	}
	b.t.Fatal("the trade id is none of the account's")
	return ""
}

// book publishes the guest's paid order, as any program of the guest's would.
func (b *booking) book(negotiated hostr.Order) *nostr.Event {
	b.t.Helper()
	key := b.tradeKey(negotiated.TradeID)
	trade := publicKeyOf(b.t, key)
	authorization := b.guest.other.sign(b.guest.PrivateKey, hostr.DraftTradeKeyAuthorization(hostr.TradeKeyTerms{
		Identity: b.guest.PublicKey, Participant: trade, Role: hostr.RoleBuyer, ListingAnchor: negotiated.ListingAnchor, TradeID: negotiated.TradeID,
	}, nostr.Now()))
	participants, err := hostr.PlanParticipants([]hostr.PlannedParticipant{
		{Role: hostr.RoleSeller, Pubkey: b.host.PublicKey, Identity: b.host.PublicKey},
		{Role: hostr.RoleBuyer, Pubkey: trade, Identity: b.guest.PublicKey, Authorization: hostr.EncodeEmbeddedEvent(authorization)},
		{Role: hostr.RoleEscrow, Pubkey: b.escrow.PublicKey, Identity: b.escrow.PublicKey},
	}, func(recipient, text string) (string, error) { return b.guest.other.encrypt(key, recipient, text), nil })
	if err != nil {
		b.t.Fatal(err)
	}
	order := b.guest.other.publish(key, hostr.Commit{
		Negotiated: negotiated, TradeKey: trade, Participants: participants,
		Proof: hostr.OrderProof{
			Listing: b.place.listing, Payment: &hostr.PaymentProof{Method: hostr.PaymentEVM, TxHash: "0x01"},
			Escrow: &hostr.EscrowContext{
				Service: hostr.EncodeEmbeddedEvent(b.place.service), SellerMethod: hostr.EncodeEmbeddedEvent(b.place.method),
			},
		},
	}.Event(nostr.Now()))
	b.guest.other.publish(key, hostr.OrderTransition{
		TradeID: negotiated.TradeID, OrderID: order.ID, ListingAnchor: negotiated.ListingAnchor, Type: hostr.TransitionCommit,
		From: hostr.StageNegotiate, To: hostr.StageCommit, CommitTermsHash: negotiated.CommitHash(),
	}.Draft(trade, nostr.Now()))
	return order
}

// confirm publishes the escrow's confirmation of an order.
func (b *booking) confirm(commit *nostr.Event) *nostr.Event {
	b.t.Helper()
	order := decodeOrder(b.t, commit)
	return b.escrow.other.publish(b.escrow.PrivateKey, hostr.BlankOrder{
		Author: b.escrow.PublicKey, ListingAnchor: order.ListingAnchor, TradeID: order.TradeID, Participants: nostr.Tags{
			{"p", b.host.PublicKey, "", "seller"}, {"p", commit.PubKey, "", "buyer"}, {"p", b.escrow.PublicKey, "", "escrow"},
		},
	}.Confirm(nostr.Now()))
}

func decodeOrder(t *testing.T, event *nostr.Event) hostr.Order {
	t.Helper()
	order, err := hostr.DecodeOrder(event)
	if err != nil {
		t.Fatal(err)
	}
	return order
}

// rumorOf is an unsigned message with its id.
func rumorOf(author string, kind int, content string, tags nostr.Tags) *nostr.Event {
	rumor := &nostr.Event{PubKey: author, Kind: kind, CreatedAt: nostr.Now(), Content: content, Tags: tags}
	rumor.ID = rumor.GetID()
	return rumor
}
