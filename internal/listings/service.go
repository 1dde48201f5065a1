// Package listings is the use case around places to stay: finding and reading them,
// and publishing those of an account (spec 40). It is built for one session.
//
// It knows which questions to put to the relay and the geocoder, and in what order a
// listing comes to be. What a listing is stands in package market; how a result looks
// stands in package actions.
package listings

import (
	"context"

	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/relay"
)

// Relays is what the service needs of a session's relay client.
type Relays interface {
	Query(ctx context.Context, filter nostr.Filter, options relay.QueryOptions) (relay.Answer, error)
}

// Service finds listings, and what is public about them, for one session.
type Service struct {
	relays Relays
	cells  *Cells
}

// New returns the service of one session; cells is shared by all sessions.
func New(relays Relays, cells *Cells) *Service {
	return &Service{relays: relays, cells: cells}
}
