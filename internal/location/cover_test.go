package location

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"
)

func TestPointCellsOfNoPoint(t *testing.T) {
	t.Parallel()
	for _, point := range []position{{math.NaN(), 1}, {1, math.Inf(1)}} {
		if cells := PointCells(point.Latitude, point.Longitude, 9, nil); cells != nil {
			t.Errorf("%v has cells %v", point, cells)
		}
	}
}

func TestCoverOfPoints(t *testing.T) {
	t.Parallel()
	twice := parseGeometry(t, `{"type":"MultiPoint","coordinates":[[2.3522,48.8566],[2.3522,48.8566],[-9.1393,38.7223],[0,0]]}`)
	if got, want := coverOf(t, twice, 2), []string{"644572501406732483", "645021033775005900"}; !slices.Equal(got, want) {
		t.Errorf("two cells of three different points: %v, want %v", got, want)
	}
	for name, raw := range map[string]string{
		"point that cannot be read":  `{"type":"Point","coordinates":["here"]}`,
		"polygon without outer ring": `{"type":"Polygon","coordinates":[]}`,
		"line":                       `{"type":"LineString","coordinates":[[0,0],[1,1]]}`,
	} {
		if got := coverOf(t, parseGeometry(t, raw), 500); len(got) != 0 {
			t.Errorf("%s: %v, want no cells", name, got)
		}
	}
}

func TestCoverKeepsItsBudget(t *testing.T) {
	t.Parallel()
	europe := Rectangle(36, 70, -10, 40)
	for _, budget := range []int{-1, 0, 1, 2, 3, 7, 8, 100} {
		cells := coverOf(t, europe, budget)
		if len(cells) > max(0, budget) || budget > 0 && len(cells) == 0 {
			t.Errorf("budget %d gives %d cells", budget, len(cells))
		}
		if !slices.IsSortedFunc(cells, func(a, b string) int {
			return cmp.Or(cmp.Compare(cellOf(t, a).Resolution(), cellOf(t, b).Resolution()), cmp.Compare(a, b))
		}) {
			t.Errorf("budget %d: cells are not sorted: %v", budget, cells)
		}
	}
}

func TestCoverOfSmallPlaceWithBoundlessBudget(t *testing.T) {
	t.Parallel()
	garden := Rectangle(38.7, 38.7001, -9.1, -9.0999)
	cells := coverOf(t, garden, math.MaxInt)
	if len(cells) < 50 {
		t.Errorf("%d cells for a garden of a hundred square metres", len(cells))
	}
	for _, cell := range cells {
		if cellOf(t, cell).Resolution() != FinestResolution {
			t.Errorf("cell %s is coarser than it need be", cell)
		}
	}
}

func TestCoverOfMorePolygonsThanBudget(t *testing.T) {
	t.Parallel()
	var geometry Geometry
	geometry.kind = kindMultiPolygon
	for i := range 60 {
		west := -170 + float64(i%12)*28
		south := -60 + float64(i/12)*24
		geometry.polygons = append(geometry.polygons, Rectangle(south, south+20, west, west+20).polygons[0])
	}
	cells := coverOf(t, geometry, 20)
	if len(cells) == 0 || len(cells) > 20 {
		t.Fatalf("%d cells, want 1 to 20", len(cells))
	}
	for _, cell := range cells {
		if resolution := cellOf(t, cell).Resolution(); resolution != 0 {
			t.Errorf("cell %s has resolution %d; sixty polygons in twenty cells fit at 0 only", cell, resolution)
		}
	}
}

// bowTie has two halves whose areas cancel out, so that the estimate of its area
// asks for cells of a square metre all over it.
const bowTie = `{"type":"Polygon","coordinates":[[[-60,-40],[60,40],[60,-40],[-60,40.000000001]]]}`

// needle is twenty thousand kilometres long and less than a millimetre wide.
const needle = `{"type":"Polygon","coordinates":[[[-80,-60],[80,60],[80,60.000000001]]]}`

