package conversation

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/sandbox"
)

func marketWithStays(t *testing.T) *sandbox.Market {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	market, err := sandbox.Start(ctx, sandbox.Options{Listings: 12, Stays: 2, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = market.Close() })
	return market
}

// shown is an event as results have it.
func shown(t *testing.T, event nostr.Event) (result Event) {
	t.Helper()
	if err := json.Unmarshal([]byte(event.String()), &result); err != nil {
		t.Fatal(err)
	}
	return result
}

// groupOf is the right answer for a stay.
func groupOf(t *testing.T, stay sandbox.Stay) OrderGroup {
	t.Helper()
	group := OrderGroup{
		TradeID: stay.TradeID, BuyerPubkey: stay.BuyerPubkey, Stage: "commit", Active: true,
		Start: stay.Start.Format("2006-01-02T15:04:05.000Z"), End: stay.End.Format("2006-01-02T15:04:05.000Z"),
	}
	if stay.State == sandbox.Cancelled {
		group.Stage, group.Cancelled, group.Active = "cancel", true, false
	}
	for _, order := range stay.Orders {
		group.Orders = append(group.Orders, shown(t, order))
	}
	return group
}

// What is right passes, and each thing that is wrong is named.
func TestWrongStaysAreNamed(t *testing.T) {
	t.Parallel()
	market := marketWithStays(t)
	look := &looking{market: market, anchor: market.Stays[0].Anchor, guest: market.Guests[0]}
	stays := look.stays(look.anchor)
	if len(look.questions()) != 4 || len(stays) != 5 || len(market.Stays) != 10 {
		t.Fatalf("questions %+v about %d stays of %d", look.questions(), len(stays), len(market.Stays))
	}

	for name, c := range map[string]struct {
		spoil func(*ListingOrderGroups)
		want  string
	}{
		"right":   {func(*ListingOrderGroups) {}, ""},
		"missing": {func(g *ListingOrderGroups) { g.Groups = g.Groups[1:] }, "4 groups instead of 5"},
		"another": {func(g *ListingOrderGroups) { g.Groups[0].TradeID = "another" }, "no group of trade"},
		"stage":   {func(g *ListingOrderGroups) { g.Groups[3].Stage = "commit" }, `stage is "commit" instead of "cancel"`},
		"day":     {func(g *ListingOrderGroups) { g.Groups[1].Start = "2026-01-01" }, `start is "2026-01-01" instead`},
		"buyer":   {func(g *ListingOrderGroups) { g.Groups[2].BuyerPubkey = "" }, `buyerPubkey is "" instead`},
		"order":   {func(g *ListingOrderGroups) { g.Groups[0].Orders = g.Groups[0].Orders[:1] }, "orders is "},
	} {
		got := ListingOrderGroups{Anchor: look.anchor, Found: true, Count: len(stays)}
		for _, stay := range stays {
			got.Groups = append(got.Groups, groupOf(t, stay))
		}
		c.spoil(&got)
		checkDifference(t, "order groups: "+name, compareGroups(got, look.anchor, stays), c.want)
	}

	reviewed := stays[slices.IndexFunc(stays, func(s sandbox.Stay) bool { return s.Review != nil })]
	want := []sandbox.Review{*reviewed.Review}
	for name, c := range map[string]struct {
		spoil func(*ListingReviews)
		want  string
	}{
		"right":   {func(*ListingReviews) {}, ""},
		"count":   {func(r *ListingReviews) { r.Count = 2 }, "count says 2"},
		"another": {func(r *ListingReviews) { r.Events[0].ID = "another" }, "is missing"},
		"forged":  {func(r *ListingReviews) { r.Events[0].Content = "Dreadful." }, "is not as it was signed"},
	} {
		got := ListingReviews{Anchor: look.anchor, Count: 1, Events: []Event{shown(t, want[0].Event)}}
		c.spoil(&got)
		checkDifference(t, "reviews: "+name, compareReviews(got, look.anchor, want), c.want)
	}

	for name, c := range map[string]struct{ answer, want string }{
		"right":          {`{"anchor":"A","found":true,"available":false,"listing":{"anchor":"A"},"orderGroupCount":5},{"found":false}`, ""},
		"free":           {`{"anchor":"A","found":true,"available":true,"listing":{"anchor":"A"},"orderGroupCount":5},{}`, "available is true"},
		"few groups":     {`{"anchor":"A","found":true,"listing":{"anchor":"A"},"orderGroupCount":1},{}`, "1 order groups instead of 5"},
		"not found":      {`{"anchor":"A","found":false},{}`, "the listing was not found"},
		"nobody's found": {`{"anchor":"A","found":true,"listing":{"anchor":"A"},"orderGroupCount":5},{"found":true}`, "a listing that does not exist was found"},
		"one result":     {`{"anchor":"A"}`, "1 results for 2 anchors"},
	} {
		var got Availability
		if err := json.Unmarshal([]byte(`{"results":[`+strings.ReplaceAll(c.answer, `"A"`, `"`+look.anchor+`"`)+`]}`), &got); err != nil {
			t.Fatal(err)
		}
		checkDifference(t, "availability: "+name, look.compareAvailability(got, []string{look.anchor, nobodysAnchor}, false), c.want)
	}
}

func checkDifference(t *testing.T, name, got, want string) {
	t.Helper()
	if (got == "") != (want == "") || !strings.Contains(got, want) {
		t.Errorf("%s: %q, want %q", name, got, want)
	}
}
