// Package terminal is the daemon's face for a person at a terminal: it reads
// command-line arguments into inputs, and prints the catalog, results, log lines
// and what is still going on so that they are pleasant to read.
//
// It knows widths, lines and what may not reach a terminal: much of the text is
// strangers'. Programs get exact JSON instead. It must never run an action.
package terminal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"
)

// lineWidth is what most terminals show without wrapping by themselves, in columns.
const lineWidth = 80

// Print writes text for a person, without what would steer the terminal.
func Print(out io.Writer, text string) error {
	_, err := io.WriteString(out, printable(text))
	return err
}

// JSON writes a value as indented JSON that is exact and safe to show: what would
// steer a terminal is escaped.
func JSON(out io.Writer, value any) error {
	text, err := indented(value)
	if err != nil {
		return err
	}
	_, err = io.WriteString(out, text)
	return err
}

func indented(value any) (string, error) {
	var plain bytes.Buffer
	encoder := json.NewEncoder(&plain)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(value); err != nil {
		return "", fmt.Errorf("writing the result as JSON: %w", err)
	}
	// Outside of strings JSON has no such characters but the line ends.
	var safe strings.Builder
	for _, r := range plain.String() {
		if r != '\n' && steers(r) {
			fmt.Fprintf(&safe, `\u%04x`, r)
			continue
		}
		safe.WriteRune(r)
	}
	return safe.String(), nil
}

// steers tells of the characters that move the cursor, change colours, or turn the
// direction of writing around; the latter can make text look like another one.
func steers(r rune) bool {
	return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || r == '\ufeff' || unicode.Is(unicode.Bidi_Control, r)
}

// printable leaves out what steers the terminal. What separates words or lines stays
// a separator; bytes that are no UTF-8 become replacement characters.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', !steers(r):
			return r
		case unicode.IsSpace(r):
			return ' '
		default:
			return -1
		}
	}, text)
}

// oneLine is printable text without line ends and repeated blanks.
func oneLine(text string) string { return strings.Join(strings.Fields(printable(text)), " ") }

// excerpt is the beginning of a text, on one line.
func excerpt(text string) string {
	const longest = 240
	text = oneLine(text)
	if utf8.RuneCountInString(text) <= longest {
		return text
	}
	return string([]rune(text)[:longest]) + "…"
}

// wrap breaks printable text into lines of at most lineWidth columns, each after the
// indent. A word longer than a line stays whole, so that it can be copied.
func wrap(text, indent string) string {
	var lines []string
	for paragraph := range strings.SplitSeq(printable(text), "\n") {
		lines = append(lines, wrapParagraph(paragraph, indent)...)
	}
	return strings.Join(lines, "\n")
}

func wrapParagraph(paragraph, indent string) []string {
	var lines []string
	line, used := "", 0
	for word := range strings.FieldsSeq(paragraph) {
		gap := " "
		for piece := range pieces(word) {
			taken := columns(piece)
			if line != "" && used+len(gap)+taken > lineWidth-len(indent) {
				lines = append(lines, indent+line)
				line, used = "", 0
			}
			if line == "" {
				gap = ""
			}
			line += gap + piece
			used += len(gap) + taken
			gap = ""
		}
	}
	if line == "" {
		return append(lines, "")
	}
	return append(lines, indent+line)
}

// list puts items on lines of at most lineWidth columns, each after the indent. A line
// never breaks within an item.
func list(items []string, indent string) string {
	const separator = " · "
	var lines []string
	for _, item := range items {
		item = oneLine(item)
		last := len(lines) - 1
		if last >= 0 && columns(lines[last]+separator+item) <= lineWidth {
			lines[last] += separator + item
			continue
		}
		lines = append(lines, indent+item)
	}
	return strings.Join(lines, "\n")
}

// pieces are the parts of a word between which a line may break: Chinese, Japanese
// and Korean put no blanks between words.
func pieces(word string) iter.Seq[string] {
	return func(yield func(string) bool) {
		start, before, joined := 0, 0, false
		for i, r := range word {
			taken := runeColumns(r)
			if i > start && taken > 0 && !joined && (taken == 2 || before == 2) {
				if !yield(word[start:i]) {
					return
				}
				start = i
			}
			if taken > 0 {
				before = taken
			}
			joined = r == '\u200d' // a zero width joiner makes one sign of two
		}
		yield(word[start:])
	}
}

// columns is how much room text takes on a line.
func columns(text string) int {
	taken := 0
	for _, r := range text {
		taken += runeColumns(r)
	}
	return taken
}

func runeColumns(r rune) int {
	if unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf) {
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}
