package mediatype_test

import (
	"bytes"
	"strings"
	"testing"

	"hostr-daemon/internal/mediatype"
)

func TestIsSVG(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"<svg>": true, "<svg/>": true, "<svg xmlns='http://www.w3.org/2000/svg'>": true, "<svg\n>": true,
		"\ufeff<svg>":                true,
		" \r\n\t<svg>":               true,
		"<?xml version='1.0'?><svg>": true,
		"\ufeff<?xml version='1.0'?>\n\n<!-- a --><!-- <html> -->\n<svg>": true,
		"<!----><svg>":         true,
		"<!-- a -- b --><svg>": true,

		"": false, "<svg": false, "svg>": false, "<svgs>": false, "<SVG>": false, "<svg:svg>": false, "< svg>": false,
		"<html><svg>":               false,
		"root:x:0:0:<svg>":          false,
		"<!-- <svg>":                false,
		"<?xml version='1.0'<svg>":  false,
		"<?xml version='1.0'?>":     false,
		"<?xmlish ?><svg>":          false,
		"<?php ?><svg>":             false,
		"<!DOCTYPE svg><svg>":       false,
		"<?xml ?><?xml ?><svg>":     false,
		"\ufeff\ufeff<svg>":         false,
		"\u00a0<svg>":               false,
		"<\x00s\x00v\x00g\x00>\x00": false, // UTF-16
		"\x1f\x8b\x08<svg>":         false, // SVGZ
	} {
		if got := mediatype.IsSVG([]byte(text)); got != want {
			t.Errorf("%q: %t, want %t", text, got, want)
		}
	}
}

func TestImage(t *testing.T) {
	t.Parallel()
	for declared, want := range map[string]string{
		"image/png": "image/png", " IMAGE/PNG ; charset=x": "image/png", "image/svg+xml; charset=utf-8": "image/svg+xml",
		"": "", "image": "", "image/": "", "image/*": "", "text/html": "", "png": "", "image/png\r\nX: y": "", "application/octet-stream": "",
	} {
		if got := mediatype.Image(declared); got != want {
			t.Errorf("%q is %q, want %q", declared, got, want)
		}
	}
}

// A text that is taken for SVG has the tag in it, and markup in front of a plain text
// does not make it one.
func FuzzIsSVG(f *testing.F) {
	for _, seed := range []string{"<svg>", "\ufeff<?xml version='1.0'?><!-- a --> <svg/>", "<!--", "<?xml ?>", "<!DOCTYPE svg><svg>"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		got := mediatype.IsSVG(content)
		if got && !bytes.Contains(content, []byte("<svg")) {
			t.Fatalf("%q is no SVG", content)
		}
		if got && mediatype.Sniff(content) != "" {
			t.Fatalf("%q is two things at once", content)
		}
		if text := strings.TrimLeft(string(content), " \t\r\n\ufeff"); got && text[0] != '<' {
			t.Fatalf("%q begins with a text", content)
		}
		if inComment := append([]byte("<!-- x -->"), content...); got && bytes.HasPrefix(content, []byte("<svg")) && !mediatype.IsSVG(inComment) {
			t.Fatalf("%q behind a comment is no SVG", content)
		}
	})
}
