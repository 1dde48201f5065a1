package redact

import (
	"bytes"
	"io"

	"hostr-daemon/internal/jsontext"
)

// Writer returns a writer that passes whole log lines on to next and redacts what
// still holds a secret: the last line of defence behind everybody who logs. It also
// escapes U+2028 and U+2029, at which some readers end a line. Each Write must hold whole lines, as zerolog's do, and becomes one Write. Lines
// without a secret cost one pass over them and no copy.
func Writer(next io.Writer) io.Writer { return lineWriter{next} }

type lineWriter struct{ next io.Writer }

// Write passes the lines on. It reports len(lines) unless next fails.
func (w lineWriter) Write(lines []byte) (int, error) {
	if _, err := w.next.Write(redactLines(lines)); err != nil {
		return 0, err
	}
	return len(lines), nil
}

// redactLines returns the lines themselves when none of them holds a secret.
func redactLines(lines []byte) []byte {
	var redacted []byte
	done := 0 // what of lines is in redacted
	for start := 0; start < len(lines); {
		end := len(lines)
		if length := bytes.IndexByte(lines[start:], '\n'); length >= 0 {
			end = start + length + 1
		}
		if line := lines[start:end]; !isClean(line) {
			if redacted == nil {
				redacted = make([]byte, 0, len(lines))
			}
			redacted = append(redacted, lines[done:start]...)
			redacted = appendLine(redacted, bytes.TrimSuffix(line, newline))
			if line[len(line)-1] == '\n' {
				redacted = append(redacted, '\n')
			}
			done = end
		}
		start = end
	}
	if redacted == nil {
		return lines
	}
	return append(redacted, lines[done:]...)
}

var newline = []byte{'\n'}

// isClean reports whether the line can be shown as it is. An escape that could
// hide a shape counts as unclean, also one that is escaped itself.
func isClean(line []byte) bool {
	if _, found := findSecret(line, 0); found {
		return false
	}
	if hasLineSeparator(line) {
		return false
	}
	rest := line
	for {
		slash := bytes.IndexByte(rest, '\\')
		if slash < 0 || slash+1 == len(rest) {
			return true
		}
		rest = bytes.TrimLeft(rest[slash:], `\`)
		if len(rest) > 0 && (rest[0] == 'u' || rest[0] == '/') {
			return false
		}
	}
}

// appendLine redacts one line: a JSON object by keys and shapes, without cutting
// its strings, anything else by shapes.
func appendLine(dst, line []byte) []byte {
	if pos := jsontext.SkipBlanks(line, 0); pos < len(line) && line[pos] == '{' {
		if _, err := jsontext.Document(line); err == nil {
			r := redactor{text: line, dst: dst}
			return r.document()
		}
	}
	start := len(dst)
	line = readable(line)
	dst = appendText(dst, line, len(line))
	if !hasLineSeparator(dst[start:]) {
		return dst
	}
	text := bytes.ReplaceAll(dst[start:], lineSeparator, []byte(`\u2028`))
	return append(dst[:start], bytes.ReplaceAll(text, paragraphSeparator, []byte(`\u2029`))...)
}

var (
	lineSeparator      = []byte("\u2028")
	paragraphSeparator = []byte("\u2029")
)

func hasLineSeparator(line []byte) bool {
	return bytes.IndexByte(line, lineSeparator[0]) >= 0 && (bytes.Contains(line, lineSeparator) || bytes.Contains(line, paragraphSeparator))
}
