package location

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
)

// Names of the GeoJSON types that have a cover (RFC 7946 §3.1).
const (
	kindPoint        = "Point"
	kindMultiPoint   = "MultiPoint"
	kindPolygon      = "Polygon"
	kindMultiPolygon = "MultiPolygon"
)

// MaxGeometryBytes is the longest GeoJSON text ParseGeometry reads; a detailed
// country outline has a few megabytes.
const MaxGeometryBytes = 32 << 20

// maxDegrees is two turns. A larger number is no angle, and keeping numbers this
// small keeps every product below far from overflow.
const maxDegrees = 720

// Geometry is a GeoJSON geometry reduced to what a cover needs. The zero value is
// a geometry without any place in it; its cover is empty.
type Geometry struct {
	kind     string
	points   []position
	polygons []polygon
}

// position is one point, in degrees.
type position struct {
	Longitude, Latitude float64
}

// polygon is an outer ring and its holes, each ring closed and with at least
// three positions.
type polygon struct {
	outer []position
	holes [][]position
}

// ParseGeometry reads a GeoJSON geometry object as tolerantly as spec 42 §3.1
// asks: positions that cannot be read, rings with fewer than three positions and
// polygons without an outer ring are left out, and a type without a cover gives a
// geometry whose cover is empty. The error tells that raw is no JSON object, or
// is longer than MaxGeometryBytes.
func ParseGeometry(raw json.RawMessage) (Geometry, error) {
	if len(raw) > MaxGeometryBytes {
		return Geometry{}, fmt.Errorf("the geometry has %d bytes; at most %d are read", len(raw), MaxGeometryBytes)
	}
	// gjson reads no deeper than asked, but checks nothing; encoding/json bounds
	// the depth.
	if !json.Valid(raw) {
		return Geometry{}, errors.New("the geometry is not JSON")
	}
	object := gjson.ParseBytes(raw)
	if !object.IsObject() {
		return Geometry{}, errors.New("the geometry is not a JSON object")
	}
	geometry := Geometry{}
	if kind := object.Get("type"); kind.Type == gjson.String {
		// A piece of the text would keep all of it in memory.
		geometry.kind = strings.Clone(kind.Str)
	}
	geometry.read(object.Get("coordinates"))
	return geometry, nil
}

// Rectangle returns the polygon between two parallels and two meridians, in
// degrees. It does not cross the antimeridian: with west > east it is the
// rectangle between them the long way round.
func Rectangle(south, north, west, east float64) Geometry {
	ring := []position{{west, south}, {east, south}, {east, north}, {west, north}, {west, south}}
	return Geometry{kind: kindPolygon, polygons: []polygon{{outer: ring}}}
}

// Kind returns the GeoJSON type as it was written, or "".
func (g Geometry) Kind() string { return g.kind }

// IsArea reports whether the type is one that covers an area: Polygon or
// MultiPolygon.
func (g Geometry) IsArea() bool { return g.kind == kindPolygon || g.kind == kindMultiPolygon }

// Size returns how many positions the geometry holds; each takes 16 bytes.
func (g Geometry) Size() int {
	size := len(g.points)
	for _, polygon := range g.polygons {
		size += len(polygon.outer)
		for _, hole := range polygon.holes {
			size += len(hole)
		}
	}
	return size
}

// ParseDegrees reads a decimal number of degrees as geocoders write it, as a JSON
// number or inside a text. It refuses what is not a finite number within two
// turns.
func ParseDegrees(text string) (float64, bool) {
	text = strings.TrimSpace(text)
	// strconv also reads hexadecimal, underscores, "Inf" and "NaN".
	if strings.ContainsAny(text, "xXpP_nN") {
		return 0, false
	}
	degrees, err := strconv.ParseFloat(text, 64)
	if err != nil || math.Abs(degrees) > maxDegrees {
		return 0, false
	}
	return degrees, true
}

func (g *Geometry) read(coordinates gjson.Result) {
	switch g.kind {
	case kindPoint:
		if point, ok := readPosition(coordinates); ok {
			g.points = []position{point}
		}
	case kindMultiPoint:
		g.points = readPositions(coordinates)
	case kindPolygon:
		g.readPolygon(coordinates)
	case kindMultiPolygon:
		eachElement(coordinates, g.readPolygon)
	}
}

func (g *Geometry) readPolygon(coordinates gjson.Result) {
	var read polygon
	first := true
	eachElement(coordinates, func(element gjson.Result) {
		ring := readRing(element)
		switch {
		case first:
			read.outer, first = ring, false
		case ring != nil:
			read.holes = append(read.holes, ring)
		}
	})
	if read.outer != nil {
		g.polygons = append(g.polygons, read)
	}
}

// readRing returns the ring closed, or nil when it has fewer than three positions.
func readRing(coordinates gjson.Result) []position {
	ring := readPositions(coordinates)
	if len(ring) < 3 {
		return nil
	}
	if ring[0] != ring[len(ring)-1] {
		ring = append(ring, ring[0])
	}
	return ring
}

func readPositions(coordinates gjson.Result) []position {
	var positions []position
	eachElement(coordinates, func(element gjson.Result) {
		if point, ok := readPosition(element); ok {
			positions = append(positions, point)
		}
	})
	return positions
}

// readPosition reads [longitude, latitude, …].
func readPosition(element gjson.Result) (position, bool) {
	if !element.IsArray() {
		return position{}, false
	}
	var degrees [2]float64
	count, ok := 0, true
	element.ForEach(func(_, value gjson.Result) bool {
		degrees[count], ok = readDegrees(value)
		count++
		return ok && count < len(degrees)
	})
	return position{Longitude: degrees[0], Latitude: degrees[1]}, ok && count == len(degrees)
}

func readDegrees(value gjson.Result) (float64, bool) {
	switch value.Type {
	case gjson.Number:
		return ParseDegrees(value.Raw)
	case gjson.String:
		return ParseDegrees(value.Str)
	default:
		return 0, false
	}
}

// eachElement calls visit for each element of a JSON array, and not at all for
// any other value.
func eachElement(list gjson.Result, visit func(gjson.Result)) {
	if !list.IsArray() {
		return
	}
	list.ForEach(func(_, element gjson.Result) bool {
		visit(element)
		return true
	})
}
