package trades

import (
	"context"

	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/market"
)

// TradeKeys are what belongs to one trade account index.
type TradeKeys struct {
	Index   int
	TradeID string
	// Key is the trade key; it signs and reads without asking anybody.
	Key Signer
}

// Controls reports whether a pubkey is one of our keys for a trade: the account's or
// our trade key, once the seed is known (spec 50 §6.5). It returns at once.
func (s *Service) Controls(pubkey, tradeID string) bool { return s.ring.controls(pubkey, tradeID) }

// AwaitControls is Controls after the seed was found or made, which may take as long
// as the account's signer does.
func (s *Service) AwaitControls(ctx context.Context, pubkey, tradeID string) (bool, error) {
	if pubkey == s.me {
		return true, nil
	}
	if err := s.learnKeys(ctx); err != nil {
		return false, err
	}
	return s.Controls(pubkey, tradeID), nil
}

// TradeKeys returns our keys in a trade that we began as guest; false when we did not.
// It waits for the seed. For an order that we have sent, indexes far above the highest
// known one are looked through too: a device that is signed in anew knows none.
func (s *Service) TradeKeys(ctx context.Context, tradeID string) (TradeKeys, bool, error) {
	if err := s.learnKeys(ctx); err != nil {
		return TradeKeys{}, false, err
	}
	index, ok := s.ring.index(tradeID)
	if !ok && s.sentAsGuest(tradeID) {
		if err := s.findStrayed(ctx); err != nil {
			return TradeKeys{}, false, err
		}
		index, ok = s.ring.index(tradeID)
	}
	if !ok {
		return TradeKeys{}, false, nil
	}
	keys, err := s.tradeKeys(index)
	return keys, err == nil, err
}

func (s *Service) sentAsGuest(tradeID string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.known(tradeID).authors) > 0
}

// followStrayed looks for the keys of trades that we have sent orders of, and that are
// above the indexes that are looked through as a rule.
func (s *Service) followStrayed(ctx context.Context) {
	for {
		select {
		case <-s.strayed:
		case <-ctx.Done():
			return
		}
		if err := s.findStrayed(ctx); err != nil && ctx.Err() == nil {
			s.log.Warn().Str("event", "trades.keys_not_found").Err(err).Send()
		}
	}
}

// findStrayed has everything judged anew that keys were missing for.
func (s *Service) findStrayed(ctx context.Context) error {
	fresh, err := s.ring.scanFar(ctx)
	if err == nil && fresh {
		s.judgeAnew(func(t *trade, _ *tradeGroup) bool { return len(t.authors) > 0 })
	}
	return err
}

// hasStrayed reports whether the keys of a trade that we have begun as guest are not
// known. The lock is held.
func (s *Service) hasStrayed() bool {
	for _, t := range s.trades {
		if len(t.authors) > 0 {
			if _, found := s.ring.index(t.id); !found {
				return true
			}
		}
	}
	return false
}

// judgeAnew follows keys that have become known.
func (s *Service) judgeAnew(concerns func(*trade, *tradeGroup) bool) {
	s.inbox.Reassess()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.listed {
		for _, group := range t.groups {
			if concerns(t, group) {
				s.enqueue(group)
			}
		}
	}
	s.notify()
}

func (s *Service) tradeKeys(index int) (TradeKeys, error) {
	tradeID, err := s.ring.tradeID(index)
	if err != nil {
		return TradeKeys{}, err
	}
	key, err := s.ring.signer(index)
	if err != nil {
		return TradeKeys{}, err
	}
	return TradeKeys{Index: index, TradeID: tradeID, Key: key}, nil
}

// OwnKey returns the key that signs our part in a trade: the account's where the
// listing is its own, else our trade key (spec 50 §10). It is an error to take no part
// in the trade. It waits for the seed unless the listing is ours.
func (s *Service) OwnKey(ctx context.Context, listing market.Anchor, tradeID string) (Signer, error) {
	if listing.PubKey == s.me {
		return s.account, nil
	}
	keys, ours, err := s.TradeKeys(ctx, tradeID)
	if err != nil {
		return nil, err
	}
	if !ours {
		return nil, fault.New(fault.UnexpectedError,
			"This account takes no part in trade %.80s: it neither owns the listing nor has begun the trade with its account seed.", tradeID)
	}
	return keys.Key, nil
}

// Decrypt returns the decryption of what others have written in a trade, for proofs of
// its orders: with the account's key or our trade key. Anybody else's is an error.
func (s *Service) Decrypt(ctx context.Context, tradeID string) market.Decrypt {
	return func(recipient, sender, payload string) (string, error) {
		key, err := s.readerOf(recipient, tradeID)
		if err != nil {
			return "", err
		}
		if !nostr.IsValidPublicKey(sender) {
			return "", errForeign
		}
		ctx, cancel := context.WithTimeout(ctx, s.limits.signer)
		defer cancel()
		return key.NIP44Decrypt(ctx, sender, payload)
	}
}

var errForeign = fault.New(fault.UnexpectedError, "the text is not for this account")

// readerOf returns our key of that pubkey, as far as it is known now.
func (s *Service) readerOf(pubkey, tradeID string) (Signer, error) {
	if pubkey == s.me {
		return s.account, nil
	}
	if !s.Controls(pubkey, tradeID) {
		return nil, errForeign
	}
	index, ok := s.ring.index(tradeID)
	if !ok {
		return nil, errForeign
	}
	return s.ring.signer(index)
}
