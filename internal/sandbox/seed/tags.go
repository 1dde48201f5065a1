package seed

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/nbd-wtf/go-nostr"
	"github.com/uber/h3-go/v4"
)

// tags writes the listing in the order of spec 40 §1.1.
func (l Listing) tags(d *rand.Rand, images []Image, created nostr.Timestamp) (nostr.Tags, error) {
	cells, err := cellTags(l.Latitude, l.Longitude)
	if err != nil {
		return nil, err
	}
	tags := nostr.Tags{{"d", l.DTag}, {"title", l.Title}}
	tags = append(tags, imageTags(d, some(d, images, 1+d.IntN(4)))...)
	tags = append(tags,
		nostr.Tag{"t", "accommodation"},
		nostr.Tag{"published_at", strconv.FormatInt(int64(created), 10)},
		nostr.Tag{"active", strconv.FormatBool(l.Active)},
		nostr.Tag{"negotiable", strconv.FormatBool(l.Negotiable)},
	)
	if shortest := l.minDuration(); shortest != "" {
		tags = append(tags, nostr.Tag{"minDuration", shortest})
	}
	tags = append(tags,
		nostr.Tag{"checkIn", pick(d, []string{"15:0", "15:0", "14:30", "16:0"})},
		nostr.Tag{"checkOut", pick(d, []string{"11:0", "11:0", "10:0"})},
		nostr.Tag{"location", pick(d, []string{"", "", "", l.Place})},
		nostr.Tag{"quantity", pick(d, []string{"1", "1", "1", "1", "2", "6"})},
		nostr.Tag{"type", l.Type},
		nostr.Tag{"autoAccept", strconv.FormatBool(l.AutoAccept)},
	)
	for _, price := range l.Prices {
		tag := nostr.Tag{"price", price.Amount(), price.Denomination}
		if price.Period != "" {
			tag = append(tag, price.Period)
		}
		tags = append(tags, tag)
	}
	tags = append(tags, nostr.Tag{"rentOrBuy", l.RentOrBuy()})
	tags = append(tags, l.terms(d)...)
	specs := l.specTags(d)
	tags = append(tags, specs...)
	tags = append(tags, l.promoted(specs)...)
	tags = append(tags, combinations(l.Features)...)
	return append(tags, cells...), nil
}

func imageTags(d *rand.Rand, images []Image) nostr.Tags {
	var pictures, metadata nostr.Tags
	for _, image := range images {
		picture := nostr.Tag{"image", image.URL}
		about := nostr.Tag{"imeta", "url " + image.URL, "m image/png", "x " + image.SHA256, fmt.Sprintf("size %d", image.Size)}
		if chance(d, 2) {
			dimensions := fmt.Sprintf("%dx%d", pictureWidth, pictureHeight)
			picture = append(picture, dimensions)
			about = append(about, "dim "+dimensions)
		}
		pictures = append(pictures, picture)
		metadata = append(metadata, append(about, "alt "+image.Alt))
	}
	return append(pictures, metadata...)
}

// minDuration follows the first recurring price.
func (l Listing) minDuration() string {
	for _, price := range l.Prices {
		switch price.Period {
		case "day":
			return "P1D"
		case "week":
			return "P1W"
		case "month":
			return "P1M"
		case "year":
			return "P1Y"
		}
	}
	return ""
}

