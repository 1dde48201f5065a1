package market

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/nbd-wtf/go-nostr"
)

// ImageMetadata describes one image of an event, an imeta tag (NIP-92). Empty
// fields are not written.
type ImageMetadata struct {
	URL string
	// MIME is the media type, such as image/png.
	MIME string
	// SHA256 is the hash of the bytes at the URL, OriginalSHA256 that of the file
	// before a server transformed it; both in hex.
	SHA256         string
	OriginalSHA256 string
	// Size is in bytes; nil when unknown.
	Size *int64
	// Dimensions is <width>x<height> in pixels.
	Dimensions string
	Blurhash   string
	// Thumb and Image are URLs of smaller versions.
	Thumb string
	Image string
	Alt   string
	// Fallbacks are further URLs of the same image.
	Fallbacks []string
}

// imetaFields are the single keys in the order they are written.
var imetaFields = []struct {
	key   string
	field func(*ImageMetadata) *string
}{
	{"url", func(m *ImageMetadata) *string { return &m.URL }},
	{"m", func(m *ImageMetadata) *string { return &m.MIME }},
	{"x", func(m *ImageMetadata) *string { return &m.SHA256 }},
	{"ox", func(m *ImageMetadata) *string { return &m.OriginalSHA256 }},
	{"size", nil},
	{"dim", func(m *ImageMetadata) *string { return &m.Dimensions }},
	{"blurhash", func(m *ImageMetadata) *string { return &m.Blurhash }},
	{"thumb", func(m *ImageMetadata) *string { return &m.Thumb }},
	{"image", func(m *ImageMetadata) *string { return &m.Image }},
	{"alt", func(m *ImageMetadata) *string { return &m.Alt }},
}

// Tag returns the imeta tag.
func (m ImageMetadata) Tag() nostr.Tag {
	tag := nostr.Tag{"imeta"}
	for _, entry := range imetaFields {
		value := ""
		if entry.field != nil {
			value = *entry.field(&m)
		} else if m.Size != nil {
			value = strconv.FormatInt(*m.Size, 10)
		}
		if value != "" {
			tag = append(tag, entry.key+" "+value)
		}
	}
	for _, fallback := range m.Fallbacks {
		tag = append(tag, "fallback "+fallback)
	}
	return tag
}

// readImageMetadata reads an imeta tag; it reports false for one without a URL.
// Of a repeated key the first counts; elements without a space are ignored.
func readImageMetadata(tag nostr.Tag) (ImageMetadata, bool) {
	var metadata ImageMetadata
	var seen uint32
	for _, element := range tag[1:] {
		key, value, _ := strings.Cut(element, " ")
		if key == "fallback" && value != "" {
			metadata.Fallbacks = append(metadata.Fallbacks, value)
		}
		for i, entry := range imetaFields {
			if entry.key != key || len(element) == len(key) || seen&(1<<i) != 0 {
				continue
			}
			seen |= 1 << i
			if entry.field != nil {
				*entry.field(&metadata) = value
			} else if size, ok := parseInteger(value); ok {
				metadata.Size = &size
			}
		}
	}
	return metadata, metadata.URL != ""
}

var dimensionsForm = regexp.MustCompile(`^\d+x\d+$`)

// imageTag returns the image tag of a URL, with the dimensions its metadata
// gives, if any.
func imageTag(url string, metadata []ImageMetadata) nostr.Tag {
	for _, m := range metadata {
		if m.URL == url && dimensionsForm.MatchString(m.Dimensions) {
			return nostr.Tag{"image", url, m.Dimensions}
		}
	}
	return nostr.Tag{"image", url}
}
