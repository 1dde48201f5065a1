package geocoder

import (
	"context"
	"encoding/json"
	"io"
	"math"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/uber/h3-go/v4"
	"go.uber.org/goleak"

	"hostr-daemon/internal/sandbox/httpfault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t testing.TB) *Server {
	t.Helper()
	server, err := Open(0, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	return server
}

// get sends the parameters and returns the status and the body.
func get(t testing.TB, server *Server, parameters string) (status int, body []byte) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL()+"?"+parameters, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(request)
	if err != nil {
		return 0, []byte(err.Error())
	}
	defer response.Body.Close()
	if body, err = io.ReadAll(response.Body); err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, body
}

func search(t testing.TB, server *Server, parameters string) (items []map[string]any) {
	t.Helper()
	status, body := get(t, server, parameters)
	if err := json.Unmarshal(body, &items); status != http.StatusOK || err != nil {
		t.Fatalf("%s: %d %s", parameters, status, body)
	}
	return items
}

// TestPlaceLookup sends the request of spec 42 §1.2 for each feature type.
func TestPlaceLookup(t *testing.T) {
	t.Parallel()
	server := open(t)
	for _, c := range []struct{ query, country, state, city, settlement string }{
		{"El Salvador", "El Salvador", "", "", ""},
		{"PORTUGAL", "Portugal", "", "", ""},
		{"San Salvador", "", "San Salvador, El Salvador", "San Salvador, San Salvador, El Salvador", "San Salvador, El Salvador"},
		{"santa tecla", "", "", "Santa Tecla, La Libertad, El Salvador", "Santa Tecla, La Libertad, El Salvador"},
		{"Santa Tecla, El Salvador", "", "", "Santa Tecla, La Libertad, El Salvador", "Santa Tecla, La Libertad, El Salvador"},
		{"Lisboa", "", "", "Lisbon, Portugal", "Lisbon, Portugal"},
		{"  lisbon ,portugal", "", "", "Lisbon, Portugal", "Lisbon, Portugal"},
		{"Juayua", "", "", "", "Juayúa, Sonsonate, El Salvador"},
		{"JUAYÚA", "", "", "", "Juayúa, Sonsonate, El Salvador"},
		{"El Zonte", "", "", "", "El Zonte, La Libertad, El Salvador"},
		{"Madeira", "", "Madeira, Portugal", "", "Madeira, Portugal"},
		{"Lisbon, El Salvador", "", "", "", ""},
		{"Nowhereville", "", "", "", ""},
		{"Lis", "", "", "", ""},
	} {
		for featureType, want := range map[string]string{
			"country": c.country, "state": c.state, "city": c.city, "settlement": c.settlement,
		} {
			parameters := "q=" + url.QueryEscape(c.query) + "&format=json&limit=1&addressdetails=1&featuretype=" + featureType + "&polygon_geojson=1"
			items := search(t, server, parameters)
			got := ""
			if len(items) > 0 {
				got, _ = items[0]["display_name"].(string)
			}
			if got != want || len(items) > 1 {
				t.Errorf("%q as %s: %q, want %q", c.query, featureType, got, want)
			}
		}
	}
}

func TestAnswersHaveNominatimsForm(t *testing.T) {
	t.Parallel()
	server := open(t)
	city := search(t, server, "q=Lisbon&format=json&limit=1&addressdetails=1&featuretype=city&polygon_geojson=1")[0]
	geometry, _ := city["geojson"].(map[string]any)
	box, _ := city["boundingbox"].([]any)
	address, _ := city["address"].(map[string]any)
	if geometry["type"] != "Polygon" || len(box) != 4 || box[0] != "38.6780000" || city["lat"] != "38.7223000" || address["country"] != "Portugal" {
		t.Errorf("city: %v", city)
	}
	town := search(t, server, "q=El+Zonte&format=json&limit=1&featuretype=settlement&polygon_geojson=1")[0]
	geometry, _ = town["geojson"].(map[string]any)
	if _, detailed := town["address"]; geometry["type"] != "Point" || detailed {
		t.Errorf("town: %v", town)
	}
	plain := search(t, server, "q=El+Zonte&format=json&limit=1&addressdetails=0")[0]
	if _, shaped := plain["geojson"]; shaped {
		t.Errorf("plain: %v", plain)
	}
	islands := search(t, server, "q=Madeira&format=json&featuretype=state&polygon_geojson=1")[0]
	if geometry, _ = islands["geojson"].(map[string]any); geometry["type"] != "MultiPolygon" {
		t.Errorf("islands: %v", islands)
	}
	if many := search(t, server, "q=San+Salvador&format=json"); len(many) != 2 {
		t.Errorf("without a limit: %d answers, want the state and the city", len(many))
	}
}

