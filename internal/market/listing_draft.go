package market

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/money"
)

const (
	// Category is the t tag of every Hostr listing.
	Category = "accommodation"

	defaultCheckIn  = "15:0"
	defaultCheckOut = "11:0"
)

// ListingDraft is a new listing before it is signed (spec 40 §5).
type ListingDraft struct {
	// PubKey is the host's, in hex.
	PubKey string
	// DTag identifies the listing; NewDTag makes one.
	DTag string
	// CreatedAt is also written as the time of first publication.
	CreatedAt nostr.Timestamp
	// Cells are H3 cells as decimal text, finest first.
	Cells []string
	ListingFields
}

// NewListingFields returns the fields of a listing that nobody has described yet.
func NewListingFields() ListingFields {
	return ListingFields{Active: true, AutoAccept: true, Quantity: 1, Type: Room}
}

// NewDTag returns an identifier made from the time (spec 40 §3).
func NewDTag(now time.Time) string { return strconv.FormatInt(now.UnixMicro(), 36) }

// Event returns the unsigned event with its id. Its errors are those of Check.
func (d ListingDraft) Event() (*nostr.Event, error) {
	if err := d.Check(); err != nil {
		return nil, err
	}
	d.PublishedAt = &d.CreatedAt
	described, err := d.tags()
	if err != nil {
		return nil, err
	}
	tags := slices.Concat(nostr.Tags{{"d", d.DTag}}, described, cellTags(d.Cells))
	return unsignedEvent(d.PubKey, d.CreatedAt, tags, d.Description), nil
}

// Check tells what keeps the draft from becoming an event, and costs far less than
// making one: missing_title, missing_description, images_required, price_required,
// mixed_currencies, invalid_cancellation_policy, invalid_listing_type,
// invalid_duration, and invalid_input for names of properties that are too long and
// for more flags than can be combined.
func (d ListingDraft) Check() error {
	switch {
	case strings.TrimSpace(d.Title) == "":
		return fault.New(fault.MissingTitle, "the listing has no title").At("title")
	case strings.TrimSpace(d.Description) == "":
		return fault.New(fault.MissingDescription, "the listing has no description").At("description")
	case len(d.Images) == 0:
		return imagesRequired()
	case len(d.Prices) == 0:
		return priceRequired()
	}
	if err := checkRules(d.CancellationPolicy); err != nil {
		return err
	}
	if err := money.RequireOneDenomination(d.amounts()...); err != nil {
		return err
	}
	if _, err := ParseListingType(string(d.Type)); err != nil {
		return err
	}
	if err := checkDuration(d.MinDuration); err != nil {
		return err
	}
	if err := d.Specifications.checkNames(); err != nil {
		return err
	}
	_, err := combinable(d.Specifications.tags())
	return err
}

// amounts returns prices, deposit and minimum in the order of an input.
func (f ListingFields) amounts() []money.Amount {
	var amounts []money.Amount
	for _, price := range f.Prices {
		amounts = append(amounts, price.Amount)
	}
	for _, amount := range [...]*money.Amount{f.SecurityDeposit, f.MinPaymentAmount} {
		if amount != nil {
			amounts = append(amounts, *amount)
		}
	}
	return amounts
}

// tags returns the tags 2 to 24 of spec 40 §1.1, in that order.
func (f ListingFields) tags() (nostr.Tags, error) {
	specs := f.Specifications.tags()
	features, err := combinable(specs)
	if err != nil {
		return nil, err
	}
	var (
		active     = nostr.Tag{"active", strconv.FormatBool(f.Active)}
		negotiable = nostr.Tag{"negotiable", strconv.FormatBool(f.Negotiable)}
		autoAccept = nostr.Tag{"autoAccept", strconv.FormatBool(f.AutoAccept)}
		kind       = nostr.Tag{"type", string(f.Type)}
		rentOrBuy  = nostr.Tag{"rentOrBuy", string(f.RentOrBuy())}
	)
	sources := append(nostr.Tags{kind, active, autoAccept, negotiable, rentOrBuy}, specs...)
	return slices.Concat(
		nostr.Tags{{"title", f.Title}},
		f.imageTags(),
		nostr.Tags{{"t", Category}},
		f.publishedAtTags(),
		nostr.Tags{active, negotiable},
		f.minDurationTags(),
		nostr.Tags{
			{"checkIn", orDefault(f.CheckIn, defaultCheckIn)},
			{"checkOut", orDefault(f.CheckOut, defaultCheckOut)},
			{"location", f.Location},
			{"quantity", strconv.FormatInt(f.Quantity, 10)},
			kind,
			autoAccept,
		},
		f.priceTags(),
		nostr.Tags{rentOrBuy},
		f.policyTags(),
		amountTags("securityDeposit", f.SecurityDeposit),
		amountTags("minPaymentAmount", f.MinPaymentAmount),
		f.maxDisputePeriodTags(),
		specs,
		promote(sources),
		combine(features),
	), nil
}

