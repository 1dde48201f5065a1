package conversation

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/sandbox"
)

// nobodysAnchor names a listing that does not exist.
const nobodysAnchor = "30402:79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798:no-such-house"

// staying asks what a guest asks before booking: is it free, what do others say, who
// has booked.
func staying(m *sandbox.Market) []step {
	if len(m.Stays) == 0 {
		return nil
	}
	look := &looking{market: m, anchor: m.Stays[0].Anchor, guest: m.Guests[0]}
	return []step{
		{
			"Is it free?",
			"Bookings are public orders on the relay, under keys that do not tell who stays. The day of departure is free for the next " +
				"guest, a cancelled booking takes no days, and hosts block days for themselves.",
			look.availability,
		},
		{
			"What do others say?",
			"Reviews are signed by guests with their own keys.",
			look.reviews,
		},
		{
			"Who has booked?",
			"What guest and host have published about one stay is an order group.",
			look.orderGroups,
		},
	}
}

// looking is a guest before booking, not signed in. The bridge gives the name of the
// account all the same.
type looking struct {
	market *sandbox.Market
	anchor string // of the listing that is looked at
	guest  sandbox.Person
}

// stays returns those at the listing.
func (l *looking) stays(anchor string) []sandbox.Stay {
	return slices.DeleteFunc(slices.Clone(l.market.Stays), func(s sandbox.Stay) bool { return s.Anchor != anchor })
}

// days are dates to ask for.
type days struct {
	claim      string
	start, end time.Time
	free       bool
}

func (l *looking) questions() []days {
	var questions []days
	for _, stay := range l.stays(l.anchor) {
		switch {
		case stay.State == sandbox.Booked && stay.Review == nil && len(questions) == 0:
			questions = append(questions,
				days{"booked days are taken", stay.Start, stay.End, false},
				days{"a stay may begin on the day another ends", stay.End, stay.End.AddDate(0, 0, 3), true})
		case stay.State == sandbox.Cancelled:
			questions = append(questions, days{"days of a cancelled booking are free", stay.Start, stay.End, true})
		case stay.State == sandbox.Blocked:
			questions = append(questions, days{"days the host has blocked are taken", stay.Start, stay.End, false})
		}
	}
	return questions
}

func (l *looking) availability(ctx context.Context, t *talk) {
	for i, question := range l.questions() {
		anchors := []string{l.anchor}
		if i == 0 {
			anchors = append(anchors, nobodysAnchor)
		}
		var result Availability
		input := map[string]any{"anchors": anchors, "start": question.start.Format(time.DateOnly), "end": question.end.Format(time.DateOnly)}
		if !t.succeedAs(ctx, l.guest.PublicKey, "hostr.listings.availability", input, &result) {
			return
		}
		difference := l.compareAvailability(result, anchors, question.free)
		t.check(difference == "", fmt.Sprintf("%s to %s: %s", input["start"], input["end"], question.claim), difference)
	}
}

// compareAvailability returns what is wrong about the answer for the listing and,
// if asked for, for one that does not exist.
func (l *looking) compareAvailability(result Availability, anchors []string, free bool) string {
	if len(result.Results) != len(anchors) {
		return fmt.Sprintf("%d results for %d anchors", len(result.Results), len(anchors))
	}
	first, stays := result.Results[0], len(l.stays(l.anchor))
	switch {
	case first.Anchor != l.anchor || !first.Found || first.Listing == nil || first.Listing.Anchor != l.anchor:
		return "the listing was not found"
	case first.Available != free:
		return fmt.Sprintf("available is %t", first.Available)
	case first.OrderGroupCount != stays:
		return fmt.Sprintf("%d order groups instead of %d", first.OrderGroupCount, stays)
	}
	if len(anchors) > 1 && (result.Results[1].Found || result.Results[1].Available) {
		return "a listing that does not exist was found"
	}
	return ""
}

func (l *looking) reviews(ctx context.Context, t *talk) {
	var anchors []string
	for _, stay := range l.market.Stays {
		if !slices.Contains(anchors, stay.Anchor) && len(anchors) < 3 {
			anchors = append(anchors, stay.Anchor)
		}
	}
	var result Reviews
	if !t.succeedAs(ctx, l.guest.PublicKey, "hostr.listings.reviews", map[string]any{"anchors": anchors}, &result) {
		return
	}
	if len(result.Results) != len(anchors) {
		t.bad("%d results for %d anchors", len(result.Results), len(anchors))
		return
	}
	for i, anchor := range anchors {
		var want []sandbox.Review
		for _, stay := range l.stays(anchor) {
			if stay.Review != nil {
				want = append(want, *stay.Review)
			}
		}
		for _, review := range want {
			t.paper.Detail(strings.Repeat("★", review.Stars) + strings.Repeat("☆", 5-review.Stars) + " " + review.Text)
		}
		difference := compareReviews(result.Results[i], anchor, want)
		t.check(difference == "", fmt.Sprintf("exactly the reviews of the listing, each as its guest signed it: %d", len(want)), difference)
	}
}

