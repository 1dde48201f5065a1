package geocode

import (
	"net/http"
	"strings"
	"testing"

	"hostr-daemon/internal/fault"
)

const sanSalvador = `[{"place_id":123,"lat":"13.6976290","lon":"-89.1911560","class":"place","type":"city",
  "addresstype":"city","place_rank":16,"display_name":"San Salvador, El Salvador",
  "boundingbox":["13.6","13.7","-89.2","-89.1"]}]`

func TestPointOfAnAddress(t *testing.T) {
	t.Parallel()
	const primary = "q=1+Main+St%2C+San+Salvador&format=json&limit=1&addressdetails=0"
	const fallback = "q=1+Main+St%2C+San+Salvador&format=json&limit=1&addressdetails=1"
	city := Point{13.697629, -89.191156}
	drop := reply{drop: true}
	for _, test := range []struct {
		name    string
		answers []reply
		want    Point
		queries []string
	}{
		{"position as text", []reply{{body: sanSalvador}}, city, []string{primary}},
		{"position as numbers", []reply{{body: `[{"lat":13.697629,"lon":-89.191156}]`}}, city, []string{primary}},
		{"centre of the box", []reply{{body: `[{"lat":"x","lon":"-89","boundingbox":["13","14","-90","-88"]}]`}}, Point{13.5, -89}, []string{primary}},
		{"position off the earth", []reply{{body: `[{"lat":"113","lon":"-89","boundingbox":["13","14","-90","-88"]}]`}}, Point{13.5, -89}, []string{primary}},
		{"second attempt after 503", []reply{{status: 503}, {body: sanSalvador}}, city, []string{primary, primary}},
		{"third attempt after a dropped connection", []reply{drop, {status: 429}, {body: sanSalvador}}, city, []string{primary, primary, primary}},
		{"fallback after an empty list", []reply{{}, {body: sanSalvador}}, city, []string{primary, fallback}},
		{"fallback after no list", []reply{{body: `{}`}, {body: sanSalvador}}, city, []string{primary, fallback}},
		{"fallback after no object", []reply{{body: `[5,{"lat":1,"lon":2}]`}, {body: sanSalvador}}, city, []string{primary, fallback}},
		{"fallback after no JSON", []reply{{body: `<html>`}, {body: sanSalvador}}, city, []string{primary, fallback}},
		{"fallback after a refusal", []reply{{status: 403}, {body: sanSalvador}}, city, []string{primary, fallback}},
		{"fallback after no position", []reply{{body: `[{"display_name":"?"}]`}, {body: sanSalvador}}, city, []string{primary, fallback}},
		{"fallback after all attempts", []reply{drop, drop, drop, {body: sanSalvador}}, city, []string{primary, primary, primary, fallback}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			server := newGeocoder(t, test.answers...)
			point, err := server.client(t).Point(t.Context(), " 1 Main St, San Salvador ")
			if err != nil {
				t.Fatal(err)
			}
			if point != test.want {
				t.Errorf("%+v, want %+v", point, test.want)
			}
			server.wantQueries(t, test.queries...)
		})
	}
}

func TestPointFailures(t *testing.T) {
	t.Parallel()
	unavailable := reply{status: http.StatusServiceUnavailable}
	for _, test := range []struct {
		name      string
		answers   []reply
		retryable bool
		message   string
	}{
		{"nothing twice", nil, false, "no position was found"},
		{"refused, then nothing: the first failure counts", []reply{{status: 403}, {}}, false, "answered 403 Forbidden"},
		{"no JSON, then no position", []reply{{body: "<html>"}, {body: `[{}]`}}, false, "the answer is not JSON"},
		{"nothing, then refused: the fallback's error counts", []reply{{}, {status: 403}}, false, "answered 403 Forbidden"},
		{"nothing, then no JSON", []reply{{}, {body: "<html>"}}, false, "the answer is not JSON"},
		{"unavailable, then nothing", []reply{unavailable, unavailable, unavailable, {}}, true, "answered 503 Service Unavailable (tried 3 times)"},
		{"nothing, then unavailable", []reply{{}, unavailable, unavailable, unavailable}, true, "answered 503 Service Unavailable (tried 3 times)"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			server := newGeocoder(t, test.answers...)
			_, err := server.client(t).Point(t.Context(), "1 Main St")
			coded := fault.From(err)
			if coded == nil || coded.Code != fault.UnexpectedError || coded.Retryable != test.retryable {
				t.Fatalf("%#v, want unexpected_error, retryable %v", coded, test.retryable)
			}
			if !strings.Contains(coded.Message, test.message) || !strings.HasPrefix(coded.Message, `the address "1 Main St" could not be located: `) {
				t.Errorf("message %q does not tell %q", coded.Message, test.message)
			}
		})
	}
}

func TestPointsAreNotRemembered(t *testing.T) {
	t.Parallel()
	server := newGeocoder(t, reply{body: sanSalvador}, reply{body: sanSalvador})
	client := server.client(t)
	for range 2 {
		if _, err := client.Point(t.Context(), "San Salvador"); err != nil {
			t.Fatal(err)
		}
	}
	if sent := len(server.queries()); sent != 2 {
		t.Errorf("%d requests, want 2", sent)
	}
}
