package geocode

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/location"
)

const (
	lisbonOutline = `{"type":"Polygon","coordinates":[[[-9.25,38.68],[-9.08,38.7],[-9.15,38.8],[-9.25,38.68]]]}`
	lisbon        = `[{"place_id":123,"display_name":"Lisbon, Portugal","boundingbox":["38.68","38.8","-9.25","-9.08"],"geojson":` + lisbonOutline + `}]`
)

func outline(t *testing.T, raw string) location.Geometry {
	t.Helper()
	geometry, err := location.ParseGeometry([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	return geometry
}

// samePlace compares places with their geometry.
func samePlace(t *testing.T, want, got Place) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmp.Exporter(alwaysExported)); diff != "" {
		t.Errorf("place (-want +got):\n%s", diff)
	}
}

func TestPlaceAsksFromTheLargestKindDown(t *testing.T) {
	t.Parallel()
	server := newGeocoder(t, reply{}, reply{body: `{"error":"no list"}`}, reply{body: `[1,"two",null]`}, reply{body: lisbon})
	place, err := server.client(t).Place(t.Context(), "  São Pedro & Sintra ")
	if err != nil {
		t.Fatal(err)
	}
	samePlace(t, Place{Geometry: outline(t, lisbonOutline), DisplayName: "Lisbon, Portugal", PlaceID: "123", Feature: "settlement"}, place)
	const start = "q=S%C3%A3o+Pedro+%26+Sintra&format=json&limit=1&addressdetails=1&featuretype="
	server.wantQueries(t,
		start+"country&polygon_geojson=1", start+"state&polygon_geojson=1",
		start+"city&polygon_geojson=1", start+"settlement&polygon_geojson=1")
}

func TestPlaceStopsAtTheFirstAnswer(t *testing.T) {
	t.Parallel()
	server := newGeocoder(t, reply{}, reply{body: lisbon}, reply{body: lisbon})
	place, err := server.client(t).Place(t.Context(), "Lisbon")
	if err != nil {
		t.Fatal(err)
	}
	if place.Feature != "state" {
		t.Errorf("found as %q, want state", place.Feature)
	}
	if sent := len(server.queries()); sent != 2 {
		t.Errorf("%d requests, want 2", sent)
	}
}

func TestPlaceIsRememberedInAnyLetterCase(t *testing.T) {
	t.Parallel()
	server := newGeocoder(t, reply{body: lisbon})
	client := server.client(t)
	first, err := client.Place(t.Context(), "Lisbon")
	if err != nil {
		t.Fatal(err)
	}
	again, err := client.Place(t.Context(), " LISBON ")
	if err != nil {
		t.Fatal(err)
	}
	samePlace(t, first, again)
	if sent := len(server.queries()); sent != 1 {
		t.Errorf("%d requests, want 1", sent)
	}
}

func TestPlaceErrorsAreNotRemembered(t *testing.T) {
	t.Parallel()
	server := newGeocoder(t, reply{}, reply{}, reply{}, reply{}, reply{body: lisbon})
	client := server.client(t)
	if _, err := client.Place(t.Context(), "Lisbon"); err == nil {
		t.Fatal("a place was found in four empty answers")
	}
	if _, err := client.Place(t.Context(), "Lisbon"); err != nil {
		t.Errorf("the second look-up failed: %v", err)
	}
}

func TestPlaceGeometry(t *testing.T) {
	t.Parallel()
	around := location.Rectangle(13.6, 13.7, -89.2, -89.1)
	const (
		box     = `"boundingbox":["13.6","13.7","-89.2","-89.1"]`
		point   = `"geojson":{"type":"Point","coordinates":[-89.15,13.65]}`
		line    = `"geojson":{"type":"LineString","coordinates":[[-89.15,13.65],[-89.14,13.66]]}`
		outside = `"geojson":` + lisbonOutline
	)
	for _, test := range []struct {
		name, body string
		want       location.Geometry
	}{
		{"outline", `[{` + outside + `,` + box + `}]`, outline(t, lisbonOutline)},
		{"outline of the second item", `[{"geojson":null,` + box + `},{` + outside + `}]`, outline(t, lisbonOutline)},
		{"items that are no objects", `[7,[],{` + outside + `}]`, outline(t, lisbonOutline)},
		{"no outline", `[{` + box + `}]`, around},
		{"outline is no object", `[{"geojson":"Polygon",` + box + `}]`, around},
		{"box of numbers", `[{"boundingbox":[13.6,13.7,-89.2,-89.1]}]`, around},
		{"point with box", `[{` + point + `,` + box + `}]`, around},
		{"line with box", `[{` + line + `,` + box + `}]`, around},
		{"collection with box", `[{"geojson":{"type":"GeometryCollection","geometries":[]},` + box + `}]`, around},
		{"point without box", `[{` + point + `}]`, outline(t, `{"type":"Point","coordinates":[-89.15,13.65]}`)},
		{"point with an unreadable box", `[{` + point + `,"boundingbox":["13.6","13.7","-89.2","here"]}]`, outline(t, `{"type":"Point","coordinates":[-89.15,13.65]}`)},
		{"point with three sides", `[{` + point + `,"boundingbox":["13.6","13.7","-89.2"]}]`, outline(t, `{"type":"Point","coordinates":[-89.15,13.65]}`)},
		{"point with a box without height", `[{` + point + `,"boundingbox":["13.6","13.6","-89.2","-89.1"]}]`, outline(t, `{"type":"Point","coordinates":[-89.15,13.65]}`)},
		{"point with a box across the antimeridian", `[{` + point + `,"boundingbox":["13.6","13.7","179","-179"]}]`, outline(t, `{"type":"Point","coordinates":[-89.15,13.65]}`)},
		{"line without box", `[{` + line + `}]`, outline(t, `{"type":"LineString","coordinates":[[-89.15,13.65],[-89.14,13.66]]}`)},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			server := newGeocoder(t, reply{body: test.body})
			place, err := server.client(t).Place(t.Context(), "somewhere")
			if err != nil {
				t.Fatal(err)
			}
			samePlace(t, Place{Geometry: test.want, Feature: "country"}, place)
		})
	}
}

