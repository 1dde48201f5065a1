package location

import (
	"slices"
	"strconv"

	"github.com/uber/h3-go/v4"
)

// FinestResolution is H3's finest resolution, cells of about one square metre.
const FinestResolution = h3.MaxResolution

// PointCells returns the cell that holds the point at the finest resolution asked
// for (clamped to 0..15) and its parents down to resolution 0, finest first, as
// decimal text: the g tags of a listing (spec 42 §2). With a maximum only that
// many are returned, at least one. Latitude and longitude are in degrees; a point
// that is not finite has no cells.
func PointCells(lat, lng float64, finest int, maximum *int) []string {
	finest = min(max(finest, 0), FinestResolution)
	count := finest + 1
	if maximum != nil {
		count = min(count, max(*maximum, 1))
	}
	cell, err := h3.LatLngToCell(h3.NewLatLng(lat, lng), finest)
	if err != nil {
		return nil
	}
	cells := make([]string, 0, count)
	for resolution := finest; ; resolution-- {
		cells = append(cells, decimal(cell))
		if len(cells) == count {
			return cells
		}
		if cell, err = cell.Parent(resolution - 1); err != nil {
			return nil
		}
	}
}

// decimal writes a cell the way g tags and filters carry it.
func decimal(cell h3.Cell) string { return strconv.FormatUint(uint64(cell), 10) }

// sortCells orders by resolution, then by index. That is the order of the numbers:
// of all parts in which cells differ, H3 puts the resolution highest.
func sortCells(cells []h3.Cell) { slices.Sort(cells) }
