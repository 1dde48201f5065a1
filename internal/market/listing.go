package market

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/money"
)

// KindListing is the kind of listings (NIP-99, addressable).
const KindListing = 30402

// Listing is a place on offer, read from its event (spec 40 §1).
type Listing struct {
	// Event is the event as found; it must not be changed.
	Event *nostr.Event
	// DTag is the listing's identifier; nil when the event has no d tag.
	DTag *string
	ListingFields
}

// ListingFields are what a host says of a place.
type ListingFields struct {
	Title string
	// Description is Markdown.
	Description string
	// Images are URLs; ImageMetadata describes some of them.
	Images        []string
	ImageMetadata []ImageMetadata
	// PublishedAt is when the listing was first published, Unix seconds; nil when
	// the event does not say.
	PublishedAt *nostr.Timestamp
	Active      bool
	// Negotiable tells that the host takes offers, AutoAccept that bookings at the
	// full price need no answer.
	Negotiable bool
	AutoAccept bool
	// MinDuration is the shortest stay, an ISO 8601 duration; empty where no price
	// recurs.
	MinDuration string
	// CheckIn and CheckOut are hour:minute; empty when the event does not say.
	CheckIn  string
	CheckOut string
	Location string
	// Quantity is how many such places there are.
	Quantity int64
	Type     ListingType
	Prices   []money.Price
	// CancellationPolicy is stored and shown; nothing computes from it.
	CancellationPolicy []money.CancellationRule
	// SecurityDeposit and MinPaymentAmount are nil when not set.
	SecurityDeposit  *money.Amount
	MinPaymentAmount *money.Amount
	// MaxDisputePeriod is in seconds; nil when not set.
	MaxDisputePeriod *int64
	Specifications   Specifications
}

// DefaultMaxDisputePeriod holds where a listing sets none: 14 days in seconds.
const DefaultMaxDisputePeriod = 1209600

// ErrNotListing says that an event is of another kind.
var ErrNotListing = errors.New("the event is not a listing")

// DecodeListing reads a listing event (spec 40 §1.2). No tag is required, and a
// tag that cannot be read counts as missing, so ErrNotListing is the only error.
// The listing shares the event's memory.
func DecodeListing(event *nostr.Event) (Listing, error) {
	if event == nil || event.Kind != KindListing {
		return Listing{}, ErrNotListing
	}
	listing := Listing{Event: event, ListingFields: ListingFields{
		Description: event.Content,
		Active:      true,
		Quantity:    1,
		Type:        Room,
	}}
	seen := tagBit(0)
	for _, tag := range event.Tags {
		if len(tag) < 2 || len(tag[0]) == 1 && tag[0] != "d" {
			continue
		}
		reader, known := listingTags[tag[0]]
		if !known || len(tag) < reader.elements || seen&reader.once != 0 {
			continue
		}
		seen |= reader.once
		reader.read(&listing, tag)
	}
	if strings.TrimSpace(listing.MinDuration) == "" {
		listing.MinDuration = listing.defaultMinDuration()
	}
	return listing, nil
}

// Anchor returns the listing's address; false when the event has no d tag.
func (l Listing) Anchor() (Anchor, bool) {
	if l.DTag == nil {
		return Anchor{}, false
	}
	return Anchor{Kind: KindListing, PubKey: l.Event.PubKey, Identifier: *l.DTag}, true
}

// RentOrBuy tells whether the place is let or sold. Prices decide, never the
// event's tag.
func (f ListingFields) RentOrBuy() RentOrBuy {
	if f.firstRecurring() == money.OneTime {
		return Buy
	}
	return Rent
}

// DisputePeriod returns MaxDisputePeriod or its default, in seconds.
func (f ListingFields) DisputePeriod() int64 {
	if f.MaxDisputePeriod == nil {
		return DefaultMaxDisputePeriod
	}
	return *f.MaxDisputePeriod
}

// RentOrBuy is rent or buy.
type RentOrBuy string

// What a listing is for.
const (
	Rent RentOrBuy = "rent"
	Buy  RentOrBuy = "buy"
)

// ParseRentOrBuy reads the word in any case; another one is invalid_rent_or_buy.
func ParseRentOrBuy(text string) (RentOrBuy, error) {
	switch word := RentOrBuy(strings.ToLower(strings.TrimSpace(text))); word {
	case Rent, Buy:
		return word, nil
	}
	return "", fault.New(fault.InvalidRentOrBuy, "%.40q is neither rent nor buy", text).
		At("rentOrBuy").WithHint("rent or buy")
}

// ListingType is the sort of place.
type ListingType string

// The sorts of places.
const (
	Room      ListingType = "room"
	House     ListingType = "house"
	Apartment ListingType = "apartment"
	Villa     ListingType = "villa"
	Hotel     ListingType = "hotel"
	Hostel    ListingType = "hostel"
	Resort    ListingType = "resort"
)

// ListingTypes returns all of them, in the order messages name them.
func ListingTypes() []ListingType {
	return []ListingType{Room, House, Apartment, Villa, Hotel, Hostel, Resort}
}

// ParseListingType reads the word in any case; another one is
// invalid_listing_type.
func ParseListingType(text string) (ListingType, error) {
	word := ListingType(strings.ToLower(strings.TrimSpace(text)))
	if !word.known() {
		return "", fault.New(fault.InvalidListingType, "%.40q is not a type of listing", text).
			At("type").WithHint("room, house, apartment, villa, hotel, hostel or resort")
	}
	return word, nil
}

