package giftwrap

import (
	"context"
	"errors"
	"fmt"

	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/market"
	"hostr-daemon/internal/nip44guard"
)

// Unwrap opens a gift wrap that is addressed to the account and whose id and signature
// have been checked, as the relay layer does (spec 60 §4.1). It returns the message,
// unsigned, with the id that it should have, and its sender, who is its author. It
// asks the account for two decryptions. See ErrRejected.
func Unwrap(ctx context.Context, account Account, wrap *nostr.Event) (sender string, rumor *nostr.Event, err error) {
	if wrap == nil || wrap.Kind != market.KindGiftWrap {
		return "", nil, fmt.Errorf("%w: it is of another kind", ErrRejected)
	}
	seal, err := open(ctx, account, wrap)
	if err != nil {
		return "", nil, fmt.Errorf("the wrap: %w", err)
	}
	if seal.Kind != market.KindSeal || !market.IsSigned(seal) {
		return "", nil, fmt.Errorf("%w: its seal is of another kind or not signed", ErrRejected)
	}
	rumor, err = open(ctx, account, seal)
	if err != nil {
		return "", nil, fmt.Errorf("the seal: %w", err)
	}
	if rumor.PubKey != seal.PubKey {
		return "", nil, fmt.Errorf("%w: the author of the message did not seal it", ErrRejected)
	}
	rumor.ID, rumor.Sig = rumor.GetID(), ""
	return seal.PubKey, rumor, nil
}

// open decrypts and reads the event in another one's content. Its errors hold nothing
// of the text.
func open(ctx context.Context, account Account, outer *nostr.Event) (*nostr.Event, error) {
	if !nip44guard.IsPayload(outer.Content) {
		return nil, fmt.Errorf("%w: its content %w", ErrRejected, nip44guard.ErrUndecryptable)
	}
	text, err := account.NIP44Decrypt(ctx, outer.PubKey, outer.Content)
	switch {
	case errors.Is(err, nip44guard.ErrUndecryptable):
		return nil, fmt.Errorf("%w: %w", ErrRejected, err)
	case err != nil:
		return nil, fmt.Errorf("the account did not decrypt it: %w", err)
	}
	inner, err := market.DecodeEmbeddedEvent(text)
	if err != nil {
		return nil, fmt.Errorf("%w: it holds no event", ErrRejected)
	}
	return inner, nil
}
