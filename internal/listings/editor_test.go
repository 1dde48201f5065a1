package listings_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nbd-wtf/go-nostr"
	"github.com/rs/zerolog"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/input"
	"hostr-daemon/internal/listings"
	"hostr-daemon/internal/market"
	"hostr-daemon/internal/money"
	"hostr-daemon/internal/sandbox"
	"hostr-daemon/internal/signer"
)

// desk is where one account edits its listings.
type desk struct {
	market  *sandbox.Market
	account *signer.Local
	service *listings.Service
	editor  *listings.Editor
	album   *album

	mu  sync.Mutex
	log []string
	// now is the time when it is set.
	now time.Time
	// seedError and sellerError answer in place of the seed and the seller configuration.
	seedError, sellerError error
}

func newDesk(t testing.TB, market *sandbox.Market, key string) *desk {
	t.Helper()
	account, err := signer.NewLocal(key)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(account.Close)
	client := newAccountRelays(t, market.RelayURL, account)
	d := &desk{market: market, account: account}
	d.album = &album{d}
	d.service = listings.New(client, newCells(t, newGeocoder(t, market.GeocoderURL)))
	d.editor = d.editorOf(client, account)
	return d
}

// editorOf is another editor of the desk, with its own way to publish and to sign.
func (d *desk) editorOf(publisher listings.Publisher, author listings.Author) *listings.Editor {
	return listings.NewEditor(listings.EditorConfig{
		Service: d.service, Publisher: publisher, Author: author, Images: d.album, Addresses: d.album,
		SeedReady:    func(context.Context) error { return d.note("seed", d.seedError) },
		EnsureSeller: func(context.Context) error { return d.note("seller", d.sellerError) },
		Now:          d.clock, Logger: zerolog.Nop(),
	})
}

func (d *desk) note(what string, outcome error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.log = append(d.log, what)
	return outcome
}

// steps are what happened since the last call.
func (d *desk) steps() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	steps := d.log
	d.log = nil
	return steps
}

func (d *desk) clock() time.Time {
	if d.now.IsZero() {
		return time.Now()
	}
	return d.now
}

func (d *desk) create(t testing.TB, request listings.CreateRequest) listings.Written {
	t.Helper()
	written, err := d.editor.Create(patient(t), request)
	if err != nil {
		t.Fatal(err)
	}
	return written
}

func (d *desk) edit(t testing.TB, request listings.EditRequest) listings.Written {
	t.Helper()
	written, err := d.editor.Edit(patient(t), request)
	if err != nil {
		t.Fatal(err)
	}
	return written
}

// stored are the account's listings on the relay.
func (d *desk) stored(t testing.TB) []nostr.Event {
	t.Helper()
	events, err := d.market.Relay.Query(patient(t), nostr.Filter{Kinds: []int{market.KindListing}, Authors: []string{d.account.PublicKey()}})
	if err != nil {
		t.Fatal(err)
	}
	return events
}

// album stands for Blossom and the geocoder. An image URL or address that says "bad"
// fails.
type album struct{ desk *desk }

var errBad = fault.New(fault.InvalidImage, "bad picture").At("images[0]")

func (a *album) Materialize(_ context.Context, images []input.Image) (market.ImageSet, []market.PlannedUpload, error) {
	var set market.ImageSet
	var planned []market.PlannedUpload
	for _, image := range images {
		if strings.Contains(image.URL, "bad") {
			return market.ImageSet{}, nil, a.desk.note("images", errBad)
		}
		url, size := "https://blossom.example/"+image.URL, int64(67)
		set.URLs = append(set.URLs, url)
		set.Metadata = append(set.Metadata, market.ImageMetadata{URL: url, MIME: "image/png", Size: &size, Alt: image.Alt})
		planned = append(planned, market.PlannedUpload{Source: "url", URL: image.URL, Size: size})
	}
	return set, planned, a.desk.note("images", nil)
}