func (f ListingFields) imageTags() nostr.Tags {
	var tags nostr.Tags
	for _, url := range f.Images {
		tags = append(tags, imageTag(url, f.ImageMetadata))
	}
	for _, metadata := range f.ImageMetadata {
		tags = append(tags, metadata.Tag())
	}
	return tags
}

func (f ListingFields) publishedAtTags() nostr.Tags {
	if f.PublishedAt == nil {
		return nil
	}
	return nostr.Tags{{"published_at", strconv.FormatInt(int64(*f.PublishedAt), 10)}}
}

// minDurationTags returns none where no price recurs.
func (f ListingFields) minDurationTags() nostr.Tags {
	standard := f.defaultMinDuration()
	if standard == "" {
		return nil
	}
	return nostr.Tags{{"minDuration", orDefault(strings.TrimSpace(f.MinDuration), standard)}}
}

func (f ListingFields) priceTags() nostr.Tags {
	var tags nostr.Tags
	for _, price := range f.Prices {
		tag := nostr.Tag{"price", price.Amount.Text(), price.Amount.Denomination}
		if noun := price.Frequency.Noun(); noun != "" {
			tag = append(tag, noun)
		}
		tags = append(tags, tag)
	}
	return tags
}

func (f ListingFields) policyTags() nostr.Tags {
	var tags nostr.Tags
	for _, rule := range f.CancellationPolicy {
		tags = append(tags, append(nostr.Tag{"cancellationPolicy"}, rule.Labels()...))
	}
	return tags
}

func (f ListingFields) maxDisputePeriodTags() nostr.Tags {
	if f.MaxDisputePeriod == nil {
		return nil
	}
	return nostr.Tags{{"maxDisputePeriod", strconv.FormatInt(*f.MaxDisputePeriod, 10)}}
}

func amountTags(name string, amount *money.Amount) nostr.Tags {
	if amount == nil {
		return nil
	}
	return nostr.Tags{{name, amount.Text(), amount.Denomination, strconv.Itoa(amount.Decimals)}}
}

func cellTags(cells []string) nostr.Tags {
	tags := make(nostr.Tags, 0, len(cells))
	for _, cell := range cells {
		tags = append(tags, nostr.Tag{"g", cell})
	}
	return tags
}

func unsignedEvent(pubkey string, createdAt nostr.Timestamp, tags nostr.Tags, content string) *nostr.Event {
	event := &nostr.Event{PubKey: pubkey, CreatedAt: createdAt, Kind: KindListing, Tags: tags, Content: content}
	event.ID = event.GetID()
	return event
}

func imagesRequired() error {
	return fault.New(fault.ImagesRequired, "the listing has no image").At("images").
		WithHint(`[{"url":"https://…/room.jpg","alt":"The room"}]`)
}

func priceRequired() error {
	return fault.New(fault.PriceRequired, "the listing has no price").At("price").
		WithHint(`[{"amount":{"value":"100000","currency":"BTC","unit":"sats"},"frequency":"daily"}]`)
}

func checkRules(rules []money.CancellationRule) error {
	for i, rule := range rules {
		if err := rule.Check(); err != nil {
			return fault.From(err).At("cancellationPolicy[" + strconv.Itoa(i) + "]")
		}
	}
	return nil
}

// checkDuration lets blank through: the prices then decide.
func checkDuration(text string) error {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	_, err := money.ParseDuration(text)
	return err
}

func orDefault(text, standard string) string {
	if text == "" {
		return standard
	}
	return text
}