func (t ListingType) known() bool { return slices.Contains(ListingTypes(), t) }

func (f ListingFields) firstRecurring() money.Frequency {
	for _, price := range f.Prices {
		if price.Frequency.Recurring() {
			return price.Frequency
		}
	}
	return money.OneTime
}

func (f ListingFields) defaultMinDuration() string { return f.firstRecurring().DefaultMinDuration() }

type tagBit uint32

// tagReader reads one sort of tag into a listing.
type tagReader struct {
	// once marks tags of which the first with enough elements counts.
	once     tagBit
	elements int
	read     func(*Listing, nostr.Tag)
}

var listingTags = map[string]tagReader{
	"d":                {1 << 0, 2, func(l *Listing, tag nostr.Tag) { l.DTag = &tag[1] }},
	"title":            {1 << 1, 2, func(l *Listing, tag nostr.Tag) { l.Title = tag[1] }},
	"published_at":     {1 << 2, 2, readPublishedAt},
	"active":           {1 << 3, 2, func(l *Listing, tag nostr.Tag) { l.Active = isTrue(tag[1]) }},
	"negotiable":       {1 << 4, 2, func(l *Listing, tag nostr.Tag) { l.Negotiable = isTrue(tag[1]) }},
	"autoAccept":       {1 << 5, 2, func(l *Listing, tag nostr.Tag) { l.AutoAccept = isTrue(tag[1]) }},
	"minDuration":      {1 << 6, 2, func(l *Listing, tag nostr.Tag) { l.MinDuration = tag[1] }},
	"checkIn":          {1 << 7, 2, func(l *Listing, tag nostr.Tag) { l.CheckIn = tag[1] }},
	"checkOut":         {1 << 8, 2, func(l *Listing, tag nostr.Tag) { l.CheckOut = tag[1] }},
	"location":         {1 << 9, 2, func(l *Listing, tag nostr.Tag) { l.Location = tag[1] }},
	"quantity":         {1 << 10, 2, readQuantity},
	"type":             {1 << 11, 2, readType},
	"maxDisputePeriod": {1 << 12, 2, readMaxDisputePeriod},
	"securityDeposit": {1 << 13, 4, func(l *Listing, tag nostr.Tag) {
		l.SecurityDeposit = readAmount(tag)
	}},
	"minPaymentAmount": {1 << 14, 4, func(l *Listing, tag nostr.Tag) {
		l.MinPaymentAmount = readAmount(tag)
	}},
	"image":              {0, 2, readImage},
	"imeta":              {0, 2, readImeta},
	"price":              {0, 3, readPrice},
	"cancellationPolicy": {0, 5, readCancellationPolicy},
	"spec":               {0, 2, func(l *Listing, tag nostr.Tag) { l.Specifications.readTag(tag) }},
	"amenity":            {0, 2, func(l *Listing, tag nostr.Tag) { l.Specifications.readTag(tag) }},
}

func readPublishedAt(l *Listing, tag nostr.Tag) {
	if seconds, ok := parseInteger(tag[1]); ok {
		publishedAt := nostr.Timestamp(seconds)
		l.PublishedAt = &publishedAt
	}
}

func readQuantity(l *Listing, tag nostr.Tag) {
	if quantity, ok := parseInteger(tag[1]); ok {
		l.Quantity = quantity
	}
}

func readType(l *Listing, tag nostr.Tag) {
	if kind := ListingType(tag[1]); kind.known() {
		l.Type = kind
	}
}

func readMaxDisputePeriod(l *Listing, tag nostr.Tag) {
	if seconds, ok := parseInteger(tag[1]); ok {
		l.MaxDisputePeriod = &seconds
	}
}

// readAmount reads amount, denomination and decimals; an unreadable amount is
// nil, decimals that are no integer count as 8.
func readAmount(tag nostr.Tag) *money.Amount {
	decimals, err := strconv.Atoi(strings.TrimSpace(tag[3]))
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		decimals = 8
	}
	amount, err := money.ParseAmount(tag[1], tag[2], decimals)
	if err != nil {
		return nil
	}
	return &amount
}

func readImage(l *Listing, tag nostr.Tag) {
	if url := strings.TrimSpace(tag[1]); url != "" {
		l.Images = append(l.Images, url)
	}
}

func readImeta(l *Listing, tag nostr.Tag) {
	if metadata, ok := readImageMetadata(tag); ok {
		l.ImageMetadata = append(l.ImageMetadata, metadata)
	}
}

func readPrice(l *Listing, tag nostr.Tag) {
	amount, err := money.ParseAmount(tag[1], tag[2], money.StandardDecimals(tag[2]))
	if err != nil {
		return
	}
	l.Prices = append(l.Prices, money.Price{
		Amount:    amount,
		Frequency: money.FrequencyOfNoun(elementAt(tag, 3)),
	})
}

func readCancellationPolicy(l *Listing, tag nostr.Tag) {
	if rule, ok := money.CancellationRuleOf(tag[1:]); ok {
		l.CancellationPolicy = append(l.CancellationPolicy, rule)
	}
}

func isTrue(text string) bool { return strings.EqualFold(text, "true") }

func elementAt(tag nostr.Tag, place int) string {
	if place < len(tag) {
		return tag[place]
	}
	return ""
}

func parseInteger(text string) (int64, bool) {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	return n, err == nil
}
