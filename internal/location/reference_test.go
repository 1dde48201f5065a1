package location

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/uber/h3-go/v4"
)

// The rules of spec 42 §3.3 written down once more, edge by edge and with H3's own
// fill, to hold the indexed code against.

func plainContains(p polygon, point position) bool {
	return pointInRing(point, p.outer) &&
		!slices.ContainsFunc(p.holes, func(hole []position) bool { return pointInRing(point, hole) })
}

func plainRings(p polygon) [][]position { return append([][]position{p.outer}, p.holes...) }

func plainCrosses(ring, boundary []position) bool {
	if len(ring) < 4 || len(boundary) < 4 {
		return false
	}
	for i := range len(boundary) - 1 {
		for k := range len(ring) - 1 {
			if edgesIntersect(boundary[i], boundary[i+1], ring[k], ring[k+1]) {
				return true
			}
		}
	}
	return false
}

func plainHasPointIn(ring, boundary []position) bool {
	return slices.ContainsFunc(ring[:len(ring)-1], func(p position) bool { return pointInRing(p, boundary) })
}

func boundaryOf(tb testing.TB, cell h3.Cell) []position {
	tb.Helper()
	vertices, err := cell.Boundary()
	if err != nil {
		tb.Fatal(err)
	}
	boundary := make([]position, 0, len(vertices)+1)
	for _, vertex := range vertices {
		boundary = append(boundary, position{vertex.Lng, vertex.Lat})
	}
	return append(boundary, boundary[0])
}

// plainWaste returns the waste of a cell, or false when it touches no boundary.
func plainWaste(tb testing.TB, p polygon, cell h3.Cell) (float64, bool) {
	tb.Helper()
	boundary := boundaryOf(tb, cell)
	vertices, inside := len(boundary)-1, 0
	for _, vertex := range boundary[:vertices] {
		if plainContains(p, vertex) {
			inside++
		}
	}
	rings := plainRings(p)
	if !slices.ContainsFunc(rings, func(ring []position) bool { return plainCrosses(ring, boundary) }) &&
		(inside == 0 || inside == vertices) &&
		!slices.ContainsFunc(rings, func(ring []position) bool { return plainHasPointIn(ring, boundary) }) {
		return 0, false
	}
	center, err := cell.LatLng()
	if err != nil {
		tb.Fatal(err)
	}
	if plainContains(p, position{center.Lng, center.Lat}) {
		inside++
	}
	size, err := h3.CellAreaM2(cell)
	if err != nil {
		tb.Fatal(err)
	}
	return max(0, size-float64(size*(float64(inside)/float64(vertices+1)))), true
}

// libraryFill is H3's experimental fill.
func libraryFill(tb testing.TB, p polygon, resolution int) []h3.Cell {
	tb.Helper()
	loop := func(ring []position) h3.GeoLoop {
		points := make(h3.GeoLoop, len(ring))
		for i, point := range ring {
			points[i] = h3.NewLatLng(point.Latitude, point.Longitude)
		}
		return points
	}
	shape := h3.GeoPolygon{GeoLoop: loop(p.outer)}
	for _, hole := range p.holes {
		shape.Holes = append(shape.Holes, loop(hole))
	}
	var cells []h3.Cell
	err := func() (err error) {
		// The binding indexes into an empty slice when H3 estimates no cells.
		defer func() {
			if failure := recover(); failure != nil {
				err = nil
			}
		}()
		cells, err = h3.PolygonToCellsExperimental(shape, resolution, h3.ContainmentCenter)
		return err
	}()
	if err != nil {
		tb.Fatalf("H3 fill: %v", err)
	}
	return cells
}

