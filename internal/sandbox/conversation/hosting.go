package conversation

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/sandbox"
	"hostr-daemon/internal/sandbox/seed"
)

// The listing that is published in the conversation. Its city is no part of a later step.
const (
	newTitle       = "House with a marimba in the garden"
	newDescription = "Five people sleep well here, under **mango trees**.\n\nThe marimba may be played until nine."
	newWord        = "marimba"
	newAddress     = "Avenida del Cafetal 7, Santa Tecla, El Salvador"
	newCity        = "Santa Tecla"
	newGuests      = 5
	newBeds        = 3
)

var newFeatures = []string{"bbq", "garden_or_backyard", "hot_water"} // sorted

// Its price for a night, first and then, in millionths of a dollar.
const (
	firstPrice  = 45_000_000
	secondPrice = 52_500_000
)

// hosting has a host publish a listing, change it, and anybody find it.
func hosting(m *sandbox.Market) []step {
	if len(m.Hosts) == 0 || len(m.Listings) == 0 {
		return nil
	}
	let := &letting{market: m, host: m.Hosts[0]}
	return []step{
		{
			"Sign in with a private key",
			"Who has no signer app can give the private key itself (nsec) on the bridge's sign-in page. The daemon keeps it on this " +
				"machine, and signs with it.",
			let.signIn,
		},
		{
			"Preview a listing",
			"A host wants to let a house. The address is looked up once and only its map cells are published; the picture goes to the " +
				"picture server at once, so that the preview shows what everybody will see.",
			let.preview,
		},
		{
			"Publish it",
			"The same input once more, with dryRun=false and the preview's dTag: the name of the listing, under which later versions " +
				"replace this one.",
			let.publish,
		},
		{
			"Change its price",
			"Nights get dearer. An edit takes the anchor of the listing and what is to change; the rest stays.",
			let.edit,
		},
		{
			"My listings",
			"All the host has on the market, the new one first.",
			let.list,
		},
		{
			"Change somebody else's listing",
			"A listing belongs to who signed it.",
			let.editForeign,
		},
		{
			"Leave the house to the guests",
			"The host signs out, which takes the key off this machine. The listing stays on the relay.",
			let.signOut,
		},
		{
			"Find the new house",
			"By place, by a word, and by what it has. Nobody needs an account for that.",
			let.find,
		},
	}
}

// letting is what the host does in the conversation.
type letting struct {
	market    *sandbox.Market
	host      sandbox.Person
	picture   []byte
	dTag      string
	published nostr.Event // newest version, once there is one
	price     int64       // of that version
}

func (l *letting) signIn(ctx context.Context, t *talk) {
	t.paper.Detail("The request holds the key and is not shown.")
	t.signInByKey(ctx, l.host)
}

// input is that of the new listing; with a dTag it is to be published.
func (l *letting) input(dTag string) map[string]any {
	specifications := make(map[string]bool)
	for _, feature := range newFeatures {
		specifications[feature] = true
	}
	input := map[string]any{
		"title": newTitle, "description": newDescription, "address": newAddress, "type": "house",
		"images":         []any{map[string]string{"url": "data:image/png;base64," + base64.StdEncoding.EncodeToString(l.picture), "alt": "The garden"}},
		"prices":         []any{dailyPrice(firstPrice)},
		"specifications": specifications, "guests": newGuests, "beds": newBeds, "bedrooms": 2, "bathrooms": 1,
	}
	if dTag != "" {
		input["dTag"], input["dryRun"] = dTag, false
	}
	return input
}

// dailyPrice is a price as inputs have it.
func dailyPrice(units int64) map[string]any {
	price := seed.Price{Units: units, Denomination: "USD", Period: "day"}
	return map[string]any{"amount": map[string]string{"value": price.Amount(), "currency": "USD"}, "frequency": "daily"}
}

// listing is what the market must say of the new listing, given one of its events.
func (l *letting) listing(event nostr.Event, units int64) sandbox.Listing {
	return sandbox.Listing{
		Event: event, Host: l.host, DTag: l.dTag, Anchor: l.anchor(), Title: newTitle, Description: newDescription,
		Type: "house", Guests: newGuests, Beds: newBeds, Features: newFeatures, Active: true, AutoAccept: true,
		Prices: []seed.Price{{Units: units, Denomination: "USD", Period: "day"}},
	}
}

