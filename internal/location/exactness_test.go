package location

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/uber/h3-go/v4"
)

func TestCoverEqualsPlainRules(t *testing.T) {
	t.Parallel()
	grid, err := newHexGrid()
	if err != nil {
		t.Fatal(err)
	}
	draw := newShapes(1)
	for range 50 {
		kind, shape := draw.draw(t, 60, 5)
		budget := 1 + draw.IntN(200)
		got, err := newArea(grid, shape).cover(t.Context(), budget)
		if err != nil {
			t.Fatal(err)
		}
		sortCells(got)
		if want := plainCover(t, shape, budget); !slices.Equal(got, want) {
			t.Errorf("%s, budget %d: %d cells, plain rules give %d (-plain +indexed):\n%s\n%s",
				kind, budget, len(got), len(want), shape.describe(), cmp.Diff(want, got))
		}
	}
}

func TestFillEqualsLibraryFill(t *testing.T) {
	t.Parallel()
	grid, err := newHexGrid()
	if err != nil {
		t.Fatal(err)
	}
	draw := newShapes(2)
	for range 80 {
		kind, shape := draw.draw(t, 70, 20)
		compareFill(t, grid, kind, shape)
	}
}

func TestFillEqualsLibraryFillAtTheAntimeridian(t *testing.T) {
	t.Parallel()
	grid, err := newHexGrid()
	if err != nil {
		t.Fatal(err)
	}
	draw := newShapes(3)
	for range 40 {
		center := position{180, draw.between(-70, 70)}
		crossing := draw.star(center, draw.log(1e-3, 20), 0.3, 4+draw.IntN(60))
		for i := range crossing {
			if crossing[i].Longitude > 180 {
				crossing[i].Longitude -= 360
			}
		}
		compareFill(t, grid, "crossing", polygon{outer: crossing})
		west := Rectangle(center.Latitude, center.Latitude+3, -180, -180+draw.log(1e-2, 5))
		compareFill(t, grid, "west of it", west.polygons[0])
	}
	compareFill(t, grid, "world", Rectangle(-90, 90, -180, 180).polygons[0])
	compareFill(t, grid, "half the world", Rectangle(-80, 80, -90, 90).polygons[0])
}

// compareFill compares at the finest resolution with a comfortable number of cells
// and at the coarser ones.
func compareFill(t *testing.T, grid *hexGrid, kind string, shape polygon) {
	t.Helper()
	plain := newArea(grid, shape)
	filling := fill{grid: grid, outer: newFillRing(plain.outer), limit: 1 << 20}
	for _, hole := range plain.holes {
		filling.holes = append(filling.holes, newFillRing(hole))
	}
	extent := plain.outer.boxes[1]
	size := (extent.east - extent.west) * (extent.north - extent.south) * kmPerDegree * kmPerDegree
	finest := FinestResolution
	for finest > 0 && size/grid.areas[finest] > 2000 {
		finest--
	}
	for resolution := finest; resolution >= max(0, finest-3); resolution-- {
		attempt := filling
		attempt.resolution = resolution
		got, err := attempt.run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if want := libraryFill(t, shape, resolution); !slices.Equal(got, want) {
			t.Errorf("%s at resolution %d: %d cells, H3 gives %d\n%s", kind, resolution, len(got), len(want), shape.describe())
		}
	}
}

func TestFillStopsAtItsLimit(t *testing.T) {
	t.Parallel()
	grid, err := newHexGrid()
	if err != nil {
		t.Fatal(err)
	}
	whole := newArea(grid, Rectangle(-60, 60, -80, 80).polygons[0])
	filling := fill{grid: grid, outer: newFillRing(whole.outer), resolution: FinestResolution, limit: 100}
	cells, err := filling.run(t.Context())
	if !errors.Is(err, errTooMany) || len(cells) != 100 {
		t.Errorf("%d cells, %v; want 100 and errTooMany", len(cells), err)
	}
	if filling.steps > 1000*stepsPerCell {
		t.Errorf("the fill took %d steps to find 100 cells", filling.steps)
	}
}

