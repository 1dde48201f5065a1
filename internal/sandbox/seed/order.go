package seed

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/nbd-wtf/go-nostr"
	"github.com/nbd-wtf/go-nostr/nip44"
)

// tradeKeyAuthorizationKind is signed by the guest and never published by itself.
const tradeKeyAuthorizationKind = 1329

// orderContent is the content of an order, in the order of spec 50 §3.2.
type orderContent struct {
	Start     string      `json:"start,omitempty"`
	End       string      `json:"end,omitempty"`
	Proof     *orderProof `json:"proof"`
	Stage     string      `json:"stage"`
	Quantity  int         `json:"quantity"`
	Amount    *amount     `json:"amount,omitempty"`
	Recipient string      `json:"recipient,omitempty"`
}

// orderProof holds the listing as it was when it was booked. The market has no chains,
// so that nothing was paid.
type orderProof struct {
	Listing      wireEvent `json:"listing"`
	PaymentProof *struct{} `json:"paymentProof"`
}

type amount struct {
	Value        string `json:"value"`
	Denomination string `json:"denomination"`
	Decimals     int    `json:"decimals"`
}

// wireEvent is an event whose keys come in the order of spec 50 §2.3.
type wireEvent struct {
	ID        string          `json:"id"`
	PubKey    string          `json:"pubkey"`
	CreatedAt nostr.Timestamp `json:"created_at"`
	Kind      int             `json:"kind"`
	Tags      nostr.Tags      `json:"tags"`
	Content   string          `json:"content"`
	Sig       string          `json:"sig"`
}

func onWire(e nostr.Event) wireEvent {
	return wireEvent{e.ID, e.PubKey, e.CreatedAt, e.Kind, e.Tags, e.Content, e.Sig}
}

func (c orderContent) text() string { return compact(c) }

// compact writes JSON as it is hashed: without blanks, with <, > and & as they are.
func compact(value any) string {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		panic(fmt.Sprintf("%T always encodes: %v", value, err))
	}
	return string(bytes.TrimRight(text.Bytes(), "\n"))
}

// booking is what an order of a guest is made of.
type booking struct {
	seed    int64
	listing Listing
	ownKey  bool
	made    nostr.Timestamp
}

// book signs the guest's commitment and the host's acceptance; of a cancelled stay, the
// guest's cancellation in place of the commitment, as the relay keeps one order of each
// author.
func (s *Stay) book(b booking) error {
	key := s.Guest.PrivateKey
	if !b.ownKey {
		sum := digest(b.seed, "trade key "+s.TradeID, 0)
		key = hex.EncodeToString(sum[:])
	}
	var err error
	if s.BuyerPubkey, err = nostr.GetPublicKey(key); err != nil {
		return fmt.Errorf("trade key of %s: %w", s.TradeID, err)
	}
	content := orderContent{
		Start: iso(s.Start), End: iso(s.End), Stage: "commit", Quantity: 1,
		Amount: b.price(s.Start, s.End), Recipient: s.BuyerPubkey,
	}
	parties := nostr.Tags{
		{"a", s.Anchor}, {"d", s.TradeID}, {"p", b.listing.Host.PublicKey, "", "seller"}, {"p", s.BuyerPubkey, "", "buyer"},
	}
	acceptance, err := signed(b.listing.Host.PrivateKey, OrderKind, b.made+60, append(clone(parties), publishedAt(b.made+60)), content.text())
	if err != nil {
		return err
	}
	tags := clone(parties)
	if !b.ownKey {
		proofs, err := s.proofs(key, b.listing.Host.PublicKey, b)
		if err != nil {
			return err
		}
		tags = append(tags, proofs...)
	}
	created := b.made
	content.Proof = &orderProof{Listing: onWire(b.listing.Event)}
	if s.State == Cancelled {
		content.Stage, created = "cancel", b.made+7200
	}
	commitment, err := signed(key, OrderKind, created, append(tags, publishedAt(b.made)), content.text())
	s.Orders = []nostr.Event{commitment, acceptance}
	return err
}

// price is that of all nights, by the day.
func (b booking) price(start, end time.Time) *amount {
	daily := b.listing.Prices[0]
	daily.Units *= int64(end.Sub(start) / (24 * time.Hour))
	return &amount{Value: daily.Amount(), Denomination: daily.Denomination, Decimals: daily.decimals()}
}

// proofs tell host and guest alone whose the trade key is (spec 50 §6.2).
func (s *Stay) proofs(tradeKey, host string, b booking) (nostr.Tags, error) {
	if err := s.authorize(b.made); err != nil {
		return nil, err
	}
	hash := sha256.Sum256([]byte(s.authorization))
	var tags nostr.Tags
	for i, reader := range []string{host, s.BuyerPubkey} {
		conversation, err := nip44.GenerateConversationKey(reader, tradeKey)
		if err != nil {
			return nil, fmt.Errorf("participant proof of %s: %w", s.TradeID, err)
		}
		nonce := digest(b.seed, "nonce "+s.TradeID, i)
		payload, err := nip44.Encrypt(s.authorization, conversation, nip44.WithCustomNonce(nonce[:]))
		if err != nil {
			return nil, fmt.Errorf("participant proof of %s: %w", s.TradeID, err)
		}
		tags = append(tags, nostr.Tag{"participant_proof", "buyer", s.BuyerPubkey, reader, "nip44", hex.EncodeToString(hash[:]), payload})
	}
	return tags, nil
}

// authorize has the guest sign that the trade key is theirs (spec 50 §6.1).
func (s *Stay) authorize(made nostr.Timestamp) error {
	content := compact(struct {
		Version           int    `json:"version"`
		Role              string `json:"role"`
		ParticipantPubkey string `json:"participantPubkey"`
	}{1, "buyer", s.BuyerPubkey})
	event, err := signed(s.Guest.PrivateKey, tradeKeyAuthorizationKind, made, nostr.Tags{{"a", s.Anchor}, {"d", s.TradeID}}, content)
	s.authorization = compact(onWire(event))
	return err
}

func signed(key string, kind int, created nostr.Timestamp, tags nostr.Tags, content string) (nostr.Event, error) {
	event := nostr.Event{Kind: kind, CreatedAt: created, Tags: tags, Content: content}
	if err := event.Sign(key); err != nil {
		return event, fmt.Errorf("an event of kind %d: %w", kind, err)
	}
	return event, nil
}

func publishedAt(at nostr.Timestamp) nostr.Tag {
	return nostr.Tag{"published_at", strconv.FormatInt(int64(at), 10)}
}

// iso writes an instant as order contents do (spec 50 §2.2).
func iso(at time.Time) string { return at.Format("2006-01-02T15:04:05.000Z") }

func clone(tags nostr.Tags) nostr.Tags { return append(nostr.Tags(nil), tags...) }
