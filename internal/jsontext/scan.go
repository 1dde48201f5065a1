// Package jsontext finds where JSON values begin and end and writes JSON strings,
// without building values. It serves the two places that read large foreign JSON
// at the speed of the line: the frame reader and the redaction of log lines.
//
// It knows RFC 8259 and nothing else: no Go types, no frames, no secrets. Every
// function is safe on arbitrary bytes: it never panics and nests at most MaxDepth.
package jsontext

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// MaxDepth is how deep arrays and objects may nest, the same bound that
// encoding/json has; deeper text is refused instead of eating the stack.
const MaxDepth = 10000

// Span is the part [Start, End) of a text.
type Span struct{ Start, End int }

// Of returns the bytes of the span in text.
func (s Span) Of(text []byte) []byte { return text[s.Start:s.End] }

// Empty reports whether the span holds nothing.
func (s Span) Empty() bool { return s.Start >= s.End }

// SyntaxError tells where a text stops being JSON. It quotes at most one byte of
// the text, so that it can be shown without showing what the text holds.
type SyntaxError struct {
	// Offset is the position of the offending byte, counted from 0.
	Offset int
	// Problem is a short phrase such as "expected a value".
	Problem string
}

// Error returns the problem and its position.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("not valid JSON at byte %d: %s", e.Offset, e.Problem)
}

// Document returns where the one value of the text lies, blanks around it left
// out. Anything else than exactly one valid value is a *SyntaxError.
func Document(text []byte) (Span, error) {
	start := SkipBlanks(text, 0)
	end, err := Value(text, start)
	if err != nil {
		return Span{}, err
	}
	if rest := SkipBlanks(text, end); rest != len(text) {
		return Span{}, unexpected(text, rest, "expected the end of the text")
	}
	return Span{start, end}, nil
}

// Members calls each for every member of the object that is the whole text, in
// order, with the key as quoted in the text. Every member is checked, and the
// text behind the object too, before nil is returned; each may have been called
// for earlier members when an error is.
func Members(text []byte, each func(key, value Span)) error {
	pos := SkipBlanks(text, 0)
	if pos == len(text) || text[pos] != '{' {
		return unexpected(text, pos, "expected an object")
	}
	end, err := members(text, pos, 1, each)
	if err != nil {
		return err
	}
	if rest := SkipBlanks(text, end); rest != len(text) {
		return unexpected(text, rest, "expected the end of the text")
	}
	return nil
}

// Value returns the end of the value that begins at start.
func Value(text []byte, start int) (int, error) { return value(text, start, 0) }

// String returns the end of the string whose opening quote is at start, and
// whether it is plain: free of escapes, so that its content is the text between
// the quotes.
func String(text []byte, start int) (end int, plain bool, err error) {
	if start >= len(text) || text[start] != '"' {
		return 0, false, unexpected(text, start, "expected a string")
	}
	plain = true
	pos := start + 1
	for {
		pos = nextSpecial(text, pos)
		if pos >= len(text) {
			return 0, false, &SyntaxError{len(text), "a string does not end"}
		}
		switch text[pos] {
		case '"':
			return pos + 1, plain, nil
		case '\\':
			plain = false
			if pos, err = escape(text, pos); err != nil {
				return 0, false, err
			}
		default:
			return 0, false, &SyntaxError{pos, fmt.Sprintf("control character 0x%02x in a string", text[pos])}
		}
	}
}

// SkipBlanks returns the position of the first byte from pos on that is not JSON
// white space.
func SkipBlanks(text []byte, pos int) int {
	for pos < len(text) {
		switch text[pos] {
		case ' ', '\t', '\n', '\r':
			pos++
		default:
			return pos
		}
	}
	return pos
}

func value(text []byte, start, depth int) (int, error) {
	if start >= len(text) {
		return 0, &SyntaxError{len(text), "the text ends where a value is expected"}
	}
	if depth == MaxDepth && (text[start] == '[' || text[start] == '{') {
		return 0, &SyntaxError{start, fmt.Sprintf("nested deeper than %d levels", MaxDepth)}
	}
	switch text[start] {
	case '"':
		end, _, err := String(text, start)
		return end, err
	case '{':
		return members(text, start, depth+1, nil)
	case '[':
		return elements(text, start, depth+1)
	case 't':
		return literal(text, start, "true")
	case 'f':
		return literal(text, start, "false")
	case 'n':
		return literal(text, start, "null")
	default:
		return number(text, start)
	}
}