func TestReachHoldsAllCentresBelow(t *testing.T) {
	t.Parallel()
	grid, err := newHexGrid()
	if err != nil {
		t.Fatal(err)
	}
	draw := newShapes(4)
	for resolution := range FinestResolution {
		cells := cellsToMeasure(t, draw, resolution)
		for _, cell := range cells {
			center, err := cell.LatLng()
			if err != nil {
				t.Fatal(err)
			}
			below, err := cell.Children(min(resolution+2, FinestResolution))
			if err != nil {
				t.Fatal(err)
			}
			for _, child := range below {
				point, err := child.LatLng()
				if err != nil {
					t.Fatal(err)
				}
				// The levels further down add less than the margin asked for here.
				distance := h3.GreatCircleDistanceRads(center, point) * h3.RadsToDegs
				if distance > 0.9*grid.reach[resolution] {
					t.Fatalf("%s: a centre below lies %.3f reaches away", cell, distance/grid.reach[resolution])
				}
			}
		}
	}
}

// cellsToMeasure returns the pentagons, their neighbours and some other cells.
func cellsToMeasure(t *testing.T, draw shapes, resolution int) []h3.Cell {
	t.Helper()
	pentagons, err := h3.Pentagons(resolution)
	if err != nil {
		t.Fatal(err)
	}
	var cells []h3.Cell
	for _, pentagon := range pentagons {
		disk, err := pentagon.GridDisk(1)
		if err != nil {
			t.Fatal(err)
		}
		cells = append(cells, disk...)
	}
	for range 30 {
		cell, err := h3.LatLngToCell(h3.NewLatLng(draw.between(-90, 90), draw.between(-180, 180)), resolution)
		if err != nil {
			t.Fatal(err)
		}
		cells = append(cells, cell)
	}
	return cells
}

func TestRingEqualsPlainRules(t *testing.T) {
	t.Parallel()
	draw := newShapes(5)
	for range 1500 {
		// Small numbers of distinct coordinates make points coincide and edges
		// collinear; small scales bring the products near the rule's tolerance.
		scale := draw.log(1e-8, 10)
		grain := func() float64 { return math.Round(draw.between(-6, 6)) * scale }
		points := make([]position, 3+draw.IntN(60))
		for i := range points {
			points[i] = position{grain(), grain()}
		}
		points = closed(points)
		indexed := newRing(points)
		boundary := draw.star(position{grain(), grain()}, draw.log(0.3, 6)*scale, 0.2, 5+draw.IntN(3))
		if draw.IntN(2) == 0 {
			boundary = closed([]position{{grain(), grain()}, {grain(), grain()}, {grain(), grain()}, {grain(), grain()}})
		}
		if got, want := indexed.crossedBy(boundary), plainCrosses(points, boundary); got != want {
			t.Errorf("crossedBy is %v, the plain rule says %v\nring %v\nboundary %v", got, want, points, boundary)
		}
		if got, want := indexed.hasPointIn(boundary), plainHasPointIn(points, boundary); got != want {
			t.Errorf("hasPointIn is %v, the plain rule says %v\nring %v\nboundary %v", got, want, points, boundary)
		}
		for _, p := range append(boundary, points...) {
			if got, want := indexed.contains(p), pointInRing(p, points); got != want {
				t.Errorf("contains(%v) is %v, the plain rule says %v\nring %v", p, got, want, points)
			}
		}
	}
}

func TestEdgesIntersectAcrossAGap(t *testing.T) {
	t.Parallel()
	// By the tolerance of the rule these two edges intersect although they lie four
	// degrees apart; the index must not skip the pair.
	boundary := []position{{0, 0}, {1, 0}, {0.5, -1}, {0, 0}}
	points := closed([]position{{5, 0.9e-12}, {6, 1.3e-12}, {6, 1}, {5, 1}})
	if !edgesIntersect(boundary[0], boundary[1], points[0], points[1]) {
		t.Fatal("the example is none: the plain rule does not let these edges intersect")
	}
	if !newRing(points).crossedBy(boundary) {
		t.Error("the index skipped a pair of edges that the plain rule lets intersect")
	}
}
