package catalog

import "strings"

// Nearest is the id that was probably meant by one that is none: a tool's name, or a
// slip of two letters at most; "" when there is none.
func (c *Catalog) Nearest(given string) string {
	given = strings.ReplaceAll(strings.TrimSpace(given), "_", ".")
	if !strings.HasPrefix(strings.ToLower(given), "hostr.") {
		given = "hostr." + given
	}
	return Nearest(given, c.IDs())
}

// Nearest is the name that differs from a given one by the fewest letters, two at most
// and letter case aside; "" when there is none.
func Nearest(given string, known []string) string {
	const longestSlip, longestName = 2, 100
	if len(given) > longestName {
		return ""
	}
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
