package location

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/uber/h3-go/v4"
)

// The work of one fill is bounded to a fraction of a second, counted in edges
// looked at. Outlines of a million points need a hundredth of it; only slivers
// thousands of times longer than wide come near it.
const (
	stepsPerCell     = 16
	maxFillSteps     = 1 << 20
	fillStepsPerCell = 64 * stepsPerCell
)

// reachFactor is how far the centres below a cell may lie from the cell's own, in
// average edges of its resolution: 1.05 on a flat grid, and cells near the corners
// of the icosahedron's faces are up to a fifth larger than the average.
const reachFactor = 1.5

// errTooMany ends a fill that does not fit its limit.
var errTooMany = errors.New("too many cells to fill")

// knownResolution is the finest at which a grid remembers where cells lie. Every
// fill starts there, and a country may have a hundred thousand islands.
const knownResolution = 2

// hexGrid holds what H3 says once and for all about its cells. It is used by one
// cover at a time.
type hexGrid struct {
	roots []h3.Cell
	// known are the coarse cells met so far.
	known map[h3.Cell]spot
	// areas are the average areas of a hexagon, in km².
	areas [FinestResolution + 1]float64
	// reach is the radius around a cell's centre that holds the centres of all
	// cells below it, in degrees.
	reach [FinestResolution + 1]float64
}

func newHexGrid() (*hexGrid, error) {
	roots, err := h3.Res0Cells()
	if err != nil {
		return nil, fmt.Errorf("H3 base cells: %w", err)
	}
	sortCells(roots)
	grid := &hexGrid{roots: roots, known: make(map[h3.Cell]spot, 2*len(roots))}
	for resolution := range grid.areas {
		if grid.areas[resolution], err = h3.HexagonAreaAvgKm2(resolution); err != nil {
			return nil, fmt.Errorf("H3 area at resolution %d: %w", resolution, err)
		}
		// A regular hexagon of edge e has the area 3√3/2·e².
		edge := math.Sqrt(grid.areas[resolution] * 2 / (3 * math.Sqrt(3)))
		grid.reach[resolution] = reachFactor * edge / kmPerDegree
	}
	return grid, nil
}

// spot is where a cell lies.
type spot struct {
	center position
	// around holds the centres of all cells below the cell.
	around box
}

func (g *hexGrid) spot(cell h3.Cell, resolution int) (spot, error) {
	if known, ok := g.known[cell]; ok {
		return known, nil
	}
	center, err := cell.LatLng()
	if err != nil {
		return spot{}, fmt.Errorf("H3 centre of %s: %w", decimal(cell), err)
	}
	found := spot{position{Longitude: center.Lng, Latitude: center.Lat}, surroundings(center, g.reach[resolution])}
	if resolution <= knownResolution {
		g.known[cell] = found
	}
	return found, nil
}

// fill collects the cells of one resolution whose centre lies inside a polygon, in
// the order of their indexes. It gives what H3's experimental fill gives for
// center containment, but H3's cannot be cancelled, allocates by an estimate that
// explodes for slivers, and looks at every edge for every candidate cell. Here
// whole branches of the cell hierarchy are decided at once where no edge passes,
// and the fill ends as soon as it is too large to be used, or too much work.
type fill struct {
	grid       *hexGrid
	outer      *fillRing
	holes      []*fillRing
	resolution int
	limit      int

	cells []h3.Cell
	steps int
}

// run returns the cells, or errTooMany when there are more than the limit or they
// take too many steps to find.
func (f *fill) run(ctx context.Context) ([]h3.Cell, error) {
	for _, root := range f.grid.roots {
		if err := f.visit(ctx, root, 0, mixed); err != nil {
			return f.cells, err
		}
	}
	return f.cells, nil
}

// visit adds what lies below the cell. Known is what is known of all centres below.
func (f *fill) visit(ctx context.Context, cell h3.Cell, resolution int, known placement) error {
	if err := f.step(ctx); err != nil {
		return err
	}
	if known == mixed {
		at, err := f.grid.spot(cell, resolution)
		if err != nil {
			return err
		}
		known = f.place(at, resolution)
	}
	if known == outside {
		return nil
	}
	if resolution == f.resolution {
		if len(f.cells) == f.limit {
			return errTooMany
		}
		f.cells = append(f.cells, cell)
		return nil
	}
	children, err := cell.Children(resolution + 1)
	if err != nil {
		return fmt.Errorf("H3 children of %s: %w", decimal(cell), err)
	}
	for _, child := range children {
		if err := f.visit(ctx, child, resolution+1, known); err != nil {
			return err
		}
	}
	return nil
}

func (f *fill) step(ctx context.Context) error {
	f.steps += stepsPerCell
	if f.steps > maxFillSteps+fillStepsPerCell*f.limit {
		return errTooMany
	}
	return ctx.Err()
}

// place decides about one cell: at the fill's resolution by its centre, above it
// for all centres below it.
func (f *fill) place(at spot, resolution int) placement {
	if resolution == f.resolution {
		return f.placeCenter(at.center)
	}
	whole := f.outer.place(at.around, &f.steps)
	for _, hole := range f.holes {
		if whole == outside {
			break
		}
		switch hole.place(at.around, &f.steps) {
		case inside:
			whole = outside
		case mixed:
			whole = mixed
		}
	}
	return whole
}

