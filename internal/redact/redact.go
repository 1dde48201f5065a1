// Package redact decides what a log line and a message may hold. It is the one
// place that does, and everything that goes to stderr passes it: values by the
// key they stand under, any text by the shape of what is in it (private keys,
// signer and wallet connection URIs, tokens, images), and all of it by length.
//
// It knows JSON text and the shapes of secrets. It must never know frames,
// actions or loggers, and it never fails: what it cannot read it does not show.
package redact

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
	"unsafe"
)

// Redacted stands where a secret was.
const Redacted = "[redacted]"

// MaxUnits is the length in UTF-16 units at which a string in JSON is cut, with
// its full length told behind it (spec 10 §7.2).
const MaxUnits = 1000

// JSON returns the JSON text fit for a log line: values under a secret's key are
// replaced, secrets inside any string too, long strings are cut. Text that is not
// JSON becomes a string that says so. The result is always one line of valid JSON.
func JSON(raw []byte) json.RawMessage { return AppendJSON(nil, raw, 0) }

// AppendJSON appends what JSON returns, but stops writing members and elements
// when it has written about limit bytes; what is left out is marked. It reads no
// further than it writes. A limit of 0 is none.
func AppendJSON(dst, raw []byte, limit int) []byte {
	r := redactor{text: raw, dst: dst, limit: limit, maxUnits: MaxUnits}
	return r.document()
}

// Text returns the text with every secret inside it replaced. Public keys, event
// ids and invoices stay readable.
func Text(text string) string {
	raw := unsafe.Slice(unsafe.StringData(text), len(text)) // only read
	raw = readable(raw)
	if _, found := findSecret(raw, 0); !found {
		return text
	}
	return string(appendText(nil, raw, len(raw)))
}

// Head returns the beginning of the text, limit bytes of it, fit for a log line; a
// mark tells that there was more. A text that is JSON is redacted by its keys. What
// it returns may be the text itself.
func Head(text []byte, limit int) []byte {
	shown, isJSON := (&redactor{maxUnits: MaxUnits}).inner(text)
	if !isJSON {
		shown = readable(text[:min(len(text), headWindow+lookahead)])
		if _, found := findSecret(shown, 0); found {
			shown = appendText(nil, shown, max(0, len(shown)-max(0, len(text)-headWindow)))
		}
	}
	if len(shown) <= limit {
		return shown
	}
	for limit > 0 && !utf8.RuneStart(shown[limit]) {
		limit--
	}
	return append(bytes.Clone(shown[:limit]), "…"...)
}

// headWindow is how much of a text Head looks at: an image at its beginning takes
// little room once it is redacted.
const headWindow = 4096

// Error returns the error's text with every secret inside it replaced, and "" for
// nil.
func Error(err error) string {
	if err == nil {
		return ""
	}
	return Text(err.Error())
}

// appendText appends text[:cut] with secrets replaced. What stands behind cut only
// helps to recognise a secret that begins before it.
func appendText(dst, text []byte, cut int) []byte {
	pos := 0
	for pos < cut {
		secret, found := findSecret(text, pos)
		if !found || secret.start >= cut {
			return append(dst, text[pos:cut]...)
		}
		dst = append(dst, text[pos:secret.start]...)
		dst = append(dst, secret.replacement...)
		pos = secret.end
	}
	return dst
}
