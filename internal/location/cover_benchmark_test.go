package location

import (
	"math"
	"testing"
)

// archipelago is an outline of many islands of all sizes around one place, as those
// of countries with a long coast are.
func archipelago(islands, points int) Geometry {
	draw := newShapes(7)
	geometry := Geometry{kind: kindMultiPolygon}
	for range islands {
		center := position{draw.between(15, 30), draw.between(55, 70)}
		geometry.polygons = append(geometry.polygons, polygon{outer: draw.star(center, draw.log(0.0005, 0.5), 0.5, points)})
	}
	return geometry
}

// across is a country on both sides of the antimeridian, in one ring that jumps.
func across(points int) Geometry {
	ring := make([]position, points)
	for i := range ring {
		angle := 2 * math.Pi * float64(i) / float64(points)
		longitude := 180 + 5*math.Cos(angle)
		if longitude > 180 {
			longitude -= 360
		}
		ring[i] = position{longitude, -17 + 3*math.Sin(angle)}
	}
	return Geometry{kind: kindPolygon, polygons: []polygon{{outer: closed(ring)}}}
}

// needles is many outlines of which each costs as much as a fill may.
func needles(count int) Geometry {
	geometry := Geometry{kind: kindMultiPolygon}
	for i := range count {
		tip := position{80, 60 + float64(i)*1e-3}
		geometry.polygons = append(geometry.polygons, polygon{outer: []position{
			{-80, -60}, tip, {80, tip.Latitude + 1e-9}, {-80, -60},
		}})
	}
	return geometry
}

// The largest there is: outlines of a hundred thousand points and more, of many
// polygons, and those drawn to be costly.
func BenchmarkCoverOfLargeOutlines(b *testing.B) {
	for _, bench := range []struct {
		name     string
		geometry Geometry
	}{
		{"1000-islands", archipelago(1000, 50)},
		{"10000-islands", archipelago(10_000, 20)},
		{"100000-islands", archipelago(100_000, 10)},
		{"antimeridian", across(20_000)},
		{"10-needles", needles(10)},
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
