package orders

import (
	"context"
	"slices"
	"time"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/market"
)

// Lookup is what is public of a trade.
type Lookup struct {
	market.OrderLookup
	// Public are its orders, oldest first. Listing is today's version, nil when it could
	// not be loaded.
	Public  []market.Order
	Listing *market.Listing
	// Warning is set when no commit was found and there may be one, see PublicOrders.
	Warning *fault.Error
}

// Lookup waits until a trade has a public commit, for the limit at most, and returns
// what is public of it then (spec 51 §2.7). With a limit of 0 it is what is known. A
// trade without public orders is no error.
func (s *Service) Lookup(ctx context.Context, tradeID string, limit time.Duration) (Lookup, error) {
	public, err := s.config.Trades.WaitPublic(ctx, tradeID, PublicWait{Done: anyCommitted, Limit: limit})
	if err != nil {
		return Lookup{}, err
	}
	found := Lookup{Public: s.believed(tradeID, public.Orders)}
	if group, ok := market.NewOrderGroup(found.Public); ok {
		// A listing that cannot be loaded is left out.
		found.Listing, _, _ = s.config.Listings.Find(ctx, group.Listing())
		if ctx.Err() != nil {
			return Lookup{}, context.Cause(ctx)
		}
	}
	found.OrderLookup = market.NewOrderLookup(tradeID, found.Public, found.Listing)
	if !public.Complete && !found.Committed {
		found.Warning = fault.New(fault.PartialResult,
			"Trade %.80s may have orders that are not shown: the Hostr relay has not told yet what it has, or the account seed is not there yet. Ask again, with a longer waitSeconds.", tradeID).Transient()
	}
	return found, nil
}

// believed returns the public orders of a trade, or none where strangers alone have
// made them: in a trade that we have offered for as guest, the seller or our trade key
// has an order.
func (s *Service) believed(tradeID string, public []market.Order) []market.Order {
	private := s.readNegotiation(tradeID, nil).requests
	if len(private) == 0 || s.ownsListing(private[0]) {
		return public
	}
	trusted := s.config.Trades.TrustedAuthors(tradeID)
	if slices.ContainsFunc(public, func(order market.Order) bool { return slices.Contains(trusted, order.Event.PubKey) }) {
		return public
	}
	return nil
}
