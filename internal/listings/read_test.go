package listings_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/listings"
	"hostr-daemon/internal/market"
	"hostr-daemon/internal/relay"
	"hostr-daemon/internal/sandbox"
)

// days is a stay of whole days, in UTC.
func days(from, until string) market.DateRange {
	day := func(text string) time.Time {
		parsed, err := time.Parse(time.DateOnly, text)
		if err != nil {
			panic(err)
		}
		return parsed
	}
	return market.DateRange{Start: day(from), End: day(until)}
}

func anchorFrom(t testing.TB, text string) market.Anchor {
	t.Helper()
	anchor, err := market.ParseAnchor(text)
	if err != nil {
		t.Fatal(err)
	}
	return anchor
}

// orderOf is a public order for the dates, by a key of its own.
func orderOf(t testing.TB, key, anchor, trade string, stage market.Stage, dates market.DateRange) nostr.Event {
	t.Helper()
	content := market.OrderContent{Start: &dates.Start, End: &dates.End, Stage: stage, Quantity: 1}
	event := nostr.Event{
		Kind: market.KindOrder, CreatedAt: nostr.Now(), Content: content.Encode(),
		Tags: nostr.Tags{{"a", anchor}, {"d", trade}, {"p", anchorFrom(t, anchor).PubKey, "", "seller"}},
	}
	if err := event.Sign(key); err != nil {
		t.Fatal(err)
	}
	return event
}

func insert(t testing.TB, to *sandbox.Market, events ...nostr.Event) {
	t.Helper()
	if err := to.Relay.Insert(patient(t), events...); err != nil {
		t.Fatal(err)
	}
}

