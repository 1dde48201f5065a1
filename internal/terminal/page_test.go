package terminal

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nbd-wtf/go-nostr"
	"github.com/nbd-wtf/go-nostr/nip19"
	"go.uber.org/goleak"

	"hostr-daemon/catalog"
	"hostr-daemon/internal/actions"
	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/market"
	"hostr-daemon/internal/relay"
	"hostr-daemon/internal/request"
	"hostr-daemon/internal/secrets"
)

var update = flag.Bool("update", false, "write the pages into testdata instead of comparing them")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// golden compares a page with the file of that name.
func golden(t *testing.T, name string, print func(out *bytes.Buffer) error) {
	t.Helper()
	var page bytes.Buffer
	if err := print(&page); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(path, page.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(page.String(), "\n")); diff != "" {
		t.Errorf("%s (-file +page):\n%s\nAfter an intended change: go test ./internal/terminal -update", path, diff)
	}
}

func loadCatalog(t testing.TB) *catalog.Catalog {
	t.Helper()
	loaded, err := catalog.Load()
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

func lookup(t testing.TB, id string) catalog.Action {
	t.Helper()
	action, known := loadCatalog(t).Lookup(id)
	if !known {
		t.Fatalf("there is no %s", id)
	}
	return action
}

func TestCatalogPages(t *testing.T) {
	t.Parallel()
	golden(t, "actions", func(out *bytes.Buffer) error { return Actions(out, loadCatalog(t).Actions()) })
	for page, id := range map[string]string{
		"action-search":   "hostr.listings.search",
		"action-create":   "hostr.listings.create",
		"action-no-input": "hostr.profile.show",
		"action-escrow":   "hostr.escrow.service.edit",
	} {
		golden(t, page, func(out *bytes.Buffer) error { return Action(out, lookup(t, id)) })
	}
}

// Every action has a page that tells all its properties, on lines that fit; only
// what is there to be copied may be longer.
func TestEveryActionHasAPage(t *testing.T) {
	t.Parallel()
	for _, action := range loadCatalog(t).Actions() {
		var out bytes.Buffer
		if err := Action(&out, action); err != nil {
			t.Errorf("%s: %v", action.ID, err)
			continue
		}
		for line := range strings.SplitSeq(out.String(), "\n") {
			if columns(line) > lineWidth && !strings.Contains(line, "hostr-daemon call") {
				t.Errorf("%s: a line of %d columns: %q", action.ID, columns(line), line)
			}
		}
	}
}

// hostile is text as a stranger might write it to take a terminal over.
const hostile = "\x1b]0;owned\x07\x1b[31mred\x1b[0m \u009b2J\x9b1A\r\x00\u202egnp.exe\u2066\u200f\ufeff\u2028end"

// key is nobody's: the number one.
var key = strings.Repeat("0", 63) + "1"

func listing(t *testing.T, d, content string, tags ...nostr.Tag) market.ListingSummary {
	t.Helper()
	event := nostr.Event{Kind: market.KindListing, CreatedAt: 1767225600, Content: content, Tags: append(nostr.Tags{{"d", d}, {"t", market.Category}}, tags...)}
	if err := event.Sign(key); err != nil {
		t.Fatal(err)
	}
	decoded, err := market.DecodeListing(&event)
	if err != nil {
		t.Fatal(err)
	}
	return decoded.Summary()
}

func profileResult(t *testing.T, content string) actions.ProfileLookupResult {
	t.Helper()
	event := nostr.Event{Kind: nostr.KindProfileMetadata, CreatedAt: 1767225600, Content: content, Tags: nostr.Tags{}}
	if err := event.Sign(key); err != nil {
		t.Fatal(err)
	}
	decoded, err := market.DecodeProfile(&event)
	if err != nil {
		t.Fatal(err)
	}
	npub, err := nip19.EncodePublicKey(event.PubKey)
	if err != nil {
		t.Fatal(err)
	}
	shown, metadata := decoded.EventJSON(), decoded.Metadata()
	return actions.ProfileLookupResult{Pubkey: event.PubKey, NPub: npub, Exists: true, Event: &shown, Metadata: &metadata}
}

func encoded(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func outcomes(t *testing.T) map[string]request.Outcome {
	t.Helper()
	pubkey := strings.Repeat("ab", 32)
	all := []market.ListingSummary{
		listing(t, "garden-room", "A quiet room with its own door to the garden.\n\nBreakfast until noon.",
			nostr.Tag{"title", "Garden room"}, nostr.Tag{"type", "room"}, nostr.Tag{"location", "Lisbon, Portugal"},
			nostr.Tag{"price", "0.00060000", "BTC", "day"}, nostr.Tag{"price", "1400.500000", "USD", "month"},
			nostr.Tag{"spec", "max_guests", "2"}, nostr.Tag{"spec", "beds", "1"}, nostr.Tag{"spec", "hot_water"}, nostr.Tag{"spec", "kitchen"},
			nostr.Tag{"image", "https://images.example/garden.png"}),
		listing(t, "old mill", strings.Repeat("A long walk along the river. ", 20),
			nostr.Tag{"title", "Old mill"}, nostr.Tag{"type", "house"}, nostr.Tag{"price", "2.50000000", "BTC"}, nostr.Tag{"active", "false"},
			nostr.Tag{"spec", "pool"}, nostr.Tag{"spec", "patio"}, nostr.Tag{"spec", "oven"}, nostr.Tag{"spec", "iron"}, nostr.Tag{"spec", "crib"}, nostr.Tag{"spec", "heating"},
			nostr.Tag{"spec", "balcony"}, nostr.Tag{"spec", "stove"}, nostr.Tag{"spec", "washer"}, nostr.Tag{"spec", "garden_or_backyard"},
			nostr.Tag{"image", "https://images.example/mill.png"}, nostr.Tag{"image", "https://images.example/river.png"}, nostr.Tag{"image", "https://images.example/wheel.png"}),
		listing(t, "machiya", "京都の古い町家です。静かな路地にあり、駅から歩いて十分ほどです。朝は鳥の声で目が覚め、夜は虫の音が聞こえます。庭には小さな池があります。",
			nostr.Tag{"title", "町家 🏮"}, nostr.Tag{"location", "京都"}),
		listing(t, "evil:"+hostile, hostile, nostr.Tag{"title", hostile}, nostr.Tag{"location", hostile}, nostr.Tag{"price", "1", "X" + hostile, "day"},
			nostr.Tag{"image", hostile}),
		listing(t, "bare", ""),
	}
	warning := fault.New(fault.PartialResult, "The answer may be incomplete: wss://relay.example.org did not answer in full (%s). Try again later.", hostile).Transient()
	pages := map[string]request.Outcome{
		"listings":         {Data: actions.ListingsResult{Count: len(all), Listings: all}},
		"listing":          {Data: actions.ListingsResult{Count: 1, Listings: all[:1]}},
		"listings-none":    {Data: actions.ListingsResult{}},
		"listings-partial": {Data: actions.ListingsResult{}, Warnings: []*fault.Error{warning}},
		"profile": {Data: profileResult(t, `{"name":"casa","display_name":"Casa Azul","about":"Quiet rooms.\nDogs are welcome.","picture":"https://images.example/casa.png",`+
			`"lud16":"casa@example.com","website":"","bot":false,"pronouns":"they/them"}`)},
		"profile-hostile":    {Data: profileResult(t, encoded(t, map[string]string{"name": hostile, "about": hostile, "website": hostile, hostile: hostile}))},
		"profile-none":       {Data: actions.ProfileLookupResult{Pubkey: pubkey, NPub: "npub1nobody"}},
		"profile-edited":     {DryRun: true, Data: actions.ProfileEditResult{DryRun: true, Pubkey: pubkey, Metadata: *profileResult(t, `{"name":"casa","about":"Quiet rooms."}`).Metadata}},
		"status-nobody":      {Data: actions.SessionStatus{Storage: &actions.SessionStorage{Scope: "hostr-session/"}}},
		"status-signed-in":   {Data: actions.SessionStatus{ActivePubkey: &pubkey, Authenticated: true, SignerOnline: true}},
		"status-signer-gone": {Data: actions.SessionStatus{ActivePubkey: &pubkey, Authenticated: true}},
		"connect-pending":    {Data: signInCode},
		"connect-hostile":    {Data: actions.SessionConnectResult{Pending: true, DisplayTitle: hostile, DisplayMessage: hostile, QR: hostile + "\n" + hostile, NostrConnect: hostile}},
		"connect-remote":     {Data: actions.SessionConnectResult{Authenticated: true, Pubkey: pubkey, CredentialType: secrets.BunkerCredential}},
		"connect-local":      {Data: actions.SessionConnectResult{Authenticated: true, Pubkey: pubkey, CredentialType: secrets.PrivateKeyCredential}},
		"anything": {Data: struct {
			Text   string `json:"text"`
			Number int    `json:"number"`
		}{"<b>\u009b31m\u202e & \u2028" + "\x1b[0m", 7}},
		"nothing": {},
	}
	maps.Copy(pages, writtenOutcomes(all[0], all[1], all[3]))
	maps.Copy(pages, stayOutcomes(t, all[0], all[3]))
	maps.Copy(pages, offerOutcomes(t, all[0], all[3]))
	maps.Copy(pages, tripOutcomes(all[0], all[3]))
	maps.Copy(pages, conversationOutcomes(t, all[0]))
	return pages
}

// writtenOutcomes are those of creating and editing listings.
func writtenOutcomes(plain, spaced, evil market.ListingSummary) map[string]request.Outcome {
	planned := []market.PlannedUpload{{Source: "url"}, {Source: "url"}}
	taken := relay.Receipt{RelayURL: "wss://relay.example.org", OKReceived: true, BroadcastSuccessful: true}
	refused := relay.Receipt{RelayURL: "wss://other.example.org", Message: "blocked: " + hostile}
	return map[string]request.Outcome{
		"create-preview":   {DryRun: true, Data: actions.ListingCreateResult{DryRun: true, DTag: "garden-room", PlannedUploads: planned, Listing: plain}},
		"create-hostile":   {DryRun: true, Data: actions.ListingCreateResult{DryRun: true, DTag: hostile, PlannedUploads: planned[:1], Listing: evil}},
		"create-published": {Data: actions.ListingCreateResult{DTag: "garden-room", Listing: plain, RelayResponses: []relay.Receipt{taken}}},
		"edit-preview":     {DryRun: true, Data: actions.ListingEditResult{DryRun: true, Listing: plain}},
		"edit-published":   {Data: actions.ListingEditResult{Listing: spaced, RelayResponses: []relay.Receipt{taken, refused}}},
	}
}

// stayOutcomes are those of the public orders and reviews of listings.
func stayOutcomes(t *testing.T, plain, evil market.ListingSummary) map[string]request.Outcome {
	t.Helper()
	anchor, five, buyer := *plain.Anchor, 5, strings.Repeat("cd", 32)
	start, end, late := "2027-05-03T00:00:00.000Z", "2027-05-07T00:00:00.000Z", "2027-05-07T11:00:00.000Z"
	review := func(stars int, text string) market.EventJSON {
		event := market.Review{TradeID: "t", ListingAnchor: anchor, Stars: stars, Text: text}.Draft(buyer, 1767225600)
		return market.NewEventJSON(event)
	}
	booked := market.OrderGroupResult{TradeID: buyer, Stage: market.StageCommit, Active: true, Confirmed: true, BuyerPubkey: &buyer, EscrowPubkey: &buyer, Start: &start, End: &end}
	cancelled := market.OrderGroupResult{TradeID: hostile, Stage: market.StageCancel, Cancelled: true, Confirmed: true, BuyerPubkey: &buyer, Start: &start, End: &late}
	blocked := market.OrderGroupResult{TradeID: "short", Stage: market.StageCommit, Confirmed: true}
	return map[string]request.Outcome{
		"availability": {Data: actions.ListingsAvailabilityResult{Results: []actions.ListingAvailability{
			{Anchor: anchor, Found: true, Available: true, Listing: &plain, OrderGroupCount: &five},
			{Anchor: anchor, Found: true, Listing: &plain, OrderGroupCount: &five},
			{Anchor: anchor, Found: true, Partial: true, Listing: &evil, OrderGroupCount: &five},
			{Anchor: hostile}, {Anchor: anchor, Partial: true},
		}}},
		"reviews": {Data: actions.ListingsReviewsResult{Tag: "a", Results: []actions.ListingReviews{
			{Anchor: anchor, Count: 2, Events: []market.EventJSON{review(5, "Quiet and clean.\nWe slept like stones."), review(0, "")}},
			{Anchor: anchor, Count: 9, Events: []market.EventJSON{review(3, strings.Repeat("Fine for a night. ", 20))}},
			{Anchor: hostile, Count: 1, Partial: true, Events: []market.EventJSON{review(2, hostile)}},
			{Anchor: anchor, Events: []market.EventJSON{}},
		}}},
		"order-groups": {Data: actions.ListingsOrderGroupsResult{Results: []actions.ListingOrderGroups{
			{Anchor: anchor, Found: true, Count: 3, Groups: []market.OrderGroupResult{booked, cancelled, blocked}},
			{Anchor: "Garden room", Found: true, Partial: true, Count: 9, Groups: []market.OrderGroupResult{booked}},
			{Anchor: hostile, LookupError: hostile}, {Anchor: anchor}, {Anchor: anchor, Partial: true},
		}}},
	}
}

// signInCode is a sign-in to show; its drawing stands for a real one.
// pageCall is the command that the pages are of.
var pageCall = Call{As: "npub1guest", Pubkey: guestKey, Accounts: []string{}, Now: time.Date(2027, time.January, 1, 12, 0, 0, 0, time.UTC)}

var signInCode = actions.SessionConnectResult{
	Pending:        true,
	DisplayTitle:   "Sign in to Hostr",
	DisplayMessage: "Scan this code with your Nostr signer app, or open the link on the device that has it, and approve the connection.",
	NostrConnect:   "nostrconnect://" + strings.Repeat("ab", 32) + "?relay=wss%3A%2F%2Frelay.example.org&secret=shown-on-purpose&perms=" + strings.Repeat("sign_event,", 8),
	QR:             "          \n  █▀▀█▄█  \n  █  █ ▀  \n          \n",
}

// On a terminal of any colours the code is dark on light, and the rest of the page is
// as everywhere.
func TestSignInCodeIsDarkOnLight(t *testing.T) {
	t.Parallel()
	var plain, coloured bytes.Buffer
	if err := errors.Join(SignInCode(&plain, signInCode, false), SignInCode(&coloured, signInCode, true)); err != nil {
		t.Fatal(err)
	}
	wantHarmless(t, "plain code", plain.String())
	if !strings.Contains(plain.String(), signInCode.QR) || !strings.Contains(plain.String(), "\n"+signInCode.NostrConnect+"\n") {
		t.Errorf("code and link must stay whole:\n%s", plain.String())
	}
	for line := range strings.Lines(signInCode.QR) {
		drawn := "\n\x1b[30;107m" + strings.TrimSuffix(line, "\n") + "\x1b[0m\n"
		if !strings.Contains(coloured.String(), drawn) {
			t.Errorf("the line %q is not drawn dark on light", line)
		}
	}
	bare := strings.NewReplacer("\x1b[30;107m", "", "\x1b[0m", "").Replace(coloured.String())
	if bare != plain.String() {
		t.Errorf("colours change more than colours:\n%s", bare)
	}

	strange := signInCode
	strange.DisplayTitle, strange.DisplayMessage, strange.NostrConnect, strange.QR = hostile, hostile, hostile, hostile+"\n"+hostile
	coloured.Reset()
	if err := SignInCode(&coloured, strange, true); err != nil {
		t.Fatal(err)
	}
	wantHarmless(t, "strange code", strings.NewReplacer("\x1b[30;107m", "", "\x1b[0m", "").Replace(coloured.String()))
}

func TestResultPages(t *testing.T) {
	t.Parallel()
	for name, outcome := range outcomes(t) {
		golden(t, name, func(out *bytes.Buffer) error { return Result(out, pageCall, outcome) })
	}
}

func TestFailurePages(t *testing.T) {
	t.Parallel()
	for name, failure := range map[string]*fault.Error{
		"failure-input":  fault.New(fault.InvalidInput, "start must be a date").At("start").WithHint("2026-05-04, or with a time: 2026-05-04T15:00:00Z"),
		"failure-amount": fault.New(fault.CurrencyRequired, "amount must be an object that names its currency").At("amount").WithHint(`{"value":"0.001","currency":"BTC"}`),
		"failure-passing": fault.New(fault.UnexpectedError, "The state directory %q is in use for test by another hostr-daemon (process 4711, started 2026-01-01T00:00:00Z): wait until it has ended, stop it, or use another --state-dir.", "~/.hostr-cli").
			Transient(),
		"failure-hostile": fault.New(fault.UnexpectedError, "the relay says: %s", hostile).At(hostile).WithHint(hostile),
	} {
		golden(t, name, func(out *bytes.Buffer) error { return Failure(out, failure) })
	}
}

// Nothing a stranger writes steers the terminal, on any page.
func TestNothingSteersTheTerminal(t *testing.T) {
	t.Parallel()
	for name, outcome := range outcomes(t) {
		var page, exact bytes.Buffer
		if err := errors.Join(Result(&page, pageCall, outcome), JSON(&exact, outcome.Data)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		wantHarmless(t, name, page.String())
		wantHarmless(t, name+" as JSON", exact.String())
	}
	var page bytes.Buffer
	failure := fault.New(fault.UnexpectedError, "%s", hostile).At(hostile).WithHint(hostile)
	if err := Failure(&page, failure); err != nil {
		t.Fatal(err)
	}
	wantHarmless(t, "failure", page.String())
}

func wantHarmless(t *testing.T, name, text string) {
	t.Helper()
	for _, r := range text {
		if r != '\n' && steers(r) {
			t.Errorf("%s: %U reaches the terminal: %q", name, r, text)
			return
		}
	}
}

// What fails to write is told.
func TestWriteErrorsAreReturned(t *testing.T) {
	t.Parallel()
	broken := brokenWriter{}
	for name, err := range map[string]error{
		"actions": Actions(broken, loadCatalog(t).Actions()),
		"action":  Action(broken, lookup(t, "hostr.listings.search")),
		"result":  Result(broken, pageCall, request.Outcome{}),
		"failure": Failure(broken, fault.New(fault.Busy, "busy")),
		"JSON":    JSON(broken, 1),
		"print":   Print(broken, "text"),
		"code":    SignInCode(broken, signInCode, true),
	} {
		if !errors.Is(err, errBroken) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := Result(&bytes.Buffer{}, pageCall, request.Outcome{Data: actions.SessionConnectResult{Authenticated: true, Pubkey: "nobody"}}); err == nil {
		t.Error("an account that is none was printed")
	}
	if err := Result(&bytes.Buffer{}, pageCall, request.Outcome{Data: make(chan int)}); err == nil {
		t.Error("a value that is no JSON was printed")
	}
}

var errBroken = errors.New("nobody reads any more")

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errBroken }
