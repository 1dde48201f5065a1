package blossomserver

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nbd-wtf/go-nostr"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"hostr-daemon/internal/sandbox/httpfault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t testing.TB) *Server {
	t.Helper()
	server, err := Open(0, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	return server
}

// answer is what came back.
type answer struct {
	status     int
	header     http.Header
	body       []byte
	descriptor Descriptor
}

func do(t testing.TB, method, url string, body []byte, headers map[string]string) answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for key, value := range headers {
		request.Header.Set(key, value)
	}
	response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	got := answer{status: response.StatusCode, header: response.Header}
	if got.body, err = io.ReadAll(response.Body); err != nil {
		t.Fatal(err)
	}
	_ = json.Unmarshal(got.body, &got.descriptor)
	return got
}

func hash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// authorization is a token to be bent by tests.
func authorization(t testing.TB, key, verb, hash string, bend func(*nostr.Event)) string {
	t.Helper()
	event := nostr.Event{
		Kind: 24242, CreatedAt: nostr.Now(), Content: verb,
		Tags: nostr.Tags{{"t", verb}, {"x", hash}, {"expiration", strconv.FormatInt(int64(nostr.Now())+300000, 10)}},
	}
	if bend != nil {
		bend(&event)
	}
	if err := event.Sign(key); err != nil {
		t.Fatal(err)
	}
	return encoded(t, event)
}

func encoded(t testing.TB, event nostr.Event) string {
	t.Helper()
	text, err := json.Marshal(event)
	if err != nil {
		t.Fatal(err)
	}
	return "Nostr " + base64.StdEncoding.EncodeToString(text)
}

func TestUploadAndGet(t *testing.T) {
	t.Parallel()
	server := open(t)
	key := nostr.GeneratePrivateKey()
	data := []byte("hello hostr")
	const name = "10b1411e5c492feda1e5683d137c118a8f9de7789edae542860addf14203f3c4" // spec 20 §11.1
	got := do(t, "PUT", server.URL()+"/upload", data, map[string]string{
		"Authorization": authorization(t, key, "upload", name, nil), "Content-Type": "image/png",
	})
	want := Descriptor{URL: server.URL() + "/" + name + ".png", SHA256: name, Size: len(data), Type: "image/png", Uploaded: got.descriptor.Uploaded}
	if difference := cmp.Diff(want, got.descriptor); got.status != 200 || difference != "" || want.Uploaded == 0 {
		t.Fatalf("upload: %d (-want +got):\n%s", got.status, difference)
	}
	for _, url := range []string{got.descriptor.URL, server.URL() + "/" + name, server.URL() + "/" + name + ".whatever"} {
		blob := do(t, "GET", url, nil, nil)
		if blob.status != 200 || !bytes.Equal(blob.body, data) || blob.header.Get("Content-Type") != "image/png" ||
			blob.header.Get("Access-Control-Allow-Origin") != "*" {
			t.Errorf("GET %s: %d %q %v", url, blob.status, blob.body, blob.header)
		}
		head := do(t, "HEAD", url, nil, nil)
		if head.status != 200 || len(head.body) != 0 || head.header.Get("Content-Length") != strconv.Itoa(len(data)) {
			t.Errorf("HEAD %s: %d %v", url, head.status, head.header)
		}
	}
	part := do(t, "GET", got.descriptor.URL, nil, map[string]string{"Range": "bytes=6-"})
	if part.status != http.StatusPartialContent || string(part.body) != "hostr" {
		t.Errorf("range: %d %q", part.status, part.body)
	}
}