func TestCoverOfDegenerateShapesIsBounded(t *testing.T) {
	t.Parallel()
	for name, raw := range map[string]string{
		"bow tie": bowTie,
		"needle":  needle,
		"world":   `{"type":"Polygon","coordinates":[[[-180,-90],[180,-90],[180,90],[-180,90]]]}`,
		"line":    `{"type":"Polygon","coordinates":[[[-80,-60],[80,60],[-80,-60]]]}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if cells := coverOf(t, parseGeometry(t, raw), 500); len(cells) > 500 {
				t.Errorf("%d cells for a budget of 500", len(cells))
			}
		})
	}
}

func TestCoverStopsWithItsContext(t *testing.T) {
	t.Parallel()
	geometries := map[string]Geometry{
		"point":    parseGeometry(t, `{"type":"Point","coordinates":[1,2]}`),
		"line":     parseGeometry(t, `{"type":"LineString","coordinates":[[0,0],[1,1]]}`),
		"polygon":  Rectangle(36, 44, -10, 3),
		"polygons": {kind: kindMultiPolygon, polygons: append(Rectangle(0, 1, 0, 1).polygons, Rectangle(2, 3, 0, 1).polygons...)},
	}
	for name, geometry := range geometries {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := Cover(ctx, geometry, 500); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v, want context.Canceled", name, err)
		}
	}
}

func TestCoverEndsWhenItsContextEndsOnTheWay(t *testing.T) {
	t.Parallel()
	// Counting the polls instead of the time ends the work at every stage of it.
	whole := &pollCounter{Context: t.Context()}
	if _, err := Cover(whole, Rectangle(36, 44, -10, 3), 100); err != nil {
		t.Fatal(err)
	}
	if whole.polls < 100 {
		t.Fatalf("the context was looked at only %d times", whole.polls)
	}
	for end := 1; end < whole.polls; end += max(1, whole.polls/40) {
		ending := &pollCounter{Context: t.Context(), end: end}
		if _, err := Cover(ending, Rectangle(36, 44, -10, 3), 100); !errors.Is(err, context.Canceled) {
			t.Fatalf("ended at poll %d of %d: %v, want context.Canceled", end, whole.polls, err)
		}
		if ending.polls != end {
			t.Errorf("the work went on for %d polls after the context had ended", ending.polls-end)
		}
	}
}

// pollCounter is a context that ends at a poll.
type pollCounter struct {
	context.Context
	polls, end int
}

func (c *pollCounter) Err() error {
	c.polls++
	if c.end > 0 && c.polls >= c.end {
		return context.Canceled
	}
	return nil
}

// coastline is an outline that is ragged at every scale, like those of countries.
func coastline(radius float64, points int) Geometry {
	draw := newShapes(6)
	type wave struct{ count, height, phase float64 }
	var waves []wave
	for count := 3.0; count < float64(points)/4; count *= 2 {
		waves = append(waves, wave{count, 0.4 / math.Pow(count, 0.8), draw.between(0, 2*math.Pi)})
	}
	ring := make([]position, points)
	for i := range ring {
		angle := 2 * math.Pi * float64(i) / float64(points)
		reach := radius
		for _, wave := range waves {
			reach += radius * wave.height * math.Sin(wave.count*angle+wave.phase)
		}
		ring[i] = position{-55 + reach*math.Cos(angle), -12 + reach*math.Sin(angle)}
	}
	return Geometry{kind: kindPolygon, polygons: []polygon{{outer: closed(ring)}}}
}

func TestCoverOfLongCoastlineEqualsPlainRules(t *testing.T) {
	t.Parallel()
	shape := coastline(3, 3000)
	got := coverOf(t, shape, 120)
	want := plainCover(t, shape.polygons[0], 120)
	for i, cell := range want {
		if i >= len(got) || got[i] != decimal(cell) {
			t.Fatalf("cell %d differs from the plain rules", i)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d cells, the plain rules give %d", len(got), len(want))
	}
}

func FuzzCover(f *testing.F) {
	for _, vector := range readVectors(f).Covers {
		f.Add([]byte(vector.GeoJSON), vector.MaxTags)
	}
	f.Add([]byte(bowTie), 20)
	f.Fuzz(func(t *testing.T, raw []byte, budget int) {
		geometry, err := ParseGeometry(raw)
		if err != nil {
			return
		}
		budget = min(budget, 40)
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		cells, err := Cover(ctx, geometry, budget)
		if err != nil {
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Cover: %v", err)
			}
			return
		}
		if len(cells) > max(0, budget) {
			t.Errorf("%d cells for a budget of %d", len(cells), budget)
		}
		seen := make(map[string]bool)
		for _, text := range cells {
			if cell := cellOf(t, text); !cell.IsValid() || seen[text] {
				t.Errorf("cell %s is invalid or there twice", text)
			}
			seen[text] = true
		}
	})
}

func BenchmarkCover(b *testing.B) {
	var city, country json.RawMessage
	for _, vector := range readVectors(b).Covers {
		switch vector.Name {
		case "square-500":
			city = vector.GeoJSON
		case "country-500":
			country = vector.GeoJSON
		}
	}
	for _, bench := range []struct {
		name     string
		geometry Geometry
	}{
		{"city", parseGeometry(b, string(city))},
		{"country", parseGeometry(b, string(country))},
		{"continent/10000-points", coastline(20, 10_000)},
		{"continent/100000-points", coastline(20, 100_000)},
		{"continent/1000000-points", coastline(20, 1_000_000)},
		{"needle", parseGeometry(b, needle)},
		{"bow-tie", parseGeometry(b, bowTie)},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Cover(b.Context(), bench.geometry, 500); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkParseGeometry(b *testing.B) {
	raw := []byte(`{"type":"Polygon","coordinates":[[`)
	for i, p := range coastline(20, 100_000).polygons[0].outer {
		if i > 0 {
			raw = append(raw, ',')
		}
		raw = fmt.Appendf(raw, "[%.7f,%.7f]", p.Longitude, p.Latitude)
	}
	raw = append(raw, "]]}"...)
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseGeometry(raw); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPointCells(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if cells := PointCells(13.697629, -89.191156, FinestResolution, nil); len(cells) != 16 {
			b.Fatal(cells)
		}
	}
}