func (l *letting) anchor() string {
	return fmt.Sprintf("%d:%s:%s", seed.ListingKind, l.host.PublicKey, l.dTag)
}

func (l *letting) preview(ctx context.Context, t *talk) {
	pictures, err := seed.NewPictures(int64(len(l.market.Listings)), 30)
	if err != nil {
		t.bad("%v", err)
		return
	}
	l.picture = pictures[len(pictures)-1].PNG // none of the market's
	preview, ok := l.write(ctx, t, "hostr.listings.create", l.input(""), true)
	if !ok {
		return
	}
	l.dTag = preview.DTag
	next := preview.NextInput
	t.check(preview.DryRun && preview.DTag != "" && next != nil && !next.DryRun && next.DTag == preview.DTag,
		"it is a preview, and names the input that publishes it", fmt.Sprintf("dTag %q, next input %+v", preview.DTag, next))
	event := preview.Event.event()
	t.check(preview.Event.Sig == nil && event.CheckID() && event.PubKey == l.host.PublicKey && event.Kind == seed.ListingKind,
		"the event is complete but for the signature", fmt.Sprintf("%+v", preview.Event))
	l.checkPicture(t, preview)
	l.checkSummary(t, preview, firstPrice)
	t.check(len(l.onRelay(ctx, t)) == 0, "nothing is published", "the relay has it")
}

// checkPicture wants the picture on the picture server, where the listing says.
func (l *letting) checkPicture(t *talk, preview Written) {
	sum := sha256.Sum256(l.picture)
	hash := hex.EncodeToString(sum[:])
	planned := len(preview.PlannedUploads) == 1 && preview.PlannedUploads[0].SHA256 == hash &&
		preview.PlannedUploads[0].Size == len(l.picture) && preview.PlannedUploads[0].MIME == "image/png"
	blob, descriptor, stored := l.market.Blossom.Get(hash)
	shown := slices.Equal(preview.Listing.Images, []string{descriptor.URL})
	t.check(planned && stored && string(blob) == string(l.picture) && shown, "the picture is where the listing says, byte for byte",
		fmt.Sprintf("planned %+v, stored %t, shown %v", preview.PlannedUploads, stored, preview.Listing.Images))
}

// checkSummary compares the listing shown with the input and with its own event.
func (l *letting) checkSummary(t *talk, written Written, units int64) {
	event := written.Event.event()
	difference := compareListing(written.Listing, l.listing(event, units))
	if difference == "" && written.Listing.ID != event.ID {
		difference = fmt.Sprintf("it is of event %s, not %s", shortID(written.Listing.ID), shortID(event.ID))
	}
	t.check(difference == "", "it says what the host wrote: "+priceLine(written.Listing), difference)
}

func (l *letting) publish(ctx context.Context, t *talk) {
	live, ok := l.write(ctx, t, "hostr.listings.create", l.input(l.dTag), false)
	if !ok {
		return
	}
	t.check(!live.DryRun && live.DTag == l.dTag && live.NextInput == nil, "it kept its dTag", fmt.Sprintf("dTag %q", live.DTag))
	l.checkPublished(ctx, t, live, firstPrice)
}

// checkPublished wants the event just published on the relay, alone under its name.
func (l *letting) checkPublished(ctx context.Context, t *talk, live Written, units int64) {
	event := live.Event.event()
	valid, err := event.CheckSignature()
	t.check(live.Event.Sig != nil && event.CheckID() && valid && err == nil && event.PubKey == l.host.PublicKey,
		"the host's signature holds", fmt.Sprintf("%+v", live.Event))
	accepted := len(live.RelayResponses) > 0 && live.RelayResponses[0].BroadcastSuccessful
	stored := l.onRelay(ctx, t)
	t.check(accepted && len(stored) == 1 && stored[0].ID == event.ID, "the relay has it, and no other under this name",
		fmt.Sprintf("%+v, %d stored", live.RelayResponses, len(stored)))
	l.checkSummary(t, live, units)
	l.published, l.price = event, units
}

