package imagesource_test

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/imagesource"
)

// The first of URL, data URL, base64 and path counts (spec 40 §9.1).
func TestSourceIsChosenInOrder(t *testing.T) {
	t.Parallel()
	reader := newReader(t, imagesource.Config{AllowFiles: true})
	everything := imagesource.Reference{
		URL: "https://images.example/a.png", DataURL: "data:;base64,AAAA", Base64: "AAAA", Path: "a.png",
	}
	with := func(change func(*imagesource.Reference)) imagesource.Reference {
		changed := everything
		change(&changed)
		return changed
	}
	for name, test := range map[string]struct {
		reference imagesource.Reference
		kind      imagesource.Kind
		location  string
	}{
		"URL":                   {everything, imagesource.KindURL, everything.URL},
		"URL in capitals":       {with(func(r *imagesource.Reference) { r.URL = "HTTPS://Images.example/a.png" }), imagesource.KindURL, "HTTPS://Images.example/a.png"},
		"data URL":              {with(func(r *imagesource.Reference) { r.URL = "a.png" }), imagesource.KindDataURL, ""},
		"data URL as URL":       {with(func(r *imagesource.Reference) { r.URL, r.DataURL = "DATA:;BASE64,AAAA", "" }), imagesource.KindDataURL, ""},
		"base64":                {with(func(r *imagesource.Reference) { r.URL, r.DataURL = "ftp://x/a.png", "" }), imagesource.KindBase64, ""},
		"path":                  {with(func(r *imagesource.Reference) { r.URL, r.DataURL, r.Base64 = "b.png", "", "" }), imagesource.KindPath, "a.png"},
		"URL that is a path":    {imagesource.Reference{URL: "b.png"}, imagesource.KindPath, "b.png"},
		"URL that is a file's":  {imagesource.Reference{URL: "file:///b%20c.png"}, imagesource.KindPath, "file:///b%20c.png"},
		"URL of another scheme": {imagesource.Reference{URL: "ftp://x/a.png"}, imagesource.KindPath, "ftp://x/a.png"},
	} {
		source, err := reader.Resolve(test.reference)
		if err != nil || source.Kind != test.kind || source.Location != test.location {
			t.Errorf("%s: %s %q, %v; want %s %q", name, source.Kind, source.Location, err, test.kind, test.location)
		}
	}
}

// What is refused before anything is read, by an operator who allowed nothing.
func TestRefusedSources(t *testing.T) {
	t.Parallel()
	reader := newReader(t, imagesource.Config{TrustedServers: []string{"", " ", "::", "http://127.0.0.1:3000/x", "https://[::1]"}})
	url := func(text string) imagesource.Reference { return imagesource.Reference{URL: text} }
	dataURL := func(text string) imagesource.Reference { return imagesource.Reference{DataURL: text} }
	for name, test := range map[string]struct {
		reference imagesource.Reference
		code      fault.Code
		path      string
	}{
		"nothing":                {imagesource.Reference{MIME: "image/png", Filename: "a.png"}, fault.InvalidImage, ""},
		"path":                   {imagesource.Reference{Path: "/etc/hostname"}, fault.InvalidImageURL, "path"},
		"path and URL":           {imagesource.Reference{Path: "a.png", URL: "b.png"}, fault.InvalidImageURL, "path"},
		"bare path":              {url("/etc/hostname"), fault.InvalidImageURL, "url"},
		"file that is not there": {url("/not/there.png"), fault.InvalidImageURL, "url"},
		"file URL":               {url("file:///etc/hostname"), fault.InvalidImageURL, "url"},
		"other scheme":           {url("gopher://images.example/"), fault.InvalidImageURL, "url"},
		"scheme without slashes": {url("http:images.example"), fault.InvalidImageURL, "url"},
		"no host":                {url("http:///a.png"), fault.InvalidImageURL, "url"},
		"only a port":            {url("https://:443/a.png"), fault.InvalidImageURL, "url"},
		"bad port":               {url("http://images.example:x/"), fault.InvalidImageURL, "url"},
		"bad escape":             {url("http://images.example/%zz"), fault.InvalidImageURL, "url"},
		"loopback":               {url("http://127.0.0.1/"), fault.InvalidImageURL, "url"},
		"trusted, other port":    {url("http://127.0.0.1:3001/"), fault.InvalidImageURL, "url"},
		"trusted, other scheme":  {url("http://[::1]/"), fault.InvalidImageURL, "url"},
		"mapped":                 {url("http://[::ffff:10.0.0.1]/"), fault.InvalidImageURL, "url"},
		"NAT64":                  {url("http://[64:ff9b::a9fe:a9fe]/"), fault.InvalidImageURL, "url"},
		"with a zone":            {url("http://[fe80::1%25eth0]/"), fault.InvalidImageURL, "url"},
		"data URL, not base64":   {dataURL("data:image/svg+xml,<svg/>"), fault.InvalidImageDataURL, "dataUrl"},
		"data URL, no comma":     {dataURL("data:image/png;base64"), fault.InvalidImageDataURL, "dataUrl"},
		"data URL, other scheme": {dataURL("image/png;base64,AAAA"), fault.InvalidImageDataURL, "dataUrl"},
		"data URL, similar word": {dataURL("data:image/png;base64url,AAAA"), fault.InvalidImageDataURL, "dataUrl"},
		"data URL as URL":        {url("data:image/png,AAAA"), fault.InvalidImageDataURL, "dataUrl"},
	} {
		_, err := reader.Resolve(test.reference)
		failure := wantFailure(t, err, test.code, test.path)
		if failure.Hint == "" || strings.Contains(failure.Message, "/etc") {
			t.Errorf("%s: %q, hint %q", name, failure.Message, failure.Hint)
		}
	}
	for _, trusted := range []string{"http://127.0.0.1:3000/a.png", "https://[::1]/a.png", "https://[::1]:443/"} {
		if _, err := reader.Resolve(url(trusted)); err != nil {
			t.Errorf("%s: %v", trusted, err)
		}
	}
	open := newReader(t, imagesource.Config{AllowPrivateHosts: true})
	if _, err := open.Resolve(url("http://127.0.0.1/")); err != nil {
		t.Errorf("where private hosts are allowed: %v", err)
	}
}

