package market

import (
	"slices"
	"strings"
	"unicode/utf16"

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

// maxCombinedFeatures bounds the flags of a listing: n of them make 2^n - n - 1
// tags, and relays refuse events long before 12.
const maxCombinedFeatures = 12

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

// combine returns the S tags of the flags among the spec tags. More than 12
// flags are invalid_input.
func combine(specs nostr.Tags) (nostr.Tags, error) {
	var names []string
	for _, spec := range specs {
		if len(spec) == 2 {
			names = append(names, spec[1])
		}
	}
	names = sortedNames(names)
	if len(names) > maxCombinedFeatures {
		return nil, fault.New(fault.InvalidInput, "%d features are too many for one listing: at most %d can be searched for",
			len(names), maxCombinedFeatures).
			At("specifications").
			WithHint("keep the features that guests search for").
			WithDetails(inputReason{Reason: "range"})
	}
	var combinations []string
	for set := range 1 << len(names) {
		var members []string
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
	return tags, nil
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

// compareCodeUnits orders by UTF-16 code unit, as the other clients do; byte
// order differs for characters beyond the first plane.
func compareCodeUnits(a, b string) int {
	return slices.Compare(utf16.Encode([]rune(a)), utf16.Encode([]rune(b)))
}
