package qr_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"image"
	"image/color"
	"image/png"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/makiuchi-d/gozxing"
	"github.com/makiuchi-d/gozxing/qrcode"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/qr"
)

// nostrConnect is the sign-in URI of spec 20 §4.1.
const nostrConnect = "nostrconnect://6d6caac248af96f6afa7f904f550253a0f3ef3f5aa2fe6838a95b216691468e2?relay=wss%3A%2F%2Frelay.staging.hostr.network&secret=8PHy8_T19vf4-fr7_P3-_w==&perms=sign_event,nip44_encrypt,nip44_decrypt,nip04_encrypt,nip04_decrypt&name=Hostr%20(Staging)&url=https%3A%2F%2Fai.staging.hostr.network&image=https%3A%2F%2Fhostr.network%2Fassets%2Fassets%2Fimages%2Flogo%2Fgenerated%2Flogo_base_1024.png"

func TestBothFormsDecodeToTheText(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		text    string
		modules int // smallest version of level L that holds it: 17 + 4 × version
	}{
		"sign-in URI":    {nostrConnect, 69},
		"invoice":        {"lnbc2500u1pvjluezpp5" + strings.Repeat("qy352z8jw0d3n7k6", 20), 65},
		"one byte":       {"a", 21},
		"version 1 full": {strings.Repeat("x", 17), 21},
		"version 2":      {strings.Repeat("x", 18), 25},
		"digits":         {"0123456789", 21},
		"capitals":       {"LNBC1 CAPITALS $%*+-./:", 21},
		"umlauts":        {"grüße an 東京 😀", 25},
		"largest":        {strings.Repeat("y", qr.MaxBytes), 177},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for form, picture := range map[string]*image.Gray{"PNG": drawPNG(t, test.text), "terminal": drawTerminal(t, test.text)} {
				checkGeometry(t, form, picture, test.modules)
				if got := decode(t, picture); got != test.text {
					t.Errorf("%s decodes to %q", form, got)
				}
			}
		})
	}
}

func TestPNGIsGrayscaleOfEightBits(t *testing.T) {
	t.Parallel()
	file := pngFile(t, "lnbc1")
	if !bytes.HasPrefix(file, []byte("\x89PNG\r\n\x1a\n")) {
		t.Errorf("the file begins with % x", file[:8])
	}
	// IHDR: width and height of four bytes each, then bit depth and colour type.
	if depth, colour := file[24], file[25]; depth != 8 || colour != 0 {
		t.Errorf("bit depth %d, colour type %d, want 8 and 0", depth, colour)
	}
	for _, pixel := range drawPNG(t, "lnbc1").Pix {
		if pixel != 0 && pixel != 255 {
			t.Fatalf("a pixel has the value %d", pixel)
		}
	}
}

func TestTerminalLinesAreWhole(t *testing.T) {
	t.Parallel()
	text, err := qr.Terminal("lnbc1")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(text, "\n")
	if last := lines[len(lines)-1]; last != "" {
		t.Errorf("the last line does not end: %q", last)
	}
	lines = lines[:len(lines)-1]
	if len(lines) != 13 { // 21 modules and two borders of 2, two rows a line
		t.Errorf("%d lines, want 13", len(lines))
	}
	for _, line := range lines {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n != 25 {
			t.Errorf("a line has %d characters, want 25", n)
		}
	}
}

func TestTextThatCannotBeDrawn(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ text, message string }{
		"empty":    {"", "no text"},
		"too long": {strings.Repeat("canary", 500), "3000 bytes"},
	} {
		for form, draw := range map[string]func(string) (string, error){"PNG": qr.PNGDataURI, "terminal": qr.Terminal} {
			_, err := draw(test.text)
			var coded *fault.Error
			if !errors.As(err, &coded) || !strings.Contains(coded.Message, test.message) {
				t.Errorf("%s, %s: %v", name, form, err)
			}
			if err != nil && strings.Contains(err.Error(), "canary") {
				t.Errorf("%s, %s: the error repeats the text", name, form)
			}
		}
	}
}

