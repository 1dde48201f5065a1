package conversation

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nbd-wtf/go-nostr"
	"github.com/nbd-wtf/go-nostr/nip44"

	"hostr-daemon/internal/derivation"
	"hostr-daemon/internal/sandbox"
	"hostr-daemon/internal/sandbox/seed"
)

// Event kinds that another program of the guest reads and writes.
const (
	accountSeedKind   = 17389
	escrowMethodKind  = 17388
	escrowServiceKind = 30303
	transitionKind    = 1326
)

// payingProgram is another Hostr program of the guest, one that can pay. It knows the
// guest's key and what the relay holds, and nothing that only the daemon knows.
type payingProgram struct {
	market  *sandbox.Market
	guest   sandbox.Person
	listing sandbox.Listing
}

// book publishes the guest's order for terms both sides agreed on. The market has no
// chain, so the payment it names never was: the daemon cannot ask, and takes the order
// for one that waits to be confirmed.
func (p payingProgram) book(ctx context.Context, agreed Event) (nostr.Event, error) {
	key, err := p.tradeKey(ctx, value(agreed.event(), "d"))
	if err != nil {
		return nostr.Event{}, err
	}
	order, err := p.order(ctx, key, agreed)
	if err != nil {
		return order, err
	}
	transition, err := committed(key, order)
	if err != nil {
		return order, err
	}
	return order, publish(ctx, p.market.RelayURL, p.guest, order, transition)
}

// tradeKey is the guest's key of a trade, from the account seed that the guest's
// programs share: encrypted, on the relay.
func (p payingProgram) tradeKey(ctx context.Context, tradeID string) (string, error) {
	stored, err := p.newest(ctx, accountSeedKind, p.guest)
	if err != nil {
		return "", err
	}
	plaintext, err := decrypt(p.guest.PrivateKey, p.guest.PublicKey, stored.Content)
	if err != nil {
		return "", err
	}
	var backup struct{ Seed string }
	if err := json.Unmarshal([]byte(plaintext), &backup); err != nil {
		return "", errors.New("the seed's backup is not readable")
	}
	accountSeed, err := derivation.ParseSeed(backup.Seed)
	if err != nil {
		return "", fmt.Errorf("the guest's seed: %w", err)
	}
	keys, err := derivation.NewKeys(accountSeed)
	if err != nil {
		return "", err
	}
	const most = 20 // trades the guest may have begun
	for index := range uint32(most) {
		if id, err := keys.TradeID(index); err != nil || id != tradeID {
			continue
		}
		key, err := keys.Trade(index)
		return key.Hex(), err
	}
	return "", fmt.Errorf("trade %s is none of the guest's seed", shortID(tradeID))
}

// newest is what the relay holds of a kind by an author. Daemons publish some of it on
// their own, so that it may come in a moment.
func (p payingProgram) newest(ctx context.Context, kind int, author sandbox.Person) (nostr.Event, error) {
	ctx, cancel := context.WithTimeout(ctx, sightTimeout)
	defer cancel()
	for {
		found, err := p.market.Relay.Query(ctx, nostr.Filter{Kinds: []int{kind}, Authors: []string{author.PublicKey}})
		if err != nil {
			return nostr.Event{}, err
		}
		if len(found) > 0 {
			return found[0], nil
		}
		select {
		case <-time.After(sightPause):
		case <-ctx.Done():
			return nostr.Event{}, fmt.Errorf("the relay holds no kind %d by the %s", kind, author.Role)
		}
	}
}

// order signs the booking: the agreed terms with the listing, the payment and the
// escrow, and the proof of who the guest is, for each of the three.
func (p payingProgram) order(ctx context.Context, key string, agreed Event) (nostr.Event, error) {
	buyer, err := nostr.GetPublicKey(key)
	if err != nil {
		return nostr.Event{}, err
	}
	terms := agreed.terms()
	terms.Stage = "commit"
	if terms.Proof, err = p.proof(ctx); err != nil {
		return nostr.Event{}, err
	}
	host, escrow := p.listing.Host.PublicKey, p.market.Escrow.PublicKey
	tags := nostr.Tags{
		{"a", p.listing.Anchor}, {"d", value(agreed.event(), "d")},
		{"p", host, "", "seller"}, {"p", buyer, "", "buyer"}, {"p", escrow, "", "escrow"},
	}
	authorization, err := authorizationIn(agreed, key, buyer)
	if err != nil {
		return nostr.Event{}, err
	}
	for _, reader := range []string{host, buyer, escrow} {
		payload, err := encrypt(key, reader, authorization)
		if err != nil {
			return nostr.Event{}, err
		}
		tags = append(tags, nostr.Tag{"participant_proof", "buyer", buyer, reader, "nip44", digest(authorization), payload})
	}
	now := nostr.Now()
	tags = append(tags, nostr.Tag{"published_at", strconv.FormatInt(int64(now), 10)})
	return signed(key, seed.OrderKind, now, tags, compact(terms))
}

