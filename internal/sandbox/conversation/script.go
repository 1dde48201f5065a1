package conversation

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"hostr-daemon/internal/sandbox"
)

// step is one part of the conversation.
type step struct {
	title string
	why   string
	run   func(ctx context.Context, t *talk)
}

// script returns the conversation for a market; only strangers leave out what
// accounts do.
func script(m *sandbox.Market, strangersOnly bool) []step {
	var accounts []step
	if !strangersOnly {
		accounts = slices.Concat(signingIn(m), hosting(m), staying(m), trading(m))
	}
	return slices.Concat(opening(), searching(m), profiles(m), rights(m), accounts, mistakes(m), troubles(m))
}

func opening() []step {
	return []step{{
		"What can you do?",
		"describe lists every action with its title and its input. Programs offer the actions as tools.",
		describe,
	}}
}

func rights(m *sandbox.Market) []step {
	return []step{
		{
			"What may I do?",
			"visibleActions leaves out what is of no use to an account. Most actions are visible to everybody, though nearly all " +
				"of them need a sign-in when they are called; some are visible to escrow operators only, who hold payments until a " +
				"stay is over. The id of a request may be any JSON value and comes back as it was.",
			func(ctx context.Context, t *talk) { visibleActions(ctx, t, m) },
		},
		{
			"Who am I?",
			"Nobody is signed in yet. Three actions may be called without saying who asks: this one, searching, and looking up a profile.",
			sessionStatus,
		},
	}
}

func searching(m *sandbox.Market) []step {
	const city, town = "Santa Tecla", "El Zonte"
	find := func(input map[string]any, claim string, limit int, fits func(sandbox.Listing) bool) func(context.Context, *talk) {
		return func(ctx context.Context, t *talk) { t.search(ctx, input, claim, find(m, limit, fits)) }
	}
	return []step{
		{
			"Find places to stay",
			"The daemon asks the relay, checks every signature and returns the newest listings, ten unless told otherwise.",
			find(map[string]any{}, "the newest listings", 10, func(sandbox.Listing) bool { return true }),
		},
		{
			"Find places to stay in a city",
			"The daemon asks the geocoder for the outline of " + city + ", covers it with the cells of a grid (H3), and asks the relay for " +
				"listings in these cells.",
			find(map[string]any{"location": city, "limit": 50}, "the listings in "+city, 50, inPlace(city)),
		},
		{
			"Find places to stay in a village",
			"The geocoder knows " + town + " only as a point with a box around it; the box will do.",
			find(map[string]any{"location": strings.ToUpper(town), "limit": 50}, "the listings in "+town, 50, inPlace(town)),
		},
		{
			"Find words",
			"Words are looked for in titles and descriptions, in small or capital letters.",
			func(ctx context.Context, t *talk) {
				t.search(ctx, map[string]any{"query": "HAMMOCK", "limit": 50}, "the listings with a hammock", findWords(m, 50, "hammock"))
			},
		},
		{
			"Find room for four, with a kitchen and internet",
			"Features are looked up on the relay by a tag that stands for the combination of both.",
			find(map[string]any{"features": []string{"wireless_internet", "kitchen"}, "guests": 4, "limit": 50},
				"the listings with both for four and more", 50, withFeatures(4, "kitchen", "wireless_internet")),
		},
		{
			"Find a house to buy",
			"Some hosts sell. A price paid once makes a listing one to buy.",
			find(map[string]any{"type": "house", "rentOrBuy": "buy", "limit": 50}, "the houses for sale", 50,
				func(l sandbox.Listing) bool { return l.Type == "house" && l.RentOrBuy() == "buy" }),
		},
	}
}

func profiles(m *sandbox.Market) []step {
	host := m.Hosts[0]
	return []step{
		{
			"Who is this host?",
			"Anybody's profile can be looked up, by npub or by the key in hex.",
			func(ctx context.Context, t *talk) {
				t.lookup(ctx, host.NPub, host)
				t.lookup(ctx, strings.ToUpper(host.PublicKey), host)
			},
		},
		{
			"Who is that?",
			"A key without a profile is no error: it just has none.",
			func(ctx context.Context, t *talk) {
				for _, guest := range m.Guests {
					if guest.Profile == nil {
						t.lookup(ctx, guest.NPub, guest)
					}
				}
			},
		},
	}
}

