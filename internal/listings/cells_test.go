package listings_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/geocode"
	"hostr-daemon/internal/listings"
	"hostr-daemon/internal/location"
	"hostr-daemon/internal/sandbox"
)

func TestCellsAtAnAddress(t *testing.T) {
	t.Parallel()
	sandboxed := start(t, sandbox.Options{})
	cells := newCells(t, newGeocoder(t, sandboxed.GeocoderURL))
	number := func(n int) *int { return &n }
	// Where the sandbox's geocoder has the street.
	whole := location.PointCells(38.714, -9.148, location.FinestResolution, nil)
	if len(whole) != 16 {
		t.Fatalf("%d cells", len(whole))
	}
	for name, test := range map[string]struct {
		finest, maximum *int
		want            []string
	}{
		"by default":             {nil, nil, whole},
		"no finer than asked":    {number(9), nil, whole[6:]},
		"finer than there are":   {number(99), nil, whole},
		"coarser than there are": {number(-1), nil, whole[15:]},
		"the finest three":       {nil, number(3), whole[:3]},
		"both":                   {number(9), number(2), whole[6:8]},
		"at least one":           {nil, number(0), whole[:1]},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := cells.AtAddress(patient(t), " Rua das Gaivotas 5, Lisbon ", test.finest, test.maximum)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("cells (-want +got):\n%s", diff)
			}
		})
	}
}

// A listing at an address is found by a search for the places around it.
func TestCellsAtAnAddressMeetThoseOfASearch(t *testing.T) {
	t.Parallel()
	sandboxed := start(t, sandbox.Options{})
	cells := newCells(t, newGeocoder(t, sandboxed.GeocoderURL))
	at, err := cells.AtAddress(patient(t), "Rua das Gaivotas 5, Lisbon", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for place, wanted := range map[string]bool{"Lisbon": true, "Portugal": true, "Porto": false} {
		searched, err := cells.Of(patient(t), place)
		if err != nil {
			t.Fatal(err)
		}
		met := false
		for _, cell := range searched {
			for _, own := range at {
				met = met || cell == own
			}
		}
		if met != wanted {
			t.Errorf("%s: found %v, want %v", place, met, wanted)
		}
	}
}

func TestAddressesThatCannotBeLocated(t *testing.T) {
	t.Parallel()
	sandboxed := start(t, sandbox.Options{})
	cells := newCells(t, newGeocoder(t, sandboxed.GeocoderURL))
	for name, test := range map[string]struct {
		address string
		code    fault.Code
		path    string
	}{
		"blank":    {" \n", fault.AddressRequired, "address"},
		"too long": {strings.Repeat("a", 5000), fault.InvalidInput, "address"},
		"unknown":  {"Nowhere 1, Atlantis", fault.UnexpectedError, ""},
	} {
		got, err := cells.AtAddress(patient(t), test.address, nil, nil)
		var coded *fault.Error
		if !errors.As(err, &coded) || coded.Code != test.code || coded.Path != test.path || got != nil {
			t.Errorf("%s: cells %v, error %+v", name, got, err)
		}
	}
	sandboxed.Geocoder.Switch.Break(sandbox.HTTPFaults{Status: 503})
	_, err := cells.AtAddress(patient(t), "Rua das Gaivotas 5, Lisbon", nil, nil)
	if coded := fault.From(err); err == nil || !coded.Retryable || !strings.Contains(coded.Message, "could not be located") {
		t.Errorf("a geocoder that is down: %v", err)
	}
}

// needles are places whose outlines take the better part of a second to cover.
type needles struct{ asked chan struct{} }

func (n needles) Place(context.Context, string) (geocode.Place, error) {
	defer func() { n.asked <- struct{}{} }()
	needle := json.RawMessage(`{"type":"Polygon","coordinates":[[[-80,-60],[80,60],[80,60.000000001]]]}`)
	geometry, err := location.ParseGeometry(needle)
	return geocode.Place{Geometry: geometry, DisplayName: "A needle"}, err
}

func (needles) Point(context.Context, string) (geocode.Point, error) { return geocode.Point{}, nil }

// However many monstrous searches are made, each ends with its caller.
func TestSearchesEndWithTheirCallers(t *testing.T) {
	t.Parallel()
	const callers = 16
	places := needles{make(chan struct{}, callers)}
	cells := listings.NewCells(places)
	ctx, cancel := context.WithCancelCause(patient(t))
	gone := errors.New("the caller is gone")
	ended := make(chan error, callers)
	for i := range callers {
		go func() {
			_, err := cells.Of(ctx, fmt.Sprint("needle ", i))
			ended <- err
		}()
	}
	for range callers {
		receive(patient(t), t, places.asked)
	}
	cancel(gone)
	for range callers {
		// One or two may have been through before.
		if err := receive(patient(t), t, ended); err != nil && !errors.Is(err, gone) {
			t.Errorf("error %v", err)
		}
	}
	cells.Close()
}