func (l *letting) edit(ctx context.Context, t *talk) {
	before := l.published
	input := map[string]any{"anchor": l.anchor(), "patch": map[string]any{"prices": []any{dailyPrice(secondPrice)}}}
	preview, ok := l.write(ctx, t, "hostr.listings.edit", input, true)
	if !ok {
		return
	}
	stored := l.onRelay(ctx, t)
	t.check(preview.DryRun && len(stored) == 1 && stored[0].ID == before.ID, "the preview changes nothing", fmt.Sprintf("%d stored", len(stored)))
	l.checkSummary(t, preview, secondPrice)
	input["dryRun"] = false
	live, ok := l.write(ctx, t, "hostr.listings.edit", input, false)
	if !ok {
		return
	}
	l.checkPublished(ctx, t, live, secondPrice)
	after := l.published
	t.check(after.CreatedAt > before.CreatedAt && value(after, "published_at") == value(before, "published_at"),
		"it is newer, and first published when it was", fmt.Sprintf("created at %d after %d", after.CreatedAt, before.CreatedAt))
}

func (l *letting) list(ctx context.Context, t *talk) {
	var result SearchResult
	if !t.succeedAs(ctx, l.host.PublicKey, "hostr.listings.list", map[string]any{"mine": true, "limit": 200}, &result) {
		return
	}
	want := l.withNew(find(l.market, 199, func(other sandbox.Listing) bool { return other.Host.PublicKey == l.host.PublicKey }))
	difference := compare(result, want)
	t.check(difference == "", fmt.Sprintf("exactly the %d listings of the host", len(want)), difference)
}

func (l *letting) editForeign(ctx context.Context, t *talk) {
	for _, other := range l.market.Listings {
		if other.Host.PublicKey == l.host.PublicKey {
			continue
		}
		input := map[string]any{"anchor": other.Anchor, "patch": map[string]any{"title": "Mine now"}}
		request, ok := t.send("callAction", ActionParams{Action: "hostr.listings.edit", Pubkey: l.host.PublicKey, Input: input})
		if !ok {
			return
		}
		if envelope, ok := t.envelope(ctx, request, "hostr.listings.edit"); ok {
			t.refused(envelope, "not_author", "")
		}
		return
	}
}

func (l *letting) signOut(ctx context.Context, t *talk) {
	t.signOut(ctx, l.host)
	t.check(len(l.onRelay(ctx, t)) == 1, "the relay has the listing", "it is gone")
}

func (l *letting) find(ctx context.Context, t *talk) {
	t.search(ctx, map[string]any{"location": newCity, "limit": 50}, "the listings in "+newCity+" and the new one",
		l.withNew(find(l.market, 49, inPlace(newCity))))
	t.search(ctx, map[string]any{"query": newWord}, "the one with a "+newWord, l.withNew(nil))
	features := withFeatures(newGuests, newFeatures[:2]...)
	t.search(ctx, map[string]any{"features": newFeatures[:2], "guests": newGuests, "limit": 50},
		fmt.Sprintf("the listings with a barbecue and a garden for %d, and the new one", newGuests), l.withNew(find(l.market, 49, features)))
}

// withNew puts the new listing, the newest of all, before the others.
func (l *letting) withNew(others []sandbox.Listing) []sandbox.Listing {
	return slices.Concat([]sandbox.Listing{l.listing(l.published, l.price)}, others)
}

// onRelay returns what the relay holds under the new listing's name.
func (l *letting) onRelay(ctx context.Context, t *talk) []nostr.Event {
	events, err := l.market.Relay.Query(ctx, nostr.Filter{
		Kinds: []int{seed.ListingKind}, Authors: []string{l.host.PublicKey}, Tags: nostr.TagMap{"d": {l.dTag}},
	})
	if err != nil {
		t.bad("the relay cannot be looked into: %v", err)
	}
	return events
}

// write calls an action that previews or publishes a listing.
func (l *letting) write(ctx context.Context, t *talk, action string, input any, dryRun bool) (Written, bool) {
	var written Written
	request, ok := t.send("callAction", ActionParams{Action: action, Pubkey: l.host.PublicKey, Input: input})
	if !ok {
		return written, false
	}
	envelope, ok := t.answered(ctx, request, action, dryRun)
	return written, ok && t.data(envelope, &written)
}

func value(event nostr.Event, tag string) string {
	if found := event.Tags.Find(tag); found != nil {
		return found[1]
	}
	return ""
}
