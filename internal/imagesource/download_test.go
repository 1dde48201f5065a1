package imagesource_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/imagesource"
)

func TestDownload(t *testing.T) {
	t.Parallel()
	reader := publicReader(t, imagesource.Config{UserAgent: "hostr-daemon/test"})
	for name, test := range map[string]struct {
		contentType, body, path, mime string
		want                          string
	}{
		"by its bytes":         {"", png, "/a", "", "image/png"},
		"by its Content-Type":  {"image/webp; q=1", png, "/a.png", "", "image/webp"},
		"explicit type":        {"image/webp", png, "/a.png", "image/gif", "image/gif"},
		"explicit, no image":   {"image/webp", png, "/a.png", "text/html", "image/webp"},
		"served as a page":     {"text/html", png, "/a", "", "image/png"},
		"served as bytes":      {"application/octet-stream", png, "/a.svg", "", "image/png"},
		"SVG":                  {"image/svg+xml; charset=utf-8", svg, "/a", "", "image/svg+xml"},
		"SVG, explicit":        {"text/plain", svg, "/a", "image/svg+xml", "image/svg+xml"},
		"SVG by its extension": {"", svg, "/plan.svg?size=2", "", "image/svg+xml"},
	} {
		server := serve(t, answer(test.contentType, test.body))
		image, err := read(t, reader, imagesource.Reference{URL: server.URL + test.path, MIME: test.mime})
		if err != nil || image.MIME != test.want || string(image.Content) != test.body {
			t.Errorf("%s: %q, %v; want %q", name, image.MIME, err, test.want)
		}
	}
}

func TestDownloadsThatAreRefused(t *testing.T) {
	t.Parallel()
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(code)
			_, _ = io.WriteString(w, png)
		}
	}
	reader := publicReader(t, imagesource.Config{})
	for name, test := range map[string]struct {
		handler http.HandlerFunc
		code    fault.Code
		path    string
		says    string
	}{
		"text served as an image": {answer("image/png", "hello"), fault.InvalidImage, "", ""},
		"page served as SVG":      {answer("image/svg+xml", "<!doctype html><svg>"), fault.InvalidImage, "", ""},
		"SVG served as text":      {answer("text/plain", svg), fault.InvalidImage, "", ""},
		"SVG served as PNG":       {answer("image/png", svg), fault.InvalidImage, "", ""},
		"packed":                  {answer("image/png", zipped(t, png)), fault.InvalidImage, "", ""},
		"PDF":                     {answer("image/png", "%PDF-1.7"), fault.InvalidImage, "", ""},
		"empty":                   {answer("image/png", ""), fault.InvalidImage, "", "empty"},
		"no content":              {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }, fault.InvalidImage, "", "empty"},
		"not found":               {status(404), fault.ImageDownloadFailed, "url", "HTTP 404"},
		"out of order":            {status(500), fault.ImageDownloadFailed, "url", "HTTP 500"},
		"not modified":            {status(304), fault.ImageDownloadFailed, "url", "HTTP 304"},
		"hangs up":                {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, fault.ImageDownloadFailed, "url", "EOF"},
		"breaks off": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, png)
		}, fault.ImageDownloadFailed, "url", "unexpected EOF"},
	} {
		server := serve(t, test.handler)
		_, err := read(t, reader, imagesource.Reference{URL: server.URL + "/a.png?key=canary"})
		failure := wantFailure(t, err, test.code, test.path)
		if !strings.Contains(failure.Message, test.says) || strings.Contains(failure.Message, "canary") || failure.Hint == "" {
			t.Errorf("%s: %q, hint %q", name, failure.Message, failure.Hint)
		}
	}
	gone := httptest.NewServer(nil)
	gone.Close()
	_, err := read(t, reader, imagesource.Reference{URL: gone.URL})
	if failure := wantFailure(t, err, fault.ImageDownloadFailed, "url"); !strings.Contains(failure.Message, "refused") || strings.Contains(failure.Message, gone.URL) {
		t.Errorf("nobody there: %q", failure.Message)
	}
}

