package media_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nbd-wtf/go-nostr"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"hostr-daemon/internal/blossom"
	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/imagesource"
	"hostr-daemon/internal/media"
	"hostr-daemon/internal/sandbox"
	"hostr-daemon/internal/sandbox/blossomserver"
	"hostr-daemon/internal/signer"
	"hostr-daemon/internal/trace"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	accountKey = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
	// helloHash is the hash of the vector of spec 20 §11.1.
	helloBase64 = "aGVsbG8gaG9zdHI="
	helloHash   = "10b1411e5c492feda1e5683d137c118a8f9de7789edae542860addf14203f3c4"
)

func TestSignedUpload(t *testing.T) {
	t.Parallel()
	server := openServer(t)
	server.RequireAuthorization(true)
	uploaded, err := newService(t, nil, server.URL()).Upload(patient(t),
		media.UploadRequest{Base64: " aGVsbG8g\naG9zdHI= ", MIME: "text/plain", Filename: " hello.txt "}, account(t))
	if err != nil {
		t.Fatal(err)
	}
	wantResult(t, uploaded, map[string]any{
		"url": server.URL() + "/" + helloHash + ".txt", "sha256": helloHash, "size": 11.0, "type": "text/plain",
		"serverUrl": server.URL(), "auth": "session", "filename": "hello.txt",
	})
	if data, _, found := server.Get(helloHash); !found || string(data) != "hello hostr" {
		t.Errorf("the server holds %q, %t", data, found)
	}
	if requests := server.Switch.Requests(); len(requests) != 1 {
		t.Errorf("%d requests, want 1", len(requests))
	}
}

func TestUnsignedUpload(t *testing.T) {
	t.Parallel()
	server := openServer(t)
	uploaded, err := newService(t, nil, server.URL()).Upload(trace.With(patient(t), "trace-1"),
		media.UploadRequest{Base64: helloBase64, Filename: "Haus ä.txt"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	result := resultOf(t, uploaded)
	if _, dated := result["uploaded"].(float64); !dated {
		t.Errorf("the server's own keys are missing: %v", result)
	}
	delete(result, "uploaded")
	if diff := cmp.Diff(map[string]any{
		"url": server.URL() + "/" + helloHash + ".bin", "sha256": helloHash, "size": 11.0, "type": "application/octet-stream",
		"serverUrl": server.URL() + "/upload", "filename": "Haus ä.txt",
	}, result); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
	header := server.Switch.Requests()[0].Header
	for name, want := range map[string]string{
		"Authorization": "", "Content-Type": "application/octet-stream", "X-Sha-256": helloHash,
		"X-Filename": "Haus %C3%A4.txt", "X-Trace-Id": "trace-1",
	} {
		if got := header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

// Whatever goes wrong with the signed upload, the unsigned one follows.
func TestSignedUploadFallsBack(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		signer   media.Signer
		faults   sandbox.HTTPFaults
		requests int
		reason   string
	}{
		"signer refuses":  {signerFunc(func(context.Context, *nostr.Event) error { return errors.New("no thanks") }), sandbox.HTTPFaults{}, 1, "no thanks"},
		"server refuses":  {account(t), sandbox.HTTPFaults{Status: 401, Times: 1}, 2, "HTTP 401"},
		"server hangs up": {account(t), sandbox.HTTPFaults{HangUp: true, Times: 1}, 2, "EOF"},
		"no JSON":         {account(t), sandbox.HTTPFaults{NotJSON: true, Times: 1}, 2, "no JSON object"},
		"never signed": {signerFunc(func(ctx context.Context, _ *nostr.Event) error {
			<-ctx.Done()
			return context.Cause(ctx)
		}), sandbox.HTTPFaults{}, 1, "deadline exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := openServer(t)
			server.Switch.Break(test.faults)
			var log bytes.Buffer
			service := newService(t, &log, server.URL())
			service.SetTimeout(4 * time.Second)
			uploaded, err := service.Upload(patient(t), media.UploadRequest{Base64: helloBase64}, test.signer)
			if err != nil {
				t.Fatal(err)
			}
			if result := resultOf(t, uploaded); result["auth"] != nil || result["serverUrl"] != server.URL()+"/upload" {
				t.Errorf("result %v", result)
			}
			if requests := len(server.Switch.Requests()); requests != test.requests {
				t.Errorf("%d requests, want %d", requests, test.requests)
			}
			if !strings.Contains(log.String(), test.reason) {
				t.Errorf("the log does not say %q: %s", test.reason, log.String())
			}
		})
	}
}

// A server that answers signed uploads with silence costs its share of the time.
func TestSilentServerLeavesTimeForTheUnsignedUpload(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		_, _ = io.Copy(io.Discard, request.Body)
		if request.Header.Get("Authorization") != "" {
			<-request.Context().Done()
			return
		}
		fmt.Fprint(w, `{"url":"https://example.org/a"}`)
	}))
	t.Cleanup(server.Close)
	service := newService(t, nil, server.URL)
	service.SetTimeout(4 * time.Second)
	uploaded, err := service.Upload(patient(t), media.UploadRequest{Base64: helloBase64}, account(t))
	if err != nil || uploaded.Signed || uploaded.Descriptor.URL != "https://example.org/a" {
		t.Errorf("%+v, %v", uploaded, err)
	}
}

