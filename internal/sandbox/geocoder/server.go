// Package geocoder is the geocoder of the sandbox: the search API of Nominatim
// (spec 42 §1) over the few places of places.json.
//
// It answers what the daemon asks for: a name to an outline, an address to a
// point. It knows nothing of listings beyond where they may be put.
package geocoder

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/rs/zerolog"

	"hostr-daemon/internal/sandbox/httpfault"
	"hostr-daemon/internal/sandbox/loopback"
)

// Limits of the number of answers, as Nominatim has them.
const (
	defaultLimit = 10
	maxLimit     = 40
)

// Server is a running geocoder. Safe for concurrent use.
type Server struct {
	// Switch breaks and heals the geocoder and remembers its requests.
	Switch *httpfault.Switch

	server *loopback.Server
	places []Place
}

// Open starts a geocoder on the port of loopback (0: a free one).
func Open(port int, logger zerolog.Logger) (*Server, error) {
	places, err := Places()
	if err != nil {
		return nil, err
	}
	s := &Server{places: places}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /search", s.search)
	s.Switch = httpfault.New(mux)
	if s.server, err = loopback.Serve(port, s.Switch, logger); err != nil {
		return nil, fmt.Errorf("geocoder: %w", err)
	}
	return s, nil
}

// URL returns the base URL of the search, which takes the query string.
func (s *Server) URL() string { return s.server.URL() + "/search" }

// Places returns what the geocoder knows, larger places first.
func (s *Server) Places() []Place { return s.places }

// Close ends the geocoder.
func (s *Server) Close() error { return s.server.Close() }

// item is one answer in the form of Nominatim's format=json: numbers of places
// as text.
type item struct {
	PlaceID     int               `json:"place_id"`
	Licence     string            `json:"licence"`
	OSMType     string            `json:"osm_type"`
	OSMID       int               `json:"osm_id"`
	BoundingBox [4]string         `json:"boundingbox"`
	Lat         string            `json:"lat"`
	Lon         string            `json:"lon"`
	DisplayName string            `json:"display_name"`
	Class       string            `json:"class"`
	Type        string            `json:"type"`
	PlaceRank   int               `json:"place_rank"`
	AddressType string            `json:"addresstype"`
	Name        string            `json:"name"`
	Address     map[string]string `json:"address,omitempty"`
	GeoJSON     any               `json:"geojson,omitempty"`
}

// point is the GeoJSON of a place without an outline.
type point struct {
	Type        string     `json:"type"`
	Coordinates [2]float64 `json:"coordinates"` // longitude, latitude
}

func (s *Server) search(w http.ResponseWriter, request *http.Request) {
	query := request.URL.Query()
	if query.Get("q") == "" {
		refuse(w, "the parameter q is missing")
		return
	}
	if format := query.Get("format"); format != "json" && format != "jsonv2" {
		refuse(w, "the sandbox answers format=json only")
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_ = json.NewEncoder(w).Encode(s.find(query))
}

func (s *Server) find(query url.Values) []item {
	limit := defaultLimit
	if wanted, err := strconv.Atoi(query.Get("limit")); err == nil && wanted > 0 {
		limit = min(wanted, maxLimit)
	}
	featureType := query.Get("featuretype")
	if featureType == "" {
		featureType = query.Get("featureType")
	}
	wanted := words(query.Get("q"))
	items := []item{}
	for _, place := range s.places {
		if len(items) < limit && place.is(featureType) && place.matches(wanted) {
			items = append(items, place.item(query))
		}
	}
	return items
}

func (p Place) item(query url.Values) item {
	answer := item{
		PlaceID: p.ID, OSMType: "relation", OSMID: p.ID,
		Licence:     "Places made up for the Hostr sandbox",
		Lat:         degrees(p.Latitude),
		Lon:         degrees(p.Longitude),
		DisplayName: p.DisplayName,
		Class:       p.Class, Type: p.Type, PlaceRank: p.Rank,
		AddressType: string(p.Kind), Name: p.Name,
	}
	for i, side := range p.BoundingBox {
		answer.BoundingBox[i] = degrees(side)
	}
	if query.Get("addressdetails") == "1" {
		answer.Address = p.Address
	}
	if query.Get("polygon_geojson") == "1" {
		answer.GeoJSON = point{"Point", [2]float64{p.Longitude, p.Latitude}}
		if len(p.GeoJSON) > 0 {
			answer.GeoJSON = p.GeoJSON
		}
	}
	return answer
}

func degrees(value float64) string { return strconv.FormatFloat(value, 'f', 7, 64) }

func refuse(w http.ResponseWriter, reason string) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(http.StatusBadRequest)
	_ = json.NewEncoder(w).Encode(map[string]any{
		"error": map[string]any{"code": http.StatusBadRequest, "message": reason},
	})
}
