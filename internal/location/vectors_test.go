package location

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/uber/h3-go/v4"
)

// vectors is testdata/vectors.json, the vectors of spec 42.
type vectors struct {
	HexagonAreaAvgKm2 []float64 `json:"hexagonAreaAvgKm2"`
	PointHierarchies  []struct {
		Name      string   `json:"name"`
		Latitude  float64  `json:"latitude"`
		Longitude float64  `json:"longitude"`
		Tags      []string `json:"tags"`
		Hex       []string `json:"hex"`
	} `json:"pointHierarchies"`
	PointOptions []struct {
		Latitude         float64  `json:"latitude"`
		Longitude        float64  `json:"longitude"`
		FinestResolution int      `json:"finestResolution"`
		MaxTags          *int     `json:"maxTags"`
		Tags             []string `json:"tags"`
	} `json:"pointOptions"`
	Covers   []coverVector `json:"covers"`
	Matching []struct {
		Latitude     float64  `json:"latitude"`
		Longitude    float64  `json:"longitude"`
		Cover        string   `json:"cover"`
		MatchingTags []string `json:"matchingTags"`
	} `json:"matching"`
}

type coverVector struct {
	Name         string          `json:"name"`
	GeoJSON      json.RawMessage `json:"geoJson"`
	MaxTags      int             `json:"maxTags"`
	Count        int             `json:"count"`
	ByResolution map[string]int  `json:"byResolution"`
	SHA256       string          `json:"sha256"`
	First        []string        `json:"first"`
	Last         []string        `json:"last"`
	Tags         []string        `json:"tags"`
	Budgets      []int           `json:"budgets"`
	Seeds        []struct {
		ProbeResolution int `json:"probeResolution"`
		SeedResolution  int `json:"seedResolution"`
		SeedCells       int `json:"seedCells"`
	} `json:"seeds"`
}

func readVectors(tb testing.TB) vectors {
	tb.Helper()
	raw, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		tb.Fatal(err)
	}
	var read vectors
	if err := json.Unmarshal(raw, &read); err != nil {
		tb.Fatal(err)
	}
	return read
}

func parseGeometry(tb testing.TB, raw string) Geometry {
	tb.Helper()
	geometry, err := ParseGeometry(json.RawMessage(raw))
	if err != nil {
		tb.Fatalf("ParseGeometry: %v", err)
	}
	return geometry
}

func coverOf(tb testing.TB, geometry Geometry, budget int) []string {
	tb.Helper()
	cells, err := Cover(tb.Context(), geometry, budget)
	if err != nil {
		tb.Fatalf("Cover: %v", err)
	}
	return cells
}

func TestHexagonAreaVectors(t *testing.T) {
	t.Parallel()
	grid, err := newHexGrid()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(readVectors(t).HexagonAreaAvgKm2, grid.areas[:]); diff != "" {
		t.Errorf("average hexagon areas (-want +got):\n%s", diff)
	}
}

func TestPointHierarchyVectors(t *testing.T) {
	t.Parallel()
	for _, vector := range readVectors(t).PointHierarchies {
		t.Run(vector.Name, func(t *testing.T) {
			t.Parallel()
			got := PointCells(vector.Latitude, vector.Longitude, FinestResolution, nil)
			if diff := cmp.Diff(vector.Tags, got); diff != "" {
				t.Errorf("cells (-want +got):\n%s", diff)
			}
			for i, text := range got {
				index, err := strconv.ParseUint(text, 10, 64)
				if err != nil || strconv.FormatUint(index, 16) != vector.Hex[i] {
					t.Errorf("cell %s is %x in hex, want %s (%v)", text, index, vector.Hex[i], err)
				}
			}
		})
	}
}

func TestPointOptionVectors(t *testing.T) {
	t.Parallel()
	for _, vector := range readVectors(t).PointOptions {
		got := PointCells(vector.Latitude, vector.Longitude, vector.FinestResolution, vector.MaxTags)
		if diff := cmp.Diff(vector.Tags, got); diff != "" {
			t.Errorf("finest %d, maximum %v (-want +got):\n%s", vector.FinestResolution, vector.MaxTags, diff)
		}
	}
}

