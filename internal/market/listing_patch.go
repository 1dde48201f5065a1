package market

import (
	"slices"

	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/money"
)

// ListingPatch says what to change about a listing (spec 40 §6.1). What is nil
// or zero stays as it is.
type ListingPatch struct {
	Title       *string
	Description *string
	Type        *ListingType
	Quantity    *int64
	Active      *bool
	Negotiable  *bool
	AutoAccept  *bool
	// MinDuration is an ISO 8601 duration; it cannot be cleared.
	MinDuration *string
	// Images replaces all images and all their metadata.
	Images *ImageSet
	// Prices replaces all prices.
	Prices           *[]money.Price
	SecurityDeposit  Change[money.Amount]
	MinPaymentAmount Change[money.Amount]
	// MaxDisputePeriod is in seconds; cleared, the default holds.
	MaxDisputePeriod Change[int64]
	// CancellationPolicy replaces all rules; empty clears them.
	CancellationPolicy *[]money.CancellationRule
	// Specifications replaces all properties; empty clears them. Counters are laid
	// over the new ones or, without any, over the existing ones.
	Specifications *Specifications
	Counters       []Counter
	// Cells replaces the H3 cells.
	Cells *[]string
}

// ImageSet is a list of images with what is known of them.
type ImageSet struct {
	URLs     []string
	Metadata []ImageMetadata
}

// Change keeps a value that may be absent, sets it, or clears it. The zero
// Change keeps.
type Change[T any] struct {
	made  bool
	value *T
}

// Set returns a change to the value.
func Set[T any](value T) Change[T] { return Change[T]{made: true, value: &value} }

// Clear returns a change to no value.
func Clear[T any]() Change[T] { return Change[T]{made: true} }

func (c Change[T]) apply(to **T) {
	if c.made {
		*to = c.value
	}
}

// rebuiltTags are written anew on every edit; all other tags stay in place.
var rebuiltTags = rebuiltTagNames()

func rebuiltTagNames() map[string]bool {
	names := map[string]bool{combinationLetter: true}
	for _, name := range []string{
		"title", "image", "imeta", "t", "active", "negotiable", "minDuration", "checkIn", "checkOut",
		"location", "quantity", "type", "autoAccept", "price", "rentOrBuy", "cancellationPolicy", "spec",
		"amenity", "securityDeposit", "minPaymentAmount", "maxDisputePeriod", "published_at",
	} {
		names[name] = true
	}
	for _, rule := range promotions {
		names[rule.letter] = true
	}
	return names
}

// CheckEdit tells what keeps Edit from making an event, and costs far less:
// images_required, price_required, invalid_cancellation_policy, mixed_currencies
// within the patch, invalid_listing_type, invalid_duration, and invalid_input for new
// names of properties that are too long and for more flags than can be combined.
func (l Listing) CheckEdit(patch ListingPatch) error {
	if err := patch.check(); err != nil {
		return err
	}
	_, err := combinable(patch.applyTo(l.ListingFields).Specifications.tags())
	return err
}

// Edit returns the unsigned event of the listing with the patch applied
// (spec 40 §6.2). It carries the old created_at, which publishing raises. Its errors
// are those of CheckEdit.
func (l Listing) Edit(patch ListingPatch) (*nostr.Event, error) {
	if err := patch.check(); err != nil {
		return nil, err
	}
	fields := patch.applyTo(l.ListingFields)
	if fields.PublishedAt == nil {
		fields.PublishedAt = &l.Event.CreatedAt
	}
	described, err := fields.tags()
	if err != nil {
		return nil, err
	}
	var kept, cells nostr.Tags
	if patch.Cells != nil {
		cells = cellTags(*patch.Cells)
	}
	for _, tag := range l.Event.Tags {
		if len(tag) > 0 && (rebuiltTags[tag[0]] || tag[0] == "g" && patch.Cells != nil) {
			continue
		}
		kept = append(kept, tag)
	}
	return unsignedEvent(l.Event.PubKey, l.Event.CreatedAt, slices.Concat(kept, described, cells), fields.Description), nil
}

func (p ListingPatch) check() error {
	var changed ListingFields
	if p.Images != nil && len(p.Images.URLs) == 0 {
		return imagesRequired()
	}
	if p.Prices != nil {
		if len(*p.Prices) == 0 {
			return priceRequired()
		}
		changed.Prices = *p.Prices
	}
	p.SecurityDeposit.apply(&changed.SecurityDeposit)
	p.MinPaymentAmount.apply(&changed.MinPaymentAmount)
	if err := money.RequireOneDenomination(changed.amounts()...); err != nil {
		return err
	}
	if p.CancellationPolicy != nil {
		if err := checkRules(*p.CancellationPolicy); err != nil {
			return err
		}
	}
	if p.Type != nil {
		if _, err := ParseListingType(string(*p.Type)); err != nil {
			return err
		}
	}
	if p.MinDuration != nil {
		if _, err := money.ParseDuration(*p.MinDuration); err != nil {
			return err
		}
	}
	if p.Specifications != nil {
		return p.Specifications.checkNames()
	}
	return nil
}

func (p ListingPatch) applyTo(fields ListingFields) ListingFields {
	replace(&fields.Title, p.Title)
	replace(&fields.Description, p.Description)
	replace(&fields.Type, p.Type)
	replace(&fields.Quantity, p.Quantity)
	replace(&fields.Active, p.Active)
	replace(&fields.Negotiable, p.Negotiable)
	replace(&fields.AutoAccept, p.AutoAccept)
	replace(&fields.MinDuration, p.MinDuration)
	replace(&fields.Prices, p.Prices)
	replace(&fields.CancellationPolicy, p.CancellationPolicy)
	replace(&fields.Specifications, p.Specifications)
	p.SecurityDeposit.apply(&fields.SecurityDeposit)
	p.MinPaymentAmount.apply(&fields.MinPaymentAmount)
	p.MaxDisputePeriod.apply(&fields.MaxDisputePeriod)
	fields.Specifications = fields.Specifications.With(p.Counters...)
	if p.Images != nil {
		fields.Images, fields.ImageMetadata = p.Images.URLs, p.Images.Metadata
	}
	fields.ImageMetadata = slices.DeleteFunc(slices.Clone(fields.ImageMetadata), func(m ImageMetadata) bool {
		return !slices.Contains(fields.Images, m.URL)
	})
	return fields
}

func replace[T any](old *T, with *T) {
	if with != nil {
		*old = *with
	}
}
