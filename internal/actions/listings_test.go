package actions

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nbd-wtf/go-nostr"
	"github.com/nbd-wtf/go-nostr/nip19"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/request"
	"hostr-daemon/internal/sandbox"
)

// onePixel is a PNG of one pixel, the image of the vectors of spec 40.
const onePixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mNoAAAAggCB2kUIOwAAAABJRU5ErkJggg=="

// bytesOf decodes onePixel.
func bytesOf(t testing.TB, text string) []byte {
	t.Helper()
	decoded, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return decoded
}

// signIn signs an account in by its private key in hex.
func signIn(t testing.TB, product *Product, key string) string {
	t.Helper()
	nsec, err := nip19.EncodePrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	outcome, err := product.CompleteOAuthNSec(patient(t), request.OAuthNSec{RequestID: "test", NSec: nsec})
	if err != nil {
		t.Fatal(err)
	}
	return outcome.Data.(OAuthSignedIn).Pubkey
}

// callAs runs an action for an account and returns its result as JSON text.
func callAs(t testing.TB, product *Product, id, pubkey, input string) (string, request.Outcome) {
	t.Helper()
	outcome, failure := call(t, product, id, pubkey, input)
	if failure != nil {
		t.Fatalf("%s: %v", id, failure)
	}
	text, err := json.Marshal(outcome.Data)
	if err != nil {
		t.Fatal(err)
	}
	return string(text), outcome
}

// read reads a result.
func read[R any](t testing.TB, text string) (result R) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &result); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return result
}

// keysOf are the keys of a JSON object, in order.
func keysOf(t testing.TB, object string) []string {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(object))
	if _, err := decoder.Token(); err != nil {
		t.Fatal(err)
	}
	keys := []string{}
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, key.(string))
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			t.Fatal(err)
		}
	}
	return keys
}

// writtenResult is the result of create and edit.
type writtenResult struct {
	DryRun         bool
	DTag           string
	PlannedUploads []map[string]any
	Event          nostr.Event
	Listing        json.RawMessage
	RelayResponses []struct{ BroadcastSuccessful bool }
}

// listingVectors are the vectors of create and edit (spec 40).
type listingVectors struct {
	Create struct {
		Input                                          map[string]json.RawMessage
		ExpectedEvent                                  nostr.Event
		ExpectedPlannedUploads, ExpectedListingSummary json.RawMessage
	}
	Edit struct {
		Patch         json.RawMessage
		ExpectedEvent nostr.Event
	}
}

// house is a market whose geocoder knows one place, with an image to list.
type house struct {
	market   *sandbox.Market
	product  *Product
	imageURL string
}

func newHouse(t testing.TB, options sandbox.Options) house {
	t.Helper()
	market := startMarket(t, options)
	pixel := bytesOf(t, onePixel)
	mux := http.NewServeMux()
	mux.HandleFunc("/search", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `[{"lat":"48.8566","lon":"2.3522"}]`)
	})
	mux.HandleFunc("/garden.png", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "image/png")
		_, _ = w.Write(pixel)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	config := market.Config()
	config.GeocoderURL = server.URL + "/search"
	text, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "house.json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return house{market: market, product: newProduct(t, path), imageURL: server.URL + "/garden.png"}
}

// asVector makes an event out of this market and hour what it is in the vectors.
func asVector(t testing.TB, event, want nostr.Event) nostr.Event {
	t.Helper()
	got, wantURL := event.Tags.Find("image"), want.Tags.Find("image")
	if len(got) < 2 || len(wantURL) < 2 {
		t.Fatalf("no image in %s", event)
	}
	text := strings.ReplaceAll(event.String(), got[1], wantURL[1])
	vector := read[nostr.Event](t, text)
	vector.CreatedAt, vector.Sig = want.CreatedAt, ""
	for i, tag := range vector.Tags {
		if tag[0] == "published_at" {
			vector.Tags[i] = want.Tags.Find("published_at")
		}
	}
	vector.ID = vector.GetID()
	return vector
}

