package listings_test

import (
	cmpstd "cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/flight"
	"hostr-daemon/internal/listings"
	"hostr-daemon/internal/market"
	"hostr-daemon/internal/relay"
	"hostr-daemon/internal/sandbox"
)

func TestSearchFindsWhatTheCriteriaSay(t *testing.T) {
	t.Parallel()
	sandboxed := start(t, sandbox.Options{Listings: 45, Seed: 3})
	service := newService(t, sandboxed.RelayURL, sandboxed.GeocoderURL)
	guests := 5
	for name, c := range map[string]struct {
		criteria listings.Criteria
		passes   func(sandbox.Listing) bool
	}{
		"all":        {anywhere(), func(sandbox.Listing) bool { return true }},
		"of a type":  {with(func(m *market.SearchCriteria) { m.Type = " Villa " }), func(l sandbox.Listing) bool { return l.Type == "villa" }},
		"for sale":   {with(func(m *market.SearchCriteria) { m.RentOrBuy = "buy" }), func(l sandbox.Listing) bool { return l.RentOrBuy() == "buy" }},
		"for guests": {with(func(m *market.SearchCriteria) { m.Guests = &guests }), func(l sandbox.Listing) bool { return l.Guests >= guests }},
		"in a city":  {in("Lisbon"), func(l sandbox.Listing) bool { return l.Place == "Lisbon" }},
		"in a state": {in("La Libertad"), func(l sandbox.Listing) bool {
			return l.Place == "La Libertad" || slices.Contains(l.Within, "La Libertad")
		}},
		"in a region of islands": {in("Madeira"), func(l sandbox.Listing) bool { return slices.Contains(l.Within, "Madeira") }},
		"with a feature": {with(func(m *market.SearchCriteria) { m.Features = []string{"kitchen"} }),
			func(l sandbox.Listing) bool { return slices.Contains(l.Features, "kitchen") }},
		"with words": {with(func(m *market.SearchCriteria) { m.Query = "  KITCHEN " }), func(l sandbox.Listing) bool {
			return strings.Contains(strings.ToLower(l.Title+"\n"+l.Description), "kitchen")
		}},
		"everything at once": {listings.Criteria{Location: "el salvador", Market: market.SearchCriteria{
			Type: "house", RentOrBuy: "rent", Guests: &guests, Query: "e", Limit: 50,
		}}, func(l sandbox.Listing) bool {
			return slices.Contains(l.Within, "El Salvador") && l.Type == "house" && l.RentOrBuy() == "rent" && l.Guests >= guests
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := seeded(sandboxed, c.passes)
			if len(want) == 0 {
				t.Fatal("the seed has no such listing: the test proves nothing")
			}
			found := mustSearch(t, service, c.criteria)
			if diff := cmp.Diff(want, dTags(found)); diff != "" {
				t.Errorf("listings, newest first (-seed +search):\n%s", diff)
			}
			if found.Warning != nil {
				t.Errorf("warning without a reason: %v", found.Warning)
			}
		})
	}
}

func with(change func(*market.SearchCriteria)) listings.Criteria {
	criteria := anywhere()
	change(&criteria.Market)
	return criteria
}

func TestLimitCutsAfterTheWords(t *testing.T) {
	t.Parallel()
	sandboxed := start(t, sandbox.Options{Listings: 40, Seed: 3})
	service := newService(t, sandboxed.RelayURL, sandboxed.GeocoderURL)
	all := seeded(sandboxed, func(l sandbox.Listing) bool { return strings.Contains(strings.ToLower(l.Title), "lisbon") })
	last := all[len(all)-1] // older than most of what the relay has
	for limit := 1; limit <= len(all); limit++ {
		found := mustSearch(t, service, with(func(m *market.SearchCriteria) { m.Query, m.Limit = "lisbon", limit }))
		if len(found.Listings) != limit {
			t.Errorf("limit %d gives %d", limit, len(found.Listings))
		}
		if names := dTags(found); limit == len(all) && !slices.Contains(names, last) {
			t.Errorf("%s is missing from %v", last, names)
		}
	}
	first := mustSearch(t, service, with(func(m *market.SearchCriteria) { m.Limit = 3 }))
	if diff := cmp.Diff(seeded(sandboxed, func(sandbox.Listing) bool { return true })[:3], dTags(first)); diff != "" {
		t.Errorf("limit 3 (-want +got):\n%s", diff)
	}
}

