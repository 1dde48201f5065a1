// Package qr draws QR codes: the PNG the bridge shows and the text a terminal
// shows (spec 20 §14). Both hold exactly the text given, at error correction L and
// in the smallest version it fits in.
//
// It knows pixels and blocks. It must never know what the text means, and never
// repeats it in an error: it is the secret of a sign-in or a live invoice.
package qr

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/color"
	"image/png"
	"strings"

	goqr "github.com/piglig/go-qr"

	"hostr-daemon/internal/fault"
)

// QuietZone is the width of the light border, in modules.
const QuietZone = 2

// MaxBytes is how much text the largest code holds, in bytes of UTF-8; text of
// digits or capitals only may be longer.
const MaxBytes = 2953

const dataURIPrefix = "data:image/png;base64,"

// PNGDataURI returns the code of text as a data URI of a PNG: 8-bit grayscale, one
// pixel per module, with the quiet zone around it. The error is a *fault.Error:
// the text is empty or does not fit.
func PNGDataURI(text string) (string, error) {
	code, err := encode(text)
	if err != nil {
		return "", err
	}
	picture := image.NewGray(image.Rect(0, 0, code.side(), code.side()))
	for y := range code.side() {
		for x := range code.side() {
			if !code.dark(x, y) {
				picture.SetGray(x, y, color.Gray{Y: 0xff})
			}
		}
	}
	var file bytes.Buffer
	if err := png.Encode(&file, picture); err != nil {
		return "", err
	}
	return dataURIPrefix + base64.StdEncoding.EncodeToString(file.Bytes()), nil
}

// Terminal returns the code of text as lines of block characters, two rows of
// modules a line, with the quiet zone around it; every line ends in "\n". Blocks
// are the dark modules, so the terminal's letters must be darker than its ground,
// or the scanner must read inverted codes. Errors are those of PNGDataURI.
func Terminal(text string) (string, error) {
	code, err := encode(text)
	if err != nil {
		return "", err
	}
	var lines strings.Builder
	for y := 0; y < code.side(); y += 2 {
		for x := range code.side() {
			lines.WriteString(block(code.dark(x, y), code.dark(x, y+1)))
		}
		lines.WriteByte('\n')
	}
	return lines.String(), nil
}

func block(upper, lower bool) string {
	switch {
	case upper && lower:
		return "█"
	case upper:
		return "▀"
	case lower:
		return "▄"
	default:
		return " "
	}
}

// bordered is a code with its quiet zone; the corner of the zone is 0, 0.
type bordered struct{ code *goqr.QrCode }

func encode(text string) (bordered, error) {
	if text == "" {
		return bordered{}, fault.New(fault.UnexpectedError, "There is no text to draw a QR code of.")
	}
	segments, err := goqr.MakeSegments(text)
	if err != nil {
		return bordered{}, fault.New(fault.UnexpectedError, "The text for the QR code cannot be encoded.")
	}
	const anyMask, keepLevel = -1, false
	code, err := goqr.EncodeSegments(segments, goqr.Low, goqr.MinVersion, goqr.MaxVersion, anyMask, keepLevel)
	if err != nil {
		return bordered{}, fault.New(fault.UnexpectedError,
			"The text for the QR code has %d bytes; a code holds at most %d.", len(text), MaxBytes)
	}
	return bordered{code}, nil
}

func (b bordered) side() int { return b.code.Size() + 2*QuietZone }

// dark is false outside the code, so callers may ask beyond its edges.
func (b bordered) dark(x, y int) bool {
	x, y = x-QuietZone, y-QuietZone
	size := b.code.Size()
	return x >= 0 && y >= 0 && x < size && y < size && b.code.Module(x, y)
}
