package blossom_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nbd-wtf/go-nostr"
	"go.uber.org/goleak"

	"hostr-daemon/internal/blossom"
	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/trace"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The account, the time and the blob of the vector of spec 20 §11.1.
const (
	accountKey  = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
	helloHash   = "10b1411e5c492feda1e5683d137c118a8f9de7789edae542860addf14203f3c4"
	vectorID    = "8dcaf75546bf81b362e4f9282f30b8380939da8aad7912b1345b98dec3c86a61"
	vectorUntil = "1780300000"
)

var signedAt = time.Unix(1780000000, 0)

// localSigner signs with a key at hand.
type localSigner struct{ key string }

func (s localSigner) SignEvent(_ context.Context, event *nostr.Event) error { return event.Sign(s.key) }

// refusingSigner is a signer whose owner says no.
type refusingSigner struct{ err error }

func (s refusingSigner) SignEvent(context.Context, *nostr.Event) error { return s.err }

func hello(mime, filename string) blossom.Blob {
	return blossom.NewBlob([]byte("hello hostr"), mime, filename)
}

// newClient returns a client whose connections end with the test.
func newClient(t testing.TB, servers ...string) *blossom.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	t.Cleanup(transport.CloseIdleConnections)
	return blossom.New(blossom.Config{
		Servers: servers, Transport: transport, Now: func() time.Time { return signedAt }, UserAgent: "hostr-daemon/test",
	})
}

func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func TestAuthorizationVector(t *testing.T) {
	t.Parallel()
	event := blossom.AuthorizationEvent(hello("", "").SHA256(), signedAt)
	if event.PubKey != "" || event.Sig != "" {
		t.Errorf("the event is not unsigned: %v", event)
	}
	want := nostr.Tags{{"t", "upload"}, {"x", helloHash}, {"expiration", vectorUntil}}
	if diff := cmp.Diff(want, event.Tags); diff != "" {
		t.Errorf("tags (-want +got):\n%s", diff)
	}
	if err := event.Sign(accountKey); err != nil {
		t.Fatal(err)
	}
	if event.ID != vectorID {
		t.Errorf("id %s, want %s", event.ID, vectorID)
	}
}

