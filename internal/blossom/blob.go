package blossom

import (
	"crypto/sha256"
	"encoding/hex"
	"mime"
	"strings"
)

// Blob is a file to upload. It shares the bytes it was made of, so that a large
// file is in memory once; they must not change.
type Blob struct {
	bytes    []byte
	hash     string
	mime     string
	filename string
}

// NewBlob returns the blob of bytes and computes its hash. mime is its media type
// and filename its name; both may be empty. A media type that is none is dropped.
func NewBlob(bytes []byte, mimeType, filename string) Blob {
	sum := sha256.Sum256(bytes)
	blob := Blob{bytes: bytes, hash: hex.EncodeToString(sum[:]), filename: strings.TrimSpace(filename)}
	mimeType = strings.TrimSpace(mimeType)
	if _, _, err := mime.ParseMediaType(mimeType); err == nil {
		blob.mime = mimeType
	}
	return blob
}

// SHA256 is the hash of the bytes, 64 lowercase hex digits.
func (b Blob) SHA256() string { return b.hash }

// Size is the number of bytes.
func (b Blob) Size() int { return len(b.bytes) }

// MIME is the media type, or "".
func (b Blob) MIME() string { return b.mime }

// Filename is the name, or "".
func (b Blob) Filename() string { return b.filename }
