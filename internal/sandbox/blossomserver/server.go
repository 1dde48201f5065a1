// Package blossomserver is the Blossom server of the sandbox: BUD-01 (get), BUD-02
// (upload, list, delete) and BUD-04 (mirror) over blobs in memory.
//
// It verifies authorization events for real and answers with the statuses and
// X-Reason texts a client has to cope with. It knows nothing of listings.
package blossomserver

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"mime"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"hostr-daemon/internal/sandbox/httpfault"
	"hostr-daemon/internal/sandbox/loopback"
)

// DefaultMaxBytes is the largest blob taken unless SetMaxBytes says otherwise.
const DefaultMaxBytes = 32 << 20

// Descriptor is the blob descriptor of BUD-02.
type Descriptor struct {
	URL      string `json:"url"`
	SHA256   string `json:"sha256"`
	Size     int    `json:"size"`
	Type     string `json:"type"`
	Uploaded int64  `json:"uploaded"` // unix seconds
}

// Server is a running Blossom server. Safe for concurrent use.
type Server struct {
	// Switch breaks and heals the server and remembers its requests.
	Switch *httpfault.Switch

	server   *loopback.Server
	client   *http.Client // for mirroring
	now      func() time.Time
	open     atomic.Bool
	maxBytes atomic.Int64
	mu       sync.RWMutex
	blobs    map[string]*blob // by SHA-256
}

// blob is stored bytes and the pubkeys that have uploaded them.
type blob struct {
	descriptor Descriptor
	data       []byte
	owners     map[string]struct{}
}

// Open starts a server on the port of loopback (0: a free one). It takes uploads
// without authorization, as the deployed server does for those who are not
// signed in, until RequireAuthorization says otherwise.
func Open(port int, logger zerolog.Logger) (*Server, error) {
	s := &Server{
		client: &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}},
		now:    time.Now,
		blobs:  make(map[string]*blob),
	}
	s.open.Store(true)
	s.maxBytes.Store(DefaultMaxBytes)
	s.Switch = httpfault.New(s.routes())
	server, err := loopback.Serve(port, s.Switch, logger)
	if err != nil {
		return nil, fmt.Errorf("blossom server: %w", err)
	}
	s.server = server
	return s, nil
}

// URL returns the address, without a slash at the end.
func (s *Server) URL() string { return s.server.URL() }

// RequireAuthorization switches uploads without an authorization event off or on.
func (s *Server) RequireAuthorization(required bool) { s.open.Store(!required) }

// SetMaxBytes sets the largest blob that is taken.
func (s *Server) SetMaxBytes(limit int64) { s.maxBytes.Store(limit) }

// Put stores a blob past every rule and returns its descriptor. owner is a
// pubkey or "".
func (s *Server) Put(data []byte, mediaType, owner string) Descriptor {
	sum := sha256.Sum256(data)
	name := hex.EncodeToString(sum[:])
	mediaType = cmp.Or(mediaType, "application/octet-stream")
	s.mu.Lock()
	defer s.mu.Unlock()
	stored := s.blobs[name]
	if stored == nil {
		stored = &blob{data: data, owners: make(map[string]struct{}), descriptor: Descriptor{
			URL:      s.URL() + "/" + name + extension(mediaType),
			SHA256:   name,
			Size:     len(data),
			Type:     mediaType,
			Uploaded: s.now().Unix(),
		}}
		s.blobs[name] = stored
	}
	if owner != "" {
		stored.owners[owner] = struct{}{}
	}
	return stored.descriptor
}

// Get returns a stored blob by its SHA-256.
func (s *Server) Get(name string) (data []byte, descriptor Descriptor, found bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	stored := s.blobs[name]
	if stored == nil {
		return nil, Descriptor{}, false
	}
	return stored.data, stored.descriptor, true
}

// Len returns the number of stored blobs.
func (s *Server) Len() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.blobs)
}

// Close ends the server.
func (s *Server) Close() error { return s.server.Close() }

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("PUT /upload", answering(s.upload))
	mux.Handle("PUT /mirror", answering(s.mirror))
	mux.Handle("GET /list/{pubkey}", answering(s.list))
	mux.Handle("DELETE /{blob}", answering(s.delete))
	mux.Handle("GET /{blob}", answering(s.get)) // and HEAD
	mux.Handle("OPTIONS /", answering(func(w http.ResponseWriter, _ *http.Request) error {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}))
	mux.Handle("/", answering(func(http.ResponseWriter, *http.Request) error {
		return refuse(http.StatusNotFound, "there is no such endpoint")
	}))
	return mux
}

func (s *Server) get(w http.ResponseWriter, request *http.Request) error {
	name, err := blobName(request)
	if err != nil {
		return err
	}
	data, descriptor, found := s.Get(name)
	if !found {
		return refuse(http.StatusNotFound, "no blob with this hash is stored here")
	}
	w.Header().Set("Content-Type", descriptor.Type)
	w.Header().Set("ETag", `"`+name+`"`)
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	http.ServeContent(w, request, "", time.Unix(descriptor.Uploaded, 0), bytes.NewReader(data))
	return nil
}

func (s *Server) list(w http.ResponseWriter, request *http.Request) error {
	owner := request.PathValue("pubkey")
	if !isHex(owner) {
		return refuse(http.StatusBadRequest, "the pubkey must be 64 hex digits")
	}
	descriptors := []Descriptor{}
	s.mu.RLock()
	for _, stored := range s.blobs {
		if _, owned := stored.owners[owner]; owned {
			descriptors = append(descriptors, stored.descriptor)
		}
	}
	s.mu.RUnlock()
	slices.SortFunc(descriptors, func(a, b Descriptor) int { return strings.Compare(a.SHA256, b.SHA256) })
	return writeJSON(w, descriptors)
}

func (s *Server) delete(w http.ResponseWriter, request *http.Request) error {
	name, err := blobName(request)
	if err != nil {
		return err
	}
	grant, err := s.authorize(request, "delete")
	if err != nil {
		return err
	}
	if err := grant.covers(name); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	stored := s.blobs[name]
	if stored == nil {
		return refuse(http.StatusNotFound, "no blob with this hash is stored here")
	}
	if _, owned := stored.owners[grant.pubkey]; !owned {
		return refuse(http.StatusForbidden, "the blob was uploaded by somebody else")
	}
	delete(stored.owners, grant.pubkey)
	if len(stored.owners) == 0 {
		delete(s.blobs, name)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// blobName reads <sha256>[.ext] out of the path.
func blobName(request *http.Request) (string, error) {
	name, _, _ := strings.Cut(request.PathValue("blob"), ".")
	if !isHex(name) {
		return "", refuse(http.StatusBadRequest, "the path must be a SHA-256 of 64 hex digits, with or without an extension")
	}
	return name, nil
}

func isHex(text string) bool {
	raw, err := hex.DecodeString(text)
	return err == nil && len(raw) == sha256.Size && strings.ToLower(text) == text
}

// extension returns the file name extension of a media type, with its dot.
func extension(mediaType string) string {
	bare, _, err := mime.ParseMediaType(mediaType)
	if err != nil {
		return ""
	}
	known := map[string]string{
		"image/png": ".png", "image/jpeg": ".jpg", "image/gif": ".gif", "image/webp": ".webp",
		"image/svg+xml": ".svg", "image/avif": ".avif", "application/pdf": ".pdf", "text/plain": ".txt",
	}
	return cmp.Or(known[bare], ".bin")
}

// typeOf returns the media type a URL's extension stands for, or "".
func typeOf(urlPath string) string { return mime.TypeByExtension(path.Ext(urlPath)) }