// Without the operator's leave a file that exists and one that does not get the same
// answer.
func TestRefusalDoesNotTellWhetherAFileExists(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "front.png")
	if err := os.WriteFile(file, []byte(png), 0o600); err != nil {
		t.Fatal(err)
	}
	reader := newReader(t, imagesource.Config{})
	var answers []string
	for _, path := range []string{file, file + ".not"} {
		_, err := reader.Resolve(imagesource.Reference{Path: path})
		text, _ := json.Marshal(fault.From(err))
		answers = append(answers, string(text))
	}
	if answers[0] != answers[1] {
		t.Errorf("%s\n%s", answers[0], answers[1])
	}
}

// What bytes and declarations make of an image that is in the reference itself (spec
// 40 §9.2).
func TestEncodedImages(t *testing.T) {
	t.Parallel()
	encoded := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	reader := newReader(t, imagesource.Config{})
	for name, test := range map[string]struct {
		reference imagesource.Reference
		mime      string
	}{
		"base64":                    {imagesource.Reference{Base64: pngBase64}, "image/png"},
		"base64, declared":          {imagesource.Reference{Base64: pngBase64, MIME: "Image/JPEG; q=1"}, "image/jpeg"},
		"base64, declared no image": {imagesource.Reference{Base64: pngBase64, MIME: "text/html"}, "image/png"},
		"base64, declared nonsense": {imagesource.Reference{Base64: pngBase64, MIME: "png"}, "image/png"},
		"base64 in lines":           {imagesource.Reference{Base64: " " + pngBase64[:8] + "\r\n" + pngBase64[8:]}, "image/png"},
		"URL-safe base64":           {imagesource.Reference{Base64: base64.URLEncoding.EncodeToString([]byte("\xff\xd8\xff\xff\xfe"))}, "image/jpeg"},
		"SVG, declared":             {imagesource.Reference{Base64: encoded(svg), MIME: "image/svg+xml"}, "image/svg+xml"},
		"SVG by its name":           {imagesource.Reference{Base64: encoded(svg), Filename: "Plan.SVG"}, "image/svg+xml"},
		"data URL":                  {imagesource.Reference{DataURL: "data:image/png;base64," + pngBase64}, "image/png"},
		"data URL, other type":      {imagesource.Reference{DataURL: "data:image/webp;base64," + pngBase64}, "image/webp"},
		"data URL, no type":         {imagesource.Reference{DataURL: "data:;base64," + pngBase64}, "image/png"},
		"data URL, a text's type":   {imagesource.Reference{DataURL: "data:text/plain;base64," + pngBase64}, "image/png"},
		"data URL, explicit type":   {imagesource.Reference{DataURL: "data:image/png;base64," + pngBase64, MIME: "image/gif"}, "image/gif"},
		"data URL, parameters":      {imagesource.Reference{DataURL: "data:image/png;name=a;BASE64 ;x=y," + pngBase64}, "image/png"},
		"data URL, SVG":             {imagesource.Reference{DataURL: "data:image/svg+xml;base64," + encoded(svg)}, "image/svg+xml"},
	} {
		image, err := read(t, reader, test.reference)
		if err != nil || image.MIME != test.mime || len(image.Content) == 0 {
			t.Errorf("%s: %q, %v; want %q", name, image.MIME, err, test.mime)
		}
	}
}