// TestAddressLookup sends the request of spec 42 §1.3.
func TestAddressLookup(t *testing.T) {
	t.Parallel()
	server := open(t)
	for address, want := range map[string]string{
		"Rua das Gaivotas, Lisbon":              "38.7140000",
		"Rua das Gaivotas 12, Lisbon, Portugal": "38.7140000",
		"7 camino de las palmas, el zonte":      "13.4960000",
		"Santa Tecla":                           "13.6760000",
		"Rua das Gaivotas, Porto":               "",
		"Rua Nova, Lisbon":                      "",
	} {
		items := search(t, server, "q="+url.QueryEscape(address)+"&format=json&limit=1&addressdetails=0")
		got := ""
		if len(items) == 1 {
			got, _ = items[0]["lat"].(string)
		}
		if got != want {
			t.Errorf("%s: %q, want %q", address, got, want)
		}
	}
}

func TestBadRequestsAndFaults(t *testing.T) {
	t.Parallel()
	server := open(t)
	for parameters, want := range map[string]int{"format=json": 400, "q=Porto": 400, "q=Porto&format=xml": 400, "q=Porto&format=jsonv2": 200} {
		if status, _ := get(t, server, parameters); status != want {
			t.Errorf("%s: %d, want %d", parameters, status, want)
		}
	}
	const good = "q=Porto&format=json"
	server.Switch.Break(httpfault.Faults{Status: 503, Times: 2})
	for i, want := range []int{503, 503, 200} {
		if status, _ := get(t, server, good); status != want {
			t.Errorf("request %d: %d, want %d", i, status, want)
		}
	}
	server.Switch.Break(httpfault.Faults{NotJSON: true, Times: 1})
	if status, body := get(t, server, good); status != 200 || json.Valid(body) {
		t.Errorf("not JSON: %d %s", status, body)
	}
	server.Switch.Break(httpfault.Faults{HangUp: true, Times: 1})
	if status, _ := get(t, server, good); status != 0 {
		t.Errorf("hang up: %d", status)
	}
	began := time.Now()
	server.Switch.Break(httpfault.Faults{DelayMillis: 50, Times: 1})
	if status, _ := get(t, server, good); status != 200 || time.Since(began) < 50*time.Millisecond {
		t.Errorf("delay: %d after %s", status, time.Since(began))
	}
	if last := server.Switch.Requests(); last[len(last)-1].Query.Get("q") != "Porto" {
		t.Errorf("remembered %+v", last[len(last)-1])
	}
}

// TestPlacesKeepTheirPromise fills each outline with the cells a search asks for
// (by the cell's centre, spec 42 §3.3) and checks that every point where a
// listing may be is found by exactly the places that say so.
func TestPlacesKeepTheirPromise(t *testing.T) {
	t.Parallel()
	places, err := Places()
	if err != nil {
		t.Fatal(err)
	}
	for _, area := range places {
		if area.Kind == Street {
			continue
		}
		cells := fill(t, area)
		for _, settlement := range Settlements(places) {
			found, missed := 0, 0
			for _, at := range around(settlement) {
				if cells.contain(t, at) {
					found++
				} else {
					missed++
				}
			}
			promised := area.Name == settlement.Name
			for _, name := range settlement.Within {
				promised = promised || name == area.Name
			}
			if promised && missed > 0 || !promised && found > 0 {
				t.Errorf("%s %s: %d points of %s are found and %d are not, promised: %t",
					area.Kind, area.Name, found, settlement.Name, missed, promised)
			}
		}
	}
}