func compareReviews(got ListingReviews, anchor string, want []sandbox.Review) string {
	if got.Anchor != anchor || got.Count != len(want) || len(got.Events) != len(want) {
		return fmt.Sprintf("count says %d, and there are %d reviews instead of %d", got.Count, len(got.Events), len(want))
	}
	for _, review := range want {
		found := slices.IndexFunc(got.Events, func(e Event) bool { return e.ID == review.Event.ID })
		if found < 0 {
			return "the review " + shortID(review.Event.ID) + " is missing"
		}
		if event := got.Events[found].event(); !genuine(event) || event.Content != review.Text {
			return "the review " + shortID(review.Event.ID) + " is not as it was signed"
		}
	}
	return ""
}

func genuine(event nostr.Event) bool {
	valid, err := event.CheckSignature()
	return event.CheckID() && valid && err == nil
}

func (l *looking) orderGroups(ctx context.Context, t *talk) {
	var result OrderGroups
	if !t.succeedAs(ctx, l.guest.PublicKey, "hostr.listings.orderGroups", map[string]any{"anchors": []string{l.anchor}}, &result) {
		return
	}
	stays := l.stays(l.anchor)
	for _, stay := range stays {
		t.paper.Detail(fmt.Sprintf("%s to %s: %s", stay.Start.Format(time.DateOnly), stay.End.Format(time.DateOnly), stay.State))
	}
	difference := "no result"
	if len(result.Results) == 1 {
		difference = compareGroups(result.Results[0], l.anchor, stays)
	}
	t.check(difference == "", fmt.Sprintf("exactly the %d stays of the listing, with every order", len(stays)), difference)
}

func compareGroups(got ListingOrderGroups, anchor string, stays []sandbox.Stay) string {
	if !got.Found || got.Anchor != anchor || got.Count != len(stays) || len(got.Groups) != len(stays) {
		return fmt.Sprintf("found is %t, count says %d, and there are %d groups instead of %d", got.Found, got.Count, len(got.Groups), len(stays))
	}
	for _, stay := range stays {
		found := slices.IndexFunc(got.Groups, func(g OrderGroup) bool { return g.TradeID == stay.TradeID })
		if found < 0 {
			return "there is no group of trade " + shortID(stay.TradeID)
		}
		if difference := compareGroup(got.Groups[found], stay); difference != "" {
			return fmt.Sprintf("trade %s: %s", shortID(stay.TradeID), difference)
		}
	}
	return ""
}

func compareGroup(got OrderGroup, stay sandbox.Stay) string {
	stage, cancelled := "commit", stay.State == sandbox.Cancelled
	if cancelled {
		stage = "cancel"
	}
	for _, field := range []struct{ name, got, want string }{
		{"stage", got.Stage, stage},
		{"cancelled", fmt.Sprint(got.Cancelled), fmt.Sprint(cancelled)},
		{"active", fmt.Sprint(got.Active), fmt.Sprint(!cancelled)},
		{"start", got.Start, instant(stay.Start)},
		{"end", got.End, instant(stay.End)},
		{"buyerPubkey", got.BuyerPubkey, stay.BuyerPubkey},
		{"orders", idsOf(got.Orders), seededIDs(stay.Orders)},
	} {
		if field.got != field.want {
			return fmt.Sprintf("%s is %q instead of %q", field.name, field.got, field.want)
		}
	}
	return ""
}

// instant writes a time in UTC as results do.
func instant(at time.Time) string { return at.Format("2006-01-02T15:04:05.000Z") }

// idsOf and seededIDs list events in any order.
func idsOf(events []Event) string {
	var ids []string
	for _, event := range events {
		ids = append(ids, event.ID)
	}
	slices.Sort(ids)
	return strings.Join(ids, " ")
}

func seededIDs(events []nostr.Event) string {
	var ids []string
	for _, event := range events {
		ids = append(ids, event.ID)
	}
	slices.Sort(ids)
	return strings.Join(ids, " ")
}
