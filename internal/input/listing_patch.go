package input

import (
	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/market"
	"hostr-daemon/internal/money"
)

// ListingPatch is what hostr.listings.edit changes (spec 30 §9.2, 40 §6.1). A
// field left at its zero value keeps what the listing has.
type ListingPatch struct {
	// Path is the property that held the patch, empty where the input itself was it.
	Path string
	// Title and Description are kept as written, blank included.
	Title       *string
	Description *string
	// Type is one of the listing types in lower case.
	Type string
	// Images replace all images.
	Images []Image
	// Address moves the listing: its H3 cells are derived anew, from H3Tags where
	// there are any. H3FinestResolution and H3MaxTags count only then.
	Address            *string
	H3Tags             []string
	H3FinestResolution *int
	H3MaxTags          *int
	// Prices replace all prices.
	Prices []money.Price
	// SecurityDeposit, MinPaymentAmount and MaxDisputePeriod (seconds) are cleared
	// by a change to nil, CancellationPolicy by one to no rules.
	SecurityDeposit    Change[*money.Amount]
	MinPaymentAmount   Change[*money.Amount]
	MaxDisputePeriod   Change[*int]
	CancellationPolicy Change[[]money.CancellationRule]
	// MinDuration is an ISO 8601 duration.
	MinDuration string
	Quantity    *int
	Active      *bool
	Negotiable  *bool
	AutoAccept  *bool
	// Specifications replace the whole map; the counts below are laid over the map
	// that then stands.
	Specifications *Object
	Guests         *int
	Beds           *int
	Bedrooms       *int
	Bathrooms      *int
}

// Change is a new value for something that can also be cleared.
type Change[T any] struct {
	// Given tells that the value changes.
	Given bool
	Value T
}

// ListingPatch reads the object under that name or, where there is none, the
// whole input as the patch. Paths tell where a value really stood.
func (r *Reader) ListingPatch(name string) ListingPatch {
	property := r.Property(name)
	if len(property.candidates) == 0 {
		return readListingPatch(r)
	}
	if value := property.candidates[0]; value.IsObject() {
		return readListingPatch(r.nested(value, property.path))
	}
	// Text or a number there is passed over when the input itself holds changes
	// (spec 30 §9.2). When it holds none, the caller must have meant that value.
	if !r.Present(listingPatchKeys...) {
		property.wrongType("an object with the fields to change", `{"title":"New title"}`)
		return ListingPatch{}
	}
	return readListingPatch(r)
}

// listingPatchKeys are the keys that change something.
var listingPatchKeys = []string{
	"title", "description", "type", "images", "address", "prices", "price", "securityDeposit", "minPaymentAmount",
	"maxDisputePeriod", "cancellationPolicy", "cancellationPolicies", "minDuration", "quantity", "active",
	"negotiable", "autoAccept", "specifications", "specs", "max_guests", "guests", "beds", "bedrooms", "bathrooms",
}

func readListingPatch(r *Reader) ListingPatch {
	patch := ListingPatch{
		Path:               r.path,
		Title:              r.Property("title").verbatim(),
		Description:        r.Property("description").verbatim(),
		Type:               r.Property("type").notBlank().as(fault.InvalidListingType).Lower().Word(listingTypes()...),
		MinDuration:        r.Property("minDuration").notBlank().as(fault.InvalidDuration).Duration(),
		Quantity:           r.Property("quantity").OptionalInt(),
		Active:             r.Property("active").OptionalBool(),
		Negotiable:         r.Property("negotiable").OptionalBool(),
		AutoAccept:         r.Property("autoAccept").OptionalBool(),
		SecurityDeposit:    Change[*money.Amount]{r.Present("securityDeposit"), r.Property("securityDeposit").Amount()},
		MinPaymentAmount:   Change[*money.Amount]{r.Present("minPaymentAmount"), r.Property("minPaymentAmount").Amount()},
		MaxDisputePeriod:   Change[*int]{r.Present("maxDisputePeriod"), r.Property("maxDisputePeriod").OptionalInt()},
		CancellationPolicy: r.cancellationPolicyChange(),
		Specifications:     r.Property("specifications", "specs").OptionalObject(),
		Guests:             r.Property("guests", "max_guests").OptionalInt(),
		Beds:               r.Property("beds").OptionalInt(),
		Bedrooms:           r.Property("bedrooms").OptionalInt(),
		Bathrooms:          r.Property("bathrooms").OptionalInt(),
	}
	if r.Present("images") {
		patch.Images = r.Property("images").Images()
	}
	if r.Present("prices", "price") {
		patch.Prices = r.Property("prices", "price").prices(Property.noPrice)
	}
	if r.Present("address") {
		r.readMove(&patch)
	}
	return patch
}

func (r *Reader) cancellationPolicyChange() Change[[]money.CancellationRule] {
	return Change[[]money.CancellationRule]{
		Given: r.Present("cancellationPolicy", "cancellationPolicies"),
		Value: r.Property("cancellationPolicy", "cancellationPolicies").CancellationPolicies(),
	}
}

// readMove reads the new place of a listing.
func (r *Reader) readMove(patch *ListingPatch) {
	address := r.Property("address").as(fault.AddressRequired)
	patch.H3Tags = r.Property("h3Tags").TextList()
	patch.H3FinestResolution = r.Property("h3FinestResolution").OptionalInt()
	patch.H3MaxTags = r.Property("h3MaxTags").OptionalInt()
	if len(patch.H3Tags) == 0 {
		address = address.Required()
	}
	text := address.Text()
	patch.Address = &text
}

// verbatim reads text as it stands, neither trimmed nor refused when blank.
func (p Property) verbatim() *string {
	if len(p.candidates) == 0 {
		return nil
	}
	text, ok := textOf(p.candidates[0])
	if !ok {
		p.wrongType("text", "")
		return nil
	}
	if value := p.candidates[0]; value.Str != "" {
		text = replaceBadBytes(value.Str)
	}
	return &text
}

// notBlank makes a value that is blank text a problem.
func (p Property) notBlank() Property {
	if len(p.candidates) > 0 {
		p.required = true
	}
	return p
}

func listingTypes() []string {
	var words []string
	for _, kind := range market.ListingTypes() {
		words = append(words, string(kind))
	}
	return words
}
