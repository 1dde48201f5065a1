package trades

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/market"
	"hostr-daemon/internal/relay"
)

// Reserve returns the keys of the next trade account that was never used, for a trade
// to be begun (spec 50 §9.3). It waits for the account seed and, up to twenty seconds,
// for the messages. Persisted, the index is never given out again, unless it is
// released; a preview persists nothing, and shows what the next reservation will give,
// unless the service is asked for that trade id meanwhile: whatever is looked up counts
// as used.
//
// It fails, as a rule retryably, when the relay or a chain cannot tell whether an
// account was used, and on a device that has never read all messages, as long as it has
// not: the offers of another device are in there alone. There spec 50 §9.3 goes on with
// a warning, as is done here once an index is stored.
func (s *Service) Reserve(ctx context.Context, persist bool) (TradeKeys, error) {
	if err := s.learnKeys(ctx); err != nil {
		return TradeKeys{}, err
	}
	end, err := s.reserving.Take(ctx, s.me)
	if err != nil {
		return TradeKeys{}, err
	}
	defer end()
	if err := s.inbox.Await(ctx, s.limits.inbox); err != nil {
		return TradeKeys{}, err
	}
	stored, highest, err := s.ring.storedHighest(ctx)
	if err != nil {
		return TradeKeys{}, err
	}
	if !s.inbox.Live() {
		if stored == noIndex {
			return TradeKeys{}, fault.New(fault.UnexpectedError,
				"No trade account was reserved: the account's messages, which tell those that are used, are still being read. Try again in a minute.").Transient()
		}
		s.log.Warn().Str("event", "trades.reserved_without_messages").Send()
	}
	index, err := s.nextFree(ctx, highest)
	if err != nil {
		return TradeKeys{}, err
	}
	keys, err := s.tradeKeys(index)
	if err != nil || !persist {
		return keys, err
	}
	if err := s.ring.raise(ctx, index); err != nil {
		return TradeKeys{}, fmt.Errorf("storing that trade account %d is reserved: %w", index, err)
	}
	s.released.reserve(keys.TradeID, index)
	return keys, nil
}

// nextFree returns the lowest index that shows no use: of the released ones, else above
// the highest.
func (s *Service) nextFree(ctx context.Context, highest int) (int, error) {
	for _, index := range s.released.all() {
		taken, err := s.isTaken(ctx, index)
		if err != nil || !taken {
			return index, err
		}
		s.released.forget(index)
	}
	for index := max(highest+1, 1); ; index++ {
		if taken, err := s.isTaken(ctx, index); err != nil || !taken {
			return index, err
		}
	}
}

// Release gives a trade account back that was reserved for a trade of which nothing can
// have left this process; the trade id names it. The next reservation takes it, in this
// session: after that it is passed over. What was not reserved here, or was released
// before, is left alone.
func (s *Service) Release(keys TradeKeys) { s.released.release(keys.TradeID) }

// releasedIndexes are indexes that were reserved and not used, in this session. The
// highest stored index never falls.
type releasedIndexes struct {
	mu sync.Mutex
	// reserved are the indexes that were reserved and not released, by trade id.
	reserved map[string]int
	// free is sorted.
	free []int
}

func (r *releasedIndexes) reserve(tradeID string, index int) {
	r.forget(index)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.reserved == nil {
		r.reserved = map[string]int{}
	}
	r.reserved[tradeID] = index
}

func (r *releasedIndexes) release(tradeID string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	index, reserved := r.reserved[tradeID]
	if !reserved {
		return
	}
	delete(r.reserved, tradeID)
	at, _ := slices.BinarySearch(r.free, index)
	r.free = slices.Insert(r.free, at, index)
}

func (r *releasedIndexes) all() []int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.free)
}

func (r *releasedIndexes) forget(index int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.free = slices.DeleteFunc(r.free, func(other int) bool { return other == index })
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
