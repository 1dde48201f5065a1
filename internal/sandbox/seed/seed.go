// Package seed makes the people, listings and stays of a sandbox market: real keys,
// real signatures, texts and prices as a market would have them, all decided by
// one number. It writes listings as another client would, from the event format
// (spec 40 §1 and §2) alone, so that what reads them is truly tested.
//
// The keys are worthless by design: anyone can derive them.
package seed

import (
	"fmt"
	"math/rand/v2"
	"runtime"

	"github.com/nbd-wtf/go-nostr"
	"golang.org/x/sync/errgroup"

	"hostr-daemon/internal/sandbox/geocoder"
)

// Epoch is the created_at of the newest seeded listing, in unix seconds
// (1 January 2026, 00:00 UTC). Fixed, so that a seed always gives the same events.
const Epoch nostr.Timestamp = 1767225600

// Options say what to make.
type Options struct {
	Seed     int64
	Hosts    int
	Guests   int
	Listings int
	// Odd adds the listings of odd.go.
	Odd bool
	// Stays is how many listings, the newest let by the day, have stays.
	Stays int
	// Images are URLs of pictures on the market's Blossom server. They are part of
	// the events: equal events need equal URLs.
	Images []Image
	// Settlements are where the listings may be.
	Settlements []geocoder.Place
}

// Market is everything seeded.
type Market struct {
	Hosts    []Person
	Guests   []Person
	Escrow   Person
	Listings []Listing // newest first
	Odd      []OddListing
	Stays    []Stay // by listing, then by date
}

// Make makes and signs a market.
func Make(o Options) (*Market, error) {
	if o.Listings > 0 && (o.Hosts < 1 || len(o.Settlements) == 0 || len(o.Images) == 0) {
		return nil, fmt.Errorf("listings need at least one host, one settlement and one image")
	}
	if o.Stays > 0 && o.Guests < 1 {
		return nil, fmt.Errorf("stays need at least one guest")
	}
	market := &Market{
		Hosts:    make([]Person, o.Hosts),
		Guests:   make([]Person, o.Guests),
		Listings: make([]Listing, o.Listings),
	}
	var err error
	if market.Escrow, err = newPerson(o.Seed, Escrow, 0); err != nil {
		return nil, err
	}
	makers := []struct {
		count int
		make  func(i int) error
	}{
		{o.Hosts, func(i int) (err error) { market.Hosts[i], err = newPerson(o.Seed, Host, i); return err }},
		{o.Guests, func(i int) (err error) { market.Guests[i], err = newPerson(o.Seed, Guest, i); return err }},
		{o.Listings, func(i int) (err error) {
			market.Listings[i], err = newListing(o, market.Hosts[i%len(market.Hosts)], i)
			return err
		}},
	}
	for _, maker := range makers {
		if err := inParallel(maker.count, maker.make); err != nil {
			return nil, err
		}
	}
	if o.Odd {
		if market.Odd, err = newOddListings(o.Seed); err != nil {
			return nil, err
		}
	}
	market.Stays, err = newStays(o, market)
	return market, err
}

// Events returns all events of the market.
func (m *Market) Events() []nostr.Event {
	var events []nostr.Event
	for _, people := range [][]Person{m.Hosts, m.Guests, {m.Escrow}} {
		for _, person := range people {
			if person.Profile != nil {
				events = append(events, *person.Profile)
			}
		}
	}
	for _, listing := range m.Listings {
		events = append(events, listing.Event)
	}
	for _, odd := range m.Odd {
		events = append(events, odd.Event)
	}
	for _, stay := range m.Stays {
		events = append(events, stay.Orders...)
		if stay.Review != nil {
			events = append(events, stay.Review.Event)
		}
	}
	return events
}

// inParallel calls make for 0..count-1 on all processors.
func inParallel(count int, make func(i int) error) error {
	workers := runtime.GOMAXPROCS(0)
	var group errgroup.Group
	for worker := range workers {
		group.Go(func() error {
			for i := worker; i < count; i += workers {
				if err := make(i); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// dice returns the randomness of one thing: the same for the same seed, purpose
// and number, whatever else is made.
func dice(seed int64, purpose string, number int) *rand.Rand {
	sum := digest(seed, purpose, number)
	return rand.New(rand.NewChaCha8(sum))
}

// pick returns one of the values.
func pick[T any](d *rand.Rand, values []T) T { return values[d.IntN(len(values))] }

// chance is true in one of n cases.
func chance(d *rand.Rand, n int) bool { return d.IntN(n) == 0 }

// some returns n different values in random order.
func some[T any](d *rand.Rand, values []T, n int) []T {
	chosen := make([]T, 0, n)
	for _, i := range d.Perm(len(values))[:min(n, len(values))] {
		chosen = append(chosen, values[i])
	}
	return chosen
}