func describe(ctx context.Context, t *talk) {
	frame, ok := t.call(ctx, "describe", nil)
	var catalog Catalog
	if !ok || !t.read(frame, &catalog) {
		return
	}
	escrow := 0
	known := make(map[string]bool)
	for _, action := range catalog.Actions {
		known[action.ID] = true
		if action.RequiredRole == "escrow" {
			escrow++
		}
	}
	t.check(catalog.Version == 1 && len(known) == actionCount && len(catalog.Actions) == actionCount && escrow == escrowActionCount,
		fmt.Sprintf("a catalog of version 1 with %d actions, %d of them for escrow operators", actionCount, escrowActionCount),
		fmt.Sprintf("version %d, %d actions, %d different, %d for escrow operators", catalog.Version, len(catalog.Actions), len(known), escrow))
	for _, id := range []string{"hostr.session.status", "hostr.listings.search", "hostr.profile.lookup"} {
		if !known[id] {
			t.bad("the action %s is missing", id)
		}
	}
}

// Sizes of the catalog (spec 10 §3.1).
const (
	actionCount       = 43
	escrowActionCount = 14
)

func visibleActions(ctx context.Context, t *talk, m *sandbox.Market) {
	ask := func(id string, params any) (visible Visible, ok bool) {
		t.next++
		request, ok := t.sendAs(json.RawMessage(id), "visibleActions", params)
		if !ok {
			return visible, false
		}
		frame, ok := t.await(ctx, request)
		return visible, ok && t.read(frame, &visible)
	}
	if anybody, ok := ask("12345678901234567890", nil); ok {
		t.check(len(anybody.VisibleActionIDs) == actionCount-escrowActionCount && !anybody.IsEscrow,
			fmt.Sprintf("anybody may see %d actions", actionCount-escrowActionCount), fmt.Sprint(len(anybody.VisibleActionIDs)))
		t.check(slices.Equal(anybody.EscrowPubkeys, []string{m.Escrow.PublicKey}),
			"the market's escrow operator is the one the daemon trusts", fmt.Sprint(anybody.EscrowPubkeys))
	}
	if operator, ok := ask(`"for-the-operator"`, map[string]string{"pubkey": m.Escrow.PublicKey}); ok {
		t.check(len(operator.VisibleActionIDs) == actionCount && operator.IsEscrow,
			fmt.Sprintf("the escrow operator may see all %d", actionCount), fmt.Sprint(len(operator.VisibleActionIDs)))
	}
}

func sessionStatus(ctx context.Context, t *talk) {
	var status SessionStatus
	if !t.succeed(ctx, "hostr.session.status", map[string]any{}, &status) {
		return
	}
	nobody := status.TokenPubkey != nil && *status.TokenPubkey == "" && status.SessionPubkey == nil &&
		status.ActivePubkey == nil && !status.Authenticated && !status.SignerOnline
	t.check(nobody, "nobody is signed in", fmt.Sprintf("%+v", status))
}

// search calls the search and compares with what it must find.
func (t *talk) search(ctx context.Context, input map[string]any, claim string, want []sandbox.Listing) {
	var result SearchResult
	if !t.succeed(ctx, "hostr.listings.search", input, &result) {
		return
	}
	t.paper.Detail(counted(len(result.Listings), "listing"))
	for _, listing := range result.Listings[:min(len(result.Listings), 3)] {
		t.paper.Detail(fmt.Sprintf("%s · %s for %s · %s", listing.Title, listing.Type,
			number(listing.Specifications["max_guests"]), priceLine(listing)))
	}
	if difference := compare(result, want); difference != "" {
		t.bad("not %s: %s", claim, difference)
		return
	}
	t.good("exactly %s: %d, newest first, each as its host signed it", claim, len(want))
}

// counted writes a number of things.
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// lookup looks a person up by npub or hex key and compares with the seed.
func (t *talk) lookup(ctx context.Context, key string, person sandbox.Person) {
	var profile Profile
	if !t.succeed(ctx, "hostr.profile.lookup", map[string]any{"npub": key}, &profile) {
		return
	}
	t.check(profile.Pubkey == person.PublicKey && profile.NPub == person.NPub, "the keys are right", profile.Pubkey+" "+profile.NPub)
	if person.Profile == nil {
		t.check(!profile.Exists && profile.Event == nil, "there is no profile", fmt.Sprintf("exists is %t", profile.Exists))
		return
	}
	t.check(profile.Exists && profile.Event != nil && profile.Event.ID == person.Profile.ID && profile.Event.Sig != nil,
		"it is the profile event the person signed", fmt.Sprintf("%+v", profile.Event))
	var content map[string]any
	if err := json.Unmarshal([]byte(person.Profile.Content), &content); err != nil {
		t.bad("the seeded profile is unreadable: %v", err)
		return
	}
	for _, key := range []string{"name", "about", "picture", "lud16"} {
		if profile.Metadata[key] != content[key] {
			t.bad("metadata.%s is %v instead of %v", key, profile.Metadata[key], content[key])
			return
		}
	}
	t.good("it says: %s – %s", content["name"], content["about"])
}
