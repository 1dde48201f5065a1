package input

import (
	"github.com/tidwall/gjson"

	"hostr-daemon/internal/fault"
)

// Image is one image of a listing as named by the caller (spec 30 §9.1). At least
// one of the four sources is set; which counts is a matter of spec 40 §9.1.
type Image struct {
	// URL is an http(s) or data: URL, or whatever text stood there.
	URL string
	// Path names a file on the daemon's machine.
	Path string
	// DataURL is data:<mime>;base64,<bytes>; Base64 the bytes alone.
	DataURL string
	Base64  string

	Filename string
	Alt      string
	// MIME is the media type as the caller states it.
	MIME string
}

// mostImages bounds the images of one listing, each of which is fetched: a listing with
// more would be larger than relays take.
const mostImages = 300

// Images reads a list of images, or one of them. An item that is no object is a
// URL. Null items are dropped; none left is images_required, more than 300 are
// invalid_input.
func (p Property) Images() []Image {
	var images []Image
	any := false
	for _, candidate := range p.candidates {
		for index, value := range elements(candidate) {
			if value.Type == gjson.Null {
				continue
			}
			any = true
			if len(images) == mostImages {
				p.fail(ReasonRange, "the best pictures only", "must not hold more than %d images", mostImages)
				return nil
			}
			if image, ok := p.item(index, value).image(); ok {
				images = append(images, image)
			}
		}
		if any {
			return images
		}
	}
	p.as(fault.ImagesRequired).fail(ReasonMissing, `[{"url":"https://images.example/front.jpg"}]`, "is required: at least one image")
	return nil
}

func (p Property) image() (Image, bool) {
	value := p.candidates[0]
	var image Image
	if value.IsObject() {
		image = readImage(p.reader.nested(value, p.path))
	} else {
		url, ok := textOf(value)
		if !ok {
			p.as(fault.InvalidImage).wrongType("an image object or a URL", "")
			return Image{}, false
		}
		image.URL = url
	}
	if image.URL == "" && image.Path == "" && image.DataURL == "" && image.Base64 == "" {
		p.as(fault.InvalidImage).fail(ReasonMissing, `{"url":"https://images.example/front.jpg"}`, "names no image: give a url")
		return Image{}, false
	}
	return image, true
}

func readImage(r *Reader) Image {
	return Image{
		URL:      r.Property("url").Text(),
		Path:     r.Property("path").Text(),
		DataURL:  r.Property("dataUrl", "dataUri").Text(),
		Base64:   r.Property("base64", "data").Text(),
		Filename: r.Property("filename", "name").Text(),
		Alt:      r.Property("alt").Text(),
		MIME:     r.Property("mime").Text(),
	}
}
