package trades

import (
	"context"
	"fmt"

	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/market"
	"hostr-daemon/internal/relay"
)

// Reserve returns the keys of the next trade account that was never used, for a trade
// to be begun (spec 50 §9.3). It waits for the account seed and, up to twenty seconds,
// for the messages. Persisted, the index is never given out again; a preview persists
// nothing, and shows what the next reservation will give, unless the service is asked
// for that trade id meanwhile: whatever is looked up counts as used.
//
// It fails, as a rule retryably, when the relay or a chain cannot tell whether an
// account was used.
func (s *Service) Reserve(ctx context.Context, persist bool) (TradeKeys, error) {
	if err := s.learnKeys(ctx); err != nil {
		return TradeKeys{}, err
	}
	end, err := s.reserving.take(ctx, s.me)
	if err != nil {
		return TradeKeys{}, err
	}
	defer end()
	if err := s.inbox.Await(ctx, s.limits.inbox); err != nil {
		return TradeKeys{}, err
	}
	if !s.inbox.Live() {
		s.log.Warn().Str("event", "trades.reserved_without_messages").Send()
	}
	highest, err := s.ring.storedHighest(ctx)
	if err != nil {
		return TradeKeys{}, err
	}
	for index := max(highest+1, 1); ; index++ {
		taken, err := s.isTaken(ctx, index)
		if err != nil {
			return TradeKeys{}, err
		}
		if taken {
			continue
		}
		if persist {
			if err := s.ring.raise(ctx, index); err != nil {
				return TradeKeys{}, fmt.Errorf("storing that trade account %d is reserved: %w", index, err)
			}
		}
		return s.tradeKeys(index)
	}
}

// isTaken reports whether a trade account shows any use: by a thread, a public order,
// or on a chain.
func (s *Service) isTaken(ctx context.Context, index int) (bool, error) {
	tradeID, err := s.ring.tradeID(index)
	if err != nil {
		return false, err
	}
	var thread *market.Thread
	s.inbox.Read(func(threads *market.Threads) { thread = threads.OfTrade(tradeID) })
	if thread != nil {
		return true, nil
	}
	answer, err := s.relays.Query(ctx, ordersFilter(tradeID), relay.QueryOptions{})
	switch {
	case err != nil:
		return false, fmt.Errorf("asking whether trade account %d was used: %w", index, err)
	case len(answer.Events) > 0:
		return true, nil
	case !answer.Complete:
		return false, fault.New(fault.UnexpectedError,
			"No trade account was reserved, because it is not known whether the next one was used before. %s", answer.Warning().Message).Transient()
	case s.chains == nil:
		return false, nil
	}
	address, err := s.ring.address(index)
	if err != nil {
		return false, err
	}
	return s.chains.Used(ctx, address)
}

// ordersFilter asks for the public orders of a trade.
func ordersFilter(tradeID string) nostr.Filter {
	return nostr.Filter{Kinds: []int{market.KindOrder}, Tags: nostr.TagMap{"d": {tradeID}}}
}
