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

// UnknownInput points out properties of an input that the action does not read: the
// daemon ignores them, a person has made a slip. Any name may be meant as part of a
// patch that is written without its name (spec 40 §6).
func UnknownInput(out io.Writer, action catalog.Action, input json.RawMessage) error {
	schema, err := definition.ParseSchema(action.InputSchema)
	if err != nil {
		return fmt.Errorf("the schema of %s: %w", action.ID, err)
	}
	if _, patches := schema.Property("patch"); patches && !gjson.GetBytes(input, "patch").IsObject() {
		return nil
	}
	known := slices.Clone(action.InputAliases)
	for _, property := range schema.Properties {
		known = append(known, property.Name)
	}
	page := &strings.Builder{}
	gjson.ParseBytes(input).ForEach(func(key, _ gjson.Result) bool {
		if !slices.Contains(known, key.Str) {
			fmt.Fprintf(page, "%s\n", wrap(slip(action.ID, key.Str, known), ""))
		}
		return true
	})
	return Print(out, page.String())
}

// slip says what was probably meant.
func slip(action, given string, known []string) string {
	text := "Note: there is no input " + shortened(given)
	switch nearest := nearest(given, known); {
	case nearest != "":
		return text + "; did you mean " + nearest + "? It has no effect."
	case len(known) == 0:
		return text + ", so it has no effect: " + action + " takes no input."
	default:
		return text + ", so it has no effect. All inputs: hostr-daemon describe " + action
	}
}

// nearest is the name that differs by the fewest letters, two at most; "" when
// there is none.
func nearest(given string, known []string) string {
	const longestSlip = 2
	best, least := "", longestSlip+1
	for _, name := range known {
		distance := editDistance(strings.ToLower(given), strings.ToLower(name))
		if distance < least && distance < len(name) {
			best, least = name, distance
		}
	}
	return best
}

// editDistance counts the letters to put in, take out or change (Levenshtein).
func editDistance(a, b string) int {
	from, to := []rune(a), []rune(b)
	row := make([]int, len(to)+1)
	for j := range row {
		row[j] = j
	}
	for i := range from {
		diagonal := row[0]
		row[0] = i + 1
		for j := range to {
			changed := diagonal
			if from[i] != to[j] {
				changed++
			}
			diagonal = row[j+1]
			row[j+1] = min(changed, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(to)]
}