func TestBadCriteriaCostNoNetwork(t *testing.T) {
	t.Parallel()
	sandboxed := start(t, sandbox.Options{})
	service := newService(t, sandboxed.RelayURL, sandboxed.GeocoderURL)
	for name, c := range map[string]struct {
		criteria   listings.Criteria
		code       fault.Code
		path, text string
	}{
		"type":            {with(func(m *market.SearchCriteria) { m.Type = "cabin" }), fault.InvalidListingType, "type", "cabin"},
		"rent or buy":     {with(func(m *market.SearchCriteria) { m.RentOrBuy = "lease" }), fault.InvalidRentOrBuy, "rentOrBuy", "lease"},
		"endless place":   {in(strings.Repeat("x", 1001)), fault.InvalidInput, "location", "1001"},
		"place of blanks": {in("  "), fault.InvalidInput, "location", "blank"},
	} {
		c.criteria.Location = cmpstd.Or(c.criteria.Location, "Lisbon")
		got := search(t, service, c.criteria)
		var coded *fault.Error
		if !errors.As(got.err, &coded) || coded.Code != c.code || coded.Path != c.path || !strings.Contains(coded.Message, c.text) {
			t.Errorf("%s: %+v, want %s at %s", name, got.err, c.code, c.path)
		}
	}
	if connections, requests := sandboxed.Relay.Counters().Connections, lookedUp(sandboxed); connections != 0 || requests != 0 {
		t.Errorf("the relay saw %d connections, the geocoder %d requests; both must be 0", connections, requests)
	}
}

func TestUnknownPlaceEndsTheSearch(t *testing.T) {
	t.Parallel()
	sandboxed := start(t, sandbox.Options{Listings: 3})
	service := newService(t, sandboxed.RelayURL, sandboxed.GeocoderURL)
	for range 2 { // nothing is remembered of it
		got := search(t, service, in("Nowhereville"))
		if !fault.Is(got.err, fault.UnexpectedError) || !strings.Contains(got.err.Error(), `"Nowhereville"`) {
			t.Errorf("got %v", got.err)
		}
	}
	if asked := lookedUp(sandboxed); asked != 8 {
		t.Errorf("%d requests to the geocoder, want four kinds of place, twice", asked)
	}
	if reqs := sandboxed.Relay.Counters().REQs; reqs != 0 {
		t.Errorf("the relay was asked %d times", reqs)
	}
}

func TestGeocoderFailuresMayPass(t *testing.T) {
	t.Parallel()
	for name, faults := range map[string]sandbox.HTTPFaults{
		"out of order": {Status: http.StatusServiceUnavailable},
		"hangs up":     {HangUp: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sandboxed := start(t, sandbox.Options{Listings: 20})
			service := newService(t, sandboxed.RelayURL, sandboxed.GeocoderURL)
			sandboxed.Geocoder.Switch.Break(faults)
			got := search(t, service, in("Lisbon"))
			var coded *fault.Error
			if !errors.As(got.err, &coded) || !coded.Retryable || coded.Path != "" {
				t.Fatalf("got %+v, want a failure that may pass and is not the input's", got.err)
			}
			sandboxed.Geocoder.Switch.Heal()
			if found := mustSearch(t, service, in("Lisbon")); len(found.Listings) == 0 {
				t.Error("nothing found in Lisbon")
			}
		})
	}
}

func TestPlaceIsLookedUpOnce(t *testing.T) {
	t.Parallel()
	const callers = 50
	sandboxed := start(t, sandbox.Options{Listings: 20})
	service := newService(t, sandboxed.RelayURL, sandboxed.GeocoderURL)
	ctx := patient(t)
	outcomes := searches(ctx, service, in("Lisbon"), callers)
	for range callers {
		if got := receive(ctx, t, outcomes); got.err != nil || len(got.Listings) == 0 {
			t.Fatalf("found %d, %v", len(got.Listings), got.err)
		}
	}
	const wanted = 3 // a country? a state? a city.
	if asked := lookedUp(sandboxed); asked != wanted {
		t.Errorf("%d requests to the geocoder, want %d", asked, wanted)
	}
	mustSearch(t, service, in("  LISBON "))
	if asked := lookedUp(sandboxed); asked != wanted {
		t.Errorf("%d requests after another spelling, want %d", asked, wanted)
	}
}

