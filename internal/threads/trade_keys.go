package threads

import (
	"context"
	"fmt"
	"slices"
	"time"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/market"
)

// persons returns the recipients with the trade keys that are known replaced by the
// people behind them. A key of which that is not known is refused: nobody reads what is
// sent to it. The limit bounds the wait for the orders that tell which keys are such.
func (s *Service) persons(ctx context.Context, pubkeys []string, limit time.Duration) ([]string, error) {
	unknown := s.strangers(pubkeys)
	if len(unknown) == 0 {
		return pubkeys, nil
	}
	items, err := s.allListed(ctx, limit)
	if err != nil {
		return nil, err
	}
	persons := slices.Clone(pubkeys)
	for i, pubkey := range pubkeys {
		if !slices.Contains(unknown, pubkey) {
			continue
		}
		switch identity, isKey := s.behind(ctx, pubkey, items); {
		case identity != "":
			persons[i] = identity
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case isKey:
			return nil, fault.New(fault.InvalidInput, "%s is the key that a guest uses for one trade alone: nobody reads messages to it.", pubkey).
				At(fmt.Sprintf("recipientPubkeys[%d]", i)).
				WithHint("Give the person's own pubkey, or the tradeId with recipientRole guest.")
		}
	}
	return persons, nil
}

// strangers returns those who have not written to the account: whoever has is a person.
func (s *Service) strangers(pubkeys []string) []string {
	wrote := map[string]bool{s.me: true}
	s.inbox.Read(func(threads *market.Threads) {
		for _, rumor := range threads.Inbox() {
			wrote[rumor.Event.PubKey] = true
		}
	})
	return slices.DeleteFunc(slices.Clone(pubkeys), func(pubkey string) bool { return wrote[pubkey] })
}

// behind returns who is behind a trade key, "" when that is not known, and whether the
// pubkey is one: the key has itself signed an order that proves to somebody whose it is.
func (s *Service) behind(ctx context.Context, pubkey string, items []market.TradeItem) (identity string, isKey bool) {
	for _, item := range items {
		if !slices.ContainsFunc(item.Group.Orders(), func(order market.Order) bool { return isTradeKey(pubkey, order) }) {
			continue
		}
		isKey = true
		people := item.Participants
		if pubkey == people.RawPubkey(market.RoleBuyer) && isProved(people, market.RoleBuyer) {
			return people.Pubkey(market.RoleBuyer), true
		}
	}
	for _, order := range s.privateOrders(pubkey) {
		if !isTradeKey(pubkey, order) || !market.IsSigned(order.Event) {
			continue
		}
		isKey = true
		for _, proof := range order.Proofs {
			if proof.Participant != pubkey {
				continue
			}
			if opened, err := order.OpenProof(proof, s.trades.Decrypt(ctx, order.TradeID)); err == nil {
				return opened.Identity, true
			}
		}
	}
	return "", isKey
}

func isTradeKey(pubkey string, order market.Order) bool {
	listing, _ := order.Listing()
	return order.Event.PubKey == pubkey && listing.PubKey != pubkey &&
		slices.ContainsFunc(order.Proofs, func(proof market.ParticipantProof) bool { return proof.Participant == pubkey })
}

// privateOrders returns the orders of an author in the account's messages.
func (s *Service) privateOrders(author string) (orders []market.Order) {
	s.inbox.Read(func(threads *market.Threads) {
		for _, thread := range threads.All() {
			for _, request := range thread.OrderRequests() {
				if request.Order.Event.PubKey == author {
					orders = append(orders, *request.Order)
				}
			}
		}
	})
	return orders
}
