// Package mediatype tells from a file's bytes what media type it has (spec 40 §9.2).
//
// It must never guess: what it does not recognise has no type.
package mediatype

import (
	"bytes"
	"slices"
)

// Sniff returns the media type that the content shows, or "" if it shows none: an
// unknown type must never pass for an image. SVG is text and not recognised here;
// see IsSVG.
func Sniff(content []byte) string {
	for _, known := range signatures {
		if bytes.HasPrefix(content, known.prefix) {
			return known.mime
		}
	}
	if len(content) >= 12 && bytes.HasPrefix(content, []byte("RIFF")) && string(content[8:12]) == "WEBP" {
		return "image/webp"
	}
	return sniffBrand(content)
}

// signatures are how files of a type begin.
var signatures = []struct {
	prefix []byte
	mime   string
}{
	{[]byte("\x89PNG\r\n\x1a\n"), "image/png"},
	{[]byte("\xff\xd8"), "image/jpeg"},
	{[]byte("GIF87a"), "image/gif"},
	{[]byte("GIF89a"), "image/gif"},
	{[]byte("II*\x00"), "image/tiff"},
	{[]byte("MM\x00*"), "image/tiff"},
	{[]byte("%PDF-"), "application/pdf"},
}

// brands are those of the image files in ISO base media format. The order counts:
// files of both kinds may name the general brands mif1 and msf1 first.
var brands = []struct {
	mime  string
	names []string
}{
	{"image/avif", []string{"avif", "avis"}},
	{"image/heic", []string{"heic", "heix", "heim", "heis", "hevc", "hevx", "hevm", "hevs"}},
	{"image/heif", []string{"mif1", "msf1"}},
}

// sniffBrand reads the ftyp box: its length, "ftyp", the major brand, a version,
// then the compatible brands.
func sniffBrand(content []byte) string {
	if len(content) < 12 || string(content[4:8]) != "ftyp" {
		return ""
	}
	const maxBox = 256
	length := int(content[2])<<8 | int(content[3])
	if content[0] != 0 || content[1] != 0 || length < 12 {
		return ""
	}
	box := content[8:min(length, len(content), maxBox)]
	var named []string
	for at := 0; at+4 <= len(box); at += 4 {
		if at != 4 { // the version
			named = append(named, string(box[at:at+4]))
		}
	}
	for _, brand := range brands {
		if slices.ContainsFunc(brand.names, func(name string) bool { return slices.Contains(named, name) }) {
			return brand.mime
		}
	}
	return ""
}
