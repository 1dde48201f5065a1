package giftwrap

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/big"

	"github.com/decred/dcrd/dcrec/secp256k1/v4"
	"github.com/nbd-wtf/go-nostr"
	"github.com/nbd-wtf/go-nostr/nip44"

	"hostr-daemon/internal/market"
)

// maxBackdate is how far in the past seals and wraps are dated, in seconds: less than
// two days (NIP-59).
const maxBackdate = 172800

// CheckSize returns an ErrTooLarge for a message that cannot be wrapped. Whoever sends
// several copies asks before the first one leaves.
func CheckSize(rumor *nostr.Event) error {
	_, err := encodeRumor(rumor)
	return err
}

// Wrap seals a message of the account for the recipient, 64 lower-case hex digits, and
// wraps it with a key of its own (spec 60 §3.2). It asks the account for one
// encryption and one signature. Seal and wrap are dated at random within the two days
// before now; random is a source of secrets, crypto/rand.Reader.
func Wrap(
	ctx context.Context, account Account, rumor *nostr.Event, recipient string, now nostr.Timestamp, random io.Reader,
) (*nostr.Event, error) {
	if rumor.PubKey != account.PublicKey() {
		return nil, errors.New("a message can be sealed only by its author")
	}
	text, err := encodeRumor(rumor)
	if err != nil {
		return nil, err
	}
	seal, err := newSeal(ctx, account, text, recipient, now, random)
	if err != nil {
		return nil, fmt.Errorf("sealing a message for %.64s: %w", recipient, err)
	}
	wrap, err := newWrap(seal, recipient, now, random)
	if err != nil {
		return nil, fmt.Errorf("wrapping a message for %.64s: %w", recipient, err)
	}
	return wrap, nil
}

func encodeRumor(rumor *nostr.Event) (string, error) {
	unsigned := *rumor
	unsigned.ID, unsigned.Sig = rumor.GetID(), ""
	text := market.EncodeEmbeddedEvent(&unsigned)
	if len(text) > MaxRumor {
		return "", fmt.Errorf("%w: it has %d bytes, of at most %d", ErrTooLarge, len(text), MaxRumor)
	}
	return text, nil
}

func newSeal(
	ctx context.Context, account Account, rumor, recipient string, now nostr.Timestamp, random io.Reader,
) (*nostr.Event, error) {
	createdAt, err := backdated(now, random)
	if err != nil {
		return nil, err
	}
	content, err := account.NIP44Encrypt(ctx, recipient, rumor)
	if err != nil {
		return nil, err
	}
	seal := &nostr.Event{
		PubKey: account.PublicKey(), CreatedAt: createdAt, Kind: market.KindSeal, Tags: nostr.Tags{}, Content: content,
	}
	return seal, account.SignEvent(ctx, seal)
}

// newWrap hides the seal and its author. The texts of the libraries' errors may hold
// the key, so they are not passed on.
func newWrap(seal *nostr.Event, recipient string, now nostr.Timestamp, random io.Reader) (*nostr.Event, error) {
	createdAt, err := backdated(now, random)
	if err != nil {
		return nil, err
	}
	oneTime, err := secp256k1.GeneratePrivateKeyFromRand(random)
	if err != nil {
		return nil, errors.New("no one-time key could be drawn")
	}
	defer oneTime.Zero()
	key := hex.EncodeToString(oneTime.Serialize())
	conversationKey, err := nip44.GenerateConversationKey(recipient, key)
	if err != nil {
		return nil, errors.New("the recipient is no public key")
	}
	content, err := nip44.Encrypt(market.EncodeEmbeddedEvent(seal), conversationKey)
	if err != nil {
		return nil, errors.New("the seal cannot be encrypted")
	}
	wrap := &nostr.Event{
		CreatedAt: createdAt, Kind: market.KindGiftWrap, Tags: nostr.Tags{{"p", recipient}}, Content: content,
	}
	if err := wrap.Sign(key); err != nil {
		return nil, errors.New("the wrap cannot be signed")
	}
	return wrap, nil
}

// backdated returns a time of the two days that end now.
func backdated(now nostr.Timestamp, random io.Reader) (nostr.Timestamp, error) {
	seconds, err := rand.Int(random, big.NewInt(maxBackdate))
	if err != nil {
		return 0, fmt.Errorf("drawing a date: %w", err)
	}
	return now - nostr.Timestamp(seconds.Int64()), nil
}
