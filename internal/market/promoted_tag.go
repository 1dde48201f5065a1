package market

import (
	"cmp"
	"slices"
	"strings"

	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/fault"
)

// promotion writes a value a second time under one letter, because relays index
// only one-letter tags (spec 40 §2).
type promotion struct {
	source string
	// name restricts spec tags to one property; empty is any.
	name   string
	letter string
	// element is the place of the value in the source tag.
	element int
}

var promotions = []promotion{
	{source: "type", letter: "T", element: 1},
	{source: "spec", letter: "s", element: 1},
	{source: "spec", name: "max_guests", letter: "c", element: 2},
	{source: "spec", name: "beds", letter: "b", element: 2},
	{source: "spec", name: "bedrooms", letter: "B", element: 2},
	{source: "spec", name: "bathrooms", letter: "R", element: 2},
	{source: "active", letter: "A", element: 1},
	{source: "autoAccept", letter: "I", element: 1},
	{source: "negotiable", letter: "N", element: 1},
	{source: "rentOrBuy", letter: "M", element: 1},
}

// combinationLetter holds every combination of two or more features.
const combinationLetter = "S"

const (
	// maxCombinedFeatures bounds the flags of a listing: n of them make 2^n - n - 1
	// tags, and relays refuse events long before 12.
	maxCombinedFeatures = 12
	// maxCombinedBytes bounds the values of those tags together. The twelve longest
	// names that Hostr knows stay below it.
	maxCombinedBytes = 1 << 20
	// maxSpecificationName bounds a name that is written anew, in bytes; the longest
	// that Hostr knows has 36.
	maxSpecificationName = 128
)

// promote returns the one-letter tags of the source tags, which are in the order
// type, active, autoAccept, negotiable, rentOrBuy, spec….
func promote(sources nostr.Tags) nostr.Tags {
	var promoted nostr.Tags
	for _, source := range sources {
		for _, rule := range promotions {
			if source[0] == rule.source && len(source) > rule.element && (rule.name == "" || source[1] == rule.name) {
				promoted = append(promoted, nostr.Tag{rule.letter, source[rule.element]})
			}
		}
	}
	return promoted
}

// combinable returns the names of the flags among the spec tags, sorted. More of them
// than can be combined, or longer ones, are invalid_input.
func combinable(specs nostr.Tags) ([]string, error) {
	var names []string
	for _, spec := range specs {
		if len(spec) == 2 {
			names = append(names, spec[1])
		}
	}
	names = sortedNames(names)
	if len(names) > maxCombinedFeatures {
		return nil, badSpecifications("keep the features that guests search for",
			"%d features are too many for one listing: at most %d can be searched for", len(names), maxCombinedFeatures)
	}
	size := 0
	for _, name := range names {
		size += len(name) + len("+")
	}
	// Each name is in half of all combinations.
	if len(names) >= 2 && size<<(len(names)-1) > maxCombinedBytes {
		return nil, badSpecifications("use the short names that guests search for, such as kitchen or pool",
			"the names of the features are too long to be searched for together")
	}
	return names, nil
}

func badSpecifications(hint, format string, args ...any) *fault.Error {
	return fault.New(fault.InvalidInput, format, args...).
		At("specifications").WithHint(hint).WithDetails(inputReason{Reason: "range"})
}

// combine returns the S tags of names that combinable returned.
func combine(names []string) nostr.Tags {
	var combinations []string
	members := make([]string, 0, len(names))
	for set := range 1 << len(names) {
		members = members[:0]
		for i, name := range names {
			if set&(1<<i) != 0 {
				members = append(members, name)
			}
		}
		if len(members) >= 2 {
			combinations = append(combinations, joinFeatures(members))
		}
	}
	slices.SortFunc(combinations, compareCodeUnits)
	tags := make(nostr.Tags, 0, len(combinations))
	for _, combination := range combinations {
		tags = append(tags, nostr.Tag{combinationLetter, combination})
	}
	return tags
}

// joinFeatures returns the value of an S tag for names as sortedNames gives them.
func joinFeatures(names []string) string { return strings.Join(names, "+") }

// sortedNames trims the names, drops blank ones and repetitions, and sorts.
func sortedNames(names []string) []string {
	kept := make([]string, 0, len(names))
	for _, name := range names {
		if trimmed := strings.TrimSpace(name); trimmed != "" {
			kept = append(kept, trimmed)
		}
	}
	slices.SortFunc(kept, compareCodeUnits)
	return slices.Compact(kept)
}

// compareCodeUnits orders by UTF-16 code unit, as the other clients do. Bytes are in
// the same order, but for characters beyond the first plane: these come before the last
// ones of the first.
func compareCodeUnits(a, b string) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return cmp.Compare(codeUnitRank(a[i]), codeUnitRank(b[i]))
		}
	}
	return cmp.Compare(len(a), len(b))
}

// codeUnitRank puts the first bytes of U+E000 to U+FFFF behind those of what UTF-16
// writes as a pair of surrogates.
func codeUnitRank(first byte) int {
	if first == 0xee || first == 0xef {
		return int(first) + 0x100
	}
	return int(first)
}