// The limit is 20971520 bytes, exactly that is allowed, with and without
// Content-Length (spec 40 §9.2).
func TestSizeLimit(t *testing.T) {
	t.Parallel()
	reader := publicReader(t, imagesource.Config{})
	block := make([]byte, 1<<20)
	server := serve(t, func(w http.ResponseWriter, request *http.Request) {
		size, _ := strconv.Atoi(request.URL.Query().Get("size"))
		if request.URL.Path == "/announced" {
			w.Header().Set("Content-Length", strconv.Itoa(size))
		}
		_, _ = io.WriteString(w, png)
		for left := size - len(png); left > 0; left -= len(block) {
			if _, err := w.Write(block[:min(left, len(block))]); err != nil {
				return // the client has had enough
			}
		}
	})
	for _, path := range []string{"/announced", "/chunked"} {
		for size, fits := range map[int]bool{imagesource.MaxBytes: true, imagesource.MaxBytes + 1: false} {
			image, err := read(t, reader, imagesource.Reference{URL: fmt.Sprintf("%s%s?size=%d", server.URL, path, size)})
			if !fits {
				wantFailure(t, err, fault.ImageTooLarge, "url")
			} else if err != nil || len(image.Content) != size {
				t.Errorf("%s with %d bytes: %d, %v", path, size, len(image.Content), err)
			}
		}
	}
}

// An answer that says it is packed is not unpacked.
func TestNothingIsDecompressed(t *testing.T) {
	t.Parallel()
	var sent atomic.Pointer[http.Header]
	server := serve(t, func(w http.ResponseWriter, request *http.Request) {
		header := request.Header.Clone()
		sent.Store(&header)
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("Set-Cookie", "a=b")
		_, _ = io.WriteString(w, zipped(t, png))
	})
	reader := publicReader(t, imagesource.Config{})
	for range 2 {
		_, err := read(t, reader, imagesource.Reference{URL: server.URL})
		wantFailure(t, err, fault.InvalidImage, "")
	}
	for _, name := range []string{"Accept-Encoding", "Cookie", "Referer", "User-Agent"} {
		if values := sent.Load().Values(name); len(values) != 0 {
			t.Errorf("%s %q was sent", name, values)
		}
	}
}

