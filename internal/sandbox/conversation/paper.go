package conversation

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// Widths of the output, in characters.
const (
	plainWidth = 96 // when the output is no terminal
	maxWidth   = 110
	minWidth   = 50
)

// Paper writes text for people: wrapped, with colours on a terminal only.
type Paper struct {
	out     io.Writer
	width   int
	colours bool
}

// NewPaper returns a paper that fits out.
func NewPaper(out io.Writer) *Paper {
	paper := &Paper{out: out, width: plainWidth}
	file, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return paper
	}
	paper.colours = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	if width, _, err := term.GetSize(int(file.Fd())); err == nil && width > 0 {
		paper.width = min(max(width-1, minWidth), maxWidth)
	}
	return paper
}

// Styles, as SGR parameters.
const (
	bold   = "1"
	faint  = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
	cyan   = "36"
)

// Heading writes a title with a blank line above.
func (p *Paper) Heading(text string) { p.block("\n", "", "", text, bold) }

// Paragraph writes running text.
func (p *Paper) Paragraph(text string) { p.block("", "", "", text, "") }

// Blank writes an empty line.
func (p *Paper) Blank() { fmt.Fprintln(p.out) }

// Request writes what goes to the daemon.
func (p *Paper) Request(text string) { p.block("", "  → ", "    ", text, cyan) }

// Answer writes what came back.
func (p *Paper) Answer(text string) { p.block("", "  ← ", "    ", text, yellow) }

// Detail writes a line below an answer.
func (p *Paper) Detail(text string) { p.block("", "    ", "      ", text, faint) }

// Right writes something that is as it must be.
func (p *Paper) Right(text string) { p.block("", "  ✓ ", "    ", text, green) }

// Wrong writes something that is not.
func (p *Paper) Wrong(text string) { p.block("", "  ✗ ", "    ", text, red) }

func (p *Paper) block(before, first, next, text, style string) {
	lines := wrap(text, p.width-utf8.RuneCountInString(first))
	for i, line := range lines {
		indent := next
		if i == 0 {
			indent = first
		}
		lines[i] = indent + line
	}
	whole := strings.Join(lines, "\n")
	if p.colours && style != "" {
		whole = "\x1b[" + style + "m" + whole + "\x1b[0m"
	}
	fmt.Fprintf(p.out, "%s%s\n", before, whole)
}

// wrap breaks text into lines of at most width characters: at blanks, inside
// longer words (JSON has few blanks) after a comma or a colon, else anywhere.
// Line breaks of the text are kept and control characters shown as ·.
func wrap(text string, width int) []string {
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		rest := []rune(strings.Map(printable, line))
		for len(rest) > width {
			cut := breakAt(rest, width)
			lines = append(lines, strings.TrimRight(string(rest[:cut]), " "))
			for rest = rest[cut:]; len(rest) > 0 && rest[0] == ' '; {
				rest = rest[1:]
			}
		}
		lines = append(lines, string(rest))
	}
	return lines
}

func breakAt(text []rune, width int) int {
	for _, at := range []string{" ", ",:;"} {
		for cut := width; cut > width/2; cut-- {
			if strings.ContainsRune(at, text[cut-1]) {
				return cut
			}
			if at == " " && text[cut] == ' ' {
				return cut
			}
		}
	}
	return width
}

func printable(r rune) rune {
	if r < ' ' || r == 0x7f {
		return '·'
	}
	return r
}

// shorten cuts the end of a text that has more than limit characters.
func shorten(text string, limit int) string {
	runes := []rune(text)
	if len(runes) <= limit {
		return text
	}
	return strings.TrimRight(string(runes[:limit-2]), " ") + " …"
}