func (f *fill) placeCenter(center position) placement {
	if !f.outer.contains(center) {
		return outside
	}
	for _, hole := range f.holes {
		if hole.contains(center) {
			return outside
		}
	}
	return inside
}

// placement tells where a set of points lies.
type placement int

const (
	mixed placement = iota
	outside
	inside
)

// fillRing is a ring as H3's fill sees it: one with a step of more than half a
// turn is taken to cross the antimeridian, and its western longitudes count from
// there on (180..360).
type fillRing struct {
	*ring
	wrapped bool
	// limits is the bounding box that H3 gives the ring. When wrapped, west and
	// east are the points next to the antimeridian's two sides, and a ring that has
	// none on one side is open there.
	limits box
}

func newFillRing(plain *ring) *fillRing {
	wrapped := false
	limits := emptyBox()
	easternmostWest, westernmostEast := math.Inf(-1), math.Inf(1)
	for i, p := range plain.points {
		limits.include(p)
		if p.Longitude > 0 {
			westernmostEast = min(westernmostEast, p.Longitude)
		} else if p.Longitude < 0 {
			easternmostWest = max(easternmostWest, p.Longitude)
		}
		if i > 0 {
			step := float64(h3.DegsToRads*p.Longitude) - float64(h3.DegsToRads*plain.points[i-1].Longitude)
			wrapped = wrapped || math.Abs(step) > math.Pi
		}
	}
	if !wrapped {
		return &fillRing{ring: plain, limits: limits}
	}
	limits.west, limits.east = westernmostEast, easternmostWest
	points := make([]position, len(plain.points))
	for i, p := range plain.points {
		points[i] = unwrap(p)
	}
	return &fillRing{ring: newRing(points), wrapped: true, limits: limits}
}

// contains tells whether H3's fill takes the point to be inside.
func (r *fillRing) contains(p position) bool {
	if p.Latitude < r.limits.south || p.Latitude > r.limits.north {
		return false
	}
	if !r.wrapped {
		return p.Longitude >= r.limits.west && p.Longitude <= r.limits.east && r.ring.contains(p)
	}
	return (p.Longitude >= r.limits.west || p.Longitude <= r.limits.east) && r.ring.contains(unwrap(p))
}

// place tells where all points of an area lie; mixed means it cannot be told for
// all of them at once. Steps counts the edges looked at.
func (r *fillRing) place(around box, steps *int) placement {
	start := -180.0
	if r.wrapped {
		start = 0
	}
	whole, first := mixed, true
	for _, turn := range [...]float64{0, -360, 360} {
		part := box{max(around.west+turn, start), around.south, min(around.east+turn, start+360), around.north}
		if part.empty() {
			continue
		}
		placed := r.placePart(&part, steps)
		if placed == mixed || !first && placed != whole {
			return mixed
		}
		whole, first = placed, false
	}
	return whole
}

// placePart is place for an area inside the ring's own range of longitudes.
func (r *fillRing) placePart(part *box, steps *int) placement {
	if !part.overlaps(&r.boxes[1]) {
		return outside
	}
	passed := r.search(
		func(b *box) bool { return !b.overlaps(part) },
		func(edge int) bool {
			*steps++
			return mayPass(r.points[edge], r.points[edge+1], part)
		})
	if passed {
		return mixed
	}
	if !r.ring.contains(position{(part.west + part.east) / 2, (part.south + part.north) / 2}) {
		return outside
	}
	if !r.limitsHold(part) {
		return mixed
	}
	return inside
}

// limitsHold tells whether the whole part lies in the ring's limits, which matters
// only where those are narrower than the ring itself.
func (r *fillRing) limitsHold(part *box) bool {
	if part.south < r.limits.south || part.north > r.limits.north {
		return false
	}
	if !r.wrapped {
		return part.west >= r.limits.west && part.east <= r.limits.east
	}
	return (part.west > 180 || part.west >= r.limits.west) && (part.east <= 180 || part.east-360 <= r.limits.east)
}

// mayPass tells whether the edge may pass through the box; it errs on the side of
// yes.
func mayPass(from, to position, b *box) bool {
	reach := emptyBox()
	reach.include(from)
	reach.include(to)
	return reach.overlaps(b) && !b.oneSideOf(from, to)
}

// surroundings returns the box around all points within the radius, in degrees. It
// may stick out over the antimeridian; around a pole it holds every longitude.
func surroundings(center h3.LatLng, radius float64) box {
	around := box{-180, center.Lat - radius, 180, center.Lat + radius}
	if around.south <= -90 || around.north >= 90 {
		return around
	}
	half := math.Asin(math.Sin(radius*h3.DegsToRads)/math.Cos(center.Lat*h3.DegsToRads)) * h3.RadsToDegs
	around.west, around.east = center.Lng-half, center.Lng+half
	return around
}

func unwrap(p position) position {
	if p.Longitude < 0 {
		p.Longitude += 360
	}
	return p
}
