package orders

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/market"
)

// confirms has the host confirm a booking in public.
func (p *person) confirms(commit *nostr.Event, escrow *person) {
	p.t.Helper()
	order, err := market.DecodeOrder(commit)
	if err != nil {
		p.t.Fatal(err)
	}
	p.publish(p.local, market.BlankOrder{
		Author: p.public, ListingAnchor: order.ListingAnchor, TradeID: order.TradeID,
		Participants: nostr.Tags{{"p", p.public, "", "seller"}, {"p", commit.PubKey, "", "buyer"}, {"p", escrow.public, "", "escrow"}},
	}.Confirm(nostr.Now()))
}

func TestReview(t *testing.T) {
	t.Parallel()
	host, guest, escrow := newPerson(t, commonRelay), newPerson(t, commonRelay), newPerson(t, commonRelay)
	at := host.offers(escrow)
	run := guest.start()
	offer := run.begin(at, nil).Order
	request := ReviewRequest{TradeID: offer.TradeID, Stars: 4, Content: "Quiet place, easy check-in.", DryRun: true}

	// An offer alone is no stay.
	unreviewable := refuseReview(t, run, request, fault.OrderNotReviewable)
	if unreviewable.Event != nil || unreviewable.Lookup.Found {
		t.Errorf("the details are %s", jsonOf(t, unreviewable))
	}
	commit := run.commit(at, offer, escrow)

	// Nor is what nobody has confirmed.
	unreviewable = refuseReview(t, run, request, fault.ReviewInvalid)
	if unreviewable.Event == nil || unreviewable.Event.Sig != nil || !unreviewable.Lookup.Committed {
		t.Errorf("the details are %s", jsonOf(t, unreviewable))
	}
	host.confirms(commit, escrow)

	preview, err := run.Review(patient(t), request)
	if err != nil {
		t.Fatal(err)
	}
	if preview.Event.Sig != "" || preview.Event.ID != preview.Event.GetID() || preview.Event.PubKey != guest.public || preview.Receipts != nil || !preview.Lookup.Found {
		t.Errorf("the preview is %s", preview.Event)
	}
	if reviews := guest.of(market.KindReview, offer.TradeID); len(reviews) != 0 {
		t.Errorf("the preview published %d reviews", len(reviews))
	}
	request.DryRun = false
	written, err := run.Review(patient(t), request)
	if err != nil {
		t.Fatal(err)
	}
	proof := written.Proof
	want := nostr.Tags{
		{"d", offer.TradeID}, {"r", "32122:" + commit.PubKey + ":" + offer.TradeID}, {"a", at.anchor.String()}, {"rating", "0.8", "thumb"},
		{"review_proof", "buyer", commit.PubKey, proof.Authorization},
	}
	if diff := cmp.Diff(want, written.Event.Tags); diff != "" || !market.IsSigned(written.Event) || written.Event.Content != request.Content {
		t.Errorf("the review %s: %s", written.Event, diff)
	}
	if len(written.Receipts) != 1 || !written.Receipts[0].BroadcastSuccessful {
		t.Errorf("receipts %v", written.Receipts)
	}
	if reviews := guest.of(market.KindReview, offer.TradeID); len(reviews) != 1 || reviews[0].ID != written.Event.ID {
		t.Errorf("the relay has %v", reviews)
	}

	// The host has no part in it.
	if _, err := host.start().Review(patient(t), ReviewRequest{TradeID: offer.TradeID, Stars: 5, Content: "x", DryRun: true, Wait: patience}); err == nil {
		t.Error("the host reviewed its own place")
	} else {
		coded(t, err, fault.UnexpectedError)
	}
	host.deletes(at.listing)
	if reason := refuseReview(t, run, request, fault.ReviewInvalid).Message(); reason != "The review would not count: the listing of the review was not found." {
		t.Errorf("the reason is %q", reason)
	}
}

// refuseReview has a review fail, whether it is a preview or not.
func refuseReview(t *testing.T, run *process, request ReviewRequest, code fault.Code) *Unreviewable {
	t.Helper()
	var refused *Unreviewable
	for _, dryRun := range []bool{false, true} {
		request.DryRun = dryRun
		_, err := run.Review(patient(t), request)
		failure := coded(t, err, code)
		if !errors.As(err, &refused) || refused.Reason != code {
			t.Fatalf("the error is %v", err)
		}
		details := failure.Details.(reviewDetails)
		if details.TradeID != request.TradeID || jsonOf(t, details.OrderLookup) != jsonOf(t, refused.Lookup) || jsonOf(t, details.Event) != jsonOf(t, refused.Event) {
			t.Errorf("details %s", jsonOf(t, details))
		}
	}
	return refused
}