var errNowhere = errors.New("no such address")

func (a *album) AtAddress(_ context.Context, address string, _, maximum *int) ([]string, error) {
	if strings.Contains(address, "bad") {
		return nil, a.desk.note("address", errNowhere)
	}
	cells := []string{"644572501406732483", "640068901779361991", "635565302151991495"}
	if maximum != nil {
		cells = cells[:*maximum]
	}
	return cells, a.desk.note("address", nil)
}

// gardenRoom is a request with everything a listing needs.
func gardenRoom() listings.CreateRequest {
	fields := market.NewListingFields()
	fields.Title, fields.Description = "Garden room", "A quiet room"
	amount, err := money.ParseAmount("0.001", "BTC", 8)
	if err != nil {
		panic(err)
	}
	fields.Prices = []money.Price{{Amount: amount, Frequency: money.Daily}}
	return listings.CreateRequest{
		Fields: fields, Images: []input.Image{{URL: "garden.png"}}, Site: listings.Site{Address: "1 Example Street"}, DTag: "garden-room",
	}
}

func dry(request listings.CreateRequest) listings.CreateRequest {
	request.DryRun = true
	return request
}

// anchorOf is the anchor of a listing of the desk.
func (d *desk) anchorOf(dTag string) input.GivenAnchor {
	anchor := market.Anchor{Kind: market.KindListing, PubKey: d.account.PublicKey(), Identifier: dTag}
	return input.GivenAnchor{Anchor: anchor, Given: anchor.String()}
}

func patchFrom(t testing.TB, text string) input.ListingPatch {
	t.Helper()
	reader := input.NewReader(json.RawMessage(`{"patch":` + text + `}`))
	patch := reader.ListingPatch("patch")
	if err := reader.Err(); err != nil {
		t.Fatal(err)
	}
	return patch
}

// A preview uploads and publishes nothing; publishing with its dTag, and doing so
// again, meets one listing.
func TestPreviewThenPublishThenRetry(t *testing.T) {
	t.Parallel()
	desk := newDesk(t, start(t, sandbox.Options{}), nostr.GeneratePrivateKey())
	request := dry(gardenRoom())
	request.DTag = ""
	shown := desk.create(t, request)
	event := shown.Listing.Event
	if event.Sig != "" || event.ID != event.GetID() || len(shown.Planned) != 1 || shown.Receipts != nil {
		t.Errorf("preview %s, planned %v, receipts %v", event, shown.Planned, shown.Receipts)
	}
	if diff := cmp.Diff([]string{"images", "address"}, desk.steps()); diff != "" {
		t.Errorf("steps of a preview (-want +got):\n%s", diff)
	}
	if sent := desk.market.Relay.Counters(); sent.EVENTs != 0 || sent.AUTHs != 0 {
		t.Errorf("a preview sent something: %+v", sent)
	}

	request.DryRun, request.DTag = false, *shown.Listing.DTag
	var last listings.Written
	for range 2 {
		last = desk.create(t, request)
		if diff := cmp.Diff([]string{"seed", "images", "address", "seller"}, desk.steps()); diff != "" {
			t.Errorf("steps (-want +got):\n%s", diff)
		}
		if last.Planned != nil || len(last.Receipts) != 1 || !last.Receipts[0].BroadcastSuccessful {
			t.Errorf("planned %v, receipts %v", last.Planned, last.Receipts)
		}
	}
	stored := desk.stored(t)
	if len(stored) != 1 || stored[0].String() != last.Listing.Event.String() {
		t.Fatalf("the relay holds %v, want %s", stored, last.Listing.Event)
	}
	if diff := cmp.Diff(event.Tags.GetD(), stored[0].Tags.GetD()); diff != "" {
		t.Errorf("dTag (-preview +published):\n%s", diff)
	}
	if ok, err := stored[0].CheckSignature(); !ok || err != nil {
		t.Errorf("signature %v, %v", ok, err)
	}
}