func TestUploadSigned(t *testing.T) {
	t.Parallel()
	server := startServer(t, nil)
	client := newClient(t, " ", server.URL+"/", server.URL+"/")
	ctx := trace.With(testContext(t), "trace-1")
	got, err := client.Upload(ctx, hello("image/png", "ignored.png"), localSigner{accountKey})
	if err != nil {
		t.Fatal(err)
	}
	want := blossom.Descriptor{
		URL: server.URL + "/" + helloHash + ".bin", SHA256: helloHash, Size: 11, Type: "image/png", ServerURL: server.URL,
	}
	checkDescriptor(t, got, want)
	requests := server.received()
	if len(requests) != 1 {
		t.Fatalf("%d requests, want 1", len(requests))
	}
	for name, want := range map[string]string{
		"Content-Type": "image/png", "Content-Length": "11", "X-Trace-Id": "trace-1", "User-Agent": "hostr-daemon/test",
		"X-Sha-256": "", "X-Filename": "",
	} {
		if got := requests[0].header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

// A server that answers with another file has not taken this one.
func TestServerWithAnotherFile(t *testing.T) {
	t.Parallel()
	other := startServer(t, answers(http.StatusOK, `{"url":"https://b.example/1","sha256":"`+strings.Repeat("ab", 32)+`"}`))
	honest := startServer(t, nil)
	got, err := newClient(t, other.URL, honest.URL).Upload(testContext(t), hello("", ""), localSigner{accountKey})
	if err != nil || got.ServerURL != honest.URL || got.SHA256 != helloHash {
		t.Errorf("%+v, %v", got, err)
	}
	_, err = newClient(t, other.URL).Upload(testContext(t), hello("", ""), localSigner{accountKey})
	failures, _ := fault.From(err).Details.([]blossom.Failure)
	if !fault.Is(err, fault.ImageUploadFailed) || len(failures) != 1 || !strings.Contains(failures[0].Error, "sha256 of another file") {
		t.Errorf("%v, %+v", err, failures)
	}
}

func TestContentTypeIsLeftOutWhenUnknown(t *testing.T) {
	t.Parallel()
	server := startServer(t, nil)
	for _, mime := range []string{"", "  ", "no type", "image/png\r\nX-Evil: 1"} {
		if _, err := newClient(t, server.URL).Upload(testContext(t), hello(mime, ""), localSigner{accountKey}); err != nil {
			t.Fatalf("%q: %v", mime, err)
		}
	}
	for _, request := range server.received() {
		if values, sent := request.header["Content-Type"]; sent {
			t.Errorf("Content-Type %q was sent", values)
		}
	}
}

func TestServersInOrderAndMirrors(t *testing.T) {
	t.Parallel()
	full := startServer(t, answers(http.StatusInsufficientStorage, "full"))
	taking := startServer(t, nil)
	mirroring := startServer(t, nil)
	refusing := startServer(t, answers(http.StatusForbidden, ""))
	client := newClient(t, "ftp://user:canary@files.example/x?token=canary", full.URL, taking.URL, mirroring.URL, refusing.URL+"/upload")

	got, err := client.Upload(testContext(t), hello("", ""), localSigner{accountKey})
	if err != nil {
		t.Fatal(err)
	}
	if got.ServerURL != taking.URL {
		t.Errorf("taken by %s, want %s", got.ServerURL, taking.URL)
	}
	var paths []string
	for _, server := range []*blossomServer{full, taking, mirroring, refusing} {
		for _, request := range server.received() {
			paths = append(paths, request.path)
		}
	}
	if want := []string{"/upload", "/upload", "/mirror", "/mirror"}; !reflect.DeepEqual(paths, want) {
		t.Errorf("requests %v, want %v", paths, want)
	}
	mirror := mirroring.received()[0]
	if want := `{"url":"` + got.URL + `"}`; mirror.body != want {
		t.Errorf("mirror body %s, want %s", mirror.body, want)
	}
	if mirror.header.Get("Authorization") != taking.received()[0].header.Get("Authorization") {
		t.Error("the mirror was asked with another authorization")
	}
	if mirror.header.Get("Content-Type") != "application/json" {
		t.Errorf("mirror Content-Type %q", mirror.header.Get("Content-Type"))
	}
}

func TestUploadUnsigned(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		blob            blossom.Blob
		base            string
		mime, sentName  string
		descriptorTypes string
	}{
		"bare":             {hello("", ""), "", "application/octet-stream", "", "application/octet-stream"},
		"named":            {hello("image/png", " a b.png "), "/", "image/png", "a b.png", "image/png"},
		"endpoint":         {hello("image/png", "größe\r\n.png"), "/upload", "image/png", "gr%C3%B6%C3%9Fe%0D%0A.png", "image/png"},
		"query is dropped": {hello("image/gif", ""), "/upload?#", "image/gif", "", "image/gif"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := startServer(t, nil)
			ctx := trace.With(testContext(t), "trace-2")
			got, err := newClient(t, server.URL+test.base).UploadUnsigned(ctx, test.blob)
			if err != nil {
				t.Fatal(err)
			}
			checkDescriptor(t, got, blossom.Descriptor{
				URL: server.URL + "/" + helloHash + ".bin", SHA256: helloHash, Size: 11,
				Type: test.descriptorTypes, ServerURL: server.URL + "/upload",
			})
			header := server.received()[0].header
			for name, want := range map[string]string{
				"Content-Type": test.mime, "Content-Length": "11", "X-Sha-256": helloHash,
				"X-Trace-Id": "trace-2", "X-Filename": test.sentName, "Authorization": "",
			} {
				if got := header.Get(name); got != want {
					t.Errorf("%s is %q, want %q", name, got, want)
				}
			}
		})
	}
}

