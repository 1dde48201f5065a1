package geocode

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"hostr-daemon/internal/location"
)

// Place is an area that the geocoder knows by name.
type Place struct {
	// Geometry is the place's outline, or its bounding box when it has none.
	Geometry location.Geometry
	// DisplayName is the geocoder's full name, "San Salvador, El Salvador".
	DisplayName string
	// PlaceID is the geocoder's own id of the place, as text.
	PlaceID string
	// Feature is the kind of place the name was found as: country, state, city or
	// settlement.
	Feature string
}

// feature is a value of Nominatim's featuretype.
type feature string

// searchFeatures are the kinds of places a search asks for. A name that is both a
// state and a city means the larger one.
func searchFeatures() []feature { return []feature{"country", "state", "city", "settlement"} }

// placeKey names a look-up in the memory.
func placeKey(name string) string {
	key := strings.ToLower(name)
	separator := "|"
	for _, feature := range searchFeatures() {
		key += separator + string(feature)
		separator = ","
	}
	return key
}

// findPlace asks the memories, then for one feature after the other.
func (c *Client) findPlace(ctx context.Context, key, name string) (Place, error) {
	// An equal look-up may have ended since the caller asked the memory.
	if place, ok := c.memory.get(key); ok {
		return place, nil
	}
	kept := answerKey(c.base.String(), "place", key)
	if place, ok := c.recallPlace(ctx, kept); ok {
		c.memory.add(key, place)
		return place, nil
	}
	for _, feature := range searchFeatures() {
		body, err := c.get(ctx, []parameter{
			{"q", name}, {"format", "json"}, {"limit", "1"}, {"addressdetails", "1"},
			{"featuretype", string(feature)}, {"polygon_geojson", "1"},
		})
		if err != nil {
			return Place{}, err
		}
		place, found, err := c.readPlace(ctx, body)
		if err != nil {
			return Place{}, fmt.Errorf("%s: %w", c.base.Host, err)
		}
		if found {
			place.Feature = string(feature)
			c.memory.add(key, place)
			c.answers.keep(ctx, kept, slices.Concat([]byte(feature), []byte("\n"), body))
			return place, nil
		}
	}
	return Place{}, errors.New("nothing was found by that name; try another spelling, or a larger place around it")
}

// recallPlace reads a kept answer: the feature it was given for, then the answer.
func (c *Client) recallPlace(ctx context.Context, kept [32]byte) (Place, bool) {
	asked, body, _ := bytes.Cut(c.answers.recall(ctx, kept), []byte("\n"))
	if !slices.Contains(searchFeatures(), feature(asked)) {
		return Place{}, false
	}
	place, found, err := c.readPlace(ctx, body)
	place.Feature = string(asked)
	return place, found && err == nil
}

// readPlace is parsePlace when its turn has come: a large outline takes a processor
// for a second.
func (c *Client) readPlace(ctx context.Context, body []byte) (place Place, found bool, err error) {
	select {
	case c.parsing <- struct{}{}:
		defer func() { <-c.parsing }()
		return parsePlace(body)
	case <-ctx.Done():
		return Place{}, false, ctx.Err()
	}
}

// parsePlace reads the answer to a place request. Found is false when it holds no
// place.
func parsePlace(body []byte) (place Place, found bool, err error) {
	items, err := parseItems(body)
	items = slices.DeleteFunc(items, func(item gjson.Result) bool { return !item.IsObject() })
	if err != nil || len(items) == 0 {
		return Place{}, false, err
	}
	outlined := slices.IndexFunc(items, func(item gjson.Result) bool { return item.Get("geojson").IsObject() })
	item := items[max(0, outlined)]
	geometry, err := placeGeometry(item)
	if err != nil {
		return Place{}, false, err
	}
	return Place{
		Geometry:    geometry,
		DisplayName: text(item.Get("display_name")),
		PlaceID:     text(item.Get("place_id")),
	}, true, nil
}

// placeGeometry returns the item's outline. What has none is a point or a line to
// the geocoder, in which no search would find anything, so its bounding box stands
// in where there is one.
func placeGeometry(item gjson.Result) (location.Geometry, error) {
	around, hasBox := parseBoundingBox(item)
	outline := item.Get("geojson")
	if !outline.IsObject() {
		if !hasBox {
			return location.Geometry{}, errors.New("the answer has neither an outline of the place nor a bounding box")
		}
		return around.rectangle(), nil
	}
	geometry, err := location.ParseGeometry(json.RawMessage(outline.Raw))
	if err != nil {
		return location.Geometry{}, err
	}
	if !geometry.IsArea() && hasBox && around.south < around.north && around.west < around.east {
		return around.rectangle(), nil
	}
	return geometry, nil
}

// parseItems returns the items of a JSON list; any other JSON has none.
func parseItems(body []byte) ([]gjson.Result, error) {
	// gjson checks nothing; encoding/json also bounds the depth.
	if !json.Valid(body) {
		return nil, errors.New("the answer is not JSON")
	}
	list := gjson.ParseBytes(body)
	if !list.IsArray() {
		return nil, nil
	}
	return list.Array(), nil
}

// boundingBox is Nominatim's boundingbox, in degrees.
type boundingBox struct{ south, north, west, east float64 }

func parseBoundingBox(item gjson.Result) (boundingBox, bool) {
	list := item.Get("boundingbox")
	if !list.IsArray() {
		return boundingBox{}, false
	}
	sides := list.Array()
	if len(sides) != 4 {
		return boundingBox{}, false
	}
	var degrees [4]float64
	for i, side := range sides {
		var ok bool
		if degrees[i], ok = parseDegrees(side); !ok {
			return boundingBox{}, false
		}
	}
	return boundingBox{degrees[0], degrees[1], degrees[2], degrees[3]}, true
}

func (b boundingBox) rectangle() location.Geometry {
	return location.Rectangle(b.south, b.north, b.west, b.east)
}

// text returns a text or a number as text of its own; a piece of the answer would
// keep the whole answer in memory.
func text(value gjson.Result) string {
	if value.Type != gjson.Number && value.Type != gjson.String {
		return ""
	}
	return strings.Clone(value.String())
}

// parseDegrees reads a number, or the number inside a text.
func parseDegrees(value gjson.Result) (float64, bool) {
	if value.Type != gjson.Number && value.Type != gjson.String {
		return 0, false
	}
	return location.ParseDegrees(value.String())
}