// The time of publication is that of the draft; each version is newer than those
// before it, also within one second (spec 40 §8 and 82 §7.1).
func TestVersionsGetNewer(t *testing.T) {
	t.Parallel()
	desk := newDesk(t, commonMarket, nostr.GeneratePrivateKey())
	desk.now = time.Now().Truncate(time.Second)
	second := nostr.Timestamp(desk.now.Unix())
	for i := range nostr.Timestamp(3) {
		written := desk.create(t, gardenRoom())
		if got := written.Listing.Event.CreatedAt; got != second+1+i {
			t.Errorf("version %d is of %d, want %d", i, got, second+1+i)
		}
		if got := *written.Listing.PublishedAt; got != second {
			t.Errorf("published at %d, want %d", got, second)
		}
	}
	edited := desk.edit(t, listings.EditRequest{Anchor: desk.anchorOf("garden-room"), Patch: patchFrom(t, `{"title":"Edited"}`)})
	if event := edited.Listing.Event; event.CreatedAt != second+4 || *edited.Listing.PublishedAt != second {
		t.Errorf("edited %d, published at %d", event.CreatedAt, *edited.Listing.PublishedAt)
	}
	if stored := desk.stored(t); len(stored) != 1 || stored[0].ID != edited.Listing.Event.ID {
		t.Errorf("the relay holds %v", stored)
	}
}

// What a dTag names already may be newer than this clock: a relay says OK to an older
// version as well, but does not keep it.
func TestCreateOverANewerVersion(t *testing.T) {
	t.Parallel()
	key := nostr.GeneratePrivateKey()
	desk := newDesk(t, start(t, sandbox.Options{}), key)
	ahead := nostr.Now() + 600
	if err := desk.market.Relay.Insert(patient(t), signed(t, key, ahead, "garden-room", "Of another device")); err != nil {
		t.Fatal(err)
	}
	written := desk.create(t, gardenRoom())
	if got := written.Listing.Event.CreatedAt; got != ahead+1 {
		t.Errorf("it is of %d, want %d", got, ahead+1)
	}
	if stored := desk.stored(t); len(stored) != 1 || stored[0].ID != written.Listing.Event.ID {
		t.Errorf("the relay holds %v", stored)
	}
	asked := desk.market.Relay.Counters().REQs
	request := gardenRoom()
	request.DTag = ""
	desk.create(t, request)
	if counted := desk.market.Relay.Counters().REQs; counted != asked {
		t.Errorf("an identifier of our own was looked up: %d queries", counted-asked)
	}
}

// A relay that does not answer in full may hold a newer version.
func TestCreateWithoutALookUp(t *testing.T) {
	t.Parallel()
	desk := newDesk(t, start(t, sandbox.Options{}), nostr.GeneratePrivateKey())
	desk.market.Relay.Break(sandbox.Faults{Closed: "blocked: come back later"})
	_, err := desk.editor.Create(patient(t), gardenRoom())
	if coded := fault.From(err); coded == nil || coded.Code != fault.UnexpectedError || !coded.Retryable || !strings.Contains(coded.Message, "come back later") {
		t.Errorf("got %+v", coded)
	}
	if sent := desk.market.Relay.Counters().EVENTs; sent != 0 {
		t.Errorf("%d events were sent", sent)
	}
	if _, err := desk.editor.Create(patient(t), dry(gardenRoom())); err != nil {
		t.Errorf("a preview looks nothing up: %v", err)
	}
	desk.market.Relay.Heal()
	desk.create(t, gardenRoom())
}

