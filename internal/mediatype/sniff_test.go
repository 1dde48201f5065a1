package mediatype_test

import (
	"bytes"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"

	"hostr-daemon/internal/mediatype"
)

func TestSniffRealImages(t *testing.T) {
	t.Parallel()
	picture := image.NewRGBA(image.Rect(0, 0, 2, 2))
	var asPNG, asJPEG, asGIF bytes.Buffer
	if err := png.Encode(&asPNG, picture); err != nil {
		t.Fatal(err)
	}
	if err := jpeg.Encode(&asJPEG, picture, nil); err != nil {
		t.Fatal(err)
	}
	if err := gif.Encode(&asGIF, picture, nil); err != nil {
		t.Fatal(err)
	}
	for want, file := range map[string][]byte{"image/png": asPNG.Bytes(), "image/jpeg": asJPEG.Bytes(), "image/gif": asGIF.Bytes()} {
		if got := mediatype.Sniff(file); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// box makes an ftyp box with a major brand and compatible ones.
func box(major string, compatible ...string) string {
	brands := strings.Join(compatible, "")
	return string([]byte{0, 0, 0, byte(16 + len(brands))}) + "ftyp" + major + "\x00\x00\x00\x00" + brands
}

func TestSniffSignatures(t *testing.T) {
	t.Parallel()
	for content, want := range map[string]string{
		"GIF87a…":                      "image/gif",
		"II*\x00…":                     "image/tiff",
		"MM\x00*…":                     "image/tiff",
		"RIFF\x00\x00\x00\x00WEBPVP8 ": "image/webp",
		"%PDF-1.7":                     "application/pdf",
		box("avif", "mif1"):            "image/avif",
		box("mif1", "miaf", "avif"):    "image/avif",
		box("heic"):                    "image/heic",
		box("mif1", "heic"):            "image/heic",
		box("msf1"):                    "image/heif",
		box("avis"):                    "image/avif",
		"":                             "",
		"\xff":                         "",
		"hello hostr":                  "",
		"<svg xmlns='http://www.w3.org/2000/svg'": "",
		"<html><img src=x>":                       "",
		"RIFF\x00\x00\x00\x00WAVEfmt ":            "",
		"RIFF\x00\x00\x00\x00WEB":                 "",
		box("isom", "mp42"):                       "",
		box("isom") + "avif":                      "", // behind the box
		"\x00\x00\x00\x08ftypavif":                "",
		"\x01\x00\x00\x20ftypavif":                "",
	} {
		if got := mediatype.Sniff([]byte(content)); got != want {
			t.Errorf("%q: got %q, want %q", content, got, want)
		}
	}
}

func FuzzSniff(f *testing.F) {
	for _, seed := range []string{box("mif1", "heic", "avif"), "RIFF1234WEBP", "\x00\x00\xff\xffftypxxxx"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		got := mediatype.Sniff(content)
		if got != mediatype.Sniff(bytes.Clone(content)) || (got != "" && len(content) < 2) {
			t.Fatalf("%q: %q", content, got)
		}
	})
}