// The vectors of create and edit through everything: input, Blossom, geocoder, relay.
func TestListingVectors(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../market/testdata/listings-vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	vectors := read[listingVectors](t, string(text))
	house := newHouse(t, sandbox.Options{})
	host := signIn(t, house.product, strings.Repeat("0", 63)+"1")
	input := vectors.Create.Input
	input["images"] = json.RawMessage(`[{"url":"` + house.imageURL + `","alt":"Garden view"}]`)

	preview, outcome := callAs(t, house.product, "hostr.listings.create", host, encoded(t, input))
	if !outcome.DryRun {
		t.Error("the envelope of a preview says otherwise")
	}
	shown := read[writtenResult](t, preview)
	if got := asVector(t, shown.Event, vectors.Create.ExpectedEvent); got.String() != vectors.Create.ExpectedEvent.String() {
		t.Errorf("preview (-want +got):\n%s", cmp.Diff(vectors.Create.ExpectedEvent.Tags, got.Tags))
	}
	if shown.Event.ID != shown.Event.GetID() || !strings.Contains(preview, `"sig":null}`) {
		t.Errorf("event %s", shown.Event)
	}
	wantPlanned := strings.ReplaceAll(string(vectors.Create.ExpectedPlannedUploads), "https://source.example/garden.png", house.imageURL)
	if diff := cmp.Diff(read[[]map[string]any](t, wantPlanned), shown.PlannedUploads); diff != "" {
		t.Errorf("planned uploads (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(keysOf(t, string(vectors.Create.ExpectedListingSummary)), keysOf(t, string(shown.Listing))); diff != "" {
		t.Errorf("summary keys (-want +got):\n%s", diff)
	}

	input["dryRun"] = json.RawMessage("false")
	published, outcome := callAs(t, house.product, "hostr.listings.create", host, encoded(t, input))
	if outcome.DryRun {
		t.Error("the envelope of a publish says otherwise")
	}
	live := read[writtenResult](t, published)
	if got := asVector(t, live.Event, vectors.Create.ExpectedEvent); got.ID != vectors.Create.ExpectedEvent.ID {
		t.Errorf("published (-want +got):\n%s", cmp.Diff(vectors.Create.ExpectedEvent.Tags, got.Tags))
	}

	patch := `{"anchor":"` + live.Event.Tags.GetD() + `","patch":` + string(vectors.Edit.Patch) + `}`
	patch = strings.Replace(patch, `"anchor":"`, `"anchor":"30402:`+host+`:`, 1)
	edited, _ := callAs(t, house.product, "hostr.listings.edit", host, patch)
	change := read[writtenResult](t, edited)
	if change.Event.CreatedAt != live.Event.CreatedAt {
		t.Errorf("the draft is of %d, want %d", change.Event.CreatedAt, live.Event.CreatedAt)
	}
	if got := asVector(t, change.Event, vectors.Edit.ExpectedEvent); got.ID != vectors.Edit.ExpectedEvent.ID {
		t.Errorf("edited (-want +got):\n%s", cmp.Diff(vectors.Edit.ExpectedEvent.Tags, got.Tags))
	}
}

func encoded(t testing.TB, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// garden is an input for create.
func (h house) garden(more string) string {
	return `{"title":"Garden room","description":"A quiet room","address":"1 Example Street","images":"` + h.imageURL +
		`","prices":[{"amount":{"value":"60000","currency":"BTC","unit":"sats"}}]` + more + `}`
}

// The whole way of a listing, with the exact keys of each answer in order.
func TestListingFromPreviewToEdit(t *testing.T) {
	t.Parallel()
	house := newHouse(t, sandbox.Options{})
	host := signIn(t, house.product, nostr.GeneratePrivateKey())

	preview, _ := callAs(t, house.product, "hostr.listings.create", host, house.garden(""))
	wantKeys(t, preview, "dryRun", "dTag", "nextInput", "assistantInstructions", "plannedUploads", "event", "listing")
	shown := read[struct {
		writtenResult
		NextInput             json.RawMessage
		AssistantInstructions []string
	}](t, preview)
	if string(shown.NextInput) != `{"dryRun":false,"dTag":"`+shown.DTag+`"}` || len(shown.AssistantInstructions) != 1 || !strings.Contains(shown.AssistantInstructions[0], shown.DTag) {
		t.Errorf("next input %s, instructions %q", shown.NextInput, shown.AssistantInstructions)
	}
	if sent := house.listings(t, host); len(sent) != 0 {
		t.Errorf("a preview published %v", sent)
	}

	live := house.garden(`,"dryRun":false,"dTag":"` + shown.DTag + `"`)
	published, _ := callAs(t, house.product, "hostr.listings.create", host, live)
	wantKeys(t, published, "dryRun", "dTag", "event", "listing", "relayResponses")
	again, _ := callAs(t, house.product, "hostr.listings.create", host, live)
	last := read[writtenResult](t, again)
	stored := house.listings(t, host)
	if len(stored) != 1 || stored[0].String() != last.Event.String() || last.DTag != shown.DTag || !last.RelayResponses[0].BroadcastSuccessful {
		t.Errorf("the relay holds %v, want %s", stored, last.Event)
	}
	if seller := house.stored(t, nostr.Filter{Kinds: []int{17388}, Authors: []string{host}}); len(seller) != 1 {
		t.Errorf("seller configurations %v, want one", seller)
	}

	anchor := "30402:" + host + ":" + shown.DTag
	naddr, err := nip19.EncodeEntity(host, 30402, shown.DTag, nil)
	if err != nil {
		t.Fatal(err)
	}
	edit, _ := callAs(t, house.product, "hostr.listings.edit", host, `{"anchor":"nostr:`+naddr+`","patch":{"title":"Room"}}`)
	wantKeys(t, edit, "dryRun", "plannedUploads", "event", "listing")
	if !strings.Contains(edit, `"plannedUploads":[]`) {
		t.Errorf("no images were given, but %s", edit)
	}
	edit, _ = callAs(t, house.product, "hostr.listings.edit", host, `{"anchor":"`+anchor+`","title":"Room","images":[{"base64":"`+onePixel+`"}],"dryRun":"no"}`)
	wantKeys(t, edit, "dryRun", "event", "listing", "relayResponses")

	listed, _ := callAs(t, house.product, "hostr.listings.list", host, `{"mine":true,"author":"`+stranger+`"}`)
	wantKeys(t, listed, "count", "listings")
	if found := read[ListingsResult](t, listed); found.Count != 1 || found.Listings[0].Title != "Room" || *found.Listings[0].Anchor != anchor {
		t.Errorf("listed %s", listed)
	}
	listed, _ = callAs(t, house.product, "hostr.listings.list", host, `{"author":"`+stranger+`"}`)
	if listed != `{"count":0,"listings":[]}` {
		t.Errorf("a stranger's listings are %s", listed)
	}
}

func (h house) stored(t testing.TB, filter nostr.Filter) []nostr.Event {
	t.Helper()
	events, err := h.market.Relay.Query(patient(t), filter)
	if err != nil {
		t.Fatal(err)
	}
	return events
}

func (h house) listings(t testing.TB, author string) []nostr.Event {
	t.Helper()
	return h.stored(t, nostr.Filter{Kinds: []int{30402}, Authors: []string{author}})
}

func wantKeys(t testing.TB, object string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, keysOf(t, object)); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
}

func TestListingWriteFailures(t *testing.T) {
	t.Parallel()
	house := newHouse(t, sandbox.Options{Listings: 1})
	host := signIn(t, house.product, nostr.GeneratePrivateKey())
	theirs := house.market.Listings[0].Anchor
	mine := "30402:" + host + ":none"
	for name, c := range map[string]struct {
		id, pubkey, input string
		want              fault.Error
	}{
		"nobody signed in":  {"hostr.listings.create", stranger, house.garden(""), fault.Error{Code: fault.AuthRequired}},
		"input comes first": {"hostr.listings.create", stranger, `{}`, fault.Error{Code: fault.InvalidInput, Path: "title"}},
		"no images":         {"hostr.listings.create", host, strings.Replace(house.garden(""), `"`+house.imageURL+`"`, "[]", 1), fault.Error{Code: fault.ImagesRequired, Path: "images"}},
		"local file":        {"hostr.listings.create", host, strings.Replace(house.garden(""), house.imageURL, "/etc/hostname", 1), fault.Error{Code: fault.InvalidImageURL, Path: "images[0].url"}},
		"no image there":    {"hostr.listings.create", host, strings.Replace(house.garden(""), "garden.png", "other.png", 1), fault.Error{Code: fault.ImageDownloadFailed, Path: "images[0].url"}},
		"mixed currencies":  {"hostr.listings.create", host, house.garden(`,"securityDeposit":{"value":"5","currency":"USD"}`), fault.Error{Code: fault.MixedCurrencies}},
		"unknown type":      {"hostr.listings.create", host, house.garden(`,"type":"cabin"`), fault.Error{Code: fault.InvalidListingType, Path: "type"}},
		"duration":          {"hostr.listings.create", host, house.garden(`,"minDuration":"soon"`), fault.Error{Code: fault.InvalidDuration, Path: "minDuration"}},
		"no listing":        {"hostr.listings.edit", host, `{"anchor":"` + mine + `","patch":{"title":"x"}}`, fault.Error{Code: fault.NotFound}},
		"somebody else's":   {"hostr.listings.edit", host, `{"anchor":"` + theirs + `","patch":{"title":"x"}}`, fault.Error{Code: fault.NotAuthor}},
		"no anchor":         {"hostr.listings.edit", host, `{"anchor":"here","patch":{"title":"x"}}`, fault.Error{Code: fault.InvalidInput, Path: "anchor"}},
		"blank address":     {"hostr.listings.edit", host, `{"anchor":"` + mine + `","patch":{"address":" "}}`, fault.Error{Code: fault.AddressRequired, Path: "patch.address"}},
	} {
		_, failure := call(t, house.product, c.id, c.pubkey, c.input)
		if failure == nil || failure.Code != c.want.Code || failure.Path != c.want.Path || failure.Retryable {
			t.Errorf("%s: %+v, want %s at %q", name, failure, c.want.Code, c.want.Path)
		}
	}
	_, failure := call(t, house.product, "hostr.listings.edit", host, `{"anchor":"`+mine+`","patch":{"title":"x"}}`)
	if details := encoded(t, failure.Details); details != `{"anchor":"`+mine+`"}` {
		t.Errorf("details %s", details)
	}
}

// Sixteen listings at once, without identifiers of their own.
func TestCreatesAtOnce(t *testing.T) {
	t.Parallel()
	const count = 16
	house := newHouse(t, sandbox.Options{})
	host := signIn(t, house.product, nostr.GeneratePrivateKey())
	var creating sync.WaitGroup
	for range count {
		creating.Go(func() {
			if _, failure := call(t, house.product, "hostr.listings.create", host, house.garden(`,"dryRun":false`)); failure != nil {
				t.Error(failure)
			}
		})
	}
	creating.Wait()
	if stored := house.listings(t, host); len(stored) != count {
		t.Errorf("the relay holds %d listings, want %d", len(stored), count)
	}
}

// booking is a public commit for the dates, by somebody new.
func booking(t testing.TB, anchor, trade, start, end string) nostr.Event {
	t.Helper()
	event := nostr.Event{
		Kind: 32122, CreatedAt: nostr.Timestamp(time.Now().Unix()), Tags: nostr.Tags{{"a", anchor}, {"d", trade}},
		Content: `{"start":"` + start + `T00:00:00.000Z","end":"` + end + `T00:00:00.000Z","proof":null,"stage":"commit","quantity":1}`,
	}
	if err := event.Sign(nostr.GeneratePrivateKey()); err != nil {
		t.Fatal(err)
	}
	return event
}

// The reads answer somebody who is not signed in, too.
func TestListingReads(t *testing.T) {
	t.Parallel()
	market := startMarket(t, sandbox.Options{Listings: 2})
	product := onMarket(t, market)
	place, other := market.Listings[0], market.Listings[1]
	review := nostr.Event{Kind: 31555, CreatedAt: nostr.Now(), Content: "Quiet", Tags: nostr.Tags{{"d", "t1"}, {"a", place.Anchor}, {"rating", "0.8", "thumb"}}}
	if err := review.Sign(market.Guests[0].PrivateKey); err != nil {
		t.Fatal(err)
	}
	if err := market.Relay.Insert(patient(t), review, booking(t, place.Anchor, "t1", "2026-05-04", "2026-05-06")); err != nil {
		t.Fatal(err)
	}
	naddr, err := nip19.EncodeEntity(place.Event.PubKey, 30402, place.DTag, nil)
	if err != nil {
		t.Fatal(err)
	}
	nothing := "30402:" + stranger + ":nothing"
	anchors := `"anchors":["` + naddr + `","` + nothing + `","` + other.Anchor + `"]`

	text, outcome := callAs(t, product, "hostr.listings.availability", stranger, `{`+anchors+`,"start":"2026-05-05T00:00:00Z","end":"2026-05-07T00:00:00Z"}`)
	results := read[struct{ Results []json.RawMessage }](t, text).Results
	if len(results) != 3 || len(outcome.Warnings) != 0 {
		t.Fatalf("%s, warnings %v", text, outcome.Warnings)
	}
	wantKeys(t, string(results[0]), "anchor", "found", "available", "listing", "orderGroupCount")
	if got := string(results[1]); got != `{"anchor":"`+nothing+`","found":false,"available":false}` {
		t.Errorf("of no listing: %s", got)
	}
	first, last := read[ListingAvailability](t, string(results[0])), read[ListingAvailability](t, string(results[2]))
	if first.Anchor != naddr || first.Available || *first.OrderGroupCount != 1 || !last.Available || *last.OrderGroupCount != 0 {
		t.Errorf("availability %s", text)
	}

	text, _ = callAs(t, product, "hostr.listings.reviews", stranger, `{`+anchors+`}`)
	wantKeys(t, text, "tag", "results")
	reviews := read[ListingsReviewsResult](t, text)
	if reviews.Tag != "a" || reviews.Results[0].Anchor != naddr || reviews.Results[0].Count != 1 || reviews.Results[0].Events[0].ID != review.ID {
		t.Errorf("reviews %s", text)
	}
	if !strings.Contains(text, `{"anchor":"`+nothing+`","count":0,"events":[]}`) {
		t.Errorf("no reviews are %s", text)
	}

	text, _ = callAs(t, product, "hostr.listings.orderGroups", stranger, `{"anchors":["`+naddr+`","`+place.Title+`","No such place"],"limit":1}`)
	groups := read[struct {
		Results []struct {
			ListingOrderGroups
			Groups []json.RawMessage `json:"groups"`
		}
	}](t, text).Results
	if !groups[0].Found || groups[0].Count != 1 || !groups[1].Found || groups[2].Found || groups[2].LookupError == "" || groups[1].Anchor != place.Title {
		t.Fatalf("order groups %s", text)
	}
	wantKeys(t, string(groups[0].Groups[0]), "groupId", "tradeId", "listingAnchor", "sellerPubkey", "buyerPubkey", "escrowPubkey",
		"stage", "cancelled", "active", "confirmed", "start", "end", "orders")

	for id, input := range map[string]string{
		"hostr.listings.availability": `{"anchors":["x"],"start":"2026-05-05T00:00:00Z","end":"2026-05-07T00:00:00Z"}`,
		"hostr.listings.reviews":      `{"anchors":["x"]}`,
	} {
		if _, failure := call(t, product, id, stranger, input); failure == nil || failure.Code != fault.InvalidInput || failure.Path != "anchors[0]" {
			t.Errorf("%s: %+v", id, failure)
		}
	}
}

// A title is looked for among the account's own listings.
func TestOrderGroupsByTitle(t *testing.T) {
	t.Parallel()
	market := startMarket(t, sandbox.Options{Listings: 20})
	product := onMarket(t, market)
	host := asHost(t, product, market)
	mine := slices.IndexFunc(market.Listings, func(l sandbox.Listing) bool { return l.Event.PubKey == host })
	theirs := slices.IndexFunc(market.Listings, func(l sandbox.Listing) bool { return l.Event.PubKey != host })
	text, _ := callAs(t, product, "hostr.listings.orderGroups", host,
		encoded(t, map[string]any{"anchors": []string{market.Listings[mine].Title, market.Listings[theirs].Title + " of them"}}))
	found := read[ListingsOrderGroupsResult](t, text).Results
	if !found[0].Found || found[0].Groups == nil || found[1].Found {
		t.Errorf("found %s", text)
	}
}

// Half an answer says so, for each anchor.
func TestPartialListingReads(t *testing.T) {
	t.Parallel()
	market := startMarket(t, sandbox.Options{Listings: 1})
	product := onMarket(t, market)
	anchor := market.Listings[0].Anchor
	market.Relay.Break(sandbox.Faults{Closed: "blocked: not for you"})
	dates := `,"start":"2026-05-05T00:00:00Z","end":"2026-05-07T00:00:00Z"`
	for id, want := range map[string]string{
		"hostr.listings.availability": `{"results":[{"anchor":"A","found":false,"available":false,"partial":true},{"anchor":"A","found":false,"available":false,"partial":true}]}`,
		"hostr.listings.reviews":      `{"tag":"a","results":[{"anchor":"A","count":0,"events":[],"partial":true},{"anchor":"A","count":0,"events":[],"partial":true}]}`,
		"hostr.listings.orderGroups":  `{"results":[{"anchor":"A","found":false,"count":0,"partial":true},{"anchor":"A","found":false,"count":0,"partial":true}]}`,
	} {
		text, outcome := callAs(t, product, id, stranger, `{"anchors":["`+anchor+`","`+anchor+`"]`+dates+`}`)
		if want = strings.ReplaceAll(want, `"A"`, `"`+anchor+`"`); text != want {
			t.Errorf("%s gives %s, want %s", id, text, want)
		}
		if len(outcome.Warnings) != 2 {
			t.Fatalf("%s: warnings %v", id, outcome.Warnings)
		}
		warning := outcome.Warnings[1]
		if warning.Code != fault.PartialResult || warning.Path != "anchors[1]" || !warning.Retryable || encoded(t, warning.Details) != `{"anchor":"`+anchor+`"}` {
			t.Errorf("%s: warning %+v", id, warning)
		}
	}
}
