package seed_test

import (
	"testing"

	"github.com/nbd-wtf/go-nostr/nip44"

	"hostr-daemon/internal/market"
	"hostr-daemon/internal/sandbox/geocoder"
	"hostr-daemon/internal/sandbox/seed"
)

// withStays is a market in which six listings have stays.
func withStays(t *testing.T) *seed.Market {
	t.Helper()
	places, err := geocoder.Places()
	if err != nil {
		t.Fatal(err)
	}
	made, err := seed.Make(seed.Options{
		Seed: 1, Hosts: 5, Guests: 6, Listings: 30, Stays: 6,
		Images: []seed.Image{{URL: "http://blossom.example/1.png"}}, Settlements: geocoder.Settlements(places),
	})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// The daemon's own domain, which shares nothing with the seed, reads the stays as they
// are meant.
func TestStaysAreReadAsTheyAreMeant(t *testing.T) {
	t.Parallel()
	made := withStays(t)
	listings := make(map[string]seed.Listing)
	for _, listing := range made.Listings {
		listings[listing.Anchor] = listing
	}
	orders := make(map[string][]market.Order)
	seen := make(map[string]int)
	for _, stay := range made.Stays {
		seen[stay.Anchor]++
		seen[string(stay.State)]++
		for i := range stay.Orders {
			order, err := market.DecodeOrder(&stay.Orders[i])
			if err != nil {
				t.Fatalf("%s stay %s: %v", stay.State, stay.TradeID, err)
			}
			orders[stay.Anchor] = append(orders[stay.Anchor], order)
		}
	}
	for _, stay := range made.Stays {
		days := market.DateRange{Start: stay.Start, End: stay.End}
		if got := market.AvailabilityOf(orders[stay.Anchor], days); got.Available == stay.Takes() || got.OrderGroupCount != 5 {
			t.Errorf("%s stay of %s: %+v", stay.State, stay.Start, got)
		}
		checkGroup(t, stay, listings[stay.Anchor].Host, orders[stay.Anchor])
		if stay.Review == nil {
			continue
		}
		seen["review"]++
		review, err := market.DecodeReview(&stay.Review.Event)
		if err != nil || review.Stars != stay.Review.Stars || review.Text != stay.Review.Text || review.Event.PubKey != stay.Guest.PublicKey {
			t.Errorf("review %+v, %v", review, err)
			continue
		}
		event := listings[stay.Anchor].Event
		listing, err := market.DecodeListing(&event)
		if err != nil {
			t.Fatal(err)
		}
		if verdict := review.Verify(orders[stay.Anchor], &listing, func(g market.OrderGroup) market.GroupVerification {
			return g.Verify(&listing, false, nil)
		}); !verdict.Valid {
			t.Errorf("the review of %s is not valid: %s", stay.TradeID, verdict.Reason)
		}
	}
	if len(seen) != 6+4 || seen["booked"] != 18 || seen["cancelled"] != 6 || seen["blocked"] != 6 || seen["review"] < 6 {
		t.Errorf("stays: %v", seen)
	}
}

// checkGroup compares the stay with its order group, and opens the proof for the host.
func checkGroup(t *testing.T, stay seed.Stay, host seed.Person, all []market.Order) {
	t.Helper()
	for _, group := range market.GroupOrders(all) {
		if group.TradeID() != stay.TradeID {
			continue
		}
		shown := group.Result()
		wantStage := map[seed.StayState]market.Stage{seed.Booked: "commit", seed.Cancelled: "cancel", seed.Blocked: "commit"}[stay.State]
		if shown.Stage != wantStage || group.BuyerPubkey() != stay.BuyerPubkey || !group.Start().Equal(stay.Start) || !group.End().Equal(stay.End) || len(shown.Orders) != len(stay.Orders) {
			t.Errorf("%s stay of %s: group %+v", stay.State, stay.Start, shown)
		}
		if stay.State == seed.Booked && (!shown.Confirmed || shown.ListingTitle == "") {
			t.Errorf("booked, but the group is %+v", shown)
		}
		for _, order := range group.Orders() {
			for _, proof := range order.Proofs {
				checkProof(t, stay, host, order, proof)
			}
		}
		return
	}
	t.Errorf("no group of trade %s", stay.TradeID)
}

func checkProof(t *testing.T, stay seed.Stay, host seed.Person, order market.Order, proof market.ParticipantProof) {
	t.Helper()
	if proof.Recipient != host.PublicKey {
		return // for the guest, who opens it with the trade key
	}
	opened, err := order.OpenProof(proof, func(_, sender, payload string) (string, error) {
		conversation, err := nip44.GenerateConversationKey(sender, host.PrivateKey)
		if err != nil {
			return "", err
		}
		return nip44.Decrypt(payload, conversation)
	})
	if err != nil || opened.Identity != stay.Guest.PublicKey {
		t.Errorf("the proof of %s names %s: %v", stay.TradeID, opened.Identity, err)
	}
}

func TestStaysAreGenuineAndTheSame(t *testing.T) {
	t.Parallel()
	first, second := withStays(t), withStays(t)
	ids := make(map[string]bool)
	for i, event := range first.Events() {
		if valid, err := event.CheckSignature(); !event.CheckID() || !valid || err != nil {
			t.Errorf("kind %d, %s: not genuine: %v", event.Kind, event.ID, err)
		}
		if event.ID != second.Events()[i].ID {
			t.Fatalf("event %d of kind %d differs from run to run", i, event.Kind)
		}
		if ids[event.ID] {
			t.Errorf("event %s comes twice", event.ID)
		}
		ids[event.ID] = true
	}
	if _, err := seed.Make(seed.Options{Stays: 1}); err == nil {
		t.Error("stays without guests")
	}
}