// plainCover is the cover of one polygon after the text of the spec.
func plainCover(tb testing.TB, p polygon, budget int) []h3.Cell {
	tb.Helper()
	grid, err := newHexGrid()
	if err != nil {
		tb.Fatal(err)
	}
	var seeds []h3.Cell
	for resolution := (&area{grid: grid, km2: areaKm2(p.outer)}).probe(budget); ; resolution-- {
		seeds = libraryFill(tb, p, resolution)
		if len(seeds) <= budget {
			break
		}
		if resolution == 0 {
			seeds = seeds[:budget]
			break
		}
	}
	set := make(map[h3.Cell]bool)
	var queue wasteQueue
	add := func(cells []h3.Cell) {
		for _, cell := range cells {
			set[cell] = true
			if waste, touches := plainWaste(tb, p, cell); touches {
				queue.push(wastefulCell{cell, waste})
			}
		}
	}
	add(seeds)
	for len(queue) > 0 && len(set) < budget {
		cell := queue.pop().cell
		if cell.Resolution() == FinestResolution {
			continue
		}
		children, err := cell.ImmediateChildren()
		if err != nil {
			tb.Fatal(err)
		}
		if len(set)-1+len(children) > budget {
			continue
		}
		delete(set, cell)
		add(children)
	}
	cells := make([]h3.Cell, 0, len(set))
	for cell := range set {
		cells = append(cells, cell)
	}
	slices.SortFunc(cells, func(a, b h3.Cell) int {
		return cmp.Or(cmp.Compare(a.Resolution(), b.Resolution()), cmp.Compare(a, b))
	})
	return cells
}

// shapes draws polygons of many kinds; the same seed draws the same ones.
type shapes struct{ *rand.Rand }

func newShapes(seed uint64) shapes { return shapes{rand.New(rand.NewPCG(seed, 42))} }

func (s shapes) between(low, high float64) float64 { return low + s.Float64()*(high-low) }

// log draws a number whose magnitude is even between the two.
func (s shapes) log(low, high float64) float64 {
	return math.Exp(s.between(math.Log(low), math.Log(high)))
}

func closed(ring []position) []position { return append(ring, ring[0]) }

// star draws a ragged ring around a point.
func (s shapes) star(center position, radius, ragged float64, points int) []position {
	ring := make([]position, points)
	for i := range ring {
		angle := 2 * math.Pi * float64(i) / float64(points)
		reach := radius * (1 - s.between(0, ragged))
		ring[i] = position{center.Longitude + reach*math.Cos(angle), center.Latitude + reach*math.Sin(angle)}
	}
	return closed(ring)
}

// tangle draws a ring that crosses itself.
func (s shapes) tangle(center position, radius float64, points int) []position {
	ring := make([]position, points)
	for i := range ring {
		ring[i] = position{center.Longitude + s.between(-radius, radius), center.Latitude + s.between(-radius, radius)}
	}
	return closed(ring)
}

// cellEdges draws a ring along the corners of H3 cells, so that its edges lie on
// the edges of the cells it is compared with.
func (s shapes) cellEdges(tb testing.TB, center position, resolution int) []position {
	cell, err := h3.LatLngToCell(h3.NewLatLng(center.Latitude, center.Longitude), resolution)
	if err != nil {
		tb.Fatal(err)
	}
	return boundaryOf(tb, cell)
}

// draw returns a polygon and a name that tells its kind.
func (s shapes) draw(tb testing.TB, maxLatitude, maxRadius float64) (string, polygon) {
	center := position{s.between(-150, 150), s.between(-maxLatitude, maxLatitude)}
	radius := s.log(1e-5, maxRadius)
	points := 3 + s.IntN(200)
	switch s.IntN(6) {
	case 0:
		return "star", polygon{outer: s.star(center, radius, 0.3, points)}
	case 1:
		return "spikes", polygon{outer: s.star(center, radius, 0.95, points)}
	case 2:
		return "tangle", polygon{outer: s.tangle(center, radius, 3+s.IntN(12))}
	case 3:
		holes := [][]position{s.star(center, radius/3, 0.5, points), s.star(position{center.Longitude + radius/4, center.Latitude}, radius/4, 0.5, 5)}
		return "holes", polygon{outer: s.star(center, radius, 0.3, points), holes: holes}
	case 4:
		east, north := s.between(1e-5, radius), s.between(1e-5, radius)
		return "rectangle", Rectangle(center.Latitude, center.Latitude+north, center.Longitude, center.Longitude+east).polygons[0]
	default:
		return "cell", polygon{outer: s.cellEdges(tb, center, 2+s.IntN(11))}
	}
}

func (p polygon) describe() string {
	return fmt.Sprintf("outer %v, holes %v", p.outer[:min(len(p.outer), 12)], len(p.holes))
}
