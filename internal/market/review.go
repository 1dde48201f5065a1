package market

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/nbd-wtf/go-nostr"
)

// Review is what somebody says of a stay, kind 31555 (spec 50 §8).
type Review struct {
	// Event is the event as found, nil before there is one; it must not be changed.
	Event         *nostr.Event
	TradeID       string
	ListingAnchor string
	// OrderAnchor is the order reviewed; "" when the event does not say.
	OrderAnchor string
	// Stars is 0..5.
	Stars int
	Text  string
	// Proof is nil when the reviewer's identity key stands in the order itself.
	Proof *ReviewProof
}

// ReviewProof shows that the reviewer stands behind a trade key.
type ReviewProof struct {
	Role              Role   `json:"role"`
	ParticipantPubkey string `json:"participantPubkey"`
	// Authorization is the JSON text of the trade key authorization.
	Authorization string `json:"authorizationPayload"`
}

const (
	ratingTag      = "rating"
	ratingLabel    = "thumb"
	reviewProofTag = "review_proof"
	maxStars       = 5
)

// ErrNotReview is in the error of an event that is of another kind or lacks a
// tag every review has.
var ErrNotReview = errors.New("the event is not a review")

// DecodeReview reads a review. Whether its author took part in the trade is not
// checked here.
func DecodeReview(event *nostr.Event) (Review, error) {
	if event == nil || event.Kind != KindReview {
		return Review{}, ErrNotReview
	}
	review := Review{Event: event, Text: event.Content}
	tradeID, hasTrade := firstValue(event.Tags, "d")
	anchor, hasListing := firstValue(event.Tags, "a")
	rating, hasRating := ratingOf(event.Tags)
	if !hasTrade || !hasListing || !hasRating {
		return Review{}, fmt.Errorf("%w: it needs a d, an a and a rating tag", ErrNotReview)
	}
	review.TradeID, review.ListingAnchor, review.Stars = tradeID, anchor, starsOf(rating)
	review.OrderAnchor, _ = firstValue(event.Tags, "r")
	for _, tag := range event.Tags {
		if len(tag) >= 4 && tag[0] == reviewProofTag {
			review.Proof = &ReviewProof{Role: Role(tag[1]), ParticipantPubkey: tag[2], Authorization: tag[3]}
			break
		}
	}
	return review, nil
}

// Draft returns the unsigned event. Stars outside 0..5 are moved to the nearest.
func (r Review) Draft(reviewer string, now nostr.Timestamp) *nostr.Event {
	tags := nostr.Tags{
		{"d", r.TradeID}, {"r", r.OrderAnchor}, {"a", r.ListingAnchor}, {ratingTag, ratingText(r.Stars), ratingLabel},
	}
	if r.Proof != nil {
		tags = append(tags, nostr.Tag{reviewProofTag, string(r.Proof.Role), r.Proof.ParticipantPubkey, r.Proof.Authorization})
	}
	return draft(reviewer, KindReview, now, r.Text, tags)
}

// ratingText returns the stars as a part of 1.
func ratingText(stars int) string {
	return [...]string{"0", "0.2", "0.4", "0.6", "0.8", "1"}[min(max(stars, 0), maxStars)]
}

// starsOf reads a part of 1; what is no number is 0.
func starsOf(rating string) int {
	part, err := strconv.ParseFloat(strings.TrimSpace(rating), 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) || math.IsNaN(part) {
		return 0
	}
	return int(math.Round(maxStars * min(max(part, 0), 1)))
}

func ratingOf(tags nostr.Tags) (string, bool) {
	for _, tag := range tags {
		if len(tag) >= 3 && tag[0] == ratingTag && tag[2] == ratingLabel {
			return tag[1], true
		}
	}
	return "", false
}

// ErrNoReviewProof says that an order holds no proof that the reviewer took part
// in it.
var ErrNoReviewProof = errors.New("the order holds no proof of the reviewer's part in it")

// NewReviewProof returns the proof that the identity stands behind the
// participant of that role (spec 50 §8.1). It is made of a proof of the order
// that is addressed to the recipient, with whose key decrypt works. Without one
// the error is ErrNoReviewProof.
func NewReviewProof(order Order, role Role, recipient, identity string, decrypt Decrypt) (ReviewProof, error) {
	terms := TradeKeyTerms{
		Identity: identity, Participant: order.reviewedParticipant(role), Role: role,
		ListingAnchor: order.ListingAnchor, TradeID: order.TradeID,
	}
	if terms.TradeID == "" || terms.Participant == "" {
		return ReviewProof{}, fmt.Errorf("%w: it has no trade id or no %s", ErrNoReviewProof, role)
	}
	opened, ok := order.findProof(terms, recipient, decrypt)
	if !ok {
		return ReviewProof{}, ErrNoReviewProof
	}
	return ReviewProof{Role: role, ParticipantPubkey: terms.Participant, Authorization: opened.Plaintext}, nil
}

// reviewedParticipant returns the pubkey of a role in the order; "" when unknown.
func (o Order) reviewedParticipant(role Role) string {
	if marked := o.ParticipantOf(role); marked != "" {
		return marked
	}
	switch role {
	case RoleBuyer:
		return o.BuyerPubkey()
	case RoleSeller:
		listing, _ := o.Listing()
		return listing.PubKey
	case RoleEscrow:
		if o.Proof != nil && o.Proof.Escrow != nil {
			return o.Proof.Escrow.EscrowPubkey()
		}
	}
	return ""
}