func TestListIsOfOneAuthorOrOfAll(t *testing.T) {
	t.Parallel()
	sandboxed := start(t, sandbox.Options{Listings: 20, Seed: 5})
	service := listings.New(newRelays(t, sandboxed.RelayURL), nil)
	host := sandboxed.Hosts[0].PublicKey
	for name, c := range map[string]struct {
		author string
		limit  int
		want   []string
	}{
		"one host":   {host, 50, seeded(sandboxed, func(l sandbox.Listing) bool { return l.Event.PubKey == host })},
		"all":        {"", 200, seeded(sandboxed, func(sandbox.Listing) bool { return true })},
		"the newest": {"", 4, seeded(sandboxed, func(sandbox.Listing) bool { return true })[:4]},
		"nobody's":   {strings.Repeat("ab", 32), 50, []string{}},
	} {
		found, err := service.List(patient(t), c.author, c.limit)
		if err != nil || found.Warning != nil {
			t.Errorf("%s: %v, %v", name, found.Warning, err)
		}
		if diff := cmp.Diff(c.want, dTags(found)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	sandboxed.Relay.Break(sandbox.Faults{Closed: "blocked: not for you"})
	if found, err := service.List(patient(t), host, 50); err != nil || found.Warning == nil {
		t.Errorf("refused: %+v, %v", found, err)
	}
}

func TestFindTakesTheNewestVersion(t *testing.T) {
	t.Parallel()
	key := nostr.GeneratePrivateKey()
	old, edited := signed(t, key, 100, "a:b,c", "As it was"), signed(t, key, 200, "a:b,c", "As it is")
	stranger := signed(t, nostr.GeneratePrivateKey(), 300, "a:b,c", "Somebody else's")
	service := listings.New(scripted{[]*nostr.Event{&stranger, &old, &edited}}, nil)
	found, err := service.Find(patient(t), market.Anchor{Kind: 1, PubKey: old.PubKey, Identifier: "a:b,c"})
	if err != nil || found.Listing == nil || found.Listing.Title != "As it is" || found.Warning != nil {
		t.Errorf("found %+v, %v", found, err)
	}
	if found, err := service.Find(patient(t), market.Anchor{PubKey: old.PubKey, Identifier: "a"}); err != nil || found.Listing != nil || found.Warning != nil {
		t.Errorf("found %+v, %v", found, err)
	}
}

func TestAvailability(t *testing.T) {
	t.Parallel()
	sandboxed := start(t, sandbox.Options{Listings: 2})
	anchor, other := sandboxed.Listings[0].Anchor, sandboxed.Listings[1].Anchor
	guest, fickle := nostr.GeneratePrivateKey(), nostr.GeneratePrivateKey()
	insert(t, sandboxed,
		orderOf(t, guest, anchor, "t1", market.StageCommit, days("2026-05-04", "2026-05-06")),
		orderOf(t, guest, anchor, "t2", market.StageCommit, days("2026-06-09", "2026-06-07")), // turned round
		orderOf(t, fickle, anchor, "t3", market.StageCancel, days("2026-07-01", "2026-07-09")),
		orderOf(t, guest, other, "t4", market.StageCommit, days("2026-08-01", "2026-08-09")),
	)
	service := listings.New(newRelays(t, sandboxed.RelayURL), nil)
	for name, c := range map[string]struct {
		stay market.DateRange
		want bool
	}{
		"taken":                {days("2026-05-05", "2026-05-07"), false},
		"back to back before":  {days("2026-05-01", "2026-05-04"), true},
		"back to back after":   {days("2026-05-06", "2026-05-09"), true},
		"same day":             {days("2026-05-05", "2026-05-05"), false},
		"inverted":             {days("2026-05-07", "2026-05-05"), false},
		"taken by an inverted": {days("2026-06-08", "2026-06-09"), false},
		"cancelled":            {days("2026-07-02", "2026-07-04"), true},
		"taken at another":     {days("2026-08-02", "2026-08-04"), true},
	} {
		got, err := service.Availability(patient(t), []market.Anchor{anchorFrom(t, anchor)}, c.stay)
		if err != nil || len(got) != 1 || got[0].Listing == nil || got[0].Available != c.want || got[0].OrderGroupCount != 3 || got[0].Warning != nil {
			t.Errorf("%s: %+v, %v; want available %v", name, got, err, c.want)
		}
	}
	absent := market.Anchor{Kind: market.KindListing, PubKey: strings.Repeat("ab", 32), Identifier: "none"}
	got, err := service.Availability(patient(t), []market.Anchor{absent}, days("2026-05-01", "2026-05-02"))
	if err != nil || got[0].Listing != nil || got[0].Available || got[0].Warning != nil {
		t.Errorf("of no listing: %+v, %v", got, err)
	}
}

// Results come in the order of the anchors, and equal ones are looked up once.
func TestAvailabilityOfMany(t *testing.T) {
	t.Parallel()
	sandboxed := start(t, sandbox.Options{Listings: 20})
	service := listings.New(newRelays(t, sandboxed.RelayURL), nil)
	var anchors []market.Anchor
	for range 3 {
		for _, listing := range sandboxed.Listings {
			anchors = append(anchors, anchorFrom(t, listing.Anchor))
		}
	}
	got, err := service.Availability(patient(t), anchors, days("2026-05-01", "2026-05-02"))
	if err != nil || len(got) != len(anchors) {
		t.Fatalf("%d results, %v", len(got), err)
	}
	for i, one := range got {
		if want := sandboxed.Listings[i%20].Event.ID; one.Listing == nil || one.Listing.Event.ID != want || !one.Available {
			t.Errorf("result %d is %+v, want of %s", i, one, want)
		}
	}
	if reqs := sandboxed.Relay.Counters().REQs; reqs != 40 {
		t.Errorf("%d requests, want two for each listing", reqs)
	}
}

// Half an answer never makes taken dates free (spec 40 §12).
func TestAvailabilityNeedsAWholeAnswer(t *testing.T) {
	t.Parallel()
	for name, faults := range map[string]sandbox.Faults{
		"no EOSE":            {NoEOSE: true},
		"closed":             {Closed: "blocked: not for you"},
		"drops":              {DropOnRequest: true},
		"drops in the midst": {DropAfterEvents: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sandboxed := start(t, sandbox.Options{Listings: 1})
			house := sandboxed.Listings[0]
			taken := days("2026-05-04", "2026-05-06")
			insert(t, sandboxed, orderOf(t, nostr.GeneratePrivateKey(), house.Anchor, "t1", market.StageCommit, taken),
				orderOf(t, nostr.GeneratePrivateKey(), house.Anchor, "t2", market.StageCommit, taken))
			anchors := []market.Anchor{anchorFrom(t, house.Anchor)}

			for what, kind := range map[string]int{"look-up": market.KindListing, "orders": market.KindOrder} {
				cut := cutOff{newRelays(t, sandboxed.RelayURL), sandboxed, kind, faults, newDeadline(t)}
				got, err := listings.New(cut, nil).Availability(cut.deadline, anchors, days("2026-09-01", "2026-09-02"))
				sandboxed.Relay.Heal()
				wantUnknown(t, what, got, err)
				if kind == market.KindOrder && got[0].Listing == nil {
					t.Errorf("%s: no listing", what)
				}
			}
		})
	}
}

// cutOff breaks the relay for the queries of a kind; once it has the request, time is
// over.
type cutOff struct {
	listings.Relays
	market   *sandbox.Market
	kind     int
	faults   sandbox.Faults
	deadline *deadline
}

func (c cutOff) Query(ctx context.Context, filter nostr.Filter, options relay.QueryOptions) (relay.Answer, error) {
	if filter.Kinds[0] != c.kind {
		return c.Relays.Query(ctx, filter, options)
	}
	c.market.Relay.Break(c.faults)
	before := c.market.Relay.Counters().REQs
	go func() {
		defer c.deadline.reach()
		_, _ = c.market.Relay.WaitFor(ctx, func(counters sandbox.Counters) bool { return counters.REQs > before })
	}()
	return c.Relays.Query(ctx, filter, options)
}

func wantUnknown(t *testing.T, name string, got []listings.Availability, err error) {
	t.Helper()
	if err != nil || len(got) != 1 || got[0].Available || got[0].Warning == nil {
		t.Fatalf("%s: %+v, %v", name, got, err)
	}
	if warning := got[0].Warning; warning.Code != fault.PartialResult || !warning.Retryable || !strings.Contains(warning.Message, "not known to be free") {
		t.Errorf("%s: warning %+v", name, warning)
	}
}

func TestReviews(t *testing.T) {
	t.Parallel()
	sandboxed := start(t, sandbox.Options{Listings: 2})
	anchor, other := sandboxed.Listings[0].Anchor, sandboxed.Listings[1].Anchor
	var want []string
	for i := range 3 {
		review := market.Review{TradeID: fmt.Sprint("t", i), OrderAnchor: "32122:x:y", ListingAnchor: anchor, Stars: 4, Text: "Quiet"}
		event := review.Draft(sandboxed.Guests[i].PublicKey, nostr.Timestamp(1_767_300_000-i))
		if err := event.Sign(sandboxed.Guests[i].PrivateKey); err != nil {
			t.Fatal(err)
		}
		insert(t, sandboxed, *event)
		want = append(want, event.ID)
	}
	service := listings.New(newRelays(t, sandboxed.RelayURL), nil)
	got, err := service.Reviews(patient(t), []market.Anchor{anchorFrom(t, other), anchorFrom(t, anchor)})
	if err != nil || len(got) != 2 || len(got[0].Events) != 0 || got[0].Warning != nil {
		t.Fatalf("%+v, %v", got, err)
	}
	var ids []string
	for _, event := range got[1].Events {
		ids = append(ids, event.ID)
	}
	if diff := cmp.Diff(want, ids); diff != "" {
		t.Errorf("reviews (-want +got):\n%s", diff)
	}
	sandboxed.Relay.Break(sandbox.Faults{Closed: "blocked: not for you"})
	if got, err := service.Reviews(patient(t), []market.Anchor{anchorFrom(t, anchor)}); err != nil || got[0].Warning == nil {
		t.Errorf("cut off: %+v, %v", got, err)
	}
}

func TestOrderGroups(t *testing.T) {
	t.Parallel()
	sandboxed := start(t, sandbox.Options{Listings: 3})
	house := sandboxed.Listings[0]
	guest := nostr.GeneratePrivateKey()
	insert(t, sandboxed,
		orderOf(t, guest, house.Anchor, "t1", market.StageCommit, days("2026-05-04", "2026-05-06")),
		orderOf(t, guest, house.Anchor, "t2", market.StageCancel, days("2026-05-04", "2026-05-06")),
	)
	owner := house.Event.PubKey
	service := listings.New(newRelays(t, sandboxed.RelayURL), nil)
	for name, c := range map[string]struct {
		text, owner string
		found       bool
		lookupError string
	}{
		"anchor":                 {house.Anchor, "", true, ""},
		"title":                  {house.Title, owner, true, ""},
		"title in another case":  {strings.ToUpper(house.Title), owner, true, ""},
		"part of the title":      {house.Title[1:], owner, true, ""},
		"title of anybody":       {house.Title, "", true, ""},
		"title of somebody else": {house.Title, strings.Repeat("ab", 32), false, "is not an anchor"},
		"anchor of nothing":      {"30402:" + owner + ":nothing", owner, false, ""},
		"no anchor and no title": {"No such title", owner, false, "is not an anchor"},
	} {
		got, err := service.OrderGroups(patient(t), []string{c.text}, c.owner)
		if err != nil || len(got) != 1 || got[0].Found != c.found || got[0].Warning != nil {
			t.Fatalf("%s: %+v, %v", name, got, err)
		}
		if c.found && (len(got[0].Groups) != 2 || got[0].Groups[0].ListingAnchor() != house.Anchor) {
			t.Errorf("%s: groups %+v", name, got[0].Groups)
		}
		if lookup := got[0].LookupError; (lookup == "") != (c.lookupError == "") || !strings.Contains(lookup, c.lookupError) {
			t.Errorf("%s: look-up error %q", name, lookup)
		}
	}
	titles := []string{house.Title, "No such title", house.Title, "Nor this"}
	before := sandboxed.Relay.Counters().REQs
	if _, err := service.OrderGroups(patient(t), titles, ""); err != nil {
		t.Fatal(err)
	}
	if asked := sandboxed.Relay.Counters().REQs - before; asked != 2 {
		t.Errorf("%d requests, want one for all titles and one for the orders", asked)
	}
	for name, faults := range map[string]sandbox.Faults{"refused": {Closed: "blocked: not for you"}, "drops": {DropOnRequest: true}} {
		for what, kind := range map[string]int{"look-up": market.KindListing, "orders": market.KindOrder} {
			cut := cutOff{newRelays(t, sandboxed.RelayURL), sandboxed, kind, faults, newDeadline(t)}
			got, err := listings.New(cut, nil).OrderGroups(cut.deadline, []string{"30402:" + owner + ":" + house.DTag}, owner)
			sandboxed.Relay.Heal()
			if want := kind == market.KindOrder; err != nil || got[0].Found != want || got[0].Warning == nil {
				t.Errorf("%s at the %s: %+v, %v", name, what, got, err)
			}
		}
	}
}

// A title that merely contains the text wins only when no title equals it.
func TestExactTitleComesFirst(t *testing.T) {
	t.Parallel()
	key := nostr.GeneratePrivateKey()
	garden, house := signed(t, key, 100, "a", "House with garden"), signed(t, key, 90, "b", "HOUSE")
	for text, want := range map[string]string{"house": "b", "garden": "a"} {
		asked := &recording{scripted: scripted{[]*nostr.Event{&garden, &house}}}
		if _, err := listings.New(asked, nil).OrderGroups(patient(t), []string{text}, ""); err != nil {
			t.Fatal(err)
		}
		if got := asked.last.Tags["a"]; len(got) != 1 || !strings.HasSuffix(got[0], ":"+want) {
			t.Errorf("%q: orders of %v were asked for, want those of %s", text, got, want)
		}
	}
}

// recording keeps the last filter.
type recording struct {
	scripted
	last nostr.Filter
}

func (r *recording) Query(ctx context.Context, filter nostr.Filter, options relay.QueryOptions) (relay.Answer, error) {
	r.last = filter
	return r.scripted.Query(ctx, filter, options)
}

func TestReadsEndWithTheirCaller(t *testing.T) {
	t.Parallel()
	sandboxed := start(t, sandbox.Options{Listings: 1})
	service := listings.New(newRelays(t, sandboxed.RelayURL), nil)
	anchor := anchorFrom(t, sandboxed.Listings[0].Anchor)
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(patient(t))
	cancel(enough)
	_, one := service.Availability(ctx, []market.Anchor{anchor}, days("2026-05-01", "2026-05-02"))
	_, two := service.Reviews(ctx, []market.Anchor{anchor})
	_, three := service.OrderGroups(ctx, []string{"title"}, "")
	for i, err := range []error{one, two, three} {
		if !errors.Is(err, enough) && !errors.Is(err, context.Canceled) {
			t.Errorf("read %d: %v", i, err)
		}
	}
}

// A panic in one look-up is an error of the call and not the end of the process.
func TestPanicIsContained(t *testing.T) {
	t.Parallel()
	service := listings.New(panicking{}, nil)
	if _, err := service.Reviews(patient(t), []market.Anchor{{}}); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v", err)
	}
}

type panicking struct{}

func (panicking) Query(context.Context, nostr.Filter, relay.QueryOptions) (relay.Answer, error) {
	panic("secret")
}