func TestCreatesAtOnceAreAllPublished(t *testing.T) {
	t.Parallel()
	const count = 16
	desk := newDesk(t, commonMarket, nostr.GeneratePrivateKey())
	desk.now = time.Now()
	var creating sync.WaitGroup
	for range count {
		creating.Go(func() {
			request := gardenRoom()
			request.DTag = "" // made up from a clock that stands still
			if _, err := desk.editor.Create(patient(t), request); err != nil {
				t.Error(err)
			}
		})
	}
	creating.Wait()
	if stored := desk.stored(t); len(stored) != count {
		t.Errorf("the relay holds %d listings, want %d", len(stored), count)
	}
}

// Edits of one listing at the same time all count.
func TestEditsAtOnceAllCount(t *testing.T) {
	t.Parallel()
	desk := newDesk(t, commonMarket, nostr.GeneratePrivateKey())
	desk.create(t, gardenRoom())
	var editing sync.WaitGroup
	for _, patch := range []string{
		`{"title":"New"}`, `{"description":"Longer"}`, `{"active":false}`, `{"quantity":3}`,
		`{"guests":4}`, `{"images":["new.png"]}`, `{"address":"2 Example Street","h3MaxTags":1}`, `{"type":"villa"}`,
	} {
		editing.Go(func() {
			if _, err := desk.editor.Edit(patient(t), listings.EditRequest{Anchor: desk.anchorOf("garden-room"), Patch: patchFrom(t, patch)}); err != nil {
				t.Error(err)
			}
		})
	}
	editing.Wait()
	found, err := desk.service.Find(patient(t), desk.anchorOf("garden-room").Anchor)
	if err != nil || found.Listing == nil {
		t.Fatalf("%+v, %v", found, err)
	}
	got := found.Listing
	if got.Title != "New" || got.Description != "Longer" || got.Active || got.Quantity != 3 || got.Type != market.Villa ||
		!slices.Equal(got.Images, []string{"https://blossom.example/new.png"}) || got.Specifications.Entries()[0].Value != market.Count(4) {
		t.Errorf("an edit was lost: %+v", got.ListingFields)
	}
	cells := slices.Collect(got.Event.Tags.FindAll("g"))
	if diff := cmp.Diff([]nostr.Tag{{"g", "644572501406732483"}}, cells); diff != "" {
		t.Errorf("cells (-want +got):\n%s", diff)
	}
}

// What is wrong with the input is told before anything is uploaded; a failure of the
// parts ends the call before anything is published.
func TestCreateFailures(t *testing.T) {
	t.Parallel()
	desk := newDesk(t, start(t, sandbox.Options{}), nostr.GeneratePrivateKey())
	for name, c := range map[string]struct {
		change func(*listings.CreateRequest)
		want   error
		steps  []string
	}{
		"no image":      {func(r *listings.CreateRequest) { r.Images = nil }, fault.New(fault.ImagesRequired, ""), nil},
		"no price":      {func(r *listings.CreateRequest) { r.Fields.Prices = nil }, fault.New(fault.PriceRequired, ""), nil},
		"duration":      {func(r *listings.CreateRequest) { r.Fields.MinDuration = "soon" }, fault.New(fault.InvalidDuration, ""), nil},
		"mixed":         {mixCurrencies, fault.New(fault.MixedCurrencies, ""), nil},
		"many flags":    {manyFlags, fault.New(fault.InvalidInput, ""), nil},
		"bad image":     {func(r *listings.CreateRequest) { r.Images[0].URL = "bad" }, errBad, []string{"seed", "images"}},
		"bad address":   {func(r *listings.CreateRequest) { r.Site.Address = "bad" }, errNowhere, []string{"seed", "images", "address"}},
		"bad in a view": {func(r *listings.CreateRequest) { r.Images[0].URL, r.DryRun = "bad", true }, errBad, []string{"images"}},
	} {
		request := gardenRoom()
		c.change(&request)
		_, err := desk.editor.Create(patient(t), request)
		if want := fault.From(c.want); !errors.Is(err, c.want) && !fault.Is(err, want.Code) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		if diff := cmp.Diff(c.steps, desk.steps()); diff != "" {
			t.Errorf("%s: steps (-want +got):\n%s", name, diff)
		}
	}
	desk.seedError = fault.New(fault.UnexpectedError, "no seed").Transient()
	if _, err := desk.editor.Create(patient(t), gardenRoom()); !errors.Is(err, desk.seedError) {
		t.Errorf("without a seed: %v", err)
	}
	if _, err := desk.editor.Create(patient(t), dry(gardenRoom())); err != nil {
		t.Errorf("a preview needs no seed: %v", err)
	}
	if sent := desk.market.Relay.Counters().EVENTs; sent != 0 {
		t.Errorf("%d events were sent", sent)
	}
}