func TestCoverVectors(t *testing.T) {
	t.Parallel()
	for _, vector := range readVectors(t).Covers {
		t.Run(vector.Name, func(t *testing.T) {
			t.Parallel()
			geometry := parseGeometry(t, string(vector.GeoJSON))
			got := coverOf(t, geometry, vector.MaxTags)
			checkCover(t, vector, got)
			checkSeeds(t, vector, geometry)
		})
	}
}

func checkCover(t *testing.T, vector coverVector, got []string) {
	t.Helper()
	if len(got) != vector.Count {
		t.Errorf("%d cells, want %d", len(got), vector.Count)
	}
	byResolution := make(map[string]int)
	for _, text := range got {
		byResolution[strconv.Itoa(cellOf(t, text).Resolution())]++
	}
	if diff := cmp.Diff(vector.ByResolution, byResolution); diff != "" {
		t.Errorf("cells by resolution (-want +got):\n%s", diff)
	}
	digest := sha256.Sum256([]byte(strings.Join(got, "\n")))
	if sum := hex.EncodeToString(digest[:]); sum != vector.SHA256 {
		t.Errorf("SHA-256 of the cells is %s, want %s", sum, vector.SHA256)
	}
	edge := min(len(vector.First), len(got))
	if !slices.Equal(got[:edge], vector.First) || !slices.Equal(got[len(got)-edge:], vector.Last) {
		t.Errorf("first and last cells %v … %v, want %v … %v", got[:edge], got[len(got)-edge:], vector.First, vector.Last)
	}
	if vector.Tags != nil && !slices.Equal(got, vector.Tags) {
		t.Errorf("cells (-want +got):\n%s", cmp.Diff(vector.Tags, got))
	}
}

func checkSeeds(t *testing.T, vector coverVector, geometry Geometry) {
	t.Helper()
	grid, err := newHexGrid()
	if err != nil {
		t.Fatal(err)
	}
	budgets := []int{vector.MaxTags}
	if len(geometry.polygons) > 1 {
		areas := make([]float64, len(geometry.polygons))
		for i, polygon := range geometry.polygons {
			areas[i] = areaKm2(polygon.outer)
		}
		budgets = shareBudget(areas, vector.MaxTags)
		if diff := cmp.Diff(vector.Budgets, budgets); diff != "" {
			t.Errorf("budgets (-want +got):\n%s", diff)
		}
	}
	if len(geometry.polygons) != len(vector.Seeds) {
		t.Fatalf("%d polygons, want %d", len(geometry.polygons), len(vector.Seeds))
	}
	for i, want := range vector.Seeds {
		got, err := newArea(grid, geometry.polygons[i]).seed(t.Context(), budgets[i])
		if err != nil {
			t.Fatal(err)
		}
		if got.probe != want.ProbeResolution || got.resolution != want.SeedResolution || len(got.cells) != want.SeedCells {
			t.Errorf("polygon %d: probe %d, seed %d, %d cells; want %+v", i, got.probe, got.resolution, len(got.cells), want)
		}
	}
}

func TestMatchingVectors(t *testing.T) {
	t.Parallel()
	read := readVectors(t)
	covers := make(map[string][]string)
	for _, vector := range read.Covers {
		covers[vector.Name] = coverOf(t, parseGeometry(t, string(vector.GeoJSON)), vector.MaxTags)
	}
	for _, vector := range read.Matching {
		matching := []string{}
		for _, cell := range PointCells(vector.Latitude, vector.Longitude, FinestResolution, nil) {
			if slices.Contains(covers[vector.Cover], cell) {
				matching = append(matching, cell)
			}
		}
		if diff := cmp.Diff(vector.MatchingTags, matching); diff != "" {
			t.Errorf("%v, %v in %s (-want +got):\n%s", vector.Latitude, vector.Longitude, vector.Cover, diff)
		}
	}
}

func cellOf(tb testing.TB, text string) h3.Cell {
	tb.Helper()
	index, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		tb.Fatal(err)
	}
	return h3.Cell(index)
}
