package blossomserver

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/nbd-wtf/go-nostr"
)

// authorizationKind is the event kind of BUD-01.
const authorizationKind = 24242

// clockSkew is how far ahead of this clock an authorization may be dated.
const clockSkew = time.Minute

// grant is what a valid authorization event allows.
type grant struct {
	pubkey string
	hashes []string // of its x tags
}

// covers refuses a hash that the authorization does not name.
func (g grant) covers(hash string) error {
	for _, each := range g.hashes {
		if each == hash {
			return nil
		}
	}
	return refuse(http.StatusForbidden, "no x tag of the authorization names the hash of this blob")
}

// authorize checks the Authorization header for one verb (upload, delete) by
// the rules of BUD-01.
func (s *Server) authorize(request *http.Request, verb string) (grant, error) {
	unauthorized := func(reason string) (grant, error) { return grant{}, refuse(http.StatusUnauthorized, reason) }
	scheme, token, _ := strings.Cut(request.Header.Get("Authorization"), " ")
	if token == "" {
		return unauthorized("the Authorization header is missing")
	}
	if !strings.EqualFold(scheme, "Nostr") {
		return unauthorized("the Authorization scheme must be Nostr")
	}
	event, ok := decodeToken(strings.TrimSpace(token))
	if !ok {
		return unauthorized("the authorization is no base64 of a Nostr event")
	}
	if event.Kind != authorizationKind {
		return unauthorized("the authorization must be an event of kind 24242")
	}
	if !genuine(&event) {
		return unauthorized("the id or the signature of the authorization is wrong")
	}
	if event.CreatedAt.Time().After(s.now().Add(clockSkew)) {
		return unauthorized("created_at of the authorization lies in the future")
	}
	expiration, err := strconv.ParseInt(tagValue(event, "expiration"), 10, 64)
	if err != nil {
		return unauthorized("the authorization has no readable expiration tag")
	}
	if !time.Unix(expiration, 0).After(s.now()) {
		return unauthorized("the authorization has expired")
	}
	if tagValue(event, "t") != verb {
		return grant{}, refuse(http.StatusForbidden, "the t tag of the authorization must be "+verb)
	}
	granted := grant{pubkey: event.PubKey}
	for tag := range event.Tags.FindAll("x") {
		granted.hashes = append(granted.hashes, tag[1])
	}
	return granted, nil
}

// decodeToken reads base64, standard or URL-safe, with or without padding.
func decodeToken(token string) (event nostr.Event, ok bool) {
	bare := strings.TrimRight(strings.NewReplacer("-", "+", "_", "/").Replace(token), "=")
	text, err := base64.RawStdEncoding.DecodeString(bare)
	if err != nil {
		return nostr.Event{}, false
	}
	err = json.Unmarshal(text, &event)
	return event, err == nil
}

// genuine checks lengths first: the signature check reads them carelessly
// (spec 82 §10.5).
func genuine(event *nostr.Event) bool {
	if len(event.PubKey) != 64 || len(event.Sig) != 128 || !event.CheckID() {
		return false
	}
	valid, err := event.CheckSignature()
	return err == nil && valid
}

func tagValue(event nostr.Event, key string) string {
	if tag := event.Tags.Find(key); tag != nil {
		return tag[1]
	}
	return ""
}