// The caller that began a look-up may give up; the others still get their answer.
func TestCancelledCallerLeavesOthersWaiting(t *testing.T) {
	t.Parallel()
	sandboxed := start(t, sandbox.Options{Listings: 20})
	gate := newGate(t, sandboxed.GeocoderURL)
	service := newService(t, sandboxed.RelayURL, gate.url)
	ctx := patient(t)
	hasty, cancel := context.WithCancelCause(ctx)
	first := searches(hasty, service, in("Lisbon"), 1)
	receive(ctx, t, gate.entered)
	others := searches(ctx, service, in("lisbon"), 5)
	cancel(errors.New("the caller has changed their mind"))
	if got := receive(ctx, t, first); !errors.Is(got.err, context.Canceled) {
		t.Errorf("the cancelled caller got %v", got.err)
	}
	close(gate.open)
	for range 5 {
		if got := receive(ctx, t, others); got.err != nil || len(got.Listings) == 0 {
			t.Errorf("found %d, %v", len(got.Listings), got.err)
		}
	}
}

func TestClosedCellsAreAnError(t *testing.T) {
	t.Parallel()
	sandboxed := start(t, sandbox.Options{})
	cells := newCells(t, newGeocoder(t, sandboxed.GeocoderURL))
	cells.Close()
	if got, err := cells.Of(patient(t), "Lisbon"); !errors.Is(err, flight.ErrClosed) {
		t.Errorf("got %v, %v", got, err)
	}
}

// A place too small to hold the centre of a cell finds nothing without a query.
func TestPlaceWithoutCellsAsksNoRelay(t *testing.T) {
	t.Parallel()
	sandboxed := start(t, sandbox.Options{Listings: 3})
	lane := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `[{"display_name":"A lane","geojson":{"type":"LineString","coordinates":[[-9.1,38.7],[-9.1,38.8]]}}]`)
	}))
	t.Cleanup(lane.Close)
	service := newService(t, sandboxed.RelayURL, lane.URL)
	found := mustSearch(t, service, in("A lane"))
	if len(found.Listings) != 0 || found.Warning != nil {
		t.Errorf("found %v, %v", dTags(found), found.Warning)
	}
	if connections := sandboxed.Relay.Counters().Connections; connections != 0 {
		t.Errorf("the relay saw %d connections, want none", connections)
	}
}

func TestPartialAnswersWarn(t *testing.T) {
	t.Parallel()
	for name, faults := range map[string]sandbox.Faults{
		"no EOSE":       {NoEOSE: true},
		"drops":         {DropAfterEvents: 4},
		"drops at once": {DropOnRequest: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sandboxed := start(t, sandbox.Options{Listings: 12})
			service := newService(t, sandboxed.RelayURL, sandboxed.GeocoderURL)
			sandboxed.Relay.Break(faults)
			ctx := newDeadline(t)
			outcomes := searches(ctx, service, anywhere(), 1)
			reached := func(c sandbox.Counters) bool {
				return c.SentEvents == 12 || c.SentEvents >= 4 && faults.DropAfterEvents > 0 || c.REQs > 0 && faults.DropOnRequest
			}
			if _, err := sandboxed.Relay.WaitFor(patient(t), reached); err != nil {
				t.Fatal(err)
			}
			ctx.reach()
			got := receive(patient(t), t, outcomes)
			if got.err != nil || got.Warning == nil || got.Warning.Code != fault.PartialResult || !got.Warning.Retryable {
				t.Fatalf("got %v with warning %+v, want what came and a partial_result", got.err, got.Warning)
			}
			for _, name := range dTags(got.Found) {
				if !slices.Contains(seeded(sandboxed, func(sandbox.Listing) bool { return true }), name) {
					t.Errorf("%s is nobody's listing", name)
				}
			}
		})
	}
}

func TestRefusalsAndDeadRelaysWarn(t *testing.T) {
	t.Parallel()
	refusing := start(t, sandbox.Options{Listings: 3})
	refusing.Relay.Break(sandbox.Faults{Closed: "blocked: not for you"})
	for name, c := range map[string]struct{ url, text string }{
		"refuses": {refusing.RelayURL, "not for you"},
		"is dead": {"ws://127.0.0.1:1", "could not be reached"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found := mustSearch(t, newService(t, c.url, refusing.GeocoderURL), anywhere())
			if len(found.Listings) != 0 || found.Warning == nil || !strings.Contains(found.Warning.Message, c.text) {
				t.Errorf("found %v, warning %v", dTags(found), found.Warning)
			}
		})
	}
}