// cover is the cells of an outline, all of one resolution for each polygon.
type cover map[h3.Cell]struct{}

func (c cover) contain(t *testing.T, at h3.LatLng) bool {
	t.Helper()
	cell, err := h3.LatLngToCell(at, 15)
	if err != nil {
		t.Fatal(err)
	}
	for resolution := 15; resolution >= 0; resolution-- {
		parent, err := cell.Parent(resolution)
		if err != nil {
			t.Fatal(err)
		}
		if _, found := c[parent]; found {
			return true
		}
	}
	return false
}

// fill takes the finest resolution with at most 500 cells, as the search does
// (400 for the larger of two islands).
func fill(t *testing.T, area Place) cover {
	t.Helper()
	cells := make(cover)
	for _, polygon := range polygons(t, area) {
		for resolution := 10; resolution >= 0; resolution-- {
			if cell, err := h3.HexagonAreaAvgKm2(resolution); err != nil || boxKm2(area)/cell > 4000 {
				continue // far too many, and slow to fill
			}
			filled, err := h3.PolygonToCellsExperimental(polygon, resolution, h3.ContainmentCenter)
			if err != nil {
				t.Fatal(err)
			}
			if len(filled) <= 400 {
				for _, cell := range filled {
					cells[cell] = struct{}{}
				}
				break
			}
		}
	}
	return cells
}

// boxKm2 is about the area of the bounding box.
func boxKm2(area Place) float64 {
	height := (area.BoundingBox[1] - area.BoundingBox[0]) * 111
	width := (area.BoundingBox[3] - area.BoundingBox[2]) * 111 * math.Cos(area.Latitude*math.Pi/180)
	return height * width
}

func polygons(t *testing.T, area Place) []h3.GeoPolygon {
	t.Helper()
	south, north, west, east := area.BoundingBox[0], area.BoundingBox[1], area.BoundingBox[2], area.BoundingBox[3]
	shapes := [][][][2]float64{{{{west, south}, {east, south}, {east, north}, {west, north}, {west, south}}}}
	if len(area.GeoJSON) > 0 {
		var geometry struct {
			Type        string
			Coordinates json.RawMessage
		}
		if err := json.Unmarshal(area.GeoJSON, &geometry); err != nil {
			t.Fatal(err)
		}
		coordinates := string(geometry.Coordinates)
		if geometry.Type == "Polygon" {
			coordinates = "[" + coordinates + "]"
		}
		if err := json.NewDecoder(strings.NewReader(coordinates)).Decode(&shapes); err != nil {
			t.Fatal(err)
		}
	}
	var all []h3.GeoPolygon
	for _, shape := range shapes {
		var loop h3.GeoLoop
		for _, position := range shape[0] {
			loop = append(loop, h3.NewLatLng(position[1], position[0]))
		}
		all = append(all, h3.GeoPolygon{GeoLoop: loop})
	}
	return all
}

// around returns points over the disc where listings may be, its rim included.
func around(place Place) []h3.LatLng {
	points := []h3.LatLng{h3.NewLatLng(place.Latitude, place.Longitude)}
	for _, share := range []float64{0.5, 1} {
		for step := range 24 {
			angle := float64(step) * math.Pi / 12
			distance := place.StayRadiusKm * share / 111
			points = append(points, h3.NewLatLng(
				place.Latitude+distance*math.Cos(angle),
				place.Longitude+distance*math.Sin(angle)/math.Cos(place.Latitude*math.Pi/180)))
		}
	}
	return points
}

func FuzzMatches(f *testing.F) {
	places, err := Places()
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{"", "Lisbon", "7 calle del faro, el tunco", "ÁÉ\u0301 ,,, 12b", "\xff\xfe", "ﬁ İ"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, query string) {
		for _, place := range places {
			place.matches(words(query))
		}
	})
}
