package secrets

import (
	"encoding/json"
	"slices"
	"strings"
)

// parseList reads the text of an entry, a JSON list of strings (spec 11 §5.2). What
// is no list reads as empty, and an element that is no string as absent.
func parseList(text string) []string {
	list, _ := parseWholeList(text)
	return list
}

// parseWholeList is parseList that reports whether the text was a list of strings and
// nothing else. Blank text is an empty list.
func parseWholeList(text string) (list []string, whole bool) {
	if strings.TrimSpace(text) == "" {
		return nil, true
	}
	var elements []json.RawMessage
	if json.Unmarshal([]byte(text), &elements) != nil || elements == nil {
		return nil, false
	}
	whole = true
	for _, raw := range elements {
		var element *string
		if json.Unmarshal(raw, &element) == nil && element != nil {
			list = append(list, *element)
		} else {
			whole = false
		}
	}
	return list, whole
}

// ofAccount returns the elements that begin with the account's pubkey and a colon,
// without that.
func ofAccount(list []string, account string) []string {
	var own []string
	for _, element := range list {
		if value, ok := strings.CutPrefix(element, account+":"); ok {
			own = append(own, value)
		}
	}
	return own
}

// withAccount returns the list with the account's elements replaced, at the end.
func withAccount(list []string, account string, values []string) []string {
	changed := slices.DeleteFunc(slices.Clone(list), func(element string) bool {
		return strings.HasPrefix(element, account+":")
	})
	for _, value := range values {
		changed = append(changed, account+":"+value)
	}
	return changed
}

// mergeAccountLists returns the later list with the elements of those accounts that
// only the earlier one has.
func mergeAccountLists(earlier, later string) string {
	merged := parseList(later)
	have := make(map[string]struct{})
	for _, element := range merged {
		account, _, _ := strings.Cut(element, ":")
		have[account] = struct{}{}
	}
	for _, element := range parseList(earlier) {
		account, _, _ := strings.Cut(element, ":")
		if _, listed := have[account]; !listed {
			merged = append(merged, element)
		}
	}
	return encodeJSON(append([]string{}, merged...))
}