func TestUnsignedResultHoldsAllKeys(t *testing.T) {
	t.Parallel()
	server := startServer(t, answers(http.StatusCreated,
		`{"url":"https://cdn.example/x","size":"7","uploaded":"1780000001","nip94":[["m","image/png"]],"serverUrl":"forged"}`))
	got, err := newClient(t, server.URL).UploadUnsigned(testContext(t), hello("", ""))
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"nip94":[["m","image/png"]],"serverUrl":"` + server.URL + `/upload","sha256":"` + helloHash +
		`","size":7,"type":null,"uploaded":"1780000001","url":"https://cdn.example/x"}`
	if string(text) != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
}

func TestAllServersRefuse(t *testing.T) {
	t.Parallel()
	large := startServer(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Reason", "larger than 1 MiB")
		w.WriteHeader(http.StatusRequestEntityTooLarge)
	})
	plain := startServer(t, answers(http.StatusBadGateway, "<html>\n\x00"+strings.Repeat("ü", 2000)))
	noURL := startServer(t, answers(http.StatusOK, `{"sha256":"`+helloHash+`"}`))
	endless := startServer(t, answers(http.StatusOK, `{"url":"https://x.example/y","pad":"`+strings.Repeat("p", blossom.MaxAnswerBytes)+`"}`))
	gone := httptest.NewServer(nil)
	gone.Close()
	client := newClient(t, large.URL, plain.URL, noURL.URL, endless.URL, gone.URL, "not a url")

	_, err := client.Upload(testContext(t), hello("", ""), localSigner{accountKey})
	coded := codedError(t, err, fault.ImageUploadFailed)
	signed, _ := coded.Details.([]blossom.Failure)
	if len(signed) != 6 {
		t.Fatalf("details are %v", coded.Details)
	}
	for i, want := range []blossom.Failure{
		{ServerURL: large.URL, Error: "HTTP 413: larger than 1 MiB"},
		{ServerURL: plain.URL, Error: "HTTP 502"},
		{ServerURL: noURL.URL, Error: "the answer names no HTTP or HTTPS url"},
		{ServerURL: endless.URL, Error: "the answer is larger than 65536 bytes"},
		{ServerURL: gone.URL, Error: "connection refused"},
		{ServerURL: "not a url", Error: "the configured server is no HTTP or HTTPS URL"},
	} {
		if got := signed[i]; got.ServerURL != want.ServerURL || got.Success || !strings.Contains(got.Error, want.Error) {
			t.Errorf("failure %d is %+v, want %+v", i, got, want)
		}
		if !strings.Contains(coded.Message, want.Error) {
			t.Errorf("the message %q lacks %q", coded.Message, want.Error)
		}
	}

	_, err = client.UploadUnsigned(testContext(t), hello("", ""))
	unsigned, _ := codedError(t, err, fault.ImageUploadFailed).Details.([]blossom.UnsignedFailure)
	if len(unsigned) != 6 {
		t.Fatalf("unsigned details are %v", unsigned)
	}
	if got := unsigned[1]; got.ServerURL != plain.URL+"/upload" || got.StatusCode != 502 || got.Error != "" ||
		!strings.HasPrefix(*got.Body, "<html>  üüü") || len([]rune(*got.Body)) != 1001 {
		t.Errorf("unsigned failure is %+v", got)
	}
	text, err := json.Marshal([]blossom.UnsignedFailure{unsigned[0], {ServerURL: "u", Error: "e"}})
	if want := `[{"serverUrl":"` + large.URL + `/upload","statusCode":413,"body":""},{"serverUrl":"u","error":"e"}]`; err != nil || string(text) != want {
		t.Errorf("got %s, %v\nwant %s", text, err, want)
	}
}

func TestNoServer(t *testing.T) {
	t.Parallel()
	client := newClient(t, "", "  ")
	_, err := client.Upload(testContext(t), hello("", ""), refusingSigner{errors.New("must not be asked")})
	codedError(t, err, fault.ImageUploadFailed)
	_, err = client.UploadUnsigned(testContext(t), hello("", ""))
	codedError(t, err, fault.ImageUploadFailed)
}

func TestSignerSaysNo(t *testing.T) {
	t.Parallel()
	server := startServer(t, nil)
	refusal := fault.New(fault.AuthRequired, "The signer refused.")
	_, err := newClient(t, server.URL).Upload(testContext(t), hello("", ""), refusingSigner{refusal})
	if !errors.Is(err, refusal) {
		t.Errorf("got %v", err)
	}
	if n := len(server.received()); n != 0 {
		t.Errorf("%d requests were sent without a signature", n)
	}
}