func TestUploadFails(t *testing.T) {
	t.Parallel()
	server := openServer(t)
	server.Switch.Break(sandbox.HTTPFaults{Status: 503})
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		_, _ = io.Copy(io.Discard, request.Body)
		<-request.Context().Done()
	}))
	t.Cleanup(silent.Close)
	for name, test := range map[string]struct {
		servers   []string
		base64    string
		signer    media.Signer
		code      fault.Code
		path      string
		retryable bool
		says      string
	}{
		"no base64":       {[]string{server.URL()}, "QUJ", nil, fault.InvalidUploadBase64, "base64", false, "breaks off"},
		"empty":           {[]string{server.URL()}, " \n", nil, fault.InvalidUpload, "file", false, "empty"},
		"all refuse":      {[]string{server.URL()}, helloBase64, account(t), fault.ImageUploadFailed, "", false, "HTTP 503"},
		"no server":       {nil, helloBase64, account(t), fault.ImageUploadFailed, "", false, "no Blossom server"},
		"silence":         {[]string{silent.URL}, helloBase64, nil, fault.ImageUploadFailed, "", true, "within 100ms"},
		"silence, signed": {[]string{silent.URL}, helloBase64, account(t), fault.ImageUploadFailed, "", true, "within 100ms"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			service := newService(t, nil, test.servers...)
			if test.retryable {
				service.SetTimeout(100 * time.Millisecond)
			}
			_, err := service.Upload(patient(t), media.UploadRequest{Base64: test.base64}, test.signer)
			got := fault.From(err)
			if err == nil || got.Code != test.code || got.Path != test.path || got.Retryable != test.retryable || !strings.Contains(got.Message, test.says) {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestFailureListsEveryServer(t *testing.T) {
	t.Parallel()
	server := openServer(t)
	server.SetMaxBytes(5)
	_, err := newService(t, nil, server.URL(), "ftp://example.org").Upload(patient(t), media.UploadRequest{Base64: helloBase64}, nil)
	details, ok := fault.From(err).Details.([]blossom.UnsignedFailure)
	if !ok || len(details) != 2 || details[0].StatusCode != http.StatusRequestEntityTooLarge || details[1].Error == "" {
		t.Errorf("%v: details %+v", err, fault.From(err).Details)
	}
}

// A caller that gives up gets its own cause, and no further attempt is made.
func TestUploadEndsWithItsContext(t *testing.T) {
	t.Parallel()
	server := openServer(t)
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(patient(t))
	waiting := signerFunc(func(ctx context.Context, _ *nostr.Event) error {
		cancel(enough)
		<-ctx.Done()
		return context.Cause(ctx)
	})
	_, err := newService(t, nil, server.URL()).Upload(ctx, media.UploadRequest{Base64: helloBase64}, waiting)
	if !errors.Is(err, enough) {
		t.Errorf("%v, want the cause", err)
	}
	if requests := server.Switch.Requests(); len(requests) != 0 {
		t.Errorf("%d requests", len(requests))
	}
}

func TestMediaType(t *testing.T) {
	t.Parallel()
	png := base64.StdEncoding.EncodeToString([]byte("\x89PNG\r\n\x1a\n1234"))
	for _, test := range []struct {
		base64, given string
		signer        media.Signer
		sent          string
	}{
		{png, "", account(t), "image/png"},
		{png, " ", nil, "image/png"},
		{png, "png", nil, "image/png"},
		{png, "image/png\r\nX-Evil: 1", nil, "image/png"},
		{png, "image/jpeg", account(t), "image/jpeg"},
		{png, " image/svg+xml; charset=utf-8 ", nil, "image/svg+xml; charset=utf-8"},
		{helloBase64, "", account(t), ""},
		{helloBase64, "", nil, "application/octet-stream"},
	} {
		var sent http.Header
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
			sent = request.Header.Clone()
			fmt.Fprint(w, `{"url":"https://example.org/a"}`)
		}))
		uploaded, err := newService(t, nil, server.URL).Upload(patient(t), media.UploadRequest{Base64: test.base64, MIME: test.given}, test.signer)
		server.Close()
		if err != nil {
			t.Fatal(err)
		}
		if got := sent.Get("Content-Type"); got != test.sent {
			t.Errorf("%q: Content-Type %q, want %q", test.given, got, test.sent)
		}
		var want any = test.sent
		if test.base64 == helloBase64 {
			want = nil
		}
		if got := resultOf(t, uploaded)["type"]; got != want {
			t.Errorf("%q: type %v, want %v", test.given, got, want)
		}
	}
}