func mixCurrencies(r *listings.CreateRequest) {
	deposit, err := money.ParseAmount("5", "USD", 6)
	if err != nil {
		panic(err)
	}
	r.Fields.SecurityDeposit = &deposit
}

func manyFlags(r *listings.CreateRequest) {
	for i := range 13 {
		r.Fields.Specifications.Set(fmt.Sprint("flag", i), market.Flag())
	}
}

func TestSellerConfigurationKeepsNothingFromBeingPublished(t *testing.T) {
	t.Parallel()
	desk := newDesk(t, commonMarket, nostr.GeneratePrivateKey())
	desk.sellerError = errors.New("the chain is away")
	desk.create(t, gardenRoom())
	if stored := desk.stored(t); len(stored) != 1 {
		t.Errorf("the relay holds %v", stored)
	}
}

func TestEditRefusals(t *testing.T) {
	t.Parallel()
	desk := newDesk(t, start(t, sandbox.Options{Listings: 1}), nostr.GeneratePrivateKey())
	desk.create(t, gardenRoom())
	desk.steps()
	theirs, err := market.ParseAnchor(desk.market.Listings[0].Anchor)
	if err != nil {
		t.Fatal(err)
	}
	mine := desk.anchorOf("garden-room")
	for name, c := range map[string]struct {
		anchor input.GivenAnchor
		patch  string
		code   fault.Code
		steps  []string
	}{
		"nobody's":        {desk.anchorOf("nothing"), `{"title":"x"}`, fault.NotFound, nil},
		"somebody else's": {input.GivenAnchor{Anchor: theirs, Given: theirs.String()}, `{"title":"x"}`, fault.NotAuthor, nil},
		"mixed":           {mine, `{"prices":[{"value":"1","currency":"USD"},{"value":"1","currency":"BTC"}]}`, fault.MixedCurrencies, nil},
		"bad image":       {mine, `{"images":["bad"]}`, fault.InvalidImage, []string{"images"}},
		"bad address":     {mine, `{"address":"bad"}`, fault.UnexpectedError, []string{"address"}},
	} {
		for _, dryRun := range []bool{true, false} {
			_, err := desk.editor.Edit(patient(t), listings.EditRequest{Anchor: c.anchor, Patch: patchFrom(t, c.patch), DryRun: dryRun})
			if coded := fault.From(err); coded == nil || coded.Code != c.code {
				t.Errorf("%s: %v, want %s", name, err, c.code)
			}
			steps := desk.steps()
			if !dryRun && len(c.steps) > 0 {
				steps = slices.DeleteFunc(steps, func(step string) bool { return step == "seed" })
			}
			if diff := cmp.Diff(c.steps, steps); diff != "" {
				t.Errorf("%s: steps (-want +got):\n%s", name, diff)
			}
		}
	}
	if stored := desk.stored(t); len(stored) != 1 || stored[0].Tags.FindWithValue("title", "Garden room") == nil {
		t.Errorf("the relay holds %v", stored)
	}
}

