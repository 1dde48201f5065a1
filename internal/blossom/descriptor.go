package blossom

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"math"
	"mime"
	"net/url"
	"strconv"
	"strings"
	"unicode"
)

// Descriptor is a server's answer to an upload (BUD-02), with what it left out
// filled from the blob.
type Descriptor struct {
	// URL is where the blob can be fetched, as the server gave it.
	URL string
	// SHA256 is the server's hash of the blob, 64 lowercase hex digits.
	SHA256 string
	// Size is in bytes.
	Size int64
	// Type is the media type, or "" if neither the server nor the caller knows it.
	Type string
	// ServerURL is the server that took the blob, without query and fragment.
	ServerURL string

	answer map[string]json.RawMessage
}

// MarshalJSON returns every key of the server's answer with url, sha256, size and
// type in the form above, and serverUrl (spec 20 §11.2). An unknown type is null.
func (d Descriptor) MarshalJSON() ([]byte, error) {
	merged := make(map[string]any, len(d.answer)+5)
	for key, value := range d.answer {
		merged[key] = value
	}
	merged["url"], merged["sha256"], merged["size"], merged["serverUrl"] = d.URL, d.SHA256, d.Size, d.ServerURL
	merged["type"] = nil
	if d.Type != "" {
		merged["type"] = d.Type
	}
	return json.Marshal(merged)
}

var (
	errNoObject  = errors.New("the answer is no JSON object")
	errNoURL     = errors.New("the answer names no HTTP or HTTPS url")
	errOtherBlob = errors.New("the answer has the sha256 of another file than the one that was sent")
)

const (
	// maxURLBytes bounds a URL that goes into events and results.
	maxURLBytes = 2 << 10
	// maxTypeBytes bounds a media type (RFC 6838 §4.2: 127 for each part).
	maxTypeBytes = 255
)

// parseDescriptor reads an answer: url is required, everything else may be missing
// or unusable.
//
// An answer to a signed upload that has another sha256 than the blob is refused. What is
// signed allows the upload of this file only, and servers must not change it (BUD-02);
// one that did would have its other file, or its mistake, published as the account's
// image. Unsigned uploads claim nothing, and take what the server says (spec 20 §11.2).
func parseDescriptor(answer []byte, blob Blob, signed bool) (Descriptor, error) {
	var object map[string]json.RawMessage
	if json.Unmarshal(answer, &object) != nil || object == nil {
		return Descriptor{}, errNoObject
	}
	descriptor := Descriptor{
		URL:    text(object["url"]),
		SHA256: strings.ToLower(text(object["sha256"])),
		Size:   size(object["size"]),
		Type:   text(object["type"]),
		answer: object,
	}
	if !isPublishable(descriptor.URL) {
		return Descriptor{}, errNoURL
	}
	if raw, err := hex.DecodeString(descriptor.SHA256); err != nil || len(raw) != 32 {
		descriptor.SHA256 = blob.hash
	}
	if signed && descriptor.SHA256 != blob.hash {
		return Descriptor{}, errOtherBlob
	}
	if descriptor.Size <= 0 {
		descriptor.Size = int64(len(blob.bytes))
	}
	if !isMediaType(descriptor.Type) {
		descriptor.Type = blob.mime
	}
	return descriptor, nil
}

// isPublishable tells whether a text is a web address on one line and of a length that
// events can hold.
func isPublishable(text string) bool {
	if len(text) > maxURLBytes || strings.ContainsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }) {
		return false
	}
	parsed, err := url.Parse(text)
	return err == nil && isHTTP(parsed)
}

func isMediaType(text string) bool {
	_, _, err := mime.ParseMediaType(text)
	return err == nil && len(text) <= maxTypeBytes && strings.Contains(text, "/") &&
		!strings.ContainsFunc(text, unicode.IsControl)
}

// text returns a JSON string without white space around it, or "".
func text(raw json.RawMessage) string {
	var value string
	if json.Unmarshal(raw, &value) != nil {
		return ""
	}
	return strings.TrimSpace(value)
}

// size returns a whole number given as a JSON number or in a string, or 0.
func size(raw json.RawMessage) int64 {
	digits := text(raw)
	if digits == "" {
		digits = string(bytes.TrimSpace(raw))
	}
	if whole, err := strconv.ParseInt(digits, 10, 64); err == nil {
		return whole
	}
	// Some servers write 1e6 or 5.0.
	number, err := strconv.ParseFloat(digits, 64)
	if err != nil || number != math.Trunc(number) || math.Abs(number) > 1<<53 {
		return 0
	}
	return int64(number)
}
