package market

import (
	"cmp"
	"slices"
	"testing"
	"unicode/utf16"
	"unicode/utf8"
)

// FuzzCompareCodeUnits compares with the order of the encoded texts.
func FuzzCompareCodeUnits(f *testing.F) {
	for _, seed := range [][2]string{
		{"", "a"}, {"a", "b"}, {"a+b", "a"}, {"\ue000", "\U0001f3e0"}, {"\U0001f3e0", "\uffff"}, {"\ud7ff", "\U0010ffff"}, {"é", "e"}, {"x\U00010000", "x\U0010ffff"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		got := compareCodeUnits(a, b)
		if back := compareCodeUnits(b, a); got != -back || (got == 0) != (a == b) {
			t.Fatalf("%q and %q: %d, the other way round %d", a, b, got, back)
		}
		if !utf8.ValidString(a) || !utf8.ValidString(b) {
			return
		}
		if want := slices.Compare(utf16.Encode([]rune(a)), utf16.Encode([]rune(b))); cmp.Compare(got, 0) != want {
			t.Fatalf("%q and %q: %d, want %d", a, b, got, want)
		}
	})
}

// The bounds leave room for every listing that Hostr's own names make.
func TestLongestNamesFitTogether(t *testing.T) {
	t.Parallel()
	names := slices.SortedFunc(slices.Values(specificationNames()), func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	if longest := len(names[0]); longest*2 > maxSpecificationName {
		t.Errorf("the longest name has %d bytes", longest)
	}
	var specifications Specifications
	for _, name := range names[:maxCombinedFeatures] {
		specifications.Set(name, Flag())
	}
	features, err := combinable(specifications.tags())
	if err != nil {
		t.Fatal(err)
	}
	size := 0
	for _, tag := range combine(features) {
		size += len(tag[1])
	}
	if size > maxCombinedBytes || size == 0 {
		t.Errorf("the combinations have %d bytes", size)
	}
}

func specificationNames() []string {
	var names []string
	for name := range specificationPlaces {
		names = append(names, name)
	}
	return names
}
