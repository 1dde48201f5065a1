package terminal

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"hostr-daemon/catalog"
	"hostr-daemon/catalog/definition"
)

// UnknownInput points out names in an input that the action does not read: the daemon
// ignores them, a person has made a slip. A patch may be written without its name
// (spec 40 §6).
func UnknownInput(out io.Writer, loaded *catalog.Catalog, action catalog.Action, given json.RawMessage) error {
	schema, err := definition.ParseSchema(action.InputSchema)
	if err != nil {
		return fmt.Errorf("the schema of %s: %w", action.ID, err)
	}
	known := slices.Clone(action.InputAliases)
	for _, property := range schema.Properties {
		known = append(known, property.Name)
	}
	page := &strings.Builder{}
	input := gjson.ParseBytes(given)
	listing := input
	if _, patches := schema.Property("patch"); patches {
		if patch := input.Get("patch"); patch.IsObject() {
			listing = patch
			slips(page, action.ID, patch, patchKeys)
		} else {
			known = append(known, patchKeys...)
		}
		if !slices.ContainsFunc(patchKeys, func(key string) bool { return listing.Get(key).Exists() }) {
			page.WriteString("Note: nothing is given that this could change, so the listing stays as it is.\n")
		}
	}
	slips(page, action.ID, input, known)
	specifications(page, loaded.Specifications(), listing)
	return Print(out, page.String())
}

// patchKeys are what a change of a listing reads (spec 30 §9.2).
var patchKeys = []string{
	"title", "description", "type", "images", "address", "prices", "price", "securityDeposit", "minPaymentAmount",
	"maxDisputePeriod", "cancellationPolicy", "cancellationPolicies", "minDuration", "quantity", "active",
	"negotiable", "autoAccept", "specifications", "specs", "max_guests", "guests", "beds", "bedrooms", "bathrooms",
	"h3Tags", "h3FinestResolution", "h3MaxTags",
}

func slips(page *strings.Builder, action string, object gjson.Result, known []string) {
	object.ForEach(func(key, _ gjson.Result) bool {
		if !slices.Contains(known, key.Str) {
			fmt.Fprintf(page, "%s\n", wrap(slip(action, key.Str, known), ""))
		}
		return true
	})
}

// specifications points out amenities that the catalog does not name. They count all
// the same: as they are written.
func specifications(page *strings.Builder, known []string, listing gjson.Result) {
	for _, name := range amenities(listing) {
		if slices.Contains(known, name) {
			continue
		}
		text := "Note: " + shortened(name) + " is no amenity of the catalog, and counts as it is written"
		if meant := amenity(name, known); meant != "" {
			text += "; did you mean " + meant + "?"
		} else {
			text += "."
		}
		fmt.Fprintf(page, "%s\n", wrap(text, ""))
	}
}

// amenities are those an input names: the keys of specifications, and features.
func amenities(input gjson.Result) (names []string) {
	for _, key := range []string{"specifications", "specs"} {
		if object := input.Get(key); object.IsObject() {
			object.ForEach(func(name, _ gjson.Result) bool {
				names = append(names, name.Str)
				return true
			})
		}
	}
	features := input.Get("features")
	if features.Type == gjson.String {
		for name := range strings.SplitSeq(features.Str, ",") {
			names = append(names, strings.TrimSpace(name))
		}
	} else if features.IsArray() {
		for _, name := range features.Array() {
			names = append(names, strings.TrimSpace(name.Str))
		}
	}
	return slices.DeleteFunc(names, func(name string) bool { return name == "" })
}

// otherWords are what people say for amenities.
var otherWords = map[string]string{
	"wifi": "wireless_internet", "wlan": "wireless_internet", "internet": "wireless_internet",
	"aircon": "airconditioning", "airconditioner": "airconditioning", "ac": "airconditioning",
	"pets": "allows_pets", "petsallowed": "allows_pets", "dogs": "allows_pets", "parking": "free_parking",
	"smoking": "smoking_allowed", "washingmachine": "washer", "dryer": "tumble_dryer", "lift": "elevator", "swimmingpool": "pool",
}

// amenity is the one that was probably meant, "" where none is near.
func amenity(given string, known []string) string {
	word := strings.NewReplacer("_", "", "-", "", " ", "").Replace(strings.ToLower(given))
	if meant := otherWords[word]; slices.Contains(known, meant) {
		return meant
	}
	return catalog.Nearest(given, known)
}

// slip says what was probably meant.
func slip(action, given string, known []string) string {
	text := "Note: there is no input " + shortened(given)
	switch nearest := catalog.Nearest(given, known); {
	case nearest != "":
		return text + "; did you mean " + nearest + "? It has no effect."
	case len(known) == 0:
		return text + ", so it has no effect: " + action + " takes no input."
	default:
		return text + ", so it has no effect. All inputs: hostr-daemon describe " + action
	}
}
