// Package sandbox is a whole Hostr market on one machine: a relay with the rules
// of the deployed one and switches for its faults, a Blossom server, a geocoder,
// and people and listings with real keys and signatures.
//
// Each part speaks the protocol of the real one, so that a client cannot tell
// the difference. It is for tests, newcomers and developers; the daemon must
// never import it, and it must never import the daemon's own reading of events.
package sandbox

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nbd-wtf/go-nostr"
	"github.com/rs/zerolog"

	"hostr-daemon/internal/sandbox/blossomserver"
	"hostr-daemon/internal/sandbox/geocoder"
	"hostr-daemon/internal/sandbox/hostrrelay"
	"hostr-daemon/internal/sandbox/httpfault"
	"hostr-daemon/internal/sandbox/relayproxy"
	"hostr-daemon/internal/sandbox/seed"
)

// Words of the parts, so that most users import this package alone.
type (
	Person     = seed.Person
	Listing    = seed.Listing
	OddListing = seed.OddListing
	Stay       = seed.Stay
	Review     = seed.Review
	// Faults are the relay's, for Market.Relay.Break.
	Faults = relayproxy.Faults
	// HTTPFaults are those of Blossom and the geocoder, for their Switch.Break.
	HTTPFaults = httpfault.Faults
	// Counters are the relay's.
	Counters = relayproxy.Counters
)

// States of a stay.
const (
	Booked    = seed.Booked
	Cancelled = seed.Cancelled
	Blocked   = seed.Blocked
)

// KhatruGoroutine is what tests that check for leaks must ignore
// (goleak.IgnoreAnyFunction): khatru leaves it behind.
const KhatruGoroutine = hostrrelay.KhatruGoroutine

// pictureCount is how many different pictures the listings share.
const pictureCount = 24

// Options say what market to start. The zero value is one without listings.
type Options struct {
	// Listings is how many to seed.
	Listings int
	// Seed decides all keys, texts and places. Event ids also depend on the address
	// of the Blossom server, which listings name: give BlossomPort to repeat them.
	Seed int64
	// Odd adds listings that no careful client would write (Market.Odd).
	Odd bool
	// Stays is how many listings, the newest let by the day, have public orders and
	// reviews (Market.Stays).
	Stays int
	// Hosts and Guests are how many people there are; 0 is a fitting number: one
	// host for eight listings, from 3 to 50, and six guests.
	Hosts  int
	Guests int
	// Ports on loopback; 0 takes a free one.
	RelayPort    int
	BlossomPort  int
	GeocoderPort int
	// Logger is told how long things take and what goes wrong.
	Logger zerolog.Logger
}

// Market is a running market.
type Market struct {
	RelayURL    string // ws://127.0.0.1:…
	BlossomURL  string // http://127.0.0.1:…
	GeocoderURL string // http://127.0.0.1:…/search

	Hosts  []Person
	Guests []Person
	Escrow Person
	// Listings are the seeded ones, newest first.
	Listings []Listing
	// Odd are the odd ones, oldest first, all newer than Listings.
	Odd []OddListing
	// Stays are what the relay holds of bookings, by listing, then by date.
	Stays []Stay

	Relay    *relayproxy.Relay
	Blossom  *blossomserver.Server
	Geocoder *geocoder.Server

	closing sync.Once
	closed  error
}

// Start brings a market up on loopback. ctx bounds the start; the market lives
// until Close.
func Start(ctx context.Context, o Options) (*Market, error) {
	market := &Market{}
	if err := market.start(ctx, o); err != nil {
		return nil, errors.Join(err, market.Close())
	}
	return market, nil
}

// Close ends every part of the market. Later calls return the same.
func (m *Market) Close() error {
	m.closing.Do(func() { m.closed = m.end() })
	return m.closed
}

func (m *Market) end() error {
	var errs []error
	if m.Relay != nil {
		errs = append(errs, m.Relay.Close())
	}
	if m.Blossom != nil {
		errs = append(errs, m.Blossom.Close())
	}
	if m.Geocoder != nil {
		errs = append(errs, m.Geocoder.Close())
	}
	return errors.Join(errs...)
}

func (m *Market) start(ctx context.Context, o Options) error {
	began := time.Now()
	var err error
	if m.Geocoder, err = geocoder.Open(o.GeocoderPort, o.Logger); err != nil {
		return err
	}
	if m.Blossom, err = blossomserver.Open(o.BlossomPort, o.Logger); err != nil {
		return err
	}
	m.GeocoderURL, m.BlossomURL = m.Geocoder.URL(), m.Blossom.URL()
	seeded, err := m.seed(o)
	if err != nil {
		return err
	}
	events := seeded.Events()
	o.Logger.Info().Int("events", len(events)).Int("listings", o.Listings).
		Dur("elapsed", time.Since(began)).Msg("market.signed")

	m.Relay, err = relayproxy.Open(relayproxy.Options{
		Port:    o.RelayPort,
		Foreign: foreign(seeded),
		Logger:  o.Logger,
		Start: func(serviceURL string) (relayproxy.Backend, error) {
			return openRelay(ctx, serviceURL, o.Logger)
		},
	})
	if err != nil {
		return err
	}
	m.RelayURL = m.Relay.URL()
	if err := m.Relay.Insert(ctx, events...); err != nil {
		return fmt.Errorf("the relay does not take the seeded events: %w", err)
	}
	o.Logger.Info().Dur("elapsed", time.Since(began)).Msg("market.ready")
	return nil
}

func (m *Market) seed(o Options) (*seed.Market, error) {
	pictures, err := seed.NewPictures(o.Seed, pictureCount)
	if err != nil {
		return nil, err
	}
	images := make([]seed.Image, len(pictures))
	for i, picture := range pictures {
		images[i] = picture.At(m.Blossom.Put(picture.PNG, "image/png", "").URL)
	}
	if o.Hosts == 0 {
		o.Hosts = min(max(o.Listings/8, 3), 50)
	}
	if o.Guests == 0 {
		o.Guests = 6
	}
	seeded, err := seed.Make(seed.Options{
		Seed: o.Seed, Hosts: o.Hosts, Guests: o.Guests, Listings: o.Listings, Odd: o.Odd, Stays: o.Stays,
		Images: images, Settlements: geocoder.Settlements(m.Geocoder.Places()),
	})
	if err != nil {
		return nil, err
	}
	m.Hosts, m.Guests, m.Escrow = seeded.Hosts, seeded.Guests, seeded.Escrow
	m.Listings, m.Odd, m.Stays = seeded.Listings, seeded.Odd, seeded.Stays
	return seeded, nil
}

// foreign returns events for Faults.Foreign: listings first, since a listing
// that a search did not ask for is the hardest to tell.
func foreign(seeded *seed.Market) []nostr.Event {
	var events []nostr.Event
	for _, listing := range seeded.Listings[:min(len(seeded.Listings), 30)] {
		events = append(events, listing.Event)
	}
	for _, person := range seeded.Hosts {
		events = append(events, *person.Profile)
	}
	return append(events, *seeded.Escrow.Profile)
}