func TestUploadAuthorization(t *testing.T) {
	t.Parallel()
	server := open(t)
	server.RequireAuthorization(true)
	key := nostr.GeneratePrivateKey()
	data := []byte("a picture")
	name := hash(data)
	tag := func(i int, value string) func(*nostr.Event) {
		return func(event *nostr.Event) { event.Tags[i][1] = value }
	}
	forged := func(change func(*nostr.Event)) string {
		event := nostr.Event{Kind: 24242, CreatedAt: nostr.Now(), Tags: nostr.Tags{
			{"t", "upload"}, {"x", name}, {"expiration", "99999999999"}}}
		if err := event.Sign(key); err != nil {
			t.Fatal(err)
		}
		change(&event)
		return encoded(t, event)
	}
	past := strconv.FormatInt(int64(nostr.Now())-1, 10)
	unpadded := strings.TrimRight(strings.NewReplacer("+", "-", "/", "_").Replace(authorization(t, key, "upload", name, nil)), "=")
	for _, c := range []struct {
		name   string
		token  string
		status int
	}{
		{"none", "", 401},
		{"other scheme", "Bearer abc", 401},
		{"no token", "Nostr ", 401},
		{"no base64", "Nostr !!!", 401},
		{"no event", "Nostr " + base64.StdEncoding.EncodeToString([]byte("17")), 401},
		{"wrong kind", authorization(t, key, "upload", name, func(e *nostr.Event) { e.Kind = 1 }), 401},
		{"from the future", authorization(t, key, "upload", name, func(e *nostr.Event) { e.CreatedAt += 3600 }), 401},
		{"expired", authorization(t, key, "upload", name, tag(2, past)), 401},
		{"unreadable expiration", authorization(t, key, "upload", name, tag(2, "soon")), 401},
		{"no expiration", authorization(t, key, "upload", name, func(e *nostr.Event) { e.Tags = e.Tags[:2] }), 401},
		{"wrong id", forged(func(e *nostr.Event) { e.Content = "changed" }), 401},
		{"wrong signature", forged(func(e *nostr.Event) { e.Sig = strings.Repeat("0", 128) }), 401},
		{"short signature", forged(func(e *nostr.Event) { e.Sig = e.Sig[:126] }), 401},
		{"long pubkey", forged(func(e *nostr.Event) { e.PubKey += "00" }), 401},
		{"other verb", authorization(t, key, "delete", name, nil), 403},
		{"other hash", authorization(t, key, "upload", hash([]byte("else")), nil), 403},
		{"two hashes", authorization(t, key, "upload", hash([]byte("else")), func(e *nostr.Event) {
			e.Tags = append(e.Tags, nostr.Tag{"x", name})
		}), 200},
		{"URL-safe without padding", unpadded, 200},
		{"good", authorization(t, key, "upload", name, nil), 200},
	} {
		headers := map[string]string{}
		if c.token != "" {
			headers["Authorization"] = c.token
		}
		got := do(t, "PUT", server.URL()+"/upload", data, headers)
		if got.status != c.status {
			t.Errorf("%s: %d %s, want %d", c.name, got.status, got.body, c.status)
		}
		var reason struct{ Message string }
		_ = json.Unmarshal(got.body, &reason)
		if c.status != 200 && (reason.Message == "" || got.header.Get("X-Reason") != reason.Message) {
			t.Errorf("%s: X-Reason %q, body %s", c.name, got.header.Get("X-Reason"), got.body)
		}
	}
}

func TestUploadWithoutAuthorization(t *testing.T) {
	t.Parallel()
	server := open(t)
	data := []byte("anybody's picture")
	for _, c := range []struct {
		name     string
		required bool
		headers  map[string]string
		status   int
	}{
		{"with its hash", false, map[string]string{"x-sha-256": hash(data)}, 200},
		{"with its hash in capitals", false, map[string]string{"x-sha-256": strings.ToUpper(hash(data))}, 200},
		{"with another hash", false, map[string]string{"x-sha-256": hash(nil)}, 400},
		{"without a hash", false, nil, 401},
		{"where it is not allowed", true, map[string]string{"x-sha-256": hash(data)}, 401},
	} {
		server.RequireAuthorization(c.required)
		if got := do(t, "PUT", server.URL()+"/upload", data, c.headers); got.status != c.status {
			t.Errorf("%s: %d %s, want %d", c.name, got.status, got.body, c.status)
		}
	}
	_, descriptor, found := server.Get(hash(data))
	if !found || descriptor.Type != "application/octet-stream" || !strings.HasSuffix(descriptor.URL, ".bin") {
		t.Errorf("stored as %+v", descriptor)
	}
}

func TestSizeLimit(t *testing.T) {
	t.Parallel()
	server := open(t)
	server.SetMaxBytes(10)
	for size, status := range map[int]int{0: 400, 1: 200, 10: 200, 11: 413} {
		data := bytes.Repeat([]byte("x"), size)
		if got := do(t, "PUT", server.URL()+"/upload", data, map[string]string{"x-sha-256": hash(data)}); got.status != status {
			t.Errorf("%d bytes: %d %s, want %d", size, got.status, got.body, status)
		}
	}
}

