package location

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseGeometryIsTolerant(t *testing.T) {
	t.Parallel()
	square := []position{{0, 0}, {1, 0}, {1, 1}, {0, 0}}
	for _, test := range []struct {
		name string
		raw  string
		want Geometry
	}{
		{"numbers as text", `{"type":"Point","coordinates":["-9.5"," 38.7 "]}`, Geometry{kind: "Point", points: []position{{-9.5, 38.7}}}},
		{"height is left out", `{"type":"Point","coordinates":[1,2,300]}`, Geometry{kind: "Point", points: []position{{1, 2}}}},
		{"point without latitude", `{"type":"Point","coordinates":[1]}`, Geometry{kind: "Point"}},
		{"point that is no list", `{"type":"Point","coordinates":{"0":1,"1":2}}`, Geometry{kind: "Point"}},
		{"points that cannot be read", `{"type":"MultiPoint","coordinates":[[1,2],null,["a","b"],[3],[true,false],["NaN",1],["0x1p3",1],[1e999,1],[1e6,1],[4,5]]}`,
			Geometry{kind: "MultiPoint", points: []position{{1, 2}, {4, 5}}}},
		{"ring is closed", `{"type":"Polygon","coordinates":[[[0,0],[1,0],[1,1]]]}`, Geometry{kind: "Polygon", polygons: []polygon{{outer: square}}}},
		{"closed ring stays", `{"type":"Polygon","coordinates":[[[0,0],[1,0],[1,1],[0,0]]]}`, Geometry{kind: "Polygon", polygons: []polygon{{outer: square}}}},
		{"positions in a ring that cannot be read", `{"type":"Polygon","coordinates":[[[0,0],"x",[1,0],[],[1,1]]]}`, Geometry{kind: "Polygon", polygons: []polygon{{outer: square}}}},
		{"outer ring too short", `{"type":"Polygon","coordinates":[[[0,0],[1,0]],[[0,0],[1,0],[1,1]]]}`, Geometry{kind: "Polygon"}},
		{"outer ring is no list", `{"type":"Polygon","coordinates":[null,[[0,0],[1,0],[1,1]]]}`, Geometry{kind: "Polygon"}},
		{"hole too short", `{"type":"Polygon","coordinates":[[[0,0],[1,0],[1,1]],[[0,0]],[[0,0],[1,0],[1,1]]]}`,
			Geometry{kind: "Polygon", polygons: []polygon{{outer: square, holes: [][]position{square}}}}},
		{"one usable polygon of two", `{"type":"MultiPolygon","coordinates":[[[[0,0]]],[[[0,0],[1,0],[1,1]]]]}`,
			Geometry{kind: "MultiPolygon", polygons: []polygon{{outer: square}}}},
		{"line", `{"type":"LineString","coordinates":[[0,0],[1,1]]}`, Geometry{kind: "LineString"}},
		{"collection", `{"type":"GeometryCollection","geometries":[]}`, Geometry{kind: "GeometryCollection"}},
		{"no coordinates", `{"type":"Polygon"}`, Geometry{kind: "Polygon"}},
		{"no type", `{"coordinates":[1,2]}`, Geometry{}},
		{"type is no text", `{"type":7,"coordinates":[1,2]}`, Geometry{}},
		{"type in other letter case", `{"type":"point","coordinates":[1,2]}`, Geometry{kind: "point"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, err := ParseGeometry(json.RawMessage(test.raw))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(Geometry{}, polygon{})); diff != "" {
				t.Errorf("geometry (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseGeometryRefuses(t *testing.T) {
	t.Parallel()
	for name, raw := range map[string]string{
		"nothing":        ``,
		"no JSON":        `{"type":`,
		"a list":         `[1,2]`,
		"null":           `null`,
		"a text":         `"Point"`,
		"bytes after it": `{"type":"Point"} x`,
		"endless depth":  `{"type":"Polygon","coordinates":` + strings.Repeat("[", 1<<20),
		"balanced depth": `{"type":"Polygon","coordinates":` + strings.Repeat("[", 1<<20) + strings.Repeat("]", 1<<20) + `}`,
		"too long":       `{"type":"Point","coordinates":[1,2]}` + strings.Repeat(" ", MaxGeometryBytes),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := ParseGeometry(json.RawMessage(raw))
			if err == nil {
				t.Errorf("read %+v, want an error", got)
			}
		})
	}
}

func TestGeometryFacts(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		geometry Geometry
		kind     string
		area     bool
		size     int
	}{
		{Geometry{}, "", false, 0},
		{Rectangle(1, 2, 3, 4), "Polygon", true, 5},
		{parseGeometry(t, `{"type":"MultiPolygon","coordinates":[[[[0,0],[9,0],[9,9]],[[1,1],[2,1],[2,2]]]]}`), "MultiPolygon", true, 8},
		{parseGeometry(t, `{"type":"MultiPoint","coordinates":[[1,2],[3,4]]}`), "MultiPoint", false, 2},
		{parseGeometry(t, `{"type":"LineString","coordinates":[[1,2],[3,4]]}`), "LineString", false, 0},
	} {
		if test.geometry.Kind() != test.kind || test.geometry.IsArea() != test.area || test.geometry.Size() != test.size {
			t.Errorf("%+v: kind %q, area %v, size %d", test, test.geometry.Kind(), test.geometry.IsArea(), test.geometry.Size())
		}
	}
}

func TestRectangleIsItsGeoJSON(t *testing.T) {
	t.Parallel()
	want := parseGeometry(t, `{"type":"Polygon","coordinates":[[[-89.2,13.6],[-89.1,13.6],[-89.1,13.7],[-89.2,13.7],[-89.2,13.6]]]}`)
	got := Rectangle(13.6, 13.7, -89.2, -89.1)
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(Geometry{}, polygon{})); diff != "" {
		t.Errorf("rectangle (-want +got):\n%s", diff)
	}
}

func FuzzParseGeometry(f *testing.F) {
	for _, vector := range readVectors(f).Covers {
		f.Add([]byte(vector.GeoJSON))
	}
	for _, raw := range []string{``, `{}`, `{"type":"Point","coordinates":["1","2"]}`, `{"type":"Polygon","coordinates":[[[0,0],[1,0]]]}`,
		`{"type":"Polygon","coordinates":[[[[[[]]]]]]}`, `{"type":"MultiPolygon","coordinates":[[[[1,2],[3,4],[5,6]],[]],7]}`} {
		f.Add([]byte(raw))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		geometry, err := ParseGeometry(raw)
		if err != nil {
			if geometry.Size() != 0 {
				t.Error("a geometry came with an error")
			}
			return
		}
		for _, polygon := range geometry.polygons {
			for _, ring := range plainRings(polygon) {
				if len(ring) < 3 || ring[0] != ring[len(ring)-1] {
					t.Errorf("ring %v is too short or open", ring)
				}
			}
		}
		if len(geometry.points) > 0 && len(geometry.polygons) > 0 {
			t.Error("a geometry has points and polygons")
		}
	})
}
