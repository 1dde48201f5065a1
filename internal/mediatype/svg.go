package mediatype

import "bytes"

// SVG is the media type of SVG images.
const SVG = "image/svg+xml"

// IsSVG tells whether the text begins as an SVG image does: with <svg after
// byte-order mark, XML declaration, comments and white space (spec 40 §9.1). Nothing
// else may stand in front, no document type either: that could declare entities.
func IsSVG(content []byte) bool {
	rest := bytes.TrimPrefix(content, []byte("\xef\xbb\xbf"))
	declaration := []byte("<?xml")
	if begins(rest, declaration) {
		rest = behind(rest[len(declaration):], "?>")
	}
	rest = bytes.TrimLeft(rest, xmlSpace)
	for bytes.HasPrefix(rest, []byte("<!--")) {
		rest = bytes.TrimLeft(behind(rest[len("<!--"):], "-->"), xmlSpace)
	}
	return begins(rest, []byte("<svg"))
}

const xmlSpace = " \t\r\n"

// begins tells whether the text begins with the tag, and the tag's name ends there.
func begins(text, tag []byte) bool {
	return len(text) > len(tag) && bytes.HasPrefix(text, tag) && bytes.IndexByte([]byte(xmlSpace+">/"), text[len(tag)]) >= 0
}

// behind returns what stands behind the mark, or nothing.
func behind(text []byte, mark string) []byte {
	_, after, _ := bytes.Cut(text, []byte(mark))
	return after
}
