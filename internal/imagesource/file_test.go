package imagesource_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/imagesource"
)

func writeFile(t *testing.T, dir, name, content string) string {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	picture := writeFile(t, dir, "front room.png", png)
	plan := writeFile(t, dir, "plan.svg", svg)
	reader := newReader(t, imagesource.Config{AllowFiles: true})
	inURL := filepath.ToSlash(filepath.Dir(picture)) + "/front%20room.png"
	if !strings.HasPrefix(inURL, "/") {
		inURL = "/" + inURL // C:/…
	}
	for name, test := range map[string]struct {
		reference imagesource.Reference
		mime      string
	}{
		"path":         {imagesource.Reference{Path: picture}, "image/png"},
		"bare path":    {imagesource.Reference{URL: picture}, "image/png"},
		"declared":     {imagesource.Reference{Path: picture, MIME: "image/webp"}, "image/webp"},
		"file URL":     {imagesource.Reference{URL: "file://" + inURL}, "image/png"},
		"of localhost": {imagesource.Reference{URL: "File://LocalHost" + inURL}, "image/png"},
		"SVG":          {imagesource.Reference{Path: plan}, "image/svg+xml"},
	} {
		image, err := read(t, reader, test.reference)
		if err != nil || image.MIME != test.mime {
			t.Errorf("%s: %q, %v; want %q", name, image.MIME, err, test.mime)
		}
	}
}

func TestFilesThatAreRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	large := writeFile(t, dir, "large.png", png)
	if err := os.Truncate(large, imagesource.MaxBytes+1); err != nil {
		t.Fatal(err)
	}
	reader := newReader(t, imagesource.Config{AllowFiles: true})
	for name, test := range map[string]struct {
		reference imagesource.Reference
		code      fault.Code
		path      string
	}{
		"not there":       {imagesource.Reference{Path: filepath.Join(dir, "none.png")}, fault.ImageNotFound, ""},
		"URL not there":   {imagesource.Reference{URL: "ftp://images.example/none.png"}, fault.ImageNotFound, ""},
		"directory":       {imagesource.Reference{Path: dir}, fault.InvalidImage, ""},
		"device":          {imagesource.Reference{Path: os.DevNull}, fault.InvalidImage, ""},
		"empty":           {imagesource.Reference{Path: writeFile(t, dir, "empty.png", "")}, fault.InvalidImage, ""},
		"text":            {imagesource.Reference{Path: writeFile(t, dir, "text.png", "hello"), MIME: "image/png"}, fault.InvalidImage, ""},
		"too large":       {imagesource.Reference{Path: large}, fault.ImageTooLarge, "path"},
		"too large, URL":  {imagesource.Reference{URL: large}, fault.ImageTooLarge, "url"},
		"another machine": {imagesource.Reference{URL: "file://images.example/a.png"}, fault.InvalidImageURL, "url"},
		"malformed":       {imagesource.Reference{URL: "file:///%zz"}, fault.InvalidImageURL, "url"},
		"no path":         {imagesource.Reference{URL: "file://"}, fault.InvalidImageURL, "url"},
	} {
		_, err := read(t, reader, test.reference)
		t.Log(name, err)
		wantFailure(t, err, test.code, test.path)
	}
	if err := os.Truncate(large, imagesource.MaxBytes); err != nil {
		t.Fatal(err)
	}
	if image, err := read(t, reader, imagesource.Reference{Path: large}); err != nil || len(image.Content) != imagesource.MaxBytes {
		t.Errorf("exactly the limit: %d bytes, %v", len(image.Content), err)
	}
}