// proof is the listing with the payment and the escrow it went to (spec 50 §3.3).
func (p payingProgram) proof(ctx context.Context) (json.RawMessage, error) {
	method, err := p.newest(ctx, escrowMethodKind, p.listing.Host) // which escrows are welcome
	if err != nil {
		return nil, err
	}
	escrow := p.market.Escrow
	service, err := signed(escrow.PrivateKey, escrowServiceKind, nostr.Now(), nostr.Tags{{"d", "sandbox"}},
		compact(map[string]string{"pubkey": escrow.PublicKey, "type": "EVM"}))
	if err != nil {
		return nil, err
	}
	return json.RawMessage(compact(map[string]any{
		"listing":      newEvent(p.listing.Event),
		"paymentProof": map[string]any{"method": "evm", "params": map[string]string{"txHash": "0x" + digest(p.listing.Anchor)}},
		"escrow": map[string]string{
			"escrowService": compact(newEvent(service)), "sellerEscrowMethod": compact(newEvent(method)),
		},
	})), nil
}

// authorizationIn is the guest's word that the trade key is theirs, which the agreed
// order holds for the key itself (spec 50 §6.4).
func authorizationIn(agreed Event, key, buyer string) (string, error) {
	for _, tag := range agreed.Tags {
		if len(tag) > 6 && tag[0] == "participant_proof" && tag[2] == buyer && tag[3] == buyer {
			return decrypt(key, agreed.PubKey, tag[6])
		}
	}
	return "", errors.New("the agreed order does not hold the proof of who the guest is")
}

// committed records the booking (kind 1326), as every public step of a trade is.
func committed(key string, order nostr.Event) (nostr.Event, error) {
	terms := newEvent(order).terms()
	hash := digest(compact(struct { // the terms alone, by their names (spec 50 §4)
		Amount    *TermsAmount `json:"amount,omitempty"`
		End       string       `json:"end,omitempty"`
		Quantity  int          `json:"quantity"`
		Recipient string       `json:"recipient,omitempty"`
		Start     string       `json:"start,omitempty"`
	}{terms.Amount, terms.End, terms.Quantity, terms.Recipient, terms.Start}))
	content := compact(struct {
		Type string `json:"transitionType"`
		From string `json:"fromStage"`
		To   string `json:"toStage"`
		Hash string `json:"commitTermsHash"`
	}{"commit", "negotiate", "commit", hash})
	tags := nostr.Tags{{"d", value(order, "d")}, {"e", order.ID}, {"a", value(order, "a")}}
	return signed(key, transitionKind, order.CreatedAt, tags, content)
}

func signed(key string, kind int, created nostr.Timestamp, tags nostr.Tags, content string) (nostr.Event, error) {
	event := nostr.Event{Kind: kind, CreatedAt: created, Tags: tags, Content: content}
	if err := event.Sign(key); err != nil {
		return event, fmt.Errorf("signing kind %d: %w", kind, err)
	}
	return event, nil
}

func encrypt(key, reader, plaintext string) (string, error) {
	conversation, err := nip44.GenerateConversationKey(reader, key)
	if err != nil {
		return "", fmt.Errorf("a key to encrypt with: %w", err)
	}
	return nip44.Encrypt(plaintext, conversation)
}

func decrypt(key, author, payload string) (string, error) {
	conversation, err := nip44.GenerateConversationKey(author, key)
	if err != nil {
		return "", fmt.Errorf("a key to decrypt with: %w", err)
	}
	return nip44.Decrypt(payload, conversation)
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// compact writes JSON without blanks, with <, > and & as they are.
func compact(value any) string {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		panic(fmt.Sprintf("%T always encodes: %v", value, err))
	}
	return string(bytes.TrimRight(text.Bytes(), "\n"))
}
