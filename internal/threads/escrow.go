package threads

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/market"
)

// EscrowThread is the conversation that buyer, seller and escrow of a trade share.
type EscrowThread struct {
	// Thread may be one without messages, which exists nowhere before something is sent.
	Thread *market.Thread
	People TradePeople
}

// EscrowThread returns the thread of everybody who takes part in a trade (spec 60 §9.4).
// It waits up to the limit for the trade's orders. Errors are
// escrow_thread_resolution_failed, the cause of ctx, and that of a closed session.
func (s *Service) EscrowThread(ctx context.Context, tradeID string, limit time.Duration) (EscrowThread, error) {
	people, err := s.trades.Resolve(ctx, tradeID, limit)
	if fault.Is(err, fault.EscrowThreadResolutionFailed) {
		return EscrowThread{}, fault.From(err).WithHint("hostr_trips_list and hostr_bookings_list show the trades; an escrow takes part in one once it is paid through that escrow.")
	}
	if err != nil {
		return EscrowThread{}, err
	}
	// Public orders may name anything as a pubkey.
	people.Participants = slices.DeleteFunc(slices.Clone(people.Participants), func(pubkey string) bool { return !nostr.IsValidPublicKey(pubkey) })
	return EscrowThread{Thread: s.exactly(people.Participants, strings.TrimSpace(tradeID)), People: people}, nil
}
