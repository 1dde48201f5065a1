package market

// PlannedUpload is one image as previews list it (spec 40 §9.3), in the order of its
// keys.
type PlannedUpload struct {
	// Source is url, dataUrl, base64 or path.
	Source string `json:"source"`
	// SHA256 and Size, in bytes, are those of the bytes that were read.
	SHA256 string `json:"sha256"`
	Size   int64  `json:"size"`
	// MIME is the media type; what has none is no image and never listed.
	MIME string `json:"mime"`
	// DryRunOnly is always false: previews upload for real.
	DryRunOnly bool `json:"dryRunOnly"`
	// Path and URL name the source where it has one, Filename the file if the caller
	// did.
	Path     string `json:"path,omitempty"`
	URL      string `json:"url,omitempty"`
	Filename string `json:"filename,omitempty"`
}