// What a server leaves out is filled in; what it claims about signatures is not
// passed on.
func TestOddAnswers(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"url":"https://example.org/a","size":"12","sha256":null,"auth":"session","filename":"theirs","nip94":[["m","x"]]}`)
	}))
	t.Cleanup(server.Close)
	service := newService(t, nil, server.URL)
	for filename, want := range map[string]string{"": "theirs", "ours": "ours"} {
		uploaded, err := service.Upload(patient(t), media.UploadRequest{Base64: helloBase64, Filename: filename}, nil)
		if err != nil {
			t.Fatal(err)
		}
		wantResult(t, uploaded, map[string]any{
			"url": "https://example.org/a", "sha256": helloHash, "size": 12.0, "type": nil, "serverUrl": server.URL + "/upload",
			"filename": want, "nip94": []any{[]any{"m", "x"}},
		})
	}
	uploaded, err := service.Upload(patient(t), media.UploadRequest{Base64: helloBase64}, account(t))
	if err != nil {
		t.Fatal(err)
	}
	wantResult(t, uploaded, map[string]any{
		"url": "https://example.org/a", "sha256": helloHash, "size": 12.0, "type": nil, "serverUrl": server.URL, "auth": "session",
	})
}

// A file of many pieces, sent in lines, arrives whole.
func TestLargeUpload(t *testing.T) {
	t.Parallel()
	server := openServer(t)
	content := bytes.Repeat([]byte("A line of a picture, so to speak.\n"), 600_000)
	sum := sha256.Sum256(content)
	hash := hex.EncodeToString(sum[:])
	text := inLines(base64.URLEncoding.EncodeToString(content))
	uploaded, err := newService(t, nil, server.URL()).Upload(patient(t), media.UploadRequest{Base64: text}, account(t))
	if err != nil || uploaded.Descriptor.SHA256 != hash || uploaded.Descriptor.Size != int64(len(content)) {
		t.Fatalf("%+v, %v", uploaded, err)
	}
	if stored, _, found := server.Get(hash); !found || !bytes.Equal(stored, content) {
		t.Errorf("the server holds %d bytes, %t", len(stored), found)
	}
}

// inLines breaks a text as MIME does.
func inLines(text string) string {
	var lines strings.Builder
	for len(text) > 76 {
		lines.WriteString(text[:76])
		lines.WriteString("\r\n")
		text = text[76:]
	}
	lines.WriteString(text)
	return lines.String()
}

// BenchmarkUpload uploads a file of 100 MB to a server that throws it away.
func BenchmarkUpload(b *testing.B) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		_, _ = io.Copy(io.Discard, request.Body)
		fmt.Fprint(w, `{"url":"https://example.org/a"}`)
	}))
	defer server.Close()
	service, signs := newService(b, nil, server.URL), account(b)
	text := base64.StdEncoding.EncodeToString(make([]byte, 100_000_000))
	b.SetBytes(100_000_000)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := service.Upload(b.Context(), media.UploadRequest{Base64: text}, signs); err != nil {
			b.Fatal(err)
		}
	}
}

// signerFunc is a signer that does as it is told.
type signerFunc func(context.Context, *nostr.Event) error

func (f signerFunc) SignEvent(ctx context.Context, event *nostr.Event) error { return f(ctx, event) }

// newService returns a service whose connections end with the test. log may be nil.
func newService(t testing.TB, log io.Writer, servers ...string) *media.Service {
	t.Helper()
	transport := http.DefaultTransport.(*http.Transport).Clone()
	t.Cleanup(transport.CloseIdleConnections)
	logger := zerolog.Nop()
	if log != nil {
		logger = zerolog.New(log)
	}
	reader := imagesource.New(imagesource.Config{AllowPrivateHosts: true})
	t.Cleanup(reader.Close)
	return media.New(blossom.New(blossom.Config{Servers: servers, Transport: transport}), reader, logger)
}

func account(t testing.TB) *signer.Local {
	t.Helper()
	local, err := signer.NewLocal(accountKey)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(local.Close)
	return local
}

func openServer(t testing.TB) *blossomserver.Server {
	t.Helper()
	server, err := blossomserver.Open(0, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Errorf("closing the server: %v", err)
		}
	})
	return server
}

func resultOf(t testing.TB, uploaded media.Uploaded) map[string]any {
	t.Helper()
	text, err := json.Marshal(uploaded)
	if err != nil {
		t.Fatal(err)
	}
	var result map[string]any
	if err := json.Unmarshal(text, &result); err != nil {
		t.Fatal(err)
	}
	return result
}

func wantResult(t testing.TB, uploaded media.Uploaded, want map[string]any) {
	t.Helper()
	if diff := cmp.Diff(want, resultOf(t, uploaded)); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
}

// patient bounds every wait of these tests.
func patient(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}
