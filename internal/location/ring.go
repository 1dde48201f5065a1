package location

import "math"

// collinear is the area, in square degrees, below which three points count as
// lying on one line; it is also the slack of the bounding boxes in that case.
const collinear = 1e-12

// searchSlack widens the boxes a search looks at, in degrees. It is far above
// collinear and above any rounding, so that a search leaves out nothing that the
// plain rules would have found.
const searchSlack = 1e-9

// leafEdges is how many consecutive edges share the smallest box of a ring.
const leafEdges = 8

// ring is a closed ring with an index over its edges. Edge k leads from point k to
// point k+1. All answers are those of the plain rules of spec 42 §3.3, which go
// through every edge; the index only skips edges that provably cannot matter.
type ring struct {
	points []position
	// boxes is a binary tree in heap order: node i has the children 2i and 2i+1,
	// the leaf l at leaves+l bounds the edges from l·leafEdges on.
	boxes  []box
	leaves int
}

// box bounds a part of the plane, in degrees.
type box struct {
	west, south, east, north float64
}

func newRing(points []position) *ring {
	used := max(1, (len(points)-1+leafEdges-1)/leafEdges)
	leaves := 1
	for leaves < used {
		leaves *= 2
	}
	r := &ring{points: points, boxes: make([]box, 2*leaves), leaves: leaves}
	for node := range r.boxes {
		r.boxes[node] = emptyBox()
	}
	for edge := range len(points) - 1 {
		leaf := &r.boxes[leaves+edge/leafEdges]
		leaf.include(points[edge])
		leaf.include(points[edge+1])
	}
	for node := leaves - 1; node > 0; node-- {
		r.boxes[node] = r.boxes[2*node].union(r.boxes[2*node+1])
	}
	return r
}

// contains tells whether the point lies inside, by the even–odd rule.
func (r *ring) contains(p position) bool {
	if len(r.points) < 4 {
		return false
	}
	inside := false
	r.search(
		func(b *box) bool { return p.Latitude < b.south || p.Latitude > b.north },
		func(edge int) bool {
			if crossesRay(p, r.points[edge+1], r.points[edge]) {
				inside = !inside
			}
			return false
		})
	return inside
}

// crossedBy tells whether any edge of the closed boundary intersects any edge.
func (r *ring) crossedBy(boundary []position) bool {
	if len(r.points) < 4 || len(boundary) < 4 {
		return false
	}
	for i := range len(boundary) - 1 {
		from, to := boundary[i], boundary[i+1]
		reach := emptyBox()
		reach.include(from)
		reach.include(to)
		reach = reach.widen(searchSlack)
		// An edge can only be found when it comes near this one, or when it is not
		// wholly on one side of this one's line: the rule's tolerance lets nearly
		// collinear edges intersect across a gap. orientation is monotone in its
		// third point, rounding included, so the corners speak for the whole box.
		missed := func(b *box) bool { return !b.overlaps(&reach) && b.oneSideOf(from, to) }
		crossing := func(edge int) bool { return edgesIntersect(from, to, r.points[edge], r.points[edge+1]) }
		if r.search(missed, crossing) {
			return true
		}
	}
	return false
}

// hasPointIn tells whether any point lies inside the closed boundary.
func (r *ring) hasPointIn(boundary []position) bool {
	reach := emptyBox()
	for _, p := range boundary {
		reach.include(p)
	}
	reach = reach.widen(searchSlack)
	return r.search(
		func(b *box) bool { return !b.overlaps(&reach) },
		func(edge int) bool { return reach.contains(r.points[edge]) && pointInRing(r.points[edge], boundary) })
}

// search calls match for the edges that no skipped box holds, in order, until one
// matches.
func (r *ring) search(skip func(*box) bool, match func(edge int) bool) bool {
	return r.searchNode(1, skip, match)
}

func (r *ring) searchNode(node int, skip func(*box) bool, match func(edge int) bool) bool {
	if b := &r.boxes[node]; b.empty() || skip(b) {
		return false
	}
	if node < r.leaves {
		return r.searchNode(2*node, skip, match) || r.searchNode(2*node+1, skip, match)
	}
	first := (node - r.leaves) * leafEdges
	for edge := first; edge < min(first+leafEdges, len(r.points)-1); edge++ {
		if match(edge) {
			return true
		}
	}
	return false
}

