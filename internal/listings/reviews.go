package listings

import (
	"context"

	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/market"
	"hostr-daemon/internal/relay"
)

// Reviews are what guests wrote about one listing. They are not verified.
type Reviews struct {
	// Events are signed, of kind 31555, in order of arrival.
	Events []*nostr.Event
	// Warning is set when the relay's answer was cut off.
	Warning *fault.Error
}

// Reviews returns the reviews that name each anchor, in the order of the anchors (spec
// 40 §13). Whether a listing exists is not checked.
func (s *Service) Reviews(ctx context.Context, anchors []market.Anchor) ([]Reviews, error) {
	return perAnchor(ctx, anchors, s.reviews)
}

func (s *Service) reviews(ctx context.Context, anchor market.Anchor) (Reviews, error) {
	filter := nostr.Filter{Kinds: []int{market.KindReview}, Tags: nostr.TagMap{"a": {anchor.String()}}}
	answer, err := s.relays.Query(ctx, filter, relay.QueryOptions{})
	if err != nil {
		return Reviews{}, err
	}
	reviews := Reviews{Warning: partial(answer, "There may be more reviews of the listing.")}
	for _, event := range answer.Events {
		if _, err := market.DecodeReview(event); err == nil {
			reviews.Events = append(reviews.Events, event)
		}
	}
	return reviews, nil
}