func TestServerThatHangsCostsItsTimeOnly(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	hanging := startServer(t, func(http.ResponseWriter, *http.Request) { <-release })
	defer close(release)
	taking := startServer(t, nil)
	client := newClient(t, hanging.URL, taking.URL)
	client.SetServerTimeout(2 * time.Second)
	got, err := client.Upload(testContext(t), hello("", ""), localSigner{accountKey})
	if err != nil || got.ServerURL != taking.URL {
		t.Errorf("got %v, %v", got, err)
	}

	_, err = newClientWithLimit(t, hanging.URL).UploadUnsigned(testContext(t), hello("", ""))
	if coded := codedError(t, err, fault.ImageUploadFailed); !strings.Contains(coded.Message, "no answer in time") {
		t.Errorf("message: %s", coded.Message)
	}
}

func newClientWithLimit(t *testing.T, server string) *blossom.Client {
	client := newClient(t, server)
	client.SetServerTimeout(50 * time.Millisecond)
	return client
}

func TestCancelEndsTheUpload(t *testing.T) {
	t.Parallel()
	arrived, release := make(chan struct{}), make(chan struct{})
	hanging := startServer(t, func(http.ResponseWriter, *http.Request) { close(arrived); <-release })
	defer close(release)
	second := startServer(t, nil)
	ctx, cancel := context.WithCancel(testContext(t))
	go func() {
		<-arrived
		cancel()
	}()
	_, err := newClient(t, hanging.URL, second.URL).Upload(ctx, hello("", ""), localSigner{accountKey})
	if !errors.Is(err, context.Canceled) || fault.Is(err, fault.ImageUploadFailed) {
		t.Errorf("got %v", err)
	}
	if n := len(second.received()); n != 0 {
		t.Errorf("the second server was asked %d times after the cancel", n)
	}
}

func TestRedirects(t *testing.T) {
	t.Parallel()
	target := startServer(t, nil)
	for status, taken := range map[int]bool{301: false, 302: false, 303: false, 307: true, 308: true} {
		redirecting := startServer(t, func(w http.ResponseWriter, request *http.Request) {
			http.Redirect(w, request, target.URL+"/upload", status)
		})
		_, err := newClient(t, redirecting.URL).UploadUnsigned(testContext(t), hello("", ""))
		if (err == nil) != taken {
			t.Errorf("%d: %v", status, err)
		}
	}
	loop := startServer(t, func(w http.ResponseWriter, request *http.Request) {
		http.Redirect(w, request, "/upload", http.StatusTemporaryRedirect)
	})
	_, err := newClient(t, loop.URL).UploadUnsigned(testContext(t), hello("", ""))
	if coded := codedError(t, err, fault.ImageUploadFailed); !strings.Contains(coded.Message, "too many redirects") {
		t.Errorf("message: %s", coded.Message)
	}
}

// TestLargeBlobIsNotCopied is not parallel: it reads the allocations of the process.
func TestLargeBlobIsNotCopied(t *testing.T) {
	server := startServer(t, nil)
	client := newClient(t, server.URL)
	blob := blossom.NewBlob(make([]byte, 64<<20), "image/png", "")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := client.Upload(testContext(t), blob, localSigner{accountKey}); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 4<<20 {
		t.Errorf("an upload of 64 MiB allocated %d bytes", grown)
	}
}

func checkDescriptor(t *testing.T, got, want blossom.Descriptor) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmp.FilterPath(func(path cmp.Path) bool {
		return path.Last().String() == ".answer"
	}, cmp.Ignore())); diff != "" {
		t.Errorf("descriptor (-want +got):\n%s", diff)
	}
}

func codedError(t *testing.T, err error, code fault.Code) *fault.Error {
	t.Helper()
	var coded *fault.Error
	if !errors.As(err, &coded) || coded.Code != code {
		t.Fatalf("got %v, want %s", err, code)
	}
	return coded
}