func TestLookup(t *testing.T) {
	t.Parallel()
	host, guest, escrow := newPerson(t, commonRelay), newPerson(t, commonRelay), newPerson(t, commonRelay)
	at := host.offers(escrow)
	run := guest.start()
	for _, wait := range []time.Duration{0, time.Millisecond} {
		unknown, err := run.Lookup(patient(t), "nothing", wait)
		if err != nil || jsonOf(t, unknown.OrderLookup) != `{"tradeId":"nothing","found":false,"committed":false,"count":0,"orders":[]}` {
			t.Errorf("after %s: %s, %v", wait, jsonOf(t, unknown.OrderLookup), err)
		}
	}
	offer := run.begin(at, nil).Order
	if pending, err := run.Lookup(patient(t), offer.TradeID, 0); err != nil || pending.Found {
		t.Errorf("a negotiation is shown in public: %s, %v", jsonOf(t, pending.OrderLookup), err)
	}
	// It waits for what comes later: here for a commit by another process.
	type outcome struct {
		found Lookup
		err   error
	}
	late := make(chan outcome, 1)
	go func() {
		found, err := run.Lookup(patient(t), offer.TradeID, patience)
		late <- outcome{found, err}
	}()
	other := guest.start()
	commit := other.commit(at, offer, escrow)
	got := <-late
	if got.err != nil || !got.found.Committed || got.found.CommittedOrder.ID != commit.ID || got.found.Count != 1 || got.found.Warning != nil {
		t.Fatalf("found %s, %v", jsonOf(t, got.found.OrderLookup), got.err)
	}
	if got.found.OrderLookup.Listing == nil || got.found.OrderLookup.Listing.Title != "Lake cabin" || got.found.Group.Stage != market.StageCommit {
		t.Errorf("found %s", jsonOf(t, got.found.OrderLookup))
	}
	if _, err := other.Cancel(patient(t), CancelRequest{TradeID: offer.TradeID, Wait: patience}); err != nil {
		t.Fatal(err)
	}
	after, err := other.Lookup(patient(t), offer.TradeID, 0)
	if err != nil || !after.Found || after.Committed || after.Group.Stage != market.StageCancel {
		t.Errorf("after the cancellation: %s, %v", jsonOf(t, after.OrderLookup), err)
	}
}

// Who no longer waits gets an answer at once.
func TestWaitsEndWithTheCaller(t *testing.T) {
	t.Parallel()
	run := newPerson(t, commonRelay).start()
	gone := errors.New("gone")
	for name, wait := range map[string]func(ctx context.Context) error{
		"a look-up": func(ctx context.Context) error {
			_, err := run.Lookup(ctx, "nothing", time.Hour)
			return err
		},
		"a review": func(ctx context.Context) error {
			_, err := run.Review(ctx, ReviewRequest{TradeID: "nothing", Stars: 1, Content: "x", Wait: time.Hour})
			return err
		},
	} {
		ctx, cancel := context.WithCancelCause(patient(t))
		ended := make(chan error, 1)
		go func() { ended <- wait(ctx) }()
		cancel(gone)
		if err := <-ended; !errors.Is(err, gone) {
			t.Errorf("%s ends with %v", name, err)
		}
	}
}

func TestLists(t *testing.T) {
	t.Parallel()
	host, guest, escrow := newPerson(t, commonRelay), newPerson(t, commonRelay), newPerson(t, commonRelay)
	at := host.offers(escrow)
	host.publish(host.local, &nostr.Event{Kind: nostr.KindProfileMetadata, CreatedAt: nostr.Now(), Content: `{"name":"lakeside","display_name":"Lakeside Host"}`})
	run := guest.start()
	run.begin(at, nil) // a negotiation is no trip
	var tradeIDs []string
	for i := range 3 {
		request := at.request(false)
		request.Start, request.End = day(5+2*i), day(7+2*i)
		offer, err := run.FirstOffer(patient(t), request)
		if err != nil {
			t.Fatal(err)
		}
		run.commit(at, offer.Order, escrow)
		tradeIDs = append(tradeIDs, offer.Order.TradeID)
	}
	if _, err := run.Cancel(patient(t), CancelRequest{TradeID: tradeIDs[2], Wait: patience}); err != nil {
		t.Fatal(err)
	}
	trips, err := run.List(patient(t), market.Trips, 2, patience)
	if err != nil || len(trips.Items) != 2 || trips.Invalid != 1 || trips.Warning != nil {
		t.Fatalf("trips %s, %v", jsonOf(t, trips), err)
	}
	checkItem(t, trips.Items[0], market.Trips, host, guest, escrow)
	bookings, err := host.start().List(patient(t), market.Bookings, 50, patience)
	if err != nil || len(bookings.Items) != 3 || bookings.Invalid != 0 {
		t.Fatalf("bookings %s, %v", jsonOf(t, bookings), err)
	}
	for _, item := range bookings.Items {
		checkItem(t, item, market.Bookings, host, guest, escrow)
		if item.Group.Cancelled != (item.TradeID == tradeIDs[2]) {
			t.Errorf("trade %s is cancelled: %t", item.TradeID, item.Group.Cancelled)
		}
	}
	if none, err := host.start().List(patient(t), market.Trips, 50, patience); err != nil || none.Items == nil || len(none.Items) != 0 {
		t.Errorf("the host's trips are %s, %v", jsonOf(t, none), err)
	}
}

func checkItem(t *testing.T, item market.CollectionItem, mode market.CollectionMode, host, guest, escrow *person) {
	t.Helper()
	people := item.Participants
	if !item.Found || item.Mode != mode || !item.Valid || item.TradeID != item.Group.TradeID || item.Listing == nil || item.Listing.Title != "Lake cabin" {
		t.Errorf("the item is %s", jsonOf(t, item))
	}
	wantRoles := market.GroupRolesResult{Seller: host.public, Buyer: guest.public, Escrow: escrow.public}
	if diff := cmp.Diff(wantRoles, people.Roles); diff != "" || !people.HasResolvedParticipants || people.RawGroupID != item.Group.GroupID {
		t.Errorf("roles: %s in %s", diff, jsonOf(t, people))
	}
	want := market.RoleProfiles{
		Seller: &market.ProfileSummary{Pubkey: host.public, Name: "Lakeside Host", ProfileName: "lakeside", DisplayName: "Lakeside Host"},
		Buyer:  &market.ProfileSummary{Pubkey: guest.public, Name: guest.public[:8] + "..."},
		Escrow: &market.ProfileSummary{Pubkey: escrow.public, Name: escrow.public[:8] + "..."},
	}
	if diff := cmp.Diff(want, people.Profiles); diff != "" {
		t.Errorf("profiles: %s", diff)
	}
}
