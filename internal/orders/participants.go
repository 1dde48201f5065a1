package orders

import (
	"context"
	"fmt"
	"sync"

	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/market"
)

// plan returns the tags of those who take part in an order that key signs. A guest who
// hides behind the trade key gets an authorization by the account.
func (s *Service) plan(ctx context.Context, key Signer, parties market.TradeParties, listingAnchor, tradeID string) (nostr.Tags, error) {
	participants := parties.Participants()
	s.hint(ctx, participants)
	for i, participant := range participants {
		if !participant.Hidden() {
			continue
		}
		authorization, err := s.authorize(ctx, market.TradeKeyTerms{
			Identity: participant.Identity, Participant: participant.Pubkey, Role: participant.Role,
			ListingAnchor: listingAnchor, TradeID: tradeID,
		})
		if err != nil {
			return nil, err
		}
		participants[i].Authorization = authorization
	}
	return market.PlanParticipants(participants, func(recipient, plaintext string) (string, error) {
		return key.NIP44Encrypt(ctx, recipient, plaintext)
	})
}

// authorize has the account sign that it stands behind a trade key.
func (s *Service) authorize(ctx context.Context, terms market.TradeKeyTerms) (string, error) {
	event := market.DraftTradeKeyAuthorization(terms, s.timestamp())
	if err := s.config.Account.SignEvent(ctx, event); err != nil {
		return "", fmt.Errorf("nothing was sent, because the authorization of the trade key was not signed: %w", err)
	}
	return market.EncodeEmbeddedEvent(event), nil
}

// hint sets the relays of the participants as far as they are known soon. Trade keys
// have none.
func (s *Service) hint(ctx context.Context, participants []market.PlannedParticipant) {
	ctx, cancel := context.WithTimeout(ctx, s.limits.hint)
	defer cancel()
	var asking sync.WaitGroup
	for i := range participants {
		participant := &participants[i]
		if participant.Role == market.RoleBuyer {
			continue
		}
		asking.Go(func() {
			s.contain("finding a relay", func() { participant.RelayHint = s.config.People.RelayHint(ctx, participant.Pubkey) })
		})
	}
	asking.Wait()
}
