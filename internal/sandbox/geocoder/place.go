package geocoder

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// Kind is the size of a place.
type Kind string

// Kinds, largest first.
const (
	Country Kind = "country"
	State   Kind = "state"
	City    Kind = "city"
	Town    Kind = "town"
	Street  Kind = "street"
)

// Place is something the geocoder knows. Outlines are rough and drawn for the
// sandbox; coasts lie well out at sea.
type Place struct {
	ID          int               `json:"id"`
	Name        string            `json:"name"`
	Aliases     []string          `json:"aliases"`
	Kind        Kind              `json:"kind"`
	DisplayName string            `json:"displayName"`
	Latitude    float64           `json:"latitude"`
	Longitude   float64           `json:"longitude"`
	BoundingBox [4]float64        `json:"boundingBox"` // south, north, west, east
	Class       string            `json:"class"`
	Type        string            `json:"type"`
	Rank        int               `json:"rank"`
	Address     map[string]string `json:"address"`
	// GeoJSON is the outline; empty for places known as a point only.
	GeoJSON json.RawMessage `json:"geojson"`
	// StayRadiusKm is how far around the centre listings may be put so that they
	// lie well inside the outline; 0 where nobody stays.
	StayRadiusKm float64 `json:"stayRadiusKm"`
	// Within names the places a search for which must find listings put here.
	Within []string `json:"within"`
}

//go:embed places.json
var placesJSON []byte

// Places returns all places the geocoder knows, larger ones first.
func Places() ([]Place, error) {
	var places []Place
	if err := json.Unmarshal(placesJSON, &places); err != nil {
		return nil, fmt.Errorf("the sandbox's places are unreadable: %w", err)
	}
	return places, nil
}

// Settlements returns the places listings may be put in.
func Settlements(places []Place) []Place {
	return slices.DeleteFunc(slices.Clone(places), func(p Place) bool { return p.StayRadiusKm == 0 })
}

// is reports whether a place passes a featuretype of Nominatim; "" passes all.
// As there, settlement is anything people live in from a state down.
func (p Place) is(featureType string) bool {
	switch featureType {
	case "":
		return true
	case "settlement":
		return p.Kind == State || p.Kind == City || p.Kind == Town
	default:
		return string(p.Kind) == featureType
	}
}

// matches reports whether the words of a query name the place: all words of one
// of its names, and beyond them only words of its full name and house numbers.
func (p Place) matches(query []string) bool {
	known := words(p.DisplayName)
	for _, name := range append([]string{p.Name}, p.Aliases...) {
		named := words(name)
		rest := slices.DeleteFunc(slices.Clone(query), func(word string) bool {
			return slices.Contains(named, word) || slices.Contains(known, word) || isNumber(word)
		})
		if len(rest) == 0 && containsAll(query, named) {
			return true
		}
	}
	return false
}

// words splits a text into lower-case words without accents or punctuation.
func words(text string) []string {
	return strings.FieldsFunc(plain.Replace(strings.ToLower(text)), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
}

// plain writes the accented letters of the sandbox's languages without accents.
var plain = strings.NewReplacer(
	"á", "a", "à", "a", "â", "a", "ã", "a", "ä", "a", "ç", "c", "é", "e", "è", "e", "ê", "e",
	"í", "i", "ì", "i", "ñ", "n", "ó", "o", "ò", "o", "ô", "o", "õ", "o", "ö", "o",
	"ú", "u", "ù", "u", "ü", "u",
)

func containsAll(query, named []string) bool {
	for _, word := range named {
		if !slices.Contains(query, word) {
			return false
		}
	}
	return true
}

func isNumber(word string) bool { return word[0] >= '0' && word[0] <= '9' }