func TestPlaceFailures(t *testing.T) {
	t.Parallel()
	unavailable := reply{status: http.StatusServiceUnavailable}
	for _, test := range []struct {
		name      string
		answers   []reply
		requests  int
		retryable bool
		message   string
	}{
		{"nothing found", nil, 4, false, "nothing was found by that name"},
		{"not JSON", []reply{{body: "<html>"}}, 1, false, "the answer is not JSON"},
		{"endless depth", []reply{{body: strings.Repeat("[", 1<<20)}}, 1, false, "the answer is not JSON"},
		{"no shape at all", []reply{{body: `[{"display_name":"Nowhere"}]`}}, 1, false, "neither an outline"},
		{"refused", []reply{{status: http.StatusForbidden}}, 1, false, "answered 403 Forbidden"},
		{"refused at the second kind", []reply{{}, {status: http.StatusBadRequest}}, 2, false, "answered 400 Bad Request"},
		{"unavailable for good", []reply{unavailable, unavailable, unavailable}, 3, true, "answered 503 Service Unavailable (tried 3 times)"},
		{"unreachable for good", []reply{{drop: true}, {drop: true}, {drop: true}}, 3, true, "could not be asked"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			server := newGeocoder(t, test.answers...)
			_, err := server.client(t).Place(t.Context(), "Atlantis")
			coded := fault.From(err)
			if coded == nil || coded.Code != fault.UnexpectedError || coded.Retryable != test.retryable {
				t.Fatalf("%#v, want unexpected_error, retryable %v", coded, test.retryable)
			}
			if !strings.Contains(coded.Message, test.message) || !strings.HasPrefix(coded.Message, `the place "Atlantis" could not be looked up: `) {
				t.Errorf("message %q does not tell %q", coded.Message, test.message)
			}
			if sent := len(server.queries()); sent != test.requests {
				t.Errorf("%d requests, want %d", sent, test.requests)
			}
		})
	}
}

func TestTextThatCannotBeAskedFor(t *testing.T) {
	t.Parallel()
	server := newGeocoder(t)
	client := server.client(t)
	for _, text := range []string{"", " \n\t ", strings.Repeat("é", maxTextLength+1)} {
		_, placeErr := client.Place(t.Context(), text)
		_, pointErr := client.Point(t.Context(), text)
		for _, err := range []error{placeErr, pointErr} {
			if !fault.Is(err, fault.InvalidInput) {
				t.Errorf("%d bytes: %v, want invalid_input", len(text), err)
			} else if len(err.Error()) > 400 {
				t.Errorf("the message has %d bytes", len(err.Error()))
			}
		}
	}
	server.wantQueries(t)
}

func FuzzPlaces(f *testing.F) {
	for _, body := range []string{
		"", "[]", "{}", "null", "[1]", "[{}]", lisbon, "[[[[", `[{"lat":"13.6976290","lon":"-89.1911560"}]`,
		`[{"boundingbox":["13.6","13.7","-89.2","-89.1"]}]`, `[{"boundingbox":["1e999",2,3,4],"geojson":{}}]`,
		`[{"geojson":{"type":"Point","coordinates":["x"]},"boundingbox":[1,2,3,4],"place_id":{},"display_name":[]}]`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		place, found, err := parsePlace(body)
		if (err != nil || !found) && place.Geometry.Size() != 0 {
			t.Errorf("no place was found, yet it has a geometry (%v)", err)
		}
		if found && err != nil {
			t.Errorf("found with an error: %v", err)
		}
		if point, err := parsePoint(body); err == nil && !point.onEarth() {
			t.Errorf("%+v is not on earth", point)
		}
	})
}
