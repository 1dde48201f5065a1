package seed

import (
	"fmt"
	"strings"

	"github.com/nbd-wtf/go-nostr"
)

// OddListing is a listing no careful client would write, signed all the same.
type OddListing struct {
	Event nostr.Event
	// Note says what is odd about it.
	Note string
	// Accommodation is true when it carries the tag that every list query asks
	// for, so that searches meet it.
	Accommodation bool
}

// newOddListings signs each oddity under a key of its own. They are newer than
// all other listings.
func newOddListings(seed int64) ([]OddListing, error) {
	oddities := oddities()
	listings := make([]OddListing, len(oddities))
	for i, odd := range oddities {
		author, err := newPerson(seed, "stranger", i)
		if err != nil {
			return nil, err
		}
		event := nostr.Event{
			Kind: max(odd.kind, ListingKind), CreatedAt: Epoch + nostr.Timestamp(1+i), Tags: odd.tags, Content: odd.content,
		}
		if err := event.Sign(author.PrivateKey); err != nil {
			return nil, fmt.Errorf("odd listing %q: %w", odd.note, err)
		}
		accommodation := event.Kind == ListingKind && event.Tags.FindWithValue("t", "accommodation") != nil
		listings[i] = OddListing{Event: event, Note: odd.note, Accommodation: accommodation}
	}
	return listings, nil
}

// oddity is an unsigned odd listing; kind 0 stands for a listing's.
type oddity struct {
	note    string
	kind    int
	tags    nostr.Tags
	content string
}

func oddities() []oddity {
	named := func(d string, tags ...nostr.Tag) nostr.Tags {
		return append(nostr.Tags{{"d", d}, {"title", "Odd: " + d}, {"t", "accommodation"}}, tags...)
	}
	return append(badValues(named), otherClients(named)...)
}

func badValues(named func(string, ...nostr.Tag) nostr.Tags) []oddity {
	return []oddity{
		{note: "price that is no number", tags: named("price-abc", nostr.Tag{"price", "abc", "BTC", "day"})},
		{note: "price tags without currency or value", tags: named("price-short", nostr.Tag{"price"}, nostr.Tag{"price", "5"})},
		{note: "one bad and one good price", tags: named("price-mixed",
			nostr.Tag{"price", "1e5", "USD", "day"}, nostr.Tag{"price", "80.000000", "USD", "day"})},
		{note: "negative price", tags: named("price-negative", nostr.Tag{"price", "-0.00100000", "BTC", "day"})},
		{note: "price of 400 digits", tags: named("price-long", nostr.Tag{"price", strings.Repeat("9", 400), "BTC", "day"})},
		{note: "price per hour, which counts as paid once", tags: named("price-hour", nostr.Tag{"price", "10.000000", "USD", "hour"})},
		{note: "deposit with a billion decimals", tags: named("deposit-decimals",
			nostr.Tag{"price", "0.00100000", "BTC", "day"}, nostr.Tag{"securityDeposit", "1", "BTC", "999999999"})},
		{note: "deposit with negative decimals", tags: named("deposit-negative",
			nostr.Tag{"price", "0.00100000", "BTC", "day"}, nostr.Tag{"securityDeposit", "1", "BTC", "-3"})},
		{note: "numeric specification without a number", tags: named("spec-bare",
			nostr.Tag{"spec", "max_guests"}, nostr.Tag{"spec"}, nostr.Tag{"spec", "beds", "many"})},
		{note: "text-valued and legacy specifications", tags: named("spec-legacy",
			nostr.Tag{"amenity", "kitchen"}, nostr.Tag{"amenity", "beds", "2"}, nostr.Tag{"spec", "pool", "heated"})},
		{note: "refund fraction NaN", tags: named("policy-nan",
			nostr.Tag{"cancellationPolicy", "refundFraction", "NaN", "secondsBeforeStart", "1"})},
		{note: "refund fraction above one, negative seconds", tags: named("policy-range",
			nostr.Tag{"cancellationPolicy", "refundFraction", "1.5", "secondsBeforeStart", "1"},
			nostr.Tag{"cancellationPolicy", "refundFraction", "0.5", "secondsBeforeStart", "-1"})},
		{note: "unknown type, unreadable numbers and booleans", tags: named("words",
			nostr.Tag{"type", "treehouse"}, nostr.Tag{"T", "treehouse"}, nostr.Tag{"quantity", "many"},
			nostr.Tag{"active", "maybe"}, nostr.Tag{"maxDisputePeriod", "soon"}, nostr.Tag{"negotiable", "YES"})},
		{note: "tags without values and without anything", tags: named("empty-tags",
			nostr.Tag{"image"}, nostr.Tag{"image", " "}, nostr.Tag{"imeta"}, nostr.Tag{"imeta", "url"}, nostr.Tag{"location"}, nostr.Tag{""})},
		{note: "no title, no price, no anything", tags: nostr.Tags{{"d", "bare"}, {"t", "accommodation"}}},
		{note: "no d tag", tags: nostr.Tags{{"title", "Odd: no d"}, {"t", "accommodation"}}},
		{note: "d tag without value", tags: nostr.Tags{{"d"}, {"title", "Odd: bare d"}, {"t", "accommodation"}}},
		{note: "d with colons and blanks", tags: named("villa:2 : east", nostr.Tag{"price", "90.000000", "USD", "day"})},
		{note: "location tags in hex, which no search finds", tags: named("hex-cells", nostr.Tag{"g", "8f2a1072b59ffff"})},
	}
}

func otherClients(named func(string, ...nostr.Tag) nostr.Tags) []oddity {
	return []oddity{
		{
			note: "classified ad of another client, no accommodation",
			tags: nostr.Tags{
				{"d", "used-bicycle"}, {"title", "Used bicycle"}, {"summary", "Three gears, one owner"},
				{"t", "bicycles"}, {"location", "Porto"}, {"price", "120", "EUR"}, {"status", "active"},
				{"published_at", "1767220000"},
			},
			content: "Rides well downhill.",
		},
		{
			note: "accommodation of another client, with plain NIP-99 tags only",
			tags: nostr.Tags{
				{"d", "attic"}, {"title", "Attic with a view"}, {"summary", "Stairs included"}, {"t", "accommodation"},
				{"location", "Lisbon"}, {"price", "45", "EUR", "night"}, {"status", "active"},
				{"image", "https://images.example/attic.jpg", "800x600"}, {"published_at", "1767220000"},
			},
			content: "Ask for the key at the bakery.",
		},
		{note: "draft kind 30403", kind: 30403, tags: named("draft"), content: "Not published yet."},
		{note: "description of 200 kB", tags: named("long"), content: strings.Repeat("A very long walk along the beach. ", 6000)},
		{note: "title of 20 kB", tags: nostr.Tags{{"d", "long-title"}, {"title", strings.Repeat("long ", 4000)}, {"t", "accommodation"}}},
		{
			note: "many scripts, control characters, markup and line separators",
			tags: named("text", nostr.Tag{"location", "東京 · القاهرة · Αθήνα"}),
			content: "Línea uno\r\nمرحبا بكم – ブランコ 🏝️👨‍👩‍👧‍👦\u2028next\u2029last\u0001\u007f" +
				"<script>alert('no')</script> [link](javascript:void) \"quoted\" back\\slash\ttab",
		},
		{note: "the same tags twice", tags: append(named("twice", nostr.Tag{"price", "70.000000", "USD", "day"}),
			named("twice-again", nostr.Tag{"price", "0.00070000", "BTC", "day"})...)},
	}
}
