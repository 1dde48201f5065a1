// Package location is the geometry of places: it turns a point into the H3 cells
// a listing is tagged with, and a GeoJSON geometry into the H3 cells a search
// asks for (spec 42 §2 and §3). Cells are written as unsigned decimal text.
//
// It is pure: it knows angles, rings and cells. It must never know the network,
// the geocoder's answers around a geometry, or what a listing is.
package location
