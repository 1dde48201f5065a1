package blossomserver

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// upload is PUT /upload. Without an authorization event the header x-sha-256
// must name the hash of the body (spec 20 §11.2), where that is allowed.
func (s *Server) upload(w http.ResponseWriter, request *http.Request) error {
	var permission grant
	declared := strings.ToLower(request.Header.Get("X-Sha-256"))
	if request.Header.Get("Authorization") != "" || !s.open.Load() {
		var err error
		if permission, err = s.authorize(request, "upload"); err != nil {
			return err
		}
	} else if declared == "" {
		return refuse(http.StatusUnauthorized, "an upload needs an Authorization header, or x-sha-256 with the hash of the body")
	}
	data, err := s.readLimited(request.Body, request.ContentLength)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(data)
	name := hex.EncodeToString(sum[:])
	if declared != "" && declared != name {
		return refuse(http.StatusBadRequest, "x-sha-256 is not the hash of the body")
	}
	if permission.pubkey != "" {
		if err := permission.covers(name); err != nil {
			return err
		}
	}
	return writeJSON(w, s.Put(data, request.Header.Get("Content-Type"), permission.pubkey))
}

// mirror is PUT /mirror: the blob is fetched from the URL in the body.
func (s *Server) mirror(w http.ResponseWriter, request *http.Request) error {
	permission, err := s.authorize(request, "upload")
	if err != nil {
		return err
	}
	var body struct {
		URL string `json:"url"`
	}
	if json.NewDecoder(io.LimitReader(request.Body, 1<<16)).Decode(&body) != nil {
		return refuse(http.StatusBadRequest, `the body must be a JSON object such as {"url":"https://…"}`)
	}
	source, err := url.Parse(body.URL)
	if err != nil || (source.Scheme != "http" && source.Scheme != "https") || source.Host == "" {
		return refuse(http.StatusBadRequest, "url must be an HTTP or HTTPS address")
	}
	fetch, err := http.NewRequestWithContext(request.Context(), http.MethodGet, source.String(), nil)
	if err != nil {
		return refuse(http.StatusBadRequest, "url must be an HTTP or HTTPS address")
	}
	response, err := s.client.Do(fetch)
	if err != nil {
		return refuse(http.StatusBadGateway, "the source cannot be reached")
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return refuse(http.StatusBadGateway, "the source answers "+response.Status)
	}
	data, err := s.readLimited(response.Body, response.ContentLength)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(data)
	if err := permission.covers(hex.EncodeToString(sum[:])); err != nil {
		return err
	}
	mediaType := cmp.Or(response.Header.Get("Content-Type"), typeOf(source.Path))
	return writeJSON(w, s.Put(data, mediaType, permission.pubkey))
}

// readLimited reads a body of the announced length (-1: unknown).
func (s *Server) readLimited(body io.Reader, announced int64) ([]byte, error) {
	limit := s.maxBytes.Load()
	if announced > limit {
		return nil, refuse(http.StatusRequestEntityTooLarge, "the blob is larger than this server takes")
	}
	data, err := io.ReadAll(io.LimitReader(body, limit+1))
	switch {
	case err != nil:
		return nil, refuse(http.StatusBadRequest, "the body ended early")
	case int64(len(data)) > limit:
		return nil, refuse(http.StatusRequestEntityTooLarge, "the blob is larger than this server takes")
	case len(data) == 0:
		return nil, refuse(http.StatusBadRequest, "the body is empty")
	}
	return data, nil
}

// refusal is an answer of 4xx or 5xx with its reason.
type refusal struct {
	status int
	reason string
}

// Error implements error.
func (r *refusal) Error() string { return r.reason }

func refuse(status int, reason string) error { return &refusal{status, reason} }

// answering makes an HTTP handler of an endpoint and adds the headers of BUD-01.
func answering(endpoint func(http.ResponseWriter, *http.Request) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		header := w.Header()
		header.Set("Access-Control-Allow-Origin", "*")
		header.Set("Access-Control-Allow-Headers", "Authorization, *")
		header.Set("Access-Control-Allow-Methods", "GET, HEAD, PUT, DELETE")
		header.Set("Access-Control-Expose-Headers", "*")
		err := endpoint(w, request)
		if err == nil {
			return
		}
		refused := &refusal{http.StatusInternalServerError, err.Error()}
		errors.As(err, &refused)
		header.Set("X-Reason", refused.reason)
		header.Set("Content-Type", "application/json")
		w.WriteHeader(refused.status)
		_ = json.NewEncoder(w).Encode(map[string]string{"message": refused.reason})
	})
}

func writeJSON(w http.ResponseWriter, value any) error {
	w.Header().Set("Content-Type", "application/json")
	return json.NewEncoder(w).Encode(value)
}
