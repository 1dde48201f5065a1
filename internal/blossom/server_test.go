package blossom_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nbd-wtf/go-nostr"
)

// blossomServer is a Blossom server that checks what it is sent and remembers it.
// It keeps hashes, not blobs.
type blossomServer struct {
	*httptest.Server
	now func() time.Time
	// answer replaces the descriptor of a valid upload, if set.
	answer http.HandlerFunc

	mu       sync.Mutex
	requests []received
}

type received struct {
	path   string
	header http.Header
	hash   string
	size   int64
	body   string // of mirror requests
}

func startServer(t testing.TB, answer http.HandlerFunc) *blossomServer {
	server := &blossomServer{answer: answer, now: func() time.Time { return signedAt }}
	server.Server = httptest.NewServer(http.HandlerFunc(server.serve))
	t.Cleanup(server.Close)
	return server
}

func (s *blossomServer) serve(w http.ResponseWriter, request *http.Request) {
	if request.Method != http.MethodPut {
		http.Error(w, "only PUT", http.StatusMethodNotAllowed)
		return
	}
	got := received{path: request.URL.Path, header: request.Header.Clone()}
	hash := sha256.New()
	var begin strings.Builder
	got.size, _ = io.Copy(io.MultiWriter(hash, &limited{&begin, 1000}), request.Body)
	got.hash, got.body = hex.EncodeToString(hash.Sum(nil)), begin.String()
	s.mu.Lock()
	s.requests = append(s.requests, got)
	s.mu.Unlock()
	if s.answer != nil {
		s.answer(w, request)
		return
	}
	if problem := s.check(got); problem != "" {
		w.Header().Set("X-Reason", problem)
		http.Error(w, `{"message":"refused"}`, http.StatusUnauthorized)
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]any{
		"url": s.URL + "/" + got.hash + ".bin", "sha256": got.hash, "size": got.size,
		"type": got.header.Get("Content-Type"), "uploaded": s.now().Unix(),
	})
}

// check returns what is wrong with a request, or "".
func (s *blossomServer) check(got received) string {
	authorization := got.header.Get("Authorization")
	if authorization == "" {
		if got.path != "/upload" || got.header.Get("X-Sha-256") != got.hash {
			return "neither an authorization nor the hash of the body"
		}
		return ""
	}
	encoded, found := strings.CutPrefix(authorization, "Nostr ")
	if !found {
		return "the scheme is not Nostr"
	}
	text, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return "no standard base64"
	}
	var event nostr.Event
	if err := json.Unmarshal(text, &event); err != nil {
		return "no event"
	}
	return s.checkEvent(event, got)
}

func (s *blossomServer) checkEvent(event nostr.Event, got received) string {
	if valid, err := event.CheckSignature(); err != nil || !valid || !event.CheckID() {
		return "the signature or the id is wrong"
	}
	expiration := tagValue(event, "expiration")
	until, err := strconv.ParseInt(expiration, 10, 64)
	switch {
	case event.Kind != 24242 || event.Content != "upload" || tagValue(event, "t") != "upload":
		return "not an upload authorization"
	case err != nil || until <= s.now().Unix():
		return "expired: " + expiration
	case got.path == "/mirror" && strings.Contains(got.body, tagValue(event, "x")):
		return ""
	case got.path != "/upload" || tagValue(event, "x") != got.hash:
		return "the authorization is for another blob"
	default:
		return ""
	}
}

func (s *blossomServer) received() []received {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]received(nil), s.requests...)
}

func tagValue(event nostr.Event, name string) string {
	if tag := event.Tags.Find(name); tag != nil {
		return tag[1]
	}
	return ""
}

// limited writes the first bytes and drops the rest.
type limited struct {
	next io.Writer
	left int
}

func (l *limited) Write(data []byte) (int, error) {
	take := min(len(data), l.left)
	l.left -= take
	if _, err := l.next.Write(data[:take]); err != nil {
		return 0, err
	}
	return len(data), nil
}

// answers makes a handler that says one thing to everybody.
func answers(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = fmt.Fprint(w, body)
	}
}