func FuzzDecodesToTheText(f *testing.F) {
	for _, seed := range []string{"a", "0", "12AB", nostrConnect, "é", "\x00", "\n", strings.Repeat("7", 100)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		uri, err := qr.PNGDataURI(text)
		if err != nil {
			if len(text) > 0 && len(text) <= qr.MaxBytes {
				t.Fatalf("%d bytes were refused: %v", len(text), err)
			}
			return
		}
		if !strings.HasPrefix(uri, "data:image/png;base64,") {
			t.Fatalf("no PNG data URI: %.40q", uri)
		}
		// What is not UTF-8 has no one reading; everything the daemon draws is ASCII.
		if strings.IndexFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) >= 0 {
			return
		}
		if got := decode(t, drawPNG(t, text)); got != text {
			t.Fatalf("%q decodes to %q", text, got)
		}
	})
}

func pngFile(t *testing.T, text string) []byte {
	t.Helper()
	uri, err := qr.PNGDataURI(text)
	if err != nil {
		t.Fatal(err)
	}
	encoded, ok := strings.CutPrefix(uri, "data:image/png;base64,")
	if !ok {
		t.Fatalf("the URI begins with %.30q", uri)
	}
	file, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func drawPNG(t *testing.T, text string) *image.Gray {
	t.Helper()
	picture, err := png.Decode(bytes.NewReader(pngFile(t, text)))
	if err != nil {
		t.Fatal(err)
	}
	gray, ok := picture.(*image.Gray)
	if !ok {
		t.Fatalf("the PNG holds %T", picture)
	}
	return gray
}

// drawTerminal turns block characters back into pixels, one per module.
func drawTerminal(t *testing.T, text string) *image.Gray {
	t.Helper()
	drawn, err := qr.Terminal(text)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(drawn, "\n"), "\n")
	side := utf8.RuneCountInString(lines[0])
	picture := image.NewGray(image.Rect(0, 0, side, side))
	for row, line := range lines {
		for x, character := range []rune(line) {
			upper, lower := strings.ContainsRune("█▀", character), strings.ContainsRune("█▄", character)
			if !upper {
				picture.SetGray(x, 2*row, color.Gray{Y: 255})
			}
			if !lower {
				picture.SetGray(x, 2*row+1, color.Gray{Y: 255})
			}
			if !upper && !lower && character != ' ' {
				t.Fatalf("a line holds %q", character)
			}
		}
	}
	return picture
}

// checkGeometry checks the size, the light border and the three finder patterns.
func checkGeometry(t *testing.T, form string, picture *image.Gray, modules int) {
	t.Helper()
	side := picture.Bounds().Dx()
	if side != modules+2*qr.QuietZone || picture.Bounds().Dy() != side {
		t.Fatalf("%s: %v, want %d modules and the quiet zone", form, picture.Bounds(), modules)
	}
	for i := range side {
		for border := range qr.QuietZone {
			for _, pixel := range []color.Gray{
				picture.GrayAt(i, border), picture.GrayAt(border, i),
				picture.GrayAt(i, side-1-border), picture.GrayAt(side-1-border, i),
			} {
				if pixel.Y != 255 {
					t.Fatalf("%s: the quiet zone has a dark module", form)
				}
			}
		}
	}
	low, high := qr.QuietZone, side-qr.QuietZone-7
	for _, corner := range []image.Point{{X: low, Y: low}, {X: high, Y: low}, {X: low, Y: high}} {
		for y := range 7 {
			for x := range 7 {
				ring := max(abs(x-3), abs(y-3))
				if dark := picture.GrayAt(corner.X+x, corner.Y+y).Y == 0; dark != (ring != 2) {
					t.Fatalf("%s: no finder pattern at %v", form, corner)
				}
			}
		}
	}
}

func abs(n int) int { return max(n, -n) }

// decode reads the picture with another library than the one that drew it.
func decode(t *testing.T, picture image.Image) string {
	t.Helper()
	bitmap, err := gozxing.NewBinaryBitmapFromImage(picture)
	if err != nil {
		t.Fatal(err)
	}
	hints := map[gozxing.DecodeHintType]any{gozxing.DecodeHintType_PURE_BARCODE: true}
	result, err := qrcode.NewQRCodeReader().Decode(bitmap, hints)
	if err != nil {
		t.Fatalf("a scanner cannot read it: %v", err)
	}
	return result.GetText()
}
