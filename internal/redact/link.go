package redact

import "bytes"

// queryOf returns where the query of a text begins that as a whole is an http or https
// URL, behind its question mark, and 0 for any other text.
//
// What such a link carries there is often its password, under a name of each service's
// own: the image of a listing may lie in a private store. A log does not need it.
func queryOf(text []byte) int {
	start := 0
	for start < len(text) && text[start] <= ' ' {
		start++
	}
	if start == len(text) || text[start]|0x20 != 'h' || !hasPrefixFold(text[start:], "http://") && !hasPrefixFold(text[start:], "https://") {
		return 0
	}
	return bytes.IndexByte(text, '?') + 1
}

// withoutQuery returns the URL with a mark in place of its query.
func withoutQuery(url []byte, query int) []byte {
	shown := appendText(nil, url[:query], query)
	if query < len(url) {
		shown = append(shown, Redacted...)
	}
	return shown
}
