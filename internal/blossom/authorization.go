package blossom

import (
	"context"
	"encoding/base64"
	"fmt"
	"strconv"
	"time"

	"github.com/nbd-wtf/go-nostr"
)

// AuthorizationKind is the event kind of an authorization (BUD-01).
const AuthorizationKind = 24242

// authorizationLife is in seconds, about three and a half days. It began as a
// slip of units upstream and is kept: approval on a phone may be slow, servers ask
// for no more than a time ahead, and the event is good for one blob (spec 20 §11.1).
const authorizationLife = 300_000

// EventSigner signs as the account that uploads: it fills in pubkey, id and
// signature. It may take as long as a person with a phone takes.
type EventSigner interface {
	SignEvent(ctx context.Context, event *nostr.Event) error
}

// AuthorizationEvent returns the unsigned event that allows the upload of the blob
// with the hash, 64 hex digits (BUD-02; spec 20 §11.1).
func AuthorizationEvent(sha256 string, now time.Time) nostr.Event {
	createdAt := now.Unix()
	return nostr.Event{
		CreatedAt: nostr.Timestamp(createdAt),
		Kind:      AuthorizationKind,
		Tags: nostr.Tags{
			{"t", "upload"},
			{"x", sha256},
			{"expiration", strconv.FormatInt(createdAt+authorizationLife, 10)},
		},
		Content: "upload",
	}
}

// AuthorizationHeader returns the value of the Authorization header for a signed
// event: standard base64 with padding (spec 81, NIP-B7).
func AuthorizationHeader(event nostr.Event) string {
	return "Nostr " + base64.StdEncoding.EncodeToString([]byte(event.String()))
}

func authorize(ctx context.Context, sha256 string, now time.Time, signer EventSigner) (string, error) {
	event := AuthorizationEvent(sha256, now)
	if err := signer.SignEvent(ctx, &event); err != nil {
		return "", fmt.Errorf("the upload was not signed: %w", err)
	}
	return AuthorizationHeader(event), nil
}