// Whatever strangers publish, and whatever the relay slips in, the others' listings
// are found.
func TestOddEventsSpoilNothing(t *testing.T) {
	t.Parallel()
	sandboxed := start(t, sandbox.Options{Listings: 15, Odd: true})
	service := newService(t, sandboxed.RelayURL, sandboxed.GeocoderURL)
	want := seeded(sandboxed, func(sandbox.Listing) bool { return true })
	strange := 0
	for _, odd := range sandboxed.Odd {
		if d := odd.Event.Tags.GetD(); odd.Accommodation {
			strange++
			if hasD := odd.Event.Tags.Find("d"); len(hasD) > 1 {
				want = append(want, d)
			}
		}
	}
	for name, faults := range map[string]sandbox.Faults{
		"healthy":    {},
		"forged":     {Forged: true},
		"foreign":    {Foreign: true},
		"garbage":    {Garbage: true},
		"duplicates": {Duplicates: 2},
	} {
		sandboxed.Relay.Break(faults)
		found := mustSearch(t, service, anywhere())
		if diff := cmp.Diff(sorted(want), sorted(dTags(found))); diff != "" {
			t.Errorf("%s (-published +found):\n%s", name, diff)
		}
		if len(found.Listings) != len(sandboxed.Listings)+strange {
			t.Errorf("%s: %d listings, want %d", name, len(found.Listings), len(sandboxed.Listings)+strange)
		}
	}
}

// Relays that keep old versions send them too; only the newest is shown.
func TestNewestVersionIsShown(t *testing.T) {
	t.Parallel()
	key := nostr.GeneratePrivateKey()
	old, edited := signed(t, key, 100, "house", "As it was"), signed(t, key, 200, "house", "As it is")
	other := signed(t, key, 150, "garden", "Garden")
	for name, events := range map[string][]*nostr.Event{
		"newest last":  {&old, &other, &edited},
		"newest first": {&edited, &old, &other},
	} {
		service := listings.New(scripted{events}, nil)
		var titles []string
		for _, listing := range mustSearch(t, service, anywhere()).Listings {
			titles = append(titles, listing.Title)
		}
		if diff := cmp.Diff([]string{"As it is", "Garden"}, sorted(titles)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Cells belong to Search: whoever sets them must not narrow a search without a place.
func TestCellsOfTheCallerDoNotCount(t *testing.T) {
	t.Parallel()
	sandboxed := start(t, sandbox.Options{Listings: 3})
	service := newService(t, sandboxed.RelayURL, sandboxed.GeocoderURL)
	found := mustSearch(t, service, with(func(m *market.SearchCriteria) { m.Cells = &[]string{} }))
	if len(found.Listings) != 3 {
		t.Errorf("found %d, want all 3", len(found.Listings))
	}
}

func TestClosedClientIsAnError(t *testing.T) {
	t.Parallel()
	client := newRelays(t, "ws://127.0.0.1:1")
	client.Close()
	if got := search(t, listings.New(client, nil), anywhere()); !errors.Is(got.err, relay.ErrClosed) {
		t.Errorf("got %v", got.err)
	}
}

// scripted is a relay layer that has exactly these events.
type scripted struct{ events []*nostr.Event }

func (s scripted) Query(context.Context, nostr.Filter, relay.QueryOptions) (relay.Answer, error) {
	return relay.Answer{Events: s.events, Complete: true}, nil
}

func BenchmarkSearchOf500Events(b *testing.B) {
	sandboxed := start(b, sandbox.Options{Listings: 500})
	service := newService(b, sandboxed.RelayURL, sandboxed.GeocoderURL)
	criteria := with(func(m *market.SearchCriteria) { m.Query = "e" }) // the relay sends all 500
	if found := mustSearch(b, service, criteria); len(found.Listings) != 50 {
		b.Fatalf("found %d", len(found.Listings))
	}
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := service.Search(ctx, criteria); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCellsOfKnownPlace(b *testing.B) {
	sandboxed := start(b, sandbox.Options{})
	cells := newCells(b, newGeocoder(b, sandboxed.GeocoderURL))
	ctx := b.Context()
	for b.Loop() {
		if _, err := cells.Of(ctx, "Portugal"); err != nil {
			b.Fatal(err)
		}
	}
}