func TestMirror(t *testing.T) {
	t.Parallel()
	source, target := open(t), open(t)
	key := nostr.GeneratePrivateKey()
	data := []byte("a picture on another server")
	url := source.Put(data, "image/webp", "").URL
	token := authorization(t, key, "upload", hash(data), nil)
	for _, c := range []struct {
		name   string
		body   string
		token  string
		status int
	}{
		{"without authorization", `{"url":"` + url + `"}`, "", 401},
		{"another hash", `{"url":"` + url + `"}`, authorization(t, key, "upload", hash(nil), nil), 403},
		{"no JSON", `url`, token, 400},
		{"no URL", `{"url":"/picture.png"}`, token, 400},
		{"a file", `{"url":"file:///picture.png"}`, token, 400},
		{"not there", `{"url":"` + source.URL() + "/" + hash(nil) + `"}`, token, 502},
		{"not reachable", `{"url":"http://127.0.0.1:1/x.png"}`, token, 502},
		{"good", `{"url":"` + url + `"}`, token, 200},
	} {
		headers := map[string]string{"Content-Type": "application/json"}
		if c.token != "" {
			headers["Authorization"] = c.token
		}
		if got := do(t, "PUT", target.URL()+"/mirror", []byte(c.body), headers); got.status != c.status {
			t.Errorf("%s: %d %s, want %d", c.name, got.status, got.body, c.status)
		}
	}
	copied, descriptor, found := target.Get(hash(data))
	if !found || !bytes.Equal(copied, data) || descriptor.Type != "image/webp" || target.Len() != 1 {
		t.Errorf("mirrored as %+v", descriptor)
	}
}

func TestListAndDelete(t *testing.T) {
	t.Parallel()
	server := open(t)
	key, other := nostr.GeneratePrivateKey(), nostr.GeneratePrivateKey()
	owner, err := nostr.GetPublicKey(key)
	if err != nil {
		t.Fatal(err)
	}
	data := []byte("mine")
	name := server.Put(data, "text/plain", owner).SHA256
	listed := func() (descriptors []Descriptor) {
		if err := json.Unmarshal(do(t, "GET", server.URL()+"/list/"+owner, nil, nil).body, &descriptors); err != nil {
			t.Fatal(err)
		}
		return descriptors
	}
	if got := listed(); len(got) != 1 || got[0].SHA256 != name {
		t.Errorf("listed %+v", got)
	}
	for _, c := range []struct {
		name   string
		token  string
		status int
	}{
		{"without authorization", "", 401},
		{"by another", authorization(t, other, "delete", name, nil), 403},
		{"for another blob", authorization(t, key, "delete", hash(nil), nil), 403},
		{"by the owner", authorization(t, key, "delete", name, nil), 204},
		{"again", authorization(t, key, "delete", name, nil), 404},
	} {
		if got := do(t, "DELETE", server.URL()+"/"+name, nil, map[string]string{"Authorization": c.token}); got.status != c.status {
			t.Errorf("%s: %d %s, want %d", c.name, got.status, got.body, c.status)
		}
	}
	if got := listed(); len(got) != 0 {
		t.Errorf("listed after deleting: %+v", got)
	}
}

func TestWhatIsNotThere(t *testing.T) {
	t.Parallel()
	server := open(t)
	for url, status := range map[string]int{
		"/" + hash(nil): 404, "/nonsense": 400, "/": 404, "/" + hash(nil) + "/x": 404, "/list/nobody": 400,
	} {
		if got := do(t, "GET", server.URL()+url, nil, nil); got.status != status || got.header.Get("X-Reason") == "" {
			t.Errorf("GET %s: %d, want %d with a reason", url, got.status, status)
		}
	}
	if got := do(t, "OPTIONS", server.URL()+"/upload", nil, nil); got.status != 204 || got.header.Get("Access-Control-Allow-Methods") == "" {
		t.Errorf("OPTIONS: %d %v", got.status, got.header)
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	server := open(t)
	url := server.Put([]byte("x"), "text/plain", "").URL
	server.Switch.Break(httpfault.Faults{Status: 503, Times: 2})
	for i, status := range []int{503, 503, 200} {
		if got := do(t, "GET", url, nil, nil); got.status != status {
			t.Errorf("request %d: %d, want %d", i, got.status, status)
		}
	}
	if requests := server.Switch.Requests(); len(requests) != 3 || requests[0].Method != "GET" {
		t.Errorf("remembered %+v", requests)
	}
}

func FuzzDecodeToken(f *testing.F) {
	for _, seed := range []string{"", "e30=", "e30", "bnVsbA", "W10=", "e-_+/w==", strings.Repeat("\n", 140)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, token string) {
		if event, ok := decodeToken(token); ok {
			genuine(&event)
		}
	})
}