// pointInRing is the even–odd rule over a ring without an index.
func pointInRing(p position, ring []position) bool {
	if len(ring) < 4 {
		return false
	}
	inside := false
	for i := range len(ring) - 1 {
		if crossesRay(p, ring[i+1], ring[i]) {
			inside = !inside
		}
	}
	return inside
}

// crossesRay tells whether the edge from the previous point to this one crosses
// the ray that leaves p eastwards. Products are rounded before they are added, so
// that fused multiply-add gives no other answer on another processor.
func crossesRay(p, this, previous position) bool {
	if (this.Latitude > p.Latitude) == (previous.Latitude > p.Latitude) {
		return false
	}
	run := float64((previous.Longitude - this.Longitude) * (p.Latitude - this.Latitude))
	rise := (previous.Latitude - this.Latitude) + 1e-20
	return p.Longitude < float64(run/rise)+this.Longitude
}

// edgesIntersect is the rule of spec 42 §3.3 for the edges p1p2 and q1q2.
func edgesIntersect(p1, p2, q1, q2 position) bool {
	o1, o2 := orientation(p1, p2, q1), orientation(p1, p2, q2)
	o3, o4 := orientation(q1, q2, p1), orientation(q1, q2, p2)
	if o1 != o2 && o3 != o4 {
		return true
	}
	return o1 == 0 && between(p1, p2, q1) || o2 == 0 && between(p1, p2, q2) ||
		o3 == 0 && between(q1, q2, p1) || o4 == 0 && between(q1, q2, p2)
}

// orientation returns the sign of the turn a → b → c, 0 when the points count as
// collinear.
func orientation(a, b, c position) int {
	turn := float64((b.Longitude-a.Longitude)*(c.Latitude-b.Latitude)) -
		float64((b.Latitude-a.Latitude)*(c.Longitude-b.Longitude))
	switch {
	case math.Abs(turn) < collinear:
		return 0
	case turn > 0:
		return 1
	default:
		return -1
	}
}

// between tells whether p lies in the bounding box of a and b.
func between(a, b, p position) bool {
	return p.Longitude <= max(a.Longitude, b.Longitude)+collinear &&
		p.Longitude >= min(a.Longitude, b.Longitude)-collinear &&
		p.Latitude <= max(a.Latitude, b.Latitude)+collinear &&
		p.Latitude >= min(a.Latitude, b.Latitude)-collinear
}

func emptyBox() box {
	return box{west: math.Inf(1), south: math.Inf(1), east: math.Inf(-1), north: math.Inf(-1)}
}

func (b *box) empty() bool { return b.west > b.east }

func (b *box) include(p position) {
	b.west, b.east = min(b.west, p.Longitude), max(b.east, p.Longitude)
	b.south, b.north = min(b.south, p.Latitude), max(b.north, p.Latitude)
}

func (b box) union(o box) box {
	return box{min(b.west, o.west), min(b.south, o.south), max(b.east, o.east), max(b.north, o.north)}
}

func (b box) widen(by float64) box {
	return box{b.west - by, b.south - by, b.east + by, b.north + by}
}

func (b *box) contains(p position) bool {
	return p.Longitude >= b.west && p.Longitude <= b.east && p.Latitude >= b.south && p.Latitude <= b.north
}

func (b *box) overlaps(o *box) bool {
	return b.west <= o.east && b.east >= o.west && b.south <= o.north && b.north >= o.south
}

// oneSideOf tells whether every point of the box is clearly on the same side of
// the line through the two points.
func (b *box) oneSideOf(from, to position) bool {
	side := orientation(from, to, position{b.west, b.south})
	return side != 0 &&
		side == orientation(from, to, position{b.east, b.south}) &&
		side == orientation(from, to, position{b.east, b.north}) &&
		side == orientation(from, to, position{b.west, b.north})
}
