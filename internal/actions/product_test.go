package actions

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nbd-wtf/go-nostr"
	"github.com/nbd-wtf/go-nostr/nip19"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"hostr-daemon/catalog"
	"hostr-daemon/catalog/definition"
	"hostr-daemon/internal/environment"
	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/request"
	"hostr-daemon/internal/runtime"
	"hostr-daemon/internal/sandbox"
	"hostr-daemon/internal/secrets"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction(sandbox.KhatruGoroutine))
}

// stranger is a pubkey with which nobody is signed in.
var stranger = strings.Repeat("ab", 32)

func patient(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func startMarket(t testing.TB, options sandbox.Options) *sandbox.Market {
	t.Helper()
	started, err := sandbox.Start(patient(t), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := started.Close(); err != nil {
			t.Errorf("closing the market: %v", err)
		}
	})
	return started
}

// newProduct starts a daemon on the override file.
func newProduct(t testing.TB, config string) *Product {
	t.Helper()
	return newProductIn(t, config, t.TempDir())
}

func newProductIn(t testing.TB, config, stateDir string) *Product {
	t.Helper()
	loaded, err := catalog.Load()
	if err != nil {
		t.Fatal(err)
	}
	noVariables := func(string) string { return "" }
	running, err := runtime.Start(context.Background(), runtime.Options{
		Environment: environment.Options{Name: "test", ConfigFile: config, Getenv: noVariables},
		StateDir:    stateDir, Getenv: noVariables, Logger: zerolog.Nop(), RelayLogger: zerolog.Nop(), Version: "0",
		Secrets: secrets.Options{AllowPlainFile: true, Getenv: noVariables},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := running.Close(); err != nil {
			t.Errorf("closing the daemon: %v", err)
		}
	})
	return New(loaded, running)
}

// onMarket starts a daemon on a market.
func onMarket(t testing.TB, market *sandbox.Market) *Product {
	t.Helper()
	config := filepath.Join(t.TempDir(), "market.json")
	if err := market.WriteConfig(config); err != nil {
		t.Fatal(err)
	}
	return newProduct(t, config)
}

// nowhere is an override file whose addresses nobody listens on.
func nowhere(t testing.TB) string {
	t.Helper()
	config := filepath.Join(t.TempDir(), "nowhere.json")
	text := `{"hostrRelay":"ws://127.0.0.1:1","bootstrapRelays":[],"geocoderUrl":"http://127.0.0.1:1/search","evmConfig":{}}`
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return config
}

// call runs an action; the input is JSON.
func call(t testing.TB, product *Product, id, pubkey, input string) (request.Outcome, *fault.Error) {
	t.Helper()
	outcome, err := product.CallAction(patient(t), request.Action{ID: id, Pubkey: pubkey, Input: json.RawMessage(input)})
	coded := fault.From(err)
	if err != nil && !errors.Is(err, coded) {
		t.Errorf("%s fails with an error that is not coded: %v", id, err)
	}
	return outcome, coded
}

// mustCall runs a public action and reads its result back from JSON.
func mustCall[R any](t testing.TB, product *Product, id, input string) (result R, outcome request.Outcome) {
	t.Helper()
	outcome, failure := call(t, product, id, "", input)
	if failure != nil {
		t.Fatalf("%s: %v", id, failure)
	}
	text, err := json.Marshal(outcome.Data)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &result); err != nil {
		t.Fatal(err)
	}
	return result, outcome
}

func TestEveryActionHasARow(t *testing.T) {
	t.Parallel()
	loaded, err := catalog.Load()
	if err != nil {
		t.Fatal(err)
	}
	rows := []string{}
	for id, row := range table() {
		rows = append(rows, id)
		if row.run == nil {
			t.Errorf("%s cannot be run", id)
		}
		if action, _ := loaded.Lookup(id); action.Pending != row.pending {
			t.Errorf("%s is pending in the catalog: %t, in the table: %t", id, action.Pending, row.pending)
		}
	}
	ids := loaded.IDs()
	slices.Sort(ids)
	slices.Sort(rows)
	if diff := cmp.Diff(ids, rows); diff != "" {
		t.Errorf("ids (-catalog +table):\n%s", diff)
	}
}

