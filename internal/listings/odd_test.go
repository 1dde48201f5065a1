package listings_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/listings"
	"hostr-daemon/internal/market"
	"hostr-daemon/internal/sandbox"
)

// oddity is a file of testdata/odd: an event that no careful client would write.
type oddity struct {
	Note string
	Kind int
	// CreatedAt is any time where it is 0.
	CreatedAt nostr.Timestamp
	Tags      nostr.Tags
	Content   string
	// ContentTimes is how often the content stands there; 0 is once.
	ContentTimes int
}

// oddEvents returns the corpus, each event signed by somebody else. {anchor} in tags
// becomes the anchor.
func oddEvents(t testing.TB, anchor string) map[string]nostr.Event {
	t.Helper()
	files, err := filepath.Glob("testdata/odd/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no corpus: %v", err)
	}
	events := make(map[string]nostr.Event, len(files))
	for i, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var odd oddity
		if err := json.Unmarshal(text, &odd); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		event := nostr.Event{
			Kind: odd.Kind, CreatedAt: odd.CreatedAt, Tags: odd.Tags,
			Content: strings.Repeat(odd.Content, max(odd.ContentTimes, 1)),
		}
		if event.CreatedAt == 0 {
			event.CreatedAt = 1_767_000_000 + nostr.Timestamp(i)
		}
		for _, tag := range event.Tags {
			for j := range tag {
				tag[j] = strings.ReplaceAll(tag[j], "{anchor}", anchor)
			}
		}
		if err := event.Sign(nostr.GeneratePrivateKey()); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		events[filepath.Base(file)] = event
	}
	return events
}

// Whatever strangers publish about a listing or beside it, everything else is found
// and can be shown.
func TestOddCorpusBreaksNothing(t *testing.T) {
	t.Parallel()
	sandboxed := start(t, sandbox.Options{Listings: 3})
	house := sandboxed.Listings[0]
	wanted := map[string]bool{}
	for _, listing := range sandboxed.Listings {
		wanted[listing.Event.ID] = true
	}
	for _, event := range oddEvents(t, house.Anchor) {
		if err := sandboxed.Relay.Insert(patient(t), event); err != nil {
			t.Fatal(err)
		}
		wanted[event.ID] = event.Kind == market.KindListing && event.Tags.FindWithValue("t", market.Category) != nil
	}
	client := newRelays(t, sandboxed.RelayURL)
	service := listings.New(client, nil)

	listed, err := service.List(patient(t), "", 200)
	if err != nil {
		t.Fatal(err)
	}
	for name, found := range map[string]listings.Found{"search": mustSearch(t, service, anywhere()), "list": listed} {
		shown := map[string]bool{}
		for _, listing := range found.Listings {
			shown[listing.Event.ID] = true
			if _, err := json.Marshal(listing.Summary()); err != nil {
				t.Errorf("%s: %s cannot be shown: %v", name, listing.Event.Tags.GetD(), err)
			}
		}
		for id, want := range wanted {
			if shown[id] != want {
				t.Errorf("%s: event %s is shown: %v, want %v", name, id, shown[id], want)
			}
		}
	}
	readsOfOddities(t, service, house.Anchor)
}

// readsOfOddities reads what the corpus says about the listing.
func readsOfOddities(t *testing.T, service *listings.Service, text string) {
	t.Helper()
	groups, err := service.OrderGroups(patient(t), []string{text}, "")
	if err != nil || !groups[0].Found || groups[0].Warning != nil {
		t.Fatalf("order groups %+v, %v", groups, err)
	}
	trades := map[string]bool{}
	for _, group := range groups[0].Groups {
		trades[group.TradeID()] = true
		if _, err := json.Marshal(group.Result()); err != nil {
			t.Errorf("the group of %s cannot be shown: %v", group.TradeID(), err)
		}
	}
	if diff := cmp.Diff(map[string]bool{"odd-6": true, "odd-7": true}, trades); diff != "" {
		t.Errorf("trades (-want +got):\n%s", diff)
	}
	anchor := anchorFrom(t, text)
	for name, c := range map[string]struct {
		stay market.DateRange
		free bool
	}{
		"taken by an order without d":             {days("2026-07-02", "2026-07-04"), false},
		"taken by an order without an anchor":     {days("2026-05-05", "2026-05-06"), false},
		"taken by an order with odd participants": {days("2026-09-01", "2026-09-02"), false},
		"free between": {days("2026-08-01", "2026-08-04"), true},
	} {
		got, err := service.Availability(patient(t), []market.Anchor{anchor}, c.stay)
		if err != nil || got[0].Available != c.free || got[0].OrderGroupCount != 4 || got[0].Warning != nil {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	reviews, err := service.Reviews(patient(t), []market.Anchor{anchor})
	if err != nil || len(reviews[0].Events) != 0 || reviews[0].Warning != nil {
		t.Errorf("reviews %+v, %v", reviews, err)
	}
}
