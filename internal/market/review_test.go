package market_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/market"
)

func TestReview(t *testing.T) {
	t.Parallel()
	vectors := readTradeVectors(t)
	event := eventOf(t, vectors.Review)
	review, err := market.DecodeReview(event)
	want := market.Review{
		Event: event, TradeID: vectors.Parties.TradeID, ListingAnchor: vectors.Parties.ListingAnchor,
		OrderAnchor: "32122:" + vectors.Parties.TradeKey.PublicKey + ":" + vectors.Parties.TradeID,
		Stars:       4, Text: "Quiet place, easy check-in.",
		Proof: &market.ReviewProof{
			Role: market.RoleBuyer, ParticipantPubkey: vectors.Parties.TradeKey.PublicKey, Authorization: vectors.TradeKeyAuthorization.Plaintext,
		},
	}
	if diff := cmp.Diff(want, review); err != nil || diff != "" {
		t.Errorf("%v: %s", err, diff)
	}
	checkDraft(t, review.Draft(event.PubKey, event.CreatedAt), vectors.Review)
	proof, err := json.Marshal(market.ReviewProof{Role: market.RoleBuyer, ParticipantPubkey: "p", Authorization: "a"})
	if err != nil || string(proof) != `{"role":"buyer","participantPubkey":"p","authorizationPayload":"a"}` {
		t.Errorf("%s, %v", proof, err)
	}
}

func reviewEvent(ratings ...nostr.Tag) *nostr.Event {
	return &nostr.Event{Kind: market.KindReview, Tags: append(nostr.Tags{{"d", "trade"}, {"a", "listing"}}, ratings...)}
}

func TestRatings(t *testing.T) {
	t.Parallel()
	for _, vector := range readTradeVectors(t).RatingTagValue {
		tag := market.Review{Stars: vector.Stars}.Draft(author, 1).Tags[3]
		if diff := cmp.Diff(nostr.Tag{"rating", vector.Value, "thumb"}, tag); diff != "" {
			t.Error(diff)
		}
		if review, err := market.DecodeReview(reviewEvent(tag)); err != nil || review.Stars != vector.Stars {
			t.Errorf("%s is %d stars, %v", vector.Value, review.Stars, err)
		}
	}
	for stars, want := range map[int]string{0: "0", -3: "0", 6: "1", 1 << 40: "1"} {
		if got := (market.Review{Stars: stars}).Draft(author, 1).Tags[3][1]; got != want {
			t.Errorf("%d stars: %s", stars, got)
		}
	}
	for text, want := range map[string]int{
		"0.5": 3, "0.49": 2, "": 0, "good": 0, "NaN": 0, "-1": 0, "1e400": 5, "-1e400": 0, "7": 5, " 0.8 ": 4, "1.000": 5,
	} {
		if review, err := market.DecodeReview(reviewEvent(nostr.Tag{"rating", "0.2"}, nostr.Tag{"rating", text, "thumb"}, nostr.Tag{"rating", "0.2", "thumb"})); err != nil || review.Stars != want {
			t.Errorf("%q is %d stars instead of %d, %v", text, review.Stars, want, err)
		}
	}
}

func TestDecodeReviewRefuses(t *testing.T) {
	t.Parallel()
	rated := nostr.Tag{"rating", "1", "thumb"}
	other := reviewEvent(rated)
	other.Kind = 1
	for name, event := range map[string]*nostr.Event{
		"nothing": nil, "another kind": other, "no rating": reviewEvent(), "another label": reviewEvent(nostr.Tag{"rating", "1", "clean"}),
		"no trade":   {Kind: market.KindReview, Tags: nostr.Tags{{"a", "listing"}, rated}},
		"no listing": {Kind: market.KindReview, Tags: nostr.Tags{{"d", "trade"}, rated}},
	} {
		if _, err := market.DecodeReview(event); !errors.Is(err, market.ErrNotReview) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if review, err := market.DecodeReview(reviewEvent(rated, nostr.Tag{"review_proof", "buyer", "p"})); err != nil || review.Proof != nil {
		t.Errorf("a short proof: %v, %+v", err, review.Proof)
	}
}

func TestNewReviewProof(t *testing.T) {
	t.Parallel()
	vectors := readTradeVectors(t)
	parties := vectors.Parties
	committed := readOrder(t, eventOf(t, vectors.PublicTrade.CommitOrder))
	unmarked, nameless := committed, committed
	unmarked.Participants = nil
	nameless.TradeID = ""
	decrypt := decryptWith(parties.TradeKey.PrivateKey)
	for name, test := range map[string]struct {
		order               market.Order
		role                market.Role
		recipient, identity string
		decrypt             market.Decrypt
		found               bool
	}{
		"buyer":            {committed, market.RoleBuyer, parties.TradeKey.PublicKey, parties.Buyer.PublicKey, decrypt, true},
		"by the recipient": {unmarked, market.RoleBuyer, parties.TradeKey.PublicKey, parties.Buyer.PublicKey, decrypt, true},
		"seller's copy":    {committed, market.RoleBuyer, parties.Seller.PublicKey, parties.Buyer.PublicKey, decryptWith(parties.Seller.PrivateKey), true},
		"somebody else":    {committed, market.RoleBuyer, parties.TradeKey.PublicKey, author, decrypt, false},
		"wrong key":        {committed, market.RoleBuyer, parties.TradeKey.PublicKey, parties.Buyer.PublicKey, decryptWith(parties.Buyer.PrivateKey), false},
		"no trade id":      {nameless, market.RoleBuyer, parties.TradeKey.PublicKey, parties.Buyer.PublicKey, decrypt, false},
		"seller":           {unmarked, market.RoleSeller, parties.Seller.PublicKey, parties.Seller.PublicKey, decrypt, false},
		"escrow":           {unmarked, market.RoleEscrow, parties.Escrow.PublicKey, parties.Escrow.PublicKey, decrypt, false},
		"another role":     {unmarked, "guest", parties.Escrow.PublicKey, parties.Escrow.PublicKey, decrypt, false},
	} {
		proof, err := market.NewReviewProof(test.order, test.role, test.recipient, test.identity, test.decrypt)
		if (err == nil) != test.found || err != nil && !errors.Is(err, market.ErrNoReviewProof) {
			t.Errorf("%s: %v", name, err)
		}
		if test.found && (proof.ParticipantPubkey != parties.TradeKey.PublicKey || proof.Authorization != vectors.TradeKeyAuthorization.Plaintext) {
			t.Errorf("%s: %+v", name, proof)
		}
	}
}

func FuzzRating(f *testing.F) {
	for _, seed := range []string{"0.8", "1e999", "-0", "NaN", " 0x1p-2 "} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, rating string) {
		review, err := market.DecodeReview(reviewEvent(nostr.Tag{"rating", rating, "thumb"}))
		if err != nil || review.Stars < 0 || review.Stars > 5 {
			t.Fatalf("%q is %d stars: %v", rating, review.Stars, err)
		}
	})
}