// Paths are those of the input: the patch may stand in it, or be it.
func TestPathsOfEditFailures(t *testing.T) {
	t.Parallel()
	desk := newDesk(t, commonMarket, nostr.GeneratePrivateKey())
	desk.create(t, gardenRoom())
	flags := map[string]bool{}
	for i := range 13 {
		flags[fmt.Sprint("flag", i)] = true
	}
	many, err := json.Marshal(flags)
	if err != nil {
		t.Fatal(err)
	}
	for fields, path := range map[string]string{
		`{"images":["bad"]}`:                                  "images[0]",
		`{"specifications":` + string(many) + `}`:             "specifications",
		`{"specs":{"` + strings.Repeat("x", 500) + `":true}}`: "specifications",
		`{"prices":[{"value":"1","currency":"USD"}],"securityDeposit":{"value":"1","currency":"BTC"}}`: "",
	} {
		nested, flat := path, path
		if path != "" {
			nested = "patch." + path
		}
		for want, raw := range map[string]string{"nested " + nested: `{"patch":` + fields + `}`, "flat " + flat: fields} {
			reader := input.NewReader(json.RawMessage(raw))
			patch := reader.ListingPatch("patch")
			if err := reader.Err(); err != nil {
				t.Fatal(err)
			}
			_, err := desk.editor.Edit(patient(t), listings.EditRequest{Anchor: desk.anchorOf("garden-room"), Patch: patch, DryRun: true})
			if coded := fault.From(err); coded == nil || coded.Path != want[strings.IndexByte(want, ' ')+1:] {
				t.Errorf("%.80s: %v at %+v, want %s", raw, err, coded, want)
			}
		}
	}
}

// A relay that does not answer in full must not make a listing look gone.
func TestEditOfAListingThatCannotBeLookedUp(t *testing.T) {
	t.Parallel()
	desk := newDesk(t, start(t, sandbox.Options{}), nostr.GeneratePrivateKey())
	desk.create(t, gardenRoom())
	desk.market.Relay.Break(sandbox.Faults{Closed: "blocked: come back later"})
	_, err := desk.editor.Edit(patient(t), listings.EditRequest{Anchor: desk.anchorOf("garden-room"), DryRun: true})
	if coded := fault.From(err); coded == nil || coded.Code != fault.UnexpectedError || !coded.Retryable || !strings.Contains(coded.Message, "come back later") {
		t.Errorf("got %+v", coded)
	}
}

func TestRefusedPublish(t *testing.T) {
	t.Parallel()
	desk := newDesk(t, start(t, sandbox.Options{}), nostr.GeneratePrivateKey())
	desk.market.Relay.Break(sandbox.Faults{RefuseEvents: "blocked: read only"})
	written, err := desk.editor.Create(patient(t), gardenRoom())
	if coded := fault.From(err); coded == nil || coded.Code != fault.UnexpectedError ||
		!strings.Contains(coded.Message, "30402") || !strings.Contains(coded.Message, "read only") {
		t.Errorf("got %v", err)
	}
	if len(written.Receipts) != 1 || written.Receipts[0].BroadcastSuccessful {
		t.Errorf("receipts %v", written.Receipts)
	}
	desk.market.Relay.Heal()
	desk.create(t, gardenRoom())
}

func TestSignersErrorIsKept(t *testing.T) {
	t.Parallel()
	desk := newDesk(t, commonMarket, nostr.GeneratePrivateKey())
	refused := errors.New("not authorized")
	editor := desk.editorOf(nil, author{desk.account, func(context.Context, *nostr.Event) error { return refused }})
	if _, err := editor.Create(patient(t), gardenRoom()); !errors.Is(err, refused) {
		t.Errorf("got %v", err)
	}
}

