package runtime

import (
	"fmt"

	"github.com/rs/zerolog"

	"hostr-daemon/internal/environment"
	"hostr-daemon/internal/listings"
	"hostr-daemon/internal/profiles"
	"hostr-daemon/internal/relay"
)

// Session is who is asking, with the services built on their relay connections.
// Today there is the foreground session only, which nobody is signed in to.
type Session struct {
	// Profiles looks people up.
	Profiles *profiles.Service
	// Listings finds places to stay.
	Listings *listings.Service

	relays *relay.Client
}

// newSession builds a session; its relays are contacted when first asked.
func newSession(facts environment.Environment, shared *shared, logger zerolog.Logger) (*Session, error) {
	client, err := relay.NewClient(relay.Config{
		HostrRelay: facts.HostrRelay,
		Bootstrap:  facts.BootstrapList(),
		TLS:        facts.TLSConfig(),
		Verifier:   shared.verifier,
		Logger:     logger,
	})
	if err != nil {
		return nil, fmt.Errorf("setting up the relay client of %s: %w", facts.Name, err)
	}
	return &Session{
		Profiles: profiles.New(client, facts.HostrRelay, facts.BootstrapList(), shared.profiles),
		Listings: listings.New(client, shared.cells),
		relays:   client,
	}, nil
}

// close ends the services first, so that what they have under way ends as closed and
// not as a failure of the relays.
func (s *Session) close() {
	s.Profiles.Close()
	s.relays.Close()
}
