package redact

import (
	"bytes"
	"strconv"
)

// readable returns the text, or, where JSON's escapes hide a secret in it, the text
// without them. A text that was quoted twice still has them when it is decoded once.
func readable(text []byte) []byte {
	plain, changed := withoutEscapes(text)
	if !changed {
		return text
	}
	if _, found := findSecret(plain, 0); !found {
		return text
	}
	return plain
}

// withoutEscapes replaces the \u escapes of printable ASCII, however often their
// backslashes are escaped themselves, and slashes that are escaped more than once, and
// reports whether there was one. The shapes know the other escapes.
func withoutEscapes(text []byte) ([]byte, bool) {
	if bytes.IndexByte(text, '\\') < 0 {
		return text, false
	}
	plain := make([]byte, 0, len(text))
	changed := false
	for _, b := range text {
		plain = append(plain, b)
		for { // what was decoded may be the end of another escape
			shorter, ok := decodeTail(plain)
			if !ok {
				break
			}
			plain, changed = shorter, true
		}
	}
	return plain, changed
}

// decodeTail decodes the escape that the text ends with.
func decodeTail(text []byte) ([]byte, bool) {
	const escape = len("u0000")
	start, decoded := len(text)-1, byte('/')
	if text[start] != '/' {
		start = len(text) - escape
		if start < 1 || text[start] != 'u' {
			return text, false
		}
		value, err := strconv.ParseUint(string(text[start+1:]), 16, 16)
		if err != nil || value < ' ' || value > '~' {
			return text, false
		}
		decoded = byte(value)
	}
	slashes := start
	for slashes > 0 && text[slashes-1] == '\\' {
		slashes--
	}
	if slashes == start || text[start] == '/' && start-slashes == 1 {
		return text, false
	}
	return append(text[:slashes], decoded), true
}