// Whoever waits behind an edit that a person has to approve can give up; other
// listings do not wait.
func TestEditsOfOneListingTakeTurns(t *testing.T) {
	t.Parallel()
	desk := newDesk(t, commonMarket, nostr.GeneratePrivateKey())
	desk.create(t, gardenRoom())
	other := gardenRoom()
	other.DTag = "other"
	atSigner, approved := make(chan struct{}), make(chan struct{})
	first := sync.OnceFunc(func() { close(atSigner); <-approved })
	editor := desk.editorOf(newAccountRelays(t, desk.market.RelayURL, desk.account), author{desk.account, func(ctx context.Context, event *nostr.Event) error {
		if event.Tags.GetD() == "garden-room" {
			first()
		}
		return desk.account.SignEvent(ctx, event)
	}})
	change := listings.EditRequest{Anchor: desk.anchorOf("garden-room"), Patch: patchFrom(t, `{"title":"First"}`)}
	outcome := make(chan error, 1)
	go func() {
		_, err := editor.Edit(patient(t), change)
		outcome <- err
	}()
	receive(patient(t), t, atSigner)
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(patient(t))
	cancel(enough)
	if _, err := editor.Edit(ctx, change); !errors.Is(err, enough) {
		t.Errorf("%v, want the cause", err)
	}
	if _, err := editor.Create(patient(t), other); err != nil {
		t.Errorf("another listing: %v", err)
	}
	close(approved)
	if err := receive(patient(t), t, outcome); err != nil {
		t.Error(err)
	}
}

// Odd bytes in an own listing do not keep it from being edited.
func TestEditOfAnOwnOddListing(t *testing.T) {
	t.Parallel()
	key := nostr.GeneratePrivateKey()
	desk := newDesk(t, commonMarket, key)
	event := signed(t, key, 100, "odd", "Odd", nostr.Tag{"price", "abc", "BTC"}, nostr.Tag{"amenity", "pool"}, nostr.Tag{"note", "x\u2028", ""}, nostr.Tag{})
	if err := desk.market.Relay.Insert(patient(t), event); err != nil {
		t.Fatal(err)
	}
	edited := desk.edit(t, listings.EditRequest{Anchor: desk.anchorOf("odd"), Patch: patchFrom(t, `{"title":"Even"}`)})
	if stored := desk.stored(t); len(stored) != 1 || stored[0].ID != edited.Listing.Event.ID {
		t.Fatalf("the relay holds %v", stored)
	}
	tags := edited.Listing.Event.Tags
	if tags.FindWithValue("spec", "pool") == nil || tags.FindWithValue("note", "x\u2028") == nil || tags.FindWithValue("price", "abc") != nil {
		t.Errorf("tags %v", tags)
	}
	if edited.Listing.Title != "Even" || *edited.Listing.PublishedAt != 100 {
		t.Errorf("listing %+v", edited.Listing)
	}
}

// author signs in its own way.
type author struct {
	*signer.Local
	sign func(context.Context, *nostr.Event) error
}

func (a author) SignEvent(ctx context.Context, event *nostr.Event) error { return a.sign(ctx, event) }

// Relays refuse bytes that are not UTF-8, also those that another client wrote.
func TestEditReplacesBytesThatAreNotUTF8(t *testing.T) {
	t.Parallel()
	key := nostr.GeneratePrivateKey()
	desk := newDesk(t, commonMarket, key)
	event := signed(t, key, 100, "odd", "Odd", nostr.Tag{"note", "y\xff"})
	desk.service = listings.New(scripted{[]*nostr.Event{&event}}, nil)
	editor := desk.editorOf(newAccountRelays(t, desk.market.RelayURL, desk.account), desk.account)
	for _, dryRun := range []bool{true, false} {
		edited, err := editor.Edit(patient(t), listings.EditRequest{Anchor: desk.anchorOf("odd"), DryRun: dryRun})
		if err != nil {
			t.Fatal(err)
		}
		if written := edited.Listing.Event; written.Tags.FindWithValue("note", "y\uFFFD") == nil || written.ID != written.GetID() {
			t.Errorf("event %s", written)
		}
	}
	if event.Tags.FindWithValue("note", "y\xff") == nil {
		t.Error("the event as found was changed")
	}
}
