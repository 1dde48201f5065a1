package threads

import (
	"context"
	"slices"
	"time"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/market"
)

// roleWords are the words for roles but the escrow's (spec 60 §9.5).
var roleWords = map[string]market.Role{
	"host": market.RoleSeller, "seller": market.RoleSeller,
	"guest": market.RoleBuyer, "buyer": market.RoleBuyer,
}

// rolePubkey returns the person who plays a role in the trade that the tag names, ""
// when it is not known (spec 60 §9.5, Q15). The threads are those of the trade. It is
// never a trade key, which nobody reads.
//
// What we have sent ourselves tells best, then our trades, in which those behind trade
// keys are proved. What others have sent comes last, and only as far as it agrees:
// anybody can write to us about a trade id that has become public.
func (s *Service) rolePubkey(ctx context.Context, role market.Role, known []*market.Thread, tag string, limit time.Duration) (string, error) {
	told := roleIn(role, known, tag)
	if role == "" || tag == "" {
		return told, nil
	}
	if seller := s.sellerWeWroteTo(known, tag); role == market.RoleSeller && seller != "" {
		return seller, nil
	}
	people, listed, err := s.listed(ctx, tag, limit)
	switch {
	case err != nil:
		return "", err
	case listed && isProved(people, role):
		return people.Pubkey(role), nil
	case told != "":
		return told, nil
	case listed:
		return people.ProvenPubkey(role), nil
	}
	resolved, err := s.trades.Resolve(ctx, tag, limit)
	if fault.Is(err, fault.EscrowThreadResolutionFailed) {
		return "", nil
	}
	if role == market.RoleSeller {
		return resolved.Seller, err
	}
	return resolved.Buyer, err
}

// listed returns who takes part in a trade of ours.
func (s *Service) listed(ctx context.Context, tradeID string, limit time.Duration) (market.GroupParticipants, bool, error) {
	items, err := s.allListed(ctx, limit)
	if err != nil {
		return market.GroupParticipants{}, false, err
	}
	for _, item := range items {
		if item.Group.TradeID() == tradeID {
			return item.Participants, true, nil
		}
	}
	return market.GroupParticipants{}, false, nil
}

// allListed returns the trips and then the bookings.
func (s *Service) allListed(ctx context.Context, limit time.Duration) ([]market.TradeItem, error) {
	trips, err := s.trades.Trips(ctx, limit)
	if err != nil {
		return nil, err
	}
	// Both wait for the same.
	bookings, err := s.trades.Bookings(ctx, 0)
	return slices.Concat(trips, bookings), err
}

// isProved reports whether the person in a role is known: a seller always acts as
// himself, a buyer by a trade key.
func isProved(people market.GroupParticipants, role market.Role) bool {
	return role == market.RoleSeller || people.Pubkey(role) != people.RawPubkey(role)
}

// sellerWeWroteTo returns the owner of the listing that our own orders are about.
func (s *Service) sellerWeWroteTo(known []*market.Thread, tag string) string {
	var sellers []string
	for _, request := range requestsOf(known, tag) {
		if request.Rumor.Event.PubKey == s.me {
			sellers = append(sellers, sellerOf(request))
		}
	}
	return only(sellers)
}

// roleIn returns who plays a role by the orders in the threads; "" when there are none,
// or they do not agree. The guest is the other one in the thread with the host.
func roleIn(role market.Role, known []*market.Thread, tag string) string {
	var sellers, buyers []string
	for _, thread := range known {
		for _, request := range requestsOf([]*market.Thread{thread}, tag) {
			seller := sellerOf(request)
			sellers = append(sellers, seller)
			if place := slices.Index(thread.Participants, seller); place >= 0 && len(thread.Participants) == 2 {
				buyers = append(buyers, thread.Participants[1-place])
			}
		}
	}
	switch role {
	case market.RoleSeller:
		return only(sellers)
	case market.RoleBuyer:
		return only(buyers)
	default:
		return ""
	}
}

func sellerOf(request market.OrderRequest) string {
	listing, _ := request.Order.Listing()
	return listing.PubKey
}

// requestsOf returns the orders in the threads that are of the trade; without a tag, all.
func requestsOf(known []*market.Thread, tag string) []market.OrderRequest {
	var requests []market.OrderRequest
	for _, thread := range known {
		for _, request := range thread.OrderRequests() {
			if tag == "" || request.Order.TradeID == tag {
				requests = append(requests, request)
			}
		}
	}
	return requests
}

// only returns the text if all are the same, else "".
func only(texts []string) string {
	if len(texts) == 0 || slices.ContainsFunc(texts, func(text string) bool { return text != texts[0] }) {
		return ""
	}
	return texts[0]
}
