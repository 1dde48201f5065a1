// Package imagesource reads images from where callers say they are: an HTTP or HTTPS
// URL, a data URL, base64 text and, where the operator allows it, a file (spec 40
// §9.1 and §9.2).
//
// It keeps callers from reading with the daemon's eyes what they cannot read
// themselves: no file unless allowed, no address inside a private network, nothing
// that is no image. It must never know what the images are for.
//
// Failures are *fault.Error whose path is relative to the image: url, path, dataUrl or
// empty. Messages name the host of a URL and nothing else of it, and no address it
// resolves to.
package imagesource

import (
	"net/netip"
	"net/url"
	"strings"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/mediatype"
)

// Kind tells where an image comes from.
type Kind string

// The kinds, in the order in which they are preferred.
const (
	KindURL     Kind = "url"
	KindDataURL Kind = "dataUrl"
	KindBase64  Kind = "base64"
	KindPath    Kind = "path"
)

// Reference is an image as a caller names it. Of several sources the first of URL (if
// it is an HTTP or HTTPS one), DataURL, Base64 and Path counts.
type Reference struct {
	// URL may hold a data URL or a path as well.
	URL     string
	Path    string
	DataURL string
	Base64  string
	// Filename and MIME, the media type, describe the image; both may be empty.
	Filename string
	MIME     string
}

// Source is where one image is to be read from, checked as far as that goes without
// reading. Resolve makes it.
type Source struct {
	Kind Kind
	// Location is the URL or path as given, for those two kinds.
	Location string

	target   *url.URL // of KindURL
	file     string   // of KindPath
	property string   // where Location stood
	encoded  string   // base64 text
	declared string   // media type of an image, or ""
	filename string   // may tell the type
}

// Resolve chooses the source of an image and refuses those that are malformed or not
// allowed. It touches neither network nor file system.
//
// Errors are invalid_image_url (path url or path), invalid_image_data_url (path
// dataUrl) and invalid_image for an image without a source.
func (r *Reader) Resolve(image Reference) (Source, error) {
	declared := mediatype.Image(image.MIME)
	switch {
	case hasScheme(image.URL, "http://"), hasScheme(image.URL, "https://"):
		return r.resolveURL(image.URL, declared)
	case image.DataURL != "":
		return resolveDataURL(image.DataURL, declared)
	case hasScheme(image.URL, "data:"):
		return resolveDataURL(image.URL, declared)
	case image.Base64 != "":
		return Source{Kind: KindBase64, encoded: image.Base64, declared: declared, filename: image.Filename}, nil
	case image.Path != "":
		return r.resolveFile(image.Path, "path", declared)
	case image.URL != "":
		return r.resolveFile(image.URL, "url", declared)
	default:
		return Source{}, fault.New(fault.InvalidImage, "The image has no source.").WithHint(waysThatWork)
	}
}

const waysThatWork = "Name the image by an http:// or https:// URL or a data URL, send it as base64, or upload it with hostr_images_upload and use the URL that returns."

// hasScheme tells whether the text begins with a scheme, in any case.
func hasScheme(text, scheme string) bool {
	return len(text) >= len(scheme) && strings.EqualFold(text[:len(scheme)], scheme)
}

func (r *Reader) resolveURL(text, declared string) (Source, error) {
	target, err := url.Parse(text)
	if err != nil || target.Hostname() == "" {
		return Source{}, fault.New(fault.InvalidImageURL, "The URL of the image is malformed.").At("url").
			WithHint("Write it as https://images.example/front.jpg.")
	}
	if address, err := netip.ParseAddr(target.Hostname()); err == nil && !r.trusts(dialAddress(target)) && r.refuses(address) {
		return Source{}, privateTarget(target)
	}
	return Source{Kind: KindURL, Location: text, target: target, property: "url", declared: declared, filename: target.Path}, nil
}

// privateTarget refuses a URL that leads into a private network. It does not tell
// which address: that would make the daemon a map of the network.
func privateTarget(target *url.URL) *fault.Error {
	return fault.New(fault.InvalidImageURL, "The URL of the image, on %s, leads to an address in a private or reserved network.", target.Hostname()).
		At("url").WithHint(waysThatWork)
}

// resolveDataURL reads data:<mime>[;…];base64,<payload>. Nothing is percent-decoded.
func resolveDataURL(text, declared string) (Source, error) {
	header, payload, found := strings.Cut(text, ",")
	if !found || !hasScheme(header, "data:") {
		return Source{}, invalidDataURL()
	}
	parts := strings.Split(header[len("data:"):], ";")
	isBase64 := false
	for _, part := range parts {
		isBase64 = isBase64 || strings.EqualFold(strings.TrimSpace(part), "base64")
	}
	if !isBase64 {
		return Source{}, invalidDataURL()
	}
	if declared == "" {
		declared = mediatype.Image(parts[0])
	}
	return Source{Kind: KindDataURL, encoded: payload, declared: declared}, nil
}

func invalidDataURL() *fault.Error {
	return fault.New(fault.InvalidImageDataURL, "The data URL of the image does not have the form data:<mime>;base64,<bytes>.").
		At("dataUrl").WithHint("Write it as data:image/png;base64,iVBORw0KGgo….")
}