func TestEncodedImagesThatAreNone(t *testing.T) {
	t.Parallel()
	encoded := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	reader := newReader(t, imagesource.Config{})
	for name, test := range map[string]struct {
		reference imagesource.Reference
		code      fault.Code
	}{
		"breaks off":                {imagesource.Reference{Base64: "QUJ"}, fault.InvalidImageBase64},
		"no base64":                 {imagesource.Reference{Base64: "é!"}, fault.InvalidImageBase64},
		"data URL, no base64":       {imagesource.Reference{DataURL: "data:image/png;base64,QUJ"}, fault.InvalidImageBase64},
		"data URL, percent-encoded": {imagesource.Reference{DataURL: "data:image/png;base64,QUI%3D"}, fault.InvalidImageBase64},
		"only white space":          {imagesource.Reference{Base64: " \n"}, fault.InvalidImage},
		"empty data URL":            {imagesource.Reference{DataURL: "data:image/png;base64,"}, fault.InvalidImage},
		"text declared as PNG":      {imagesource.Reference{Base64: encoded("root:x:0:0"), MIME: "image/png"}, fault.InvalidImage},
		"PDF":                       {imagesource.Reference{Base64: encoded("%PDF-1.7")}, fault.InvalidImage},
		"PDF declared as image":     {imagesource.Reference{DataURL: "data:image/png;base64," + encoded("%PDF-1.7")}, fault.InvalidImage},
		"SVG, not declared":         {imagesource.Reference{Base64: encoded(svg)}, fault.InvalidImage},
		"SVG declared as PNG":       {imagesource.Reference{Base64: encoded(svg), MIME: "image/png", Filename: "a.svg"}, fault.InvalidImage},
		"HTML declared as SVG":      {imagesource.Reference{Base64: encoded("<html><svg>"), MIME: "image/svg+xml"}, fault.InvalidImage},
		"text named SVG":            {imagesource.Reference{Base64: encoded("hello"), Filename: "a.svg"}, fault.InvalidImage},
	} {
		_, err := read(t, reader, test.reference)
		failure := wantFailure(t, err, test.code, "")
		if failure.Message == "" || strings.Contains(failure.Message, "root") {
			t.Errorf("%s: %q", name, failure.Message)
		}
	}
}

// A data URL is refused or gives the bytes behind its comma, whatever is in it.
func FuzzDataURL(f *testing.F) {
	for _, seed := range []string{"data:image/png;base64,iVBORw0KGgo=", "data:;base64,", "DATA:image/svg+xml;x=y;BASE64,PHN2Zz4=", "data:,", "data:base64,AAAA", ";base64,"} {
		f.Add(seed)
	}
	reader := imagesource.New(imagesource.Config{})
	f.Fuzz(func(t *testing.T, text string) {
		source, err := reader.Resolve(imagesource.Reference{DataURL: text})
		if text == "" {
			return
		}
		header, payload, _ := strings.Cut(text, ",")
		if err != nil {
			wantFailure(t, err, fault.InvalidImageDataURL, "dataUrl")
			if strings.HasPrefix(text, "data:;base64,") {
				t.Fatalf("%q is refused: %v", text, err)
			}
			return
		}
		if source.Kind != imagesource.KindDataURL || !strings.Contains(strings.ToLower(header), "base64") {
			t.Fatalf("%q is taken for one", text)
		}
		image, err := reader.Read(t.Context(), source, anyNumber)
		if err != nil {
			if code := fault.From(err).Code; code != fault.InvalidImageBase64 && code != fault.InvalidImage {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		if decoded, err := imagesource.DecodeBase64(payload); err != nil || string(decoded) != string(image.Content) || !strings.HasPrefix(image.MIME, "image/") {
			t.Fatalf("%q is %q, %q", text, image.Content, image.MIME)
		}
	})
}