func members(text []byte, open, depth int, each func(key, value Span)) (int, error) {
	pos := SkipBlanks(text, open+1)
	if pos < len(text) && text[pos] == '}' {
		return pos + 1, nil
	}
	for {
		key := Span{Start: pos}
		var err error
		if key.End, _, err = String(text, pos); err != nil {
			return 0, err
		}
		if pos = SkipBlanks(text, key.End); pos >= len(text) || text[pos] != ':' {
			return 0, unexpected(text, pos, "expected ':'")
		}
		member := Span{Start: SkipBlanks(text, pos+1)}
		if member.End, err = value(text, member.Start, depth); err != nil {
			return 0, err
		}
		if each != nil {
			each(key, member)
		}
		pos = SkipBlanks(text, member.End)
		if pos < len(text) && text[pos] == '}' {
			return pos + 1, nil
		}
		if pos >= len(text) || text[pos] != ',' {
			return 0, unexpected(text, pos, "expected ',' or '}'")
		}
		pos = SkipBlanks(text, pos+1)
	}
}

func elements(text []byte, open, depth int) (int, error) {
	pos := SkipBlanks(text, open+1)
	if pos < len(text) && text[pos] == ']' {
		return pos + 1, nil
	}
	for {
		end, err := value(text, pos, depth)
		if err != nil {
			return 0, err
		}
		pos = SkipBlanks(text, end)
		if pos < len(text) && text[pos] == ']' {
			return pos + 1, nil
		}
		if pos >= len(text) || text[pos] != ',' {
			return 0, unexpected(text, pos, "expected ',' or ']'")
		}
		pos = SkipBlanks(text, pos+1)
	}
}

func literal(text []byte, start int, word string) (int, error) {
	end := start + len(word)
	if end > len(text) || string(text[start:end]) != word {
		return 0, unexpected(text, start, "expected a value")
	}
	return end, nil
}

// number follows RFC 8259 §6: no leading zeros, no bare point, no plus sign.
func number(text []byte, start int) (int, error) {
	pos := start
	if pos < len(text) && text[pos] == '-' {
		pos++
	}
	whole := digits(text, pos)
	if whole == pos {
		return 0, unexpected(text, pos, "expected a value")
	}
	if text[pos] == '0' && whole > pos+1 {
		return 0, unexpected(text, pos+1, "a number has a leading zero")
	}
	pos = whole
	if pos < len(text) && text[pos] == '.' {
		fraction := digits(text, pos+1)
		if fraction == pos+1 {
			return 0, unexpected(text, fraction, "expected a digit")
		}
		pos = fraction
	}
	if pos < len(text) && (text[pos] == 'e' || text[pos] == 'E') {
		pos++
		if pos < len(text) && (text[pos] == '+' || text[pos] == '-') {
			pos++
		}
		exponent := digits(text, pos)
		if exponent == pos {
			return 0, unexpected(text, pos, "expected a digit")
		}
		pos = exponent
	}
	return pos, nil
}

func digits(text []byte, pos int) int {
	for pos < len(text) && text[pos] >= '0' && text[pos] <= '9' {
		pos++
	}
	return pos
}

func escape(text []byte, pos int) (int, error) {
	if pos+1 >= len(text) {
		return 0, &SyntaxError{len(text), "a string does not end"}
	}
	switch text[pos+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return pos + 2, nil
	case 'u':
		if pos+6 > len(text) {
			return 0, &SyntaxError{len(text), "a string does not end"}
		}
		for _, digit := range text[pos+2 : pos+6] {
			if hexDigit(digit) < 0 {
				return 0, &SyntaxError{pos, "an escape \\u lacks its four hexadecimal digits"}
			}
		}
		return pos + 6, nil
	default:
		return 0, unexpected(text, pos+1, "no such escape in a string")
	}
}

func unexpected(text []byte, pos int, problem string) error {
	if pos >= len(text) {
		return &SyntaxError{len(text), problem + ", but the text ends"}
	}
	if b := text[pos]; b > ' ' && b < 0x7f {
		return &SyntaxError{pos, fmt.Sprintf("%s, found %q", problem, b)}
	}
	return &SyntaxError{pos, fmt.Sprintf("%s, found byte 0x%02x", problem, text[pos])}
}

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// nextSpecial returns the position of the next quote, backslash or control
// character, or the length of the text. It looks at eight bytes at a time: an
// image in base64 is a string of a hundred million characters.
func nextSpecial(text []byte, pos int) int {
	for pos+8 <= len(text) {
		if found := special(binary.LittleEndian.Uint64(text[pos:])); found != 0 {
			return pos + bits.TrailingZeros64(found)/8
		}
		pos += 8
	}
	for pos < len(text) && text[pos] >= ' ' && text[pos] != '"' && text[pos] != '\\' {
		pos++
	}
	return pos
}

// special marks the high bit of each byte of the word that ends a plain stretch;
// marks above the lowest one may be false.
func special(word uint64) uint64 {
	quote := word ^ ones*'"'
	backslash := word ^ ones*'\\'
	return ((word-ones*' ') & ^word | (quote-ones) & ^quote | (backslash-ones) & ^backslash) & highs
}