// terms are the conditions of a booking: refunds, deposit, smallest payment,
// dispute period; each on some listings only.
func (l Listing) terms(d *rand.Rand) nostr.Tags {
	var tags nostr.Tags
	policies := [][]nostr.Tag{
		{},
		{{"cancellationPolicy", "refundFraction", "1.0", "secondsBeforeStart", "604800"}},
		{{"cancellationPolicy", "refundFraction", "1.0", "secondsAfterOrder", "86400"}},
		{
			{"cancellationPolicy", "refundFraction", "1.0", "secondsBeforeStart", "1209600"},
			{"cancellationPolicy", "refundFraction", "0.5", "secondsBeforeStart", "172800"},
		},
		{{"cancellationPolicy", "refundFraction", "0.0", "secondsBeforeStart", "0", "secondsAfterOrder", "0"}},
	}
	tags = append(tags, pick(d, policies)...)
	first := l.Prices[0]
	decimals := map[string]string{"BTC": "8", "USD": "6"}[first.Denomination]
	if chance(d, 3) {
		deposit := Price{Units: first.Units / 2, Denomination: first.Denomination}
		tags = append(tags, nostr.Tag{"securityDeposit", deposit.Amount(), deposit.Denomination, decimals})
	}
	if chance(d, 5) {
		least := Price{Units: first.Units / 10, Denomination: first.Denomination}
		tags = append(tags, nostr.Tag{"minPaymentAmount", least.Amount(), least.Denomination, decimals})
	}
	if chance(d, 4) {
		tags = append(tags, nostr.Tag{"maxDisputePeriod", pick(d, []string{"604800", "1209600", "2592000"})})
	}
	return tags
}

func (l Listing) specTags(d *rand.Rand) nostr.Tags {
	tags := nostr.Tags{
		{"spec", "max_guests", strconv.Itoa(l.Guests)},
		{"spec", "beds", strconv.Itoa(l.Beds)},
		{"spec", "bedrooms", strconv.Itoa(l.Bedrooms)},
		{"spec", "bathrooms", strconv.Itoa(l.Bathrooms)},
	}
	if chance(d, 3) {
		tags = append(tags, nostr.Tag{"spec", "tv", "1"})
	}
	for _, feature := range l.Features {
		tags = append(tags, nostr.Tag{"spec", feature})
	}
	return tags
}

// promoted copies values into one-letter tags, which relays index (spec 40 §2).
func (l Listing) promoted(specs nostr.Tags) nostr.Tags {
	tags := nostr.Tags{
		{"T", l.Type},
		{"A", strconv.FormatBool(l.Active)},
		{"I", strconv.FormatBool(l.AutoAccept)},
		{"N", strconv.FormatBool(l.Negotiable)},
		{"M", l.RentOrBuy()},
	}
	letters := map[string]string{"max_guests": "c", "beds": "b", "bedrooms": "B", "bathrooms": "R"}
	for _, spec := range specs {
		tags = append(tags, nostr.Tag{"s", spec[1]})
		if letter := letters[spec[1]]; letter != "" {
			tags = append(tags, nostr.Tag{letter, spec[2]})
		}
	}
	return tags
}

// combinations gives every subset of two or more features, sorted, one S tag.
func combinations(features []string) nostr.Tags {
	sorted := slices.Compact(slices.Sorted(slices.Values(features)))
	var values []string
	for subset := range 1 << len(sorted) {
		var names []string
		for i, name := range sorted {
			if subset&(1<<i) != 0 {
				names = append(names, name)
			}
		}
		if len(names) >= 2 {
			values = append(values, strings.Join(names, "+"))
		}
	}
	slices.Sort(values)
	tags := make(nostr.Tags, len(values))
	for i, value := range values {
		tags[i] = nostr.Tag{"S", value}
	}
	return tags
}

// finest is the H3 resolution of about a square metre.
const finest = 15

// cellTags gives the H3 cells around a point as decimal text, finest first
// (spec 42 §2).
func cellTags(latitude, longitude float64) (nostr.Tags, error) {
	cell, err := h3.LatLngToCell(h3.NewLatLng(latitude, longitude), finest)
	if err != nil {
		return nil, fmt.Errorf("no H3 cell at %f, %f: %w", latitude, longitude, err)
	}
	tags := make(nostr.Tags, 0, finest+1)
	for resolution := finest; resolution >= 0; resolution-- {
		parent, err := cell.Parent(resolution)
		if err != nil {
			return nil, fmt.Errorf("no H3 parent at %f, %f: %w", latitude, longitude, err)
		}
		tags = append(tags, nostr.Tag{"g", strconv.FormatUint(uint64(parent), 10)})
	}
	return tags, nil
}
