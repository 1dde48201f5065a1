package seed

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/nbd-wtf/go-nostr"
)

// Event kinds of stays (spec 50 §1).
const (
	OrderKind  = 32122
	ReviewKind = 31555
)

// StayState is what became of a stay.
type StayState string

// States.
const (
	// Booked stays were committed by the guest and accepted by the host.
	Booked StayState = "booked"
	// Cancelled ones were booked, and the guest thought better of it.
	Cancelled StayState = "cancelled"
	// Blocked dates the host keeps for himself.
	Blocked StayState = "blocked"
)

// Stay is what the relay holds of one stay at a listing.
type Stay struct {
	Anchor  string // of the listing
	State   StayState
	TradeID string
	// Guest is who stays, by name; the zero Person where dates are blocked.
	Guest Person
	// BuyerPubkey is the key under which the guest booked: one made for this trade
	// alone, or the guest's own.
	BuyerPubkey string
	// Start and End are the days of arrival and departure, midnight in UTC.
	Start, End time.Time
	// Orders are the buyer's, then the seller's.
	Orders []nostr.Event
	// Review is what the guest said afterwards; nil for most stays.
	Review *Review

	// authorization is the guest's word that the trade key is theirs, as JSON text; ""
	// where the guest books with the account's key.
	authorization string
}

// Review is a signed review and what it says.
type Review struct {
	Event nostr.Event
	Stars int
	Text  string
}

// Takes tells whether the stay keeps others from booking its days.
func (s Stay) Takes() bool { return s.State != Cancelled }

// newStays makes the stays of the newest o.Stays listings that are let by the day.
func newStays(o Options, market *Market) ([]Stay, error) {
	var stays []Stay
	blocked := make(map[string]bool) // by trade id
	let := 0
	for i, listing := range market.Listings {
		if let == o.Stays {
			break
		}
		if !listing.Active || listing.Prices[0].Period != "day" {
			continue
		}
		let++
		those, err := staysAt(o.Seed, market.Guests, listing, i, blocked)
		if err != nil {
			return nil, fmt.Errorf("stays at listing %d: %w", i, err)
		}
		stays = append(stays, those...)
	}
	return stays, nil
}

// plan is a stay before it is signed: each has a month of its own.
type plan struct {
	state    StayState
	month    time.Time
	ownKey   bool // the guest books with the account's key, as old clients did
	reviewed bool
}

func plans() []plan {
	month := func(year int, month time.Month) time.Time { return time.Date(year, month, 1, 0, 0, 0, 0, time.UTC) }
	return []plan{
		{state: Booked, month: month(2026, time.January), reviewed: true},
		{state: Booked, month: month(2026, time.February), ownKey: true, reviewed: true},
		{state: Booked, month: month(2027, time.May)},
		{state: Cancelled, month: month(2027, time.June)},
		{state: Blocked, month: month(2027, time.July)},
	}
}

func staysAt(seed int64, guests []Person, listing Listing, number int, blocked map[string]bool) ([]Stay, error) {
	d := dice(seed, "stays", number)
	said := some(d, opinions, len(opinions))
	var stays []Stay
	for i, plan := range plans() {
		start := plan.month.AddDate(0, 0, 2+d.IntN(18))
		stay := Stay{Anchor: listing.Anchor, State: plan.state, Start: start, End: start.AddDate(0, 0, 2+d.IntN(6))}
		guest, id := d.IntN(len(guests)), digest(seed, "trade "+listing.DTag, i)
		if plan.reviewed && chance(d, 4) {
			plan.reviewed = false
		}
		made := Epoch + nostr.Timestamp(3600*(1+i)+60*number)
		var err error
		if plan.state == Blocked {
			err = stay.block(listing.Host, made, blocked)
		} else {
			stay.Guest, stay.TradeID = guests[guest], hex.EncodeToString(id[:])
			err = stay.book(booking{seed: seed, listing: listing, ownKey: plan.ownKey, made: made})
		}
		if err == nil && plan.reviewed {
			err = stay.review(said[i])
		}
		if err != nil {
			return nil, err
		}
		stays = append(stays, stay)
	}
	return stays, nil
}

// block takes the days by an order of the host alone (spec 50 §10.7). The trade id says
// nothing of the listing, so that a host who blocked the same days of two would have one
// order for both: the second blocks later days.
func (s *Stay) block(host Person, made nostr.Timestamp, blocked map[string]bool) error {
	s.TradeID = s.blockingID(host)
	for blocked[s.TradeID] {
		s.Start, s.End = s.Start.AddDate(0, 0, 1), s.End.AddDate(0, 0, 1)
		s.TradeID = s.blockingID(host)
	}
	blocked[s.TradeID] = true
	order, err := signed(host.PrivateKey, OrderKind, made, nostr.Tags{
		{"a", s.Anchor}, {"d", s.TradeID}, {"p", host.PublicKey, "", "seller"}, publishedAt(made),
	}, orderContent{Start: iso(s.Start), End: iso(s.End), Stage: "commit", Quantity: 1}.text())
	s.Orders = []nostr.Event{order}
	return err
}

func (s *Stay) blockingID(host Person) string {
	secret := sha256.Sum256([]byte(iso(s.Start) + iso(s.End) + host.PrivateKey))
	return hex.EncodeToString(secret[:])
}

// opinion is a review to be given.
type opinion struct {
	stars int
	text  string
}

var opinions = []opinion{
	{5, "Quiet and clean. We slept like stones."},
	{5, "Everything was as it is written, and the coffee better."},
	{4, "A good place. Bring shoes for the stairs."},
	{4, "Friendly hosts, a little far from the bus."},
	{3, "Fine for a night; the neighbours have a rooster."},
	{2, "The water was cold on two mornings of four."},
}

// review adds what the guest says, signed with the guest's own key. It proves that the
// trade key was the guest's (spec 50 §8).
func (s *Stay) review(says opinion) error {
	rating := [...]string{"0", "0.2", "0.4", "0.6", "0.8", "1"}[says.stars]
	tags := nostr.Tags{
		{"d", s.TradeID}, {"r", fmt.Sprintf("%d:%s:%s", OrderKind, s.BuyerPubkey, s.TradeID)}, {"a", s.Anchor}, {"rating", rating, "thumb"},
	}
	if s.authorization != "" {
		tags = append(tags, nostr.Tag{"review_proof", "buyer", s.BuyerPubkey, s.authorization})
	}
	event, err := signed(s.Guest.PrivateKey, ReviewKind, nostr.Timestamp(s.End.Unix()), tags, says.text)
	s.Review = &Review{Event: event, Stars: says.stars, Text: says.text}
	return err
}
