package mediatype

import (
	"mime"
	"strings"
)

// Image returns the media type without its parameters, in lower case, if it is one of
// an image; else "".
func Image(declared string) string {
	bare, _, err := mime.ParseMediaType(declared)
	if subtype, found := strings.CutPrefix(bare, "image/"); err != nil || !found || subtype == "*" {
		return ""
	}
	return bare
}
