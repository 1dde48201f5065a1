package seed

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/sandbox/geocoder"
)

// ListingKind is the event kind of a listing (NIP-99).
const ListingKind = 30402

// Listing is a signed listing and what it says, kept apart from its tags so that
// tests can compare the two.
type Listing struct {
	Event       nostr.Event
	Host        Person
	Anchor      string // 30402:<pubkey>:<d>
	DTag        string
	Title       string
	Description string
	Type        string
	// Place is the settlement it is in; Within names every place a search for
	// which must find it.
	Place      string
	Within     []string
	Latitude   float64
	Longitude  float64
	Guests     int
	Beds       int
	Bedrooms   int
	Bathrooms  int
	Features   []string // specifications without a number, sorted
	Prices     []Price
	Active     bool
	Negotiable bool
	AutoAccept bool
}

// RentOrBuy returns rent if any price recurs, else buy.
func (l Listing) RentOrBuy() string {
	if slices.ContainsFunc(l.Prices, func(p Price) bool { return p.Period != "" }) {
		return "rent"
	}
	return "buy"
}

// Price is one price with the words its tag uses.
type Price struct {
	Units        int64  // satoshis, or millionths of a dollar
	Denomination string // BTC or USD
	Period       string // day, week, month, year; "" for a price paid once
}

// Amount returns the decimal text with all digits, as tags carry it.
func (p Price) Amount() string {
	scale := int64(math.Pow10(p.decimals()))
	return fmt.Sprintf("%d.%0*d", p.Units/scale, p.decimals(), p.Units%scale)
}

func (p Price) decimals() int {
	if p.Denomination == "USD" {
		return 6
	}
	return 8
}

// newListing makes listing number i; 0 is the newest.
func newListing(o Options, host Person, i int) (Listing, error) {
	d := dice(o.Seed, "listing", i)
	settlement := o.Settlements[i%len(o.Settlements)]
	latitude, longitude := near(d, settlement)
	listing := Listing{
		Host:       host,
		Place:      settlement.Name,
		Within:     settlement.Within,
		Latitude:   latitude,
		Longitude:  longitude,
		Type:       pick(d, []string{"apartment", "apartment", "room", "room", "house", "house", "villa", "hostel", "hotel", "resort"}),
		Active:     !chance(d, 10),
		Negotiable: chance(d, 3),
		AutoAccept: !chance(d, 4),
		Features:   some(d, commonFeatures, 1+d.IntN(3)),
	}
	listing.Features = append(listing.Features, some(d, rareFeatures, 1+d.IntN(3))...)
	slices.Sort(listing.Features)
	listing.furnish(d)
	listing.Prices = prices(d, listing)
	listing.Title = title(d, listing)
	listing.Description = description(d, listing)
	listing.DTag = dTag(d, listing, i)
	listing.Anchor = fmt.Sprintf("%d:%s:%s", ListingKind, host.PublicKey, listing.DTag)

	created := Epoch - nostr.Timestamp(i)*2221 // about 37 minutes apart
	tags, err := listing.tags(d, o.Images, created)
	if err != nil {
		return listing, fmt.Errorf("listing %d: %w", i, err)
	}
	listing.Event = nostr.Event{Kind: ListingKind, CreatedAt: created, Tags: tags, Content: listing.Description}
	if err := listing.Event.Sign(host.PrivateKey); err != nil {
		return listing, fmt.Errorf("listing %d: %w", i, err)
	}
	return listing, nil
}

// furnish decides the rooms by type.
func (l *Listing) furnish(d *rand.Rand) {
	switch l.Type {
	case "room":
		l.Bedrooms, l.Beds, l.Bathrooms = 1, 1+d.IntN(2), 1
		l.Guests = l.Beds + d.IntN(2)
	case "hotel", "hostel", "resort":
		l.Bedrooms, l.Bathrooms = 1+d.IntN(2), 1+d.IntN(2)
		l.Beds = l.Bedrooms + d.IntN(5)
		l.Guests = l.Beds + d.IntN(3)
	default:
		l.Bedrooms = 1 + d.IntN(4)
		l.Beds = l.Bedrooms + d.IntN(3)
		l.Bathrooms = 1 + d.IntN(l.Bedrooms)
		l.Guests = l.Beds + d.IntN(l.Beds+1)
	}
}

// prices gives one currency per listing; one house, apartment or villa in seven
// is for sale.
func prices(d *rand.Rand, l Listing) []Price {
	inBitcoin := d.IntN(5) < 3
	priced := func(dollars int64, period string) Price {
		if inBitcoin {
			return Price{Units: dollars * 1000, Denomination: "BTC", Period: period}
		}
		return Price{Units: dollars * 1_000_000, Denomination: "USD", Period: period}
	}
	if (l.Type == "house" || l.Type == "apartment" || l.Type == "villa") && chance(d, 7) {
		return []Price{priced(60_000+5000*int64(d.IntN(90)), "")}
	}
	night := int64(18*l.Guests + 5*d.IntN(12))
	switch d.IntN(8) {
	case 0:
		return []Price{priced(night, "day"), priced(night*6, "week")}
	case 1:
		return []Price{priced(night, "day"), priced(night*6, "week"), priced(night*21, "month")}
	case 2:
		return []Price{priced(night*19, "month")}
	default:
		return []Price{priced(night, "day")}
	}
}

// dTag gives most listings the short base-36 name of spec 40 §3 and some a name
// in words, as other clients do.
func dTag(d *rand.Rand, l Listing, i int) string {
	if chance(d, 5) {
		return strings.ToLower(strings.Join(strings.Fields(l.Place+" "+l.Type), "-")) + "-" + strconv.Itoa(i)
	}
	microseconds := (int64(Epoch)-int64(i)*2221)*1_000_000 + int64(d.IntN(1_000_000))
	return strconv.FormatInt(microseconds, 36)
}

// near returns a point within the settlement's stay radius.
func near(d *rand.Rand, place geocoder.Place) (latitude, longitude float64) {
	const kmPerDegree = 111.0
	distance := place.StayRadiusKm * math.Sqrt(d.Float64())
	angle := 2 * math.Pi * d.Float64()
	latitude = place.Latitude + distance*math.Cos(angle)/kmPerDegree
	longitude = place.Longitude + distance*math.Sin(angle)/(kmPerDegree*math.Cos(place.Latitude*math.Pi/180))
	return latitude, longitude
}