// asHost signs a host of the market in by private key and returns the account.
func asHost(t testing.TB, product *Product, market *sandbox.Market) string {
	t.Helper()
	nsec, err := nip19.EncodePrivateKey(market.Hosts[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	outcome, err := product.CompleteOAuthNSec(patient(t), request.OAuthNSec{RequestID: "test", NSec: nsec})
	if err != nil {
		t.Fatal(err)
	}
	return outcome.Data.(OAuthSignedIn).Pubkey
}

func TestPendingActionsSaySo(t *testing.T) {
	t.Parallel()
	market := startMarket(t, sandbox.Options{})
	product := onMarket(t, market)
	account := asHost(t, product, market)
	for _, action := range product.catalog.Actions() {
		if !action.Pending {
			continue
		}
		example := "{}"
		if len(action.Example) > 0 {
			example = string(action.Example)
		}
		want := fault.NotImplemented
		if action.RequiredRole != "" {
			want = fault.EscrowRoleRequired
		}
		if _, failure := call(t, product, action.ID, account, example); failure == nil || failure.Code != want || failure.Retryable || failure.Path != "" {
			t.Errorf("%s with its example: %v, want %s", action.ID, failure, want)
		}
		if _, failure := call(t, product, action.ID, stranger, example); failure == nil || failure.Code != fault.AuthRequired {
			t.Errorf("%s by somebody who is not signed in: %v, want auth_required", action.ID, failure)
		}
		bad := unfit(t, action)
		if bad == "" || action.RequiredRole != "" {
			continue
		}
		_, failure := call(t, product, action.ID, stranger, bad)
		if failure == nil || failure.Code == fault.NotImplemented || failure.Code == fault.UnexpectedError || failure.Path == "" {
			t.Errorf("%s with %s: %v, want the input refused", action.ID, bad, failure)
		}
	}
}

// unfit returns an input that the action must refuse, "" when it takes anything.
func unfit(t testing.TB, action catalog.Action) string {
	t.Helper()
	schema, err := definition.ParseSchema(action.InputSchema)
	if err != nil {
		t.Fatal(err)
	}
	if len(schema.Required) > 0 {
		return "{}"
	}
	for _, property := range schema.Properties {
		if property.Type == "boolean" || property.Type == "integer" {
			return `{"` + property.Name + `":"perhaps"}`
		}
		return `{"` + property.Name + `":{"no":"text"}}`
	}
	return ""
}

func TestWithoutPubkey(t *testing.T) {
	t.Parallel()
	product := newProduct(t, nowhere(t))
	for _, action := range product.catalog.Actions() {
		for _, pubkey := range []string{"", " \t"} {
			_, failure := call(t, product, action.ID, pubkey, "{}")
			refused := failure != nil && failure.Code == fault.AuthRequired
			if refused == action.Public {
				t.Errorf("%s without a pubkey: %v; public %v", action.ID, failure, action.Public)
			}
			if refused && (failure.Retryable || failure.Details != nil || !strings.Contains(failure.Message, action.ID)) {
				t.Errorf("%s: %+v", action.ID, failure)
			}
		}
	}
	// Ids are not told to somebody without an account.
	if _, failure := call(t, product, "hostr.nothing", "", "{}"); failure == nil || failure.Code != fault.AuthRequired {
		t.Errorf("unknown id without a pubkey: %v", failure)
	}
}

func TestUnknownAction(t *testing.T) {
	t.Parallel()
	product := newProduct(t, nowhere(t))
	for _, id := range []string{"hostr.nothing", "hostr_listings_search", "HOSTR.LISTINGS.SEARCH", " hostr.listings.search", strings.Repeat("x", 5000)} {
		_, failure := call(t, product, id, stranger, "{}")
		if failure == nil || failure.Code != fault.UnknownAction || len(failure.Message) > 300 {
			t.Errorf("%.40s: %v", id, failure)
			continue
		}
		want := unknownDetails{Action: id, AvailableActions: product.catalog.IDs()}
		if diff := cmp.Diff(want, failure.Details); diff != "" {
			t.Errorf("details (-want +got):\n%s", diff)
		}
	}
}

// Who may call comes first, then the session, then the id, then the input.
func TestOrderOfChecks(t *testing.T) {
	t.Parallel()
	stateDir := filepath.Join(t.TempDir(), "a file")
	if err := os.WriteFile(stateDir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	broken := newProductIn(t, nowhere(t), stateDir)
	for name, c := range map[string]struct {
		id, pubkey, input string
		code              fault.Code
		text              string
	}{
		"caller before session": {"hostr.trips.list", "", "{}", fault.AuthRequired, "signed-in account"},
		"session before id":     {"hostr.nothing", stranger, "{}", fault.UnexpectedError, "not a directory"},
		"session before input":  {"hostr.listings.search", "", `{"limit":{}}`, fault.UnexpectedError, "not a directory"},
	} {
		_, failure := call(t, broken, c.id, c.pubkey, c.input)
		if failure == nil || failure.Code != c.code || !strings.Contains(failure.Message, c.text) {
			t.Errorf("%s: %v, want %s saying %q", name, failure, c.code, c.text)
		}
	}
	if _, err := broken.Describe(patient(t)); !fault.Is(err, fault.UnexpectedError) {
		t.Errorf("describe with a broken state: %v", err)
	}
	if _, err := broken.VisibleActions(patient(t), ""); !fault.Is(err, fault.UnexpectedError) {
		t.Errorf("visibleActions with a broken state: %v", err)
	}
}

func TestCatalogMethods(t *testing.T) {
	t.Parallel()
	market := startMarket(t, sandbox.Options{})
	product := onMarket(t, market)
	described, err := product.Describe(patient(t))
	if err != nil || string(described) != string(product.catalog.Describe()) {
		t.Errorf("describe: %d bytes, %v", len(described), err)
	}
	for pubkey, want := range map[string]int{"": 29, stranger: 29, " " + strings.ToUpper(market.Escrow.PublicKey) + " ": 43} {
		visible, err := product.VisibleActions(patient(t), pubkey)
		if err != nil {
			t.Fatal(err)
		}
		if visibility, ok := visible.(catalog.Visibility); !ok || len(visibility.VisibleActionIDs) != want {
			t.Errorf("%q sees %+v, want %d actions", pubkey, visible, want)
		}
	}
}

// While another daemon holds the state directory the catalog is answered and calls
// are told to come back.
func TestLockedStateDirectory(t *testing.T) {
	t.Parallel()
	stateDir := t.TempDir()
	first := newProductIn(t, nowhere(t), stateDir)
	if err := first.runtime.OpenState(patient(t)); err != nil {
		t.Fatal(err)
	}
	second := newProductIn(t, nowhere(t), stateDir)
	if _, err := second.Describe(patient(t)); err != nil {
		t.Errorf("describe: %v", err)
	}
	if _, err := second.VisibleActions(patient(t), stranger); err != nil {
		t.Errorf("visibleActions: %v", err)
	}
	if _, failure := call(t, second, "hostr.session.status", "", "{}"); failure == nil || !failure.Retryable {
		t.Errorf("a call: %v, want one that may be retried", failure)
	}
}

func TestTimeLimits(t *testing.T) {
	t.Parallel()
	product := newProduct(t, nowhere(t))
	for _, id := range append(product.catalog.IDs(), "hostr.nothing") {
		action := request.Action{ID: id, Input: json.RawMessage("{}")}
		// The bridge gives up after 120 s (spec 10 §6.3).
		if limit := product.TimeLimit(action); limit <= 0 || limit >= 120*time.Second {
			t.Errorf("%s may take %s", id, limit)
		}
		if product.WaitsForPerson(action) {
			t.Errorf("%s waits for nobody", id)
		}
	}
	own := request.Action{ID: "hostr.session.connect", Input: json.RawMessage(`{"wait":true,"timeoutSeconds":600}`)}
	if limit := product.TimeLimit(own); limit <= 600*time.Second || limit > 620*time.Second || !product.WaitsForPerson(own) {
		t.Errorf("a sign-in that waits 600 s may take %s", limit)
	}
}

func TestSearchResult(t *testing.T) {
	t.Parallel()
	market := startMarket(t, sandbox.Options{Listings: 20})
	product := onMarket(t, market)
	type result struct {
		Count    *int
		Listings []map[string]any
	}
	found, outcome := mustCall[result](t, product, "hostr.listings.search", `{"limit":3,"location":"El Salvador"}`)
	if found.Count == nil || *found.Count != 3 || len(found.Listings) != 3 || outcome.DryRun || len(outcome.Warnings) != 0 {
		t.Fatalf("found %+v in %+v", found, outcome)
	}
	for _, listing := range found.Listings {
		published := slices.IndexFunc(market.Listings, func(l sandbox.Listing) bool { return l.Event.ID == listing["id"] })
		if published < 0 {
			t.Fatalf("%v is nobody's listing", listing["id"])
		}
		if want := market.Listings[published]; listing["title"] != want.Title || listing["anchor"] != want.Anchor || !slices.Contains(want.Within, "El Salvador") {
			t.Errorf("%v, want %s (%s)", listing, want.Title, want.Anchor)
		}
	}
	nothing, outcome := mustCall[result](t, product, "hostr.listings.search", `{"query":"no such words anywhere"}`)
	if nothing.Count == nil || *nothing.Count != 0 || nothing.Listings == nil || len(outcome.Warnings) != 0 {
		t.Errorf("nothing found is %+v, want a count of 0 and an empty list", nothing)
	}
	market.Relay.Break(sandbox.Faults{Closed: "blocked: not for you"})
	_, outcome = mustCall[result](t, product, "hostr.listings.search", `{}`)
	if len(outcome.Warnings) != 1 || outcome.Warnings[0].Code != fault.PartialResult {
		t.Errorf("warnings %v", outcome.Warnings)
	}
}

func TestSearchInput(t *testing.T) {
	t.Parallel()
	product := newProduct(t, nowhere(t))
	for input, want := range map[string]fault.Error{
		`{"type":"cabin"}`:      {Code: fault.InvalidListingType, Path: "type"},
		`{"rentOrBuy":"lease"}`: {Code: fault.InvalidRentOrBuy, Path: "rentOrBuy"},
		`{"limit":"many"}`:      {Code: fault.InvalidInput, Path: "limit"},
		`{"location":{}}`:       {Code: fault.InvalidInput, Path: "location"},
		`{"location":"` + strings.Repeat("x", 1001) + `"}`: {Code: fault.InvalidInput, Path: "location"},
	} {
		_, failure := call(t, product, "hostr.listings.search", "", input)
		if failure == nil || failure.Code != want.Code || failure.Path != want.Path || failure.Retryable {
			t.Errorf("%.60s: %+v, want %s at %s", input, failure, want.Code, want.Path)
		}
	}
}

type lookupResult struct {
	Pubkey, NPub string
	Exists       bool
	Event        *nostr.Event
	Metadata     map[string]any
}

func TestProfileLookupResult(t *testing.T) {
	t.Parallel()
	market := startMarket(t, sandbox.Options{})
	product := onMarket(t, market)
	host := market.Hosts[1]
	for _, key := range []string{host.PublicKey, " " + strings.ToUpper(host.PublicKey) + " ", host.NPub} {
		found, _ := mustCall[lookupResult](t, product, "hostr.profile.lookup", `{"npub":"`+key+`"}`)
		if !found.Exists || found.Pubkey != host.PublicKey || found.NPub != host.NPub {
			t.Fatalf("%s: %+v", key, found)
		}
		if found.Event == nil || found.Event.ID != host.Profile.ID || found.Event.Sig != host.Profile.Sig {
			t.Errorf("event %v, want the signed one", found.Event)
		}
		if found.Metadata["name"] != host.Name || found.Metadata["pubKey"] != host.PublicKey || found.Metadata["content"] == nil {
			t.Errorf("metadata %v", found.Metadata)
		}
	}
	absent, outcome := mustCall[map[string]any](t, product, "hostr.profile.lookup", `{"npub":"`+stranger+`"}`)
	if _, hasEvent := absent["event"]; hasEvent || absent["exists"] != false || absent["npub"] == "" || len(outcome.Warnings) != 0 {
		t.Errorf("nobody's profile is %v", absent)
	}
	market.Relay.Break(sandbox.Faults{Closed: "blocked: not for you"})
	unknown := strings.Repeat("cd", 32)
	_, outcome = mustCall[lookupResult](t, product, "hostr.profile.lookup", `{"npub":"`+unknown+`"}`)
	if len(outcome.Warnings) != 1 || outcome.Warnings[0].Code != fault.PartialResult {
		t.Errorf("refused by the relay: warnings %v", outcome.Warnings)
	}
	if found, _ := mustCall[lookupResult](t, product, "hostr.profile.lookup", `{"npub":"`+host.NPub+`"}`); !found.Exists {
		t.Error("a profile known already needs no relay")
	}
}

func TestProfileLookupInput(t *testing.T) {
	t.Parallel()
	product := newProduct(t, nowhere(t))
	for input, code := range map[string]fault.Code{
		`{}`:                              fault.InvalidInput,
		`{"npub":"  "}`:                   fault.InvalidInput,
		`{"npub":"casa"}`:                 fault.InvalidNPub,
		`{"npub":"npub1broken"}`:          fault.InvalidNPub,
		`{"npub":"` + stranger[1:] + `"}`: fault.InvalidNPub,
	} {
		_, failure := call(t, product, "hostr.profile.lookup", "", input)
		if failure == nil || failure.Code != code || failure.Path != "npub" {
			t.Errorf("%s: %+v, want %s", input, failure, code)
		}
	}
}

func TestSessionStatus(t *testing.T) {
	t.Parallel()
	product := newProduct(t, nowhere(t))
	for input, want := range map[string]string{
		`{}`: `{"tokenPubkey":"","sessionPubkey":null,"activePubkey":null,"authenticated":false,"signerOnline":false}`,
		`{"includeStorageDetails":"yes"}`: `{"tokenPubkey":"","sessionPubkey":null,"activePubkey":null,"authenticated":false,"signerOnline":false,` +
			`"storage":{"scope":"hostr-session/","isolated":true}}`,
	} {
		outcome, failure := call(t, product, "hostr.session.status", "", input)
		if failure != nil {
			t.Fatal(failure)
		}
		if got, err := json.Marshal(outcome.Data); err != nil || string(got) != want {
			t.Errorf("%s gives %s, %v; want %s", input, got, err, want)
		}
	}
	if _, failure := call(t, product, "hostr.session.status", "", `{"includeStorageDetails":"perhaps"}`); failure == nil || failure.Path != "includeStorageDetails" {
		t.Errorf("got %v", failure)
	}
	outcome, failure := call(t, product, "hostr.session.status", stranger, `{}`)
	want := `{"tokenPubkey":"` + stranger + `","sessionPubkey":"` + stranger + `","activePubkey":null,"authenticated":false,"signerOnline":false}`
	if got, err := json.Marshal(outcome.Data); failure != nil || err != nil || string(got) != want {
		t.Errorf("for somebody who is not signed in: %s, %v, %v", got, failure, err)
	}
}

func TestCancelledCall(t *testing.T) {
	t.Parallel()
	market := startMarket(t, sandbox.Options{})
	product := onMarket(t, market)
	market.Relay.Break(sandbox.Faults{NoEOSE: true})
	cause := errors.New("the caller has changed their mind")
	ctx, cancel := context.WithCancelCause(patient(t))
	ended := make(chan error, 1)
	go func() {
		_, err := product.CallAction(ctx, request.Action{ID: "hostr.listings.search", Input: json.RawMessage("{}")})
		ended <- err
	}()
	if _, err := market.Relay.WaitFor(patient(t), func(c sandbox.Counters) bool { return c.REQs > 0 }); err != nil {
		t.Fatal(err)
	}
	cancel(cause)
	select {
	case err := <-ended:
		if !errors.Is(err, cause) {
			t.Errorf("got %v", err)
		}
	case <-patient(t).Done():
		t.Fatal("the call went on")
	}
}

func BenchmarkSearch(b *testing.B) {
	market := startMarket(b, sandbox.Options{Listings: 50})
	product := onMarket(b, market)
	search := request.Action{ID: "hostr.listings.search", Input: json.RawMessage(`{"limit":10}`)}
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := product.CallAction(ctx, search); err != nil {
			b.Fatal(err)
		}
	}
}
