package location

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/uber/h3-go/v4"
)

// kmPerDegree is the length of a degree on the sphere H3 uses.
const kmPerDegree = 6371.007180918475 * math.Pi / 180

// maxBudget keeps the memory of a cover to some hundred megabytes at the very most.
const maxBudget = 1 << 20

// Cover returns at most budget cells that stand for the geometry, as decimal text
// sorted by resolution and then by index: the g values of a search (spec 42 §3).
// Points give cells of resolution 15, areas give cells of mixed resolutions, any
// other geometry gives none. A budget above a million counts as a million. Cover
// stops with the context's error soon after the context ends.
func Cover(ctx context.Context, geometry Geometry, budget int) ([]string, error) {
	if budget <= 0 {
		return nil, ctx.Err()
	}
	cells, err := coverCells(ctx, geometry, min(budget, maxBudget))
	if err != nil {
		return nil, fmt.Errorf("cover of the geometry: %w", err)
	}
	sortCells(cells)
	texts := make([]string, len(cells))
	for i, cell := range cells {
		texts[i] = decimal(cell)
	}
	return texts, nil
}

func coverCells(ctx context.Context, geometry Geometry, budget int) ([]h3.Cell, error) {
	if len(geometry.points) > 0 {
		return coverPoints(ctx, geometry.points, budget)
	}
	if len(geometry.polygons) == 0 {
		return nil, ctx.Err()
	}
	grid, err := newHexGrid()
	if err != nil {
		return nil, err
	}
	if len(geometry.polygons) == 1 {
		return newArea(grid, geometry.polygons[0]).cover(ctx, budget)
	}
	return coverPolygons(ctx, grid, geometry.polygons, budget)
}

func coverPoints(ctx context.Context, points []position, budget int) ([]h3.Cell, error) {
	var cells []h3.Cell
	seen := make(map[h3.Cell]bool)
	for _, p := range points {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		cell, err := h3.LatLngToCell(h3.NewLatLng(p.Latitude, p.Longitude), FinestResolution)
		if err != nil || seen[cell] {
			continue
		}
		seen[cell] = true
		if cells = append(cells, cell); len(cells) == budget {
			break
		}
	}
	return cells, nil
}

// coverPolygons covers each polygon with its share of the budget (spec 42 §3.4).
func coverPolygons(ctx context.Context, grid *hexGrid, polygons []polygon, budget int) ([]h3.Cell, error) {
	areas := make([]float64, len(polygons))
	for i, polygon := range polygons {
		areas[i] = areaKm2(polygon.outer)
	}
	union := make(map[h3.Cell]bool)
	for i, share := range shareBudget(areas, budget) {
		cells, err := newArea(grid, polygons[i]).cover(ctx, share)
		if err != nil {
			return nil, err
		}
		for _, cell := range cells {
			union[cell] = true
		}
	}
	return coarsen(union, budget)
}

// shareBudget gives each polygon one cell and shares the rest out by area.
func shareBudget(areas []float64, budget int) []int {
	shares := make([]int, len(areas))
	largest, total := 0, 0.0
	for i, area := range areas {
		shares[i] = 1
		total += area
		if area > areas[largest] {
			largest = i
		}
	}
	rest := budget - len(areas)
	if rest <= 0 {
		return shares
	}
	given := len(areas)
	for i, area := range areas {
		if total > 0 {
			extra := int(math.Floor(float64(area/total) * float64(rest)))
			shares[i] += extra
			given += extra
		}
	}
	shares[largest] += max(0, budget-given)
	return shares
}

// coarsen replaces cells by their parents until they fit the budget.
func coarsen(cells map[h3.Cell]bool, budget int) ([]h3.Cell, error) {
	for len(cells) > budget {
		changed := false
		parents := make(map[h3.Cell]bool, len(cells))
		for cell := range cells {
			if cell.Resolution() > 0 {
				parent, err := cell.ImmediateParent()
				if err != nil {
					return nil, fmt.Errorf("H3 parent of %s: %w", decimal(cell), err)
				}
				cell, changed = parent, true
			}
			parents[cell] = true
		}
		cells = parents
		if !changed {
			break
		}
	}
	list := make([]h3.Cell, 0, len(cells))
	for cell := range cells {
		list = append(list, cell)
	}
	sortCells(list)
	return list[:min(len(list), budget)], nil
}

// areaKm2 estimates the area of a closed ring on a plane that is stretched for the
// ring's mean latitude (spec 42 §3.2).
func areaKm2(ring []position) float64 {
	if len(ring) < 3 {
		return 0
	}
	sum := 0.0
	for _, p := range ring {
		sum += p.Latitude
	}
	kx := 111.320 * math.Cos(sum/float64(len(ring))*math.Pi/180)
	const ky = 110.574
	double := 0.0
	for i, p := range ring {
		next := ring[(i+1)%len(ring)]
		double += float64(float64(p.Longitude*kx)*float64(next.Latitude*ky)) -
			float64(float64(next.Longitude*kx)*float64(p.Latitude*ky))
	}
	return math.Abs(double) / 2
}

// area is one polygon ready to be covered.
type area struct {
	grid  *hexGrid
	km2   float64
	outer *ring
	holes []*ring
}

func newArea(grid *hexGrid, polygon polygon) *area {
	a := &area{grid: grid, km2: areaKm2(polygon.outer), outer: newRing(polygon.outer)}
	for _, hole := range polygon.holes {
		a.holes = append(a.holes, newRing(hole))
	}
	return a
}

// cover is the cover of one polygon (spec 42 §3.3): cells whose centre lies inside,
// those on the boundary refined as far as the budget allows.
func (a *area) cover(ctx context.Context, budget int) ([]h3.Cell, error) {
	if budget <= 0 {
		return nil, ctx.Err()
	}
	seed, err := a.seed(ctx, budget)
	if err != nil {
		return nil, err
	}
	return a.refine(ctx, seed.cells, budget)
}

// seed is where the cover of a polygon starts.
type seed struct {
	probe, resolution int
	cells             []h3.Cell
}

// seed fills the polygon at the finest resolution, from the probe resolution down,
// whose cells fit the budget.
func (a *area) seed(ctx context.Context, budget int) (seed, error) {
	found := seed{probe: a.probe(budget)}
	filling := fill{grid: a.grid, outer: newFillRing(a.outer), limit: budget}
	for _, hole := range a.holes {
		filling.holes = append(filling.holes, newFillRing(hole))
	}
	for found.resolution = found.probe; ; found.resolution-- {
		attempt := filling
		attempt.resolution = found.resolution
		cells, err := attempt.run(ctx)
		switch {
		case err == nil, errors.Is(err, errTooMany) && found.resolution == 0:
			found.cells = cells
			return found, nil
		case !errors.Is(err, errTooMany):
			return seed{}, err
		}
	}
}

// probe returns the finest resolution worth trying.
func (a *area) probe(budget int) int {
	if budget <= 2 {
		return 2
	}
	if a.km2 == 0 {
		return 9
	}
	most := max(1, 6*float64(budget))
	for resolution := FinestResolution; resolution > 0; resolution-- {
		if a.km2/a.grid.areas[resolution] <= most {
			return resolution
		}
	}
	return 0
}

// contains tells whether the point lies in the outer ring and in no hole.
func (a *area) contains(p position) bool {
	return a.outer.contains(p) && !slices.ContainsFunc(a.holes, func(hole *ring) bool { return hole.contains(p) })
}

// anyRing calls match with the outer ring and the holes until one matches.
func (a *area) anyRing(match func(*ring) bool) bool {
	return match(a.outer) || slices.ContainsFunc(a.holes, match)
}
