package location

import (
	"context"
	"fmt"

	"github.com/uber/h3-go/v4"
)

// maxRefinements bounds the refinement of one polygon (spec 42 §3.3).
const maxRefinements = 50000

// refine replaces the cells that stick out of the polygon the most by their
// children, while the set keeps within the budget.
func (a *area) refine(ctx context.Context, seeds []h3.Cell, budget int) ([]h3.Cell, error) {
	set := make(map[h3.Cell]bool, 2*len(seeds))
	var queue wasteQueue
	if err := a.adopt(ctx, seeds, set, &queue); err != nil {
		return nil, err
	}
	for iteration := 0; len(queue) > 0 && iteration < maxRefinements && len(set) < budget; iteration++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		cell := queue.pop().cell
		if !set[cell] || cell.Resolution() == FinestResolution {
			continue
		}
		children, err := cell.Children(cell.Resolution() + 1)
		if err != nil {
			return nil, fmt.Errorf("H3 children of %s: %w", decimal(cell), err)
		}
		if len(set)-1+len(children) > budget {
			continue
		}
		delete(set, cell)
		if err := a.adopt(ctx, children, set, &queue); err != nil {
			return nil, err
		}
	}
	cells := make([]h3.Cell, 0, len(set))
	for cell := range set {
		cells = append(cells, cell)
	}
	return cells, nil
}

// adopt adds the cells to the set and queues those on the polygon's boundary.
func (a *area) adopt(ctx context.Context, cells []h3.Cell, set map[h3.Cell]bool, queue *wasteQueue) error {
	for _, cell := range cells {
		if err := ctx.Err(); err != nil {
			return err
		}
		set[cell] = true
		outline, err := a.outline(cell)
		if err != nil {
			return err
		}
		if outline.touches() {
			waste, err := outline.waste()
			if err != nil {
				return err
			}
			queue.push(wastefulCell{cell: cell, waste: waste})
		}
	}
	return nil
}

// outline is a cell laid over a polygon.
type outline struct {
	area *area
	cell h3.Cell
	// boundary is closed; the inside count leaves the closing point out.
	boundary []position
	inside   int
}

func (a *area) outline(cell h3.Cell) (outline, error) {
	vertices, err := cell.Boundary()
	if err != nil {
		return outline{}, fmt.Errorf("H3 boundary of %s: %w", decimal(cell), err)
	}
	laid := outline{area: a, cell: cell, boundary: make([]position, 0, len(vertices)+1)}
	for _, vertex := range vertices {
		p := position{Longitude: vertex.Lng, Latitude: vertex.Lat}
		laid.boundary = append(laid.boundary, p)
		if a.contains(p) {
			laid.inside++
		}
	}
	laid.boundary = append(laid.boundary, laid.boundary[0])
	return laid, nil
}

// touches tells whether the polygon's boundary passes through the cell.
func (o outline) touches() bool {
	if vertices := len(o.boundary) - 1; vertices < 3 {
		return false
	} else if o.inside > 0 && o.inside < vertices {
		return true
	}
	return o.area.anyRing(func(r *ring) bool { return r.crossedBy(o.boundary) || r.hasPointIn(o.boundary) })
}

// waste estimates how much of the cell, in m², lies outside the polygon.
func (o outline) waste() (float64, error) {
	size, err := h3.CellAreaM2(o.cell)
	if err != nil {
		return 0, fmt.Errorf("H3 area of %s: %w", decimal(o.cell), err)
	}
	center, err := o.cell.LatLng()
	if err != nil {
		return 0, fmt.Errorf("H3 centre of %s: %w", decimal(o.cell), err)
	}
	within := o.inside
	if o.area.contains(position{Longitude: center.Lng, Latitude: center.Lat}) {
		within++
	}
	ratio := float64(within) / float64(len(o.boundary))
	return max(0, size-float64(size*ratio)), nil
}

// wastefulCell is a cell that would gain from refinement.
type wastefulCell struct {
	cell  h3.Cell
	waste float64
}

// wasteQueue is a binary max-heap. container/heap orders equal scores otherwise,
// and spec 42 §3.3 fixes their order.
type wasteQueue []wastefulCell

func (q *wasteQueue) push(added wastefulCell) {
	*q = append(*q, added)
	heap := *q
	for i := len(heap) - 1; i > 0; {
		parent := (i - 1) / 2
		if heap[parent].waste >= heap[i].waste {
			return
		}
		heap[parent], heap[i] = heap[i], heap[parent]
		i = parent
	}
}

func (q *wasteQueue) pop() wastefulCell {
	heap := *q
	top, last := heap[0], len(heap)-1
	heap[0] = heap[last]
	heap = heap[:last]
	*q = heap
	for i := 0; ; {
		largest := i
		for _, child := range [...]int{2*i + 1, 2*i + 2} {
			if child < len(heap) && heap[child].waste > heap[largest].waste {
				largest = child
			}
		}
		if largest == i {
			return top
		}
		heap[i], heap[largest] = heap[largest], heap[i]
		i = largest
	}
}