func zipped(t testing.TB, text string) string {
	t.Helper()
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	if _, err := io.WriteString(writer, text); err != nil {
		t.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	return packed.String()
}

func TestRedirects(t *testing.T) {
	t.Parallel()
	var referer atomic.Value
	server := serve(t, func(w http.ResponseWriter, request *http.Request) {
		left, _ := strconv.Atoi(request.URL.Query().Get("left"))
		referer.Store(request.Header.Get("Referer"))
		if left == 0 {
			_, _ = io.WriteString(w, png)
			return
		}
		http.Redirect(w, request, fmt.Sprintf("/?left=%d", left-1), http.StatusFound)
	})
	reader := publicReader(t, imagesource.Config{})
	if _, err := read(t, reader, imagesource.Reference{URL: server.URL + "/?left=5"}); err != nil {
		t.Errorf("5 redirects: %v", err)
	}
	if referer.Load() != "" {
		t.Errorf("Referer %q was sent", referer.Load())
	}
	_, err := read(t, reader, imagesource.Reference{URL: server.URL + "/?left=6"})
	if failure := wantFailure(t, err, fault.ImageDownloadFailed, "url"); !strings.Contains(failure.Message, "more than 5 redirects") {
		t.Error(failure.Message)
	}
}

// Wherever a public host sends the reader, it does not go to a private address (spec
// 40 §9.1). Nothing is sent there: these addresses would not even answer.
func TestRedirectsToPrivateAddresses(t *testing.T) {
	t.Parallel()
	resolver, _ := resolverOf(t, "10.0.0.1")
	reader := publicReader(t, imagesource.Config{Resolver: resolver})
	server := serve(t, func(w http.ResponseWriter, request *http.Request) {
		w.Header().Set("Location", request.URL.Query().Get("to"))
		w.WriteHeader(http.StatusTemporaryRedirect)
	})
	for _, target := range []string{
		"http://169.254.169.254/latest/meta-data/", "https://169.254.169.254/", "http://[::ffff:10.0.0.1]/", "http://[64:ff9b::a9fe:a9fe]/",
		"http://192.168.0.1:8080/", "//10.1.2.3/", "http://internal.example/", "http://100.64.0.1/", "http://[fe80::1%25lo]/",
		"file:///etc/hostname", "ftp://images.example/a.png", "gopher://127.0.0.1/",
	} {
		_, err := read(t, reader, imagesource.Reference{URL: server.URL + "/?to=" + url.QueryEscape(target)})
		failure := wantFailure(t, err, fault.InvalidImageURL, "url")
		if strings.Contains(failure.Message, "169.254") || strings.Contains(failure.Message, "10.0.0.1") || failure.Hint == "" {
			t.Errorf("%s: %q, hint %q", target, failure.Message, failure.Hint)
		}
	}
}

// A name is checked by the address that is dialled, so one that changes between check
// and use gains nothing.
func TestNameThatChangesItsAddress(t *testing.T) {
	t.Parallel()
	resolver, asked := resolverOf(t, "127.0.0.1", "10.0.0.1")
	reader := publicReader(t, imagesource.Config{Resolver: resolver})
	served := new(atomic.Int32)
	server := serve(t, func(w http.ResponseWriter, request *http.Request) {
		served.Add(1)
		w.Header().Set("Connection", "close") // the next request dials again
		http.Redirect(w, request, request.URL.Path+"x", http.StatusFound)
	})
	port := server.URL[strings.LastIndexByte(server.URL, ':'):]
	_, err := read(t, reader, imagesource.Reference{URL: "http://changing.example" + port + "/"})
	wantFailure(t, err, fault.InvalidImageURL, "url")
	if served.Load() != 1 || asked.Load() < 2 {
		t.Errorf("%d requests were served, the name was looked up %d times", served.Load(), asked.Load())
	}
}

// The rule as it is in use refuses this machine, by address and by name, unless it is
// trusted or everything private is allowed.
func TestThisMachine(t *testing.T) {
	t.Parallel()
	served := new(atomic.Int32)
	server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		served.Add(1)
		_, _ = io.WriteString(w, png)
	})
	port := server.URL[strings.LastIndexByte(server.URL, ':'):]
	resolver, _ := resolverOf(t, "127.0.0.1")
	strict := newReader(t, imagesource.Config{Resolver: resolver, TrustedServers: []string{"http://blossom.example", "http://127.0.0.1:1"}})
	for _, target := range []string{server.URL, "http://me.example" + port, "http://[::ffff:127.0.0.1]" + port, "http://blossom.example" + port} {
		_, err := read(t, strict, imagesource.Reference{URL: target})
		wantFailure(t, err, fault.InvalidImageURL, "url")
	}
	if served.Load() != 0 {
		t.Fatalf("%d requests arrived", served.Load())
	}
	for name, config := range map[string]imagesource.Config{
		"allowed": {Resolver: resolver, AllowPrivateHosts: true},
		"trusted": {Resolver: resolver, TrustedServers: []string{"http://Me.Example" + port + "/blobs"}},
	} {
		if _, err := read(t, newReader(t, config), imagesource.Reference{URL: "http://me.example" + port}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestNoProxy is not parallel: it sets variables. A proxy would be asked for the
// private address in the daemon's stead.
func TestNoProxy(t *testing.T) {
	proxy := serve(t, answer("image/png", png))
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "ALL_PROXY"} {
		t.Setenv(name, proxy.URL)
	}
	resolver, _ := resolverOf(t, "10.0.0.1")
	_, err := read(t, newReader(t, imagesource.Config{Resolver: resolver}), imagesource.Reference{URL: "http://internal.example/"})
	wantFailure(t, err, fault.InvalidImageURL, "url")
}

func TestCertificates(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(answer("image/png", png))
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // it complains of the strict client
	server.StartTLS()
	t.Cleanup(server.Close)
	_, err := read(t, publicReader(t, imagesource.Config{}), imagesource.Reference{URL: server.URL})
	if failure := wantFailure(t, err, fault.ImageDownloadFailed, "url"); !strings.Contains(failure.Message, "certificate") {
		t.Error(failure.Message)
	}
	var asked atomic.Value
	known := imagesource.Config{TLS: func(host string) *tls.Config {
		asked.Store(host)
		rule := server.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
		rule.ServerName = host
		return rule
	}}
	if _, err := read(t, publicReader(t, known), imagesource.Reference{URL: server.URL}); err != nil || asked.Load() != "127.0.0.1" {
		t.Errorf("under a rule that knows %v: %v", asked.Load(), err)
	}
}

// hanging answers with the beginning of an image and then nothing, and tells when it
// has.
func hanging(t testing.TB) (server *httptest.Server, begun chan struct{}) {
	begun = make(chan struct{}, 10)
	return serve(t, func(w http.ResponseWriter, request *http.Request) {
		_, _ = io.WriteString(w, png)
		w.(http.Flusher).Flush()
		begun <- struct{}{}
		<-request.Context().Done()
	}), begun
}

func TestSlowServer(t *testing.T) {
	t.Parallel()
	server, _ := hanging(t)
	reader := publicReader(t, imagesource.Config{})
	reader.SetTimeout(200 * time.Millisecond)
	_, err := read(t, reader, imagesource.Reference{URL: server.URL})
	if failure := wantFailure(t, err, fault.ImageDownloadFailed, "url"); !strings.Contains(failure.Message, "took longer than 200ms") {
		t.Error(failure.Message)
	}
}

func TestCancelledDownload(t *testing.T) {
	t.Parallel()
	server, begun := hanging(t)
	reader := publicReader(t, imagesource.Config{})
	source, err := reader.Resolve(imagesource.Reference{URL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(patient(t))
	go func() {
		<-begun
		cancel(enough)
	}()
	if _, err := reader.Read(ctx, source, anyNumber); !errors.Is(err, enough) || fault.Is(err, fault.ImageDownloadFailed) {
		t.Errorf("%v, want the cause", err)
	}
}

// What the caller says about memory ends the reading with that error.
func TestAllowance(t *testing.T) {
	t.Parallel()
	server := serve(t, answer("image/png", png+strings.Repeat("x", 1<<20)))
	file := writeFile(t, t.TempDir(), "a.png", png)
	reader := publicReader(t, imagesource.Config{AllowFiles: true})
	full := errors.New("full")
	for name, reference := range map[string]imagesource.Reference{
		"download": {URL: server.URL}, "base64": {Base64: pngBase64}, "file": {Path: file},
	} {
		source, err := reader.Resolve(reference)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := reader.Read(patient(t), source, func(int) error { return full }); err != full {
			t.Errorf("%s: %v", name, err)
		}
		held := 0
		image, err := reader.Read(patient(t), source, func(bytes int) error { held += bytes; return nil })
		if err != nil || held != cap(image.Content) {
			t.Errorf("%s: %d bytes held for a capacity of %d, %v", name, held, cap(image.Content), err)
		}
	}
}

// An announced length is what is taken of the memory, but not before the server has
// shown that it sends something; without one the room doubles. Copies count.
func TestRoomForAnImage(t *testing.T) {
	t.Parallel()
	const size = 5 << 20
	content := png + strings.Repeat("x", size-len(png))
	server := serve(t, func(w http.ResponseWriter, request *http.Request) {
		sent := content
		if request.URL.Path != "/chunked" {
			w.Header().Set("Content-Length", strconv.Itoa(size))
		}
		if request.URL.Path == "/cut-off" {
			sent = content[:1000]
		}
		_, _ = io.WriteString(w, sent)
	})
	reader := publicReader(t, imagesource.Config{})
	for path, most := range map[string]int{"/announced": size + 1 + 1<<20, "/chunked": 8<<20 + 4<<20, "/cut-off": 32 << 10} {
		source, err := reader.Resolve(imagesource.Reference{URL: server.URL + path})
		if err != nil {
			t.Fatal(err)
		}
		held, peak := 0, 0
		image, err := reader.Read(patient(t), source, func(bytes int) error {
			held += bytes
			peak = max(peak, held)
			return nil
		})
		if peak > most {
			t.Errorf("%s: %d bytes were held at once, want at most %d", path, peak, most)
		}
		switch {
		case path == "/cut-off":
			wantFailure(t, err, fault.ImageDownloadFailed, "url")
		case err != nil || len(image.Content) != size || held != cap(image.Content):
			t.Errorf("%s: %d bytes held for %d, %v", path, held, len(image.Content), err)
		case path == "/announced" && held != size+1:
			t.Errorf("%s: %d bytes held", path, held)
		}
	}
}
