package actions

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hostr-daemon/catalog"
	"hostr-daemon/catalog/definition"
	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/input"
)

const (
	inputHost  = "79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798"
	inputGuest = "c6047f9441ed7d6d3045406e95c07cd85c778e4b8cef3ca7abac09b95c709ee5"
	// inputGuestNPub is inputGuest in NIP-19 form.
	inputGuestNPub = "npub1ccz8l9zpa47k6vz9gphftsrumpw80rjt3nhnefat4symjhrsnmjs38mnyd"
	inputRoom      = "30402:" + inputHost + ":garden-room"
	inputTradeID   = "9f2c4b8e1d7a6035c4f8e9b2a1d30756f8c9e0b1a2d3c4e5f60718293a4b5c6d"
	inputStay      = `"start":"2026-05-04T00:00:00Z","end":"2026-05-08"`
	inputRoomNAddr = "naddr1qvzqqqrkcgpzq7d7vel0nh9m4326qc54e6rskpczn07dktww9rv4nu5ptvt0s9ucqq9kwctjv3jkuttjdahk6v0uw5y"
	inputCreation  = `"title":"T","description":"D","address":"A","images":"https://a.example/1.png"`
)

// parsedInput is what all inputs have in common.
type parsedInput interface{ IsDryRun() bool }

type inputParser func(json.RawMessage) (parsedInput, error)

func anyInput[I parsedInput](parse func(json.RawMessage) (I, error)) inputParser {
	return func(raw json.RawMessage) (parsedInput, error) { return parse(raw) }
}

var inputParsers = map[string]inputParser{
	"HostrSessionStatusInput":               anyInput(ParseSessionStatusInput),
	"HostrSessionConnectInput":              anyInput(ParseSessionConnectInput),
	"HostrListingsSearchInput":              anyInput(ParseListingsSearchInput),
	"HostrListingsListInput":                anyInput(ParseListingsListInput),
	"HostrListingsCreateInput":              anyInput(ParseListingsCreateInput),
	"HostrListingsEditInput":                anyInput(ParseListingsEditInput),
	"HostrListingsAvailabilityInput":        anyInput(ParseListingsAvailabilityInput),
	"HostrListingsAnchorsInput":             anyInput(ParseListingsAnchorsInput),
	"HostrOrderBookAndPayInput":             anyInput(ParseOrderBookAndPayInput),
	"HostrOrdersOfferInput":                 anyInput(ParseOrdersOfferInput),
	"HostrOrderTradeInput":                  anyInput(ParseOrderTradeInput),
	"HostrOrderPayInput":                    anyInput(ParseOrderPayInput),
	"HostrOrderCommitInput":                 anyInput(ParseOrderCommitInput),
	"HostrOrderReviewInput":                 anyInput(ParseOrderReviewInput),
	"HostrUpdatesInput":                     anyInput(ParseUpdatesInput),
	"HostrThreadViewInput":                  anyInput(ParseThreadViewInput),
	"HostrThreadMessageInput":               anyInput(ParseThreadMessageInput),
	"HostrEscrowInvolveInput":               anyInput(ParseEscrowInvolveInput),
	"HostrEmptyInput":                       anyInput(ParseEmptyInput),
	"HostrProfileLookupInput":               anyInput(ParseProfileLookupInput),
	"HostrProfileEditInput":                 anyInput(ParseProfileEditInput),
	"HostrOrderCollectionInput":             anyInput(ParseOrderCollectionInput),
	"HostrEscrowMethodsInput":               anyInput(ParseEscrowMethodsInput),
	"HostrEscrowServiceListInput":           anyInput(ParseEscrowServiceListInput),
	"HostrEscrowServiceGetInput":            anyInput(ParseEscrowServiceGetInput),
	"HostrEscrowServiceUpdateInput":         anyInput(ParseEscrowServiceUpdateInput),
	"HostrEscrowServiceDeleteInput":         anyInput(ParseEscrowServiceDeleteInput),
	"HostrEscrowTradesListInput":            anyInput(ParseEscrowTradesListInput),
	"HostrEscrowTradeViewInput":             anyInput(ParseEscrowTradeViewInput),
	"HostrEscrowTradeAuditInput":            anyInput(ParseEscrowTradeAuditInput),
	"HostrEscrowArbitrateInput":             anyInput(ParseEscrowArbitrateInput),
	"HostrEscrowBadgeDefinitionsListInput":  anyInput(ParseEscrowBadgeDefinitionsListInput),
	"HostrEscrowBadgeDefinitionEditInput":   anyInput(ParseEscrowBadgeDefinitionEditInput),
	"HostrEscrowBadgeDefinitionDeleteInput": anyInput(ParseEscrowBadgeDefinitionDeleteInput),
	"HostrEscrowBadgeAwardsListInput":       anyInput(ParseEscrowBadgeAwardsListInput),
	"HostrEscrowBadgeAwardInput":            anyInput(ParseEscrowBadgeAwardInput),
	"HostrEscrowBadgeRevokeInput":           anyInput(ParseEscrowBadgeRevokeInput),
	"HostrSwapsWatchInput":                  anyInput(ParseSwapsWatchInput),
	"HostrSwapsRecoverAllInput":             anyInput(ParseSwapsRecoverAllInput),
	"HostrSwapsListInput":                   anyInput(ParseSwapsListInput),
}

func TestInputTypesAreAllParsed(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	for _, action := range inputCatalog(t).Actions() {
		used[action.InputTypeName] = true
	}
	want := slices.Sorted(maps.Keys(used))
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(inputParsers))); diff != "" || len(want) != 40 {
		t.Errorf("%d input types: %s", len(want), diff)
	}
}

func TestInputExamples(t *testing.T) {
	t.Parallel()
	previews := 0
	for _, action := range inputCatalog(t).Actions() {
		parsed, err := inputParsers[action.InputTypeName](action.Example)
		if err != nil {
			t.Errorf("the example of %s: %v", action.ID, err)
			continue
		}
		if parsed.IsDryRun() != action.HasDryRun {
			t.Errorf("%s without dryRun is a preview: %v", action.ID, parsed.IsDryRun())
		}
		if action.HasDryRun {
			previews++
			checkDryRun(t, action)
		}
	}
	if previews != 19 {
		t.Errorf("%d actions have a preview", previews)
	}
}

// Only an explicit no goes live, and what cannot be read is an error (spec 30 §12).
func checkDryRun(t *testing.T, action catalog.Action) {
	t.Helper()
	for value, live := range map[string]bool{
		`false`: true, `0`: true, `"no"`: true, `" FALSE "`: true, `true`: false, `null`: false, `"yes"`: false, `1`: false,
	} {
		parsed, err := inputParsers[action.InputTypeName](withProperty(t, action.Example, "dryRun", value))
		if err != nil || parsed.IsDryRun() == live {
			t.Errorf("%s with dryRun %s: %+v, %v", action.ID, value, parsed, err)
		}
	}
	for _, value := range []string{`"off"`, `""`, `2`, `[]`, `{}`, `"falsch"`} {
		if _, err := inputParsers[action.InputTypeName](withProperty(t, action.Example, "dryRun", value)); inputProblems(err) != "invalid_input dryRun type" {
			t.Errorf("%s with dryRun %s: %v", action.ID, value, err)
		}
	}
}

// Every number with a default or bounds is tried at both ends.
func TestInputDefaultsClampsAndRanges(t *testing.T) {
	t.Parallel()
	set, err := definition.Read(os.DirFS("../../catalog"))
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	for _, action := range set.Actions() {
		rules, err := action.Rules()
		if err != nil {
			t.Fatal(err)
		}
		for _, rule := range rules {
			if rule.Kind != "int" || rule.Clamp == nil && rule.Range == nil {
				continue
			}
			tried++
			checkNumber(t, action, rule)
		}
	}
	if tried != 29 {
		t.Errorf("%d bounded numbers were tried", tried)
	}
}

func checkNumber(t *testing.T, action definition.Action, rule definition.NamedRule) {
	t.Helper()
	if standard := string(rule.Default); standard != "" {
		if got, err := numberOf(t, action, rule.Name, `null`); err != nil || strconv.Itoa(got) != standard {
			t.Errorf("%s: the default of %s is %d, %v, not %s", action.ID, rule.Name, got, err, standard)
		}
	}
	if bounds := rule.Clamp; bounds != nil {
		for given, want := range map[int]int{
			bounds[0] - 1: bounds[0], bounds[0]: bounds[0], bounds[0] + 1: bounds[0] + 1, bounds[1]: bounds[1], bounds[1] + 1: bounds[1],
		} {
			if got, err := numberOf(t, action, rule.Name, strconv.Itoa(given)); err != nil || got != want {
				t.Errorf("%s: %s %d became %d, %v, not %d", action.ID, rule.Name, given, got, err, want)
			}
		}
		return
	}
	for given, ok := range map[int]bool{rule.Range[0] - 1: false, rule.Range[0]: true, rule.Range[1]: true, rule.Range[1] + 1: false} {
		if got, err := numberOf(t, action, rule.Name, strconv.Itoa(given)); (err == nil) != ok || ok && got != given {
			t.Errorf("%s: %s %d became %d, %v", action.ID, rule.Name, given, got, err)
		}
	}
}

// numberOf parses the action's example with another value of a property, and
// returns what the field of that property holds.
func numberOf(t *testing.T, action definition.Action, property, value string) (int, error) {
	t.Helper()
	parsed, err := inputParsers[action.InputTypeName](withProperty(t, action.Example, property, value))
	if err != nil {
		return 0, err
	}
	field := reflect.ValueOf(parsed).FieldByName(strings.ToUpper(property[:1]) + property[1:])
	if field.Kind() == reflect.Pointer {
		field = field.Elem()
	}
	return int(field.Int()), nil
}

// What is missing or unreadable, by action (spec 30 §9, §11).
func TestInputProblems(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ inputType, raw, want string }{
		{"HostrSessionStatusInput", `{"includeStorageDetails":"perhaps"}`, "invalid_input includeStorageDetails type"},
		{"HostrSessionConnectInput", `{"wait":"soon","timeoutSeconds":"x","regenerate":[]}`, "invalid_input wait type; invalid_input timeoutSeconds type; invalid_input regenerate type"},
		{"HostrListingsSearchInput", `{"rentOrBuy":"lease","guests":"two"}`, "invalid_rent_or_buy rentOrBuy enum; invalid_input guests type"},
		{"HostrListingsListInput", `{"author":"somebody"}`, "invalid_input author format"},
		{
			"HostrListingsCreateInput", `{}`,
			"invalid_input title missing; invalid_input description missing; invalid_input address missing; images_required images missing; price_required prices missing",
		},
		{
			"HostrListingsCreateInput", `{` + inputCreation + `,"prices":[{"amount":{"value":"x","currency":"USD"}}],"type":"castle","minDuration":"2","cancellationPolicy":[{}],"dryRun":"x"}`,
			"invalid_listing_type type enum; invalid_amount prices[0].amount.value format; invalid_duration minDuration format; invalid_cancellation_policy cancellationPolicy[0] missing; invalid_input dryRun type",
		},
		{"HostrListingsEditInput", `{}`, "invalid_input anchor missing"},
		{"HostrListingsEditInput", `{"anchor":"x","patch":{"quantity":"many","price":null}}`, "invalid_input anchor format; invalid_input patch.quantity type; price_required patch.prices missing"},
		{"HostrListingsAvailabilityInput", `{}`, "invalid_input anchors missing; invalid_input start missing; invalid_input end missing"},
		{"HostrListingsAvailabilityInput", `{"anchor":"My room","start":"May 4","end":"2026-02-30"}`, "invalid_input anchors[0] format; invalid_input start format; invalid_input end range"},
		{"HostrListingsAnchorsInput", `{"anchors":[]}`, "invalid_input anchors missing"},
		{"HostrOrderBookAndPayInput", `{"anchor":"` + inputRoom + `"}`, "invalid_input listingAnchor missing; invalid_input start missing; invalid_input end missing"},
		{"HostrOrderBookAndPayInput", `{"listingAnchor":"x",` + inputStay + `,"amount":{"value":"1"}}`, "invalid_input listingAnchor format; currency_required amount.currency missing"},
		{"HostrOrdersOfferInput", `{}`, "invalid_input listingAnchor missing; invalid_input start missing; invalid_input end missing"},
		{"HostrOrdersOfferInput", `{"anchor":"x","amount":5}`, "invalid_input listingAnchor format; invalid_input start missing; invalid_input end missing; currency_required amount type"},
		{"HostrOrdersOfferInput", `{"tradeId":{}}`, "invalid_input tradeId type"},
		{"HostrOrderTradeInput", `{"tradeId":" "}`, "invalid_input tradeId missing"},
		{"HostrOrderPayInput", `{}`, "invalid_input tradeId missing"},
		{"HostrOrderCommitInput", `{}`, "invalid_input swapId missing"},
		{"HostrOrderReviewInput", `{}`, "invalid_input tradeId missing; invalid_input rating missing; invalid_input content missing"},
		{"HostrOrderReviewInput", `{"tradeId":"t","rating":6,"content":"c"}`, "invalid_input rating range"},
		{"HostrOrderReviewInput", `{"tradeId":"t","rating":"good","content":"c"}`, "invalid_input rating type"},
		{"HostrThreadViewInput", `{"recipientPubkeys":["` + inputHost + `","x"]}`, "invalid_input recipientPubkeys[1] format"},
		{"HostrThreadMessageInput", `{"recipientPubkey":"x"}`, "invalid_input content missing; invalid_input recipientPubkeys[0] format"},
		{"HostrEscrowInvolveInput", `{}`, "invalid_input tradeId missing"},
		{"HostrEmptyInput", `{"anything":[1]}`, ""},
		{"HostrProfileLookupInput", `{}`, "invalid_input npub missing"},
		{"HostrProfileLookupInput", `{"npub":"nobody"}`, "invalid_npub npub format"},
		{"HostrProfileEditInput", `{"name":["A"]}`, "invalid_input name type"},
		{"HostrOrderCollectionInput", `{"waitSeconds":"long"}`, "invalid_input waitSeconds type"},
		{"HostrEscrowMethodsInput", `{"buyer":"x"}`, "invalid_input user missing; invalid_input buyer format"},
		{"HostrEscrowServiceGetInput", `{}`, "invalid_input serviceId missing"},
		{"HostrEscrowServiceUpdateInput", `{"fee":5}`, "invalid_input fee type"},
		{"HostrEscrowServiceUpdateInput", `{"fee":{"ppm":-1,"assetOverrides":{"native":1}},"maxDurationSeconds":"x"}`, `invalid_input fee.ppm range; invalid_input fee.assetOverrides["native"] type; invalid_input maxDurationSeconds type`},
		{"HostrEscrowServiceDeleteInput", `{}`, "invalid_input serviceId missing"},
		{"HostrEscrowTradeViewInput", `{"tradeId":"trade-1"}`, "invalid_input tradeId format"},
		{"HostrEscrowTradeAuditInput", `{}`, "invalid_input tradeId missing"},
		{"HostrEscrowArbitrateInput", `{"tradeId":"x","paymentForward":"NaN"}`, "invalid_input tradeId format; invalid_input paymentForward type; invalid_input bondForward missing"},
		{"HostrEscrowArbitrateInput", `{"tradeId":"` + inputTradeID + `","paymentForward":1.1,"bondForward":-1}`, "invalid_input paymentForward range; invalid_input bondForward range"},
		{"HostrEscrowBadgeDefinitionEditInput", `{}`, "invalid_input identifier missing; invalid_input name missing"},
		{"HostrEscrowBadgeDefinitionDeleteInput", `{"anchor":"badge"}`, "invalid_input anchor format"},
		{"HostrEscrowBadgeAwardsListInput", `{"definitionAnchor":"badge"}`, "invalid_input definitionAnchor format"},
		{"HostrEscrowBadgeAwardInput", `{"recipientPubkey":"x","listingAnchor":"y"}`, "invalid_input definitionAnchor missing; invalid_input recipientPubkey format; invalid_input listingAnchor format"},
		{"HostrEscrowBadgeRevokeInput", `{}`, "invalid_input awardId missing"},
		{"HostrSwapsWatchInput", `{}`, "invalid_input swapId missing"},
		{"HostrSwapsRecoverAllInput", `{"background":"maybe"}`, "invalid_input background type"},
		{"HostrSwapsListInput", `{"namespace":"swaps"}`, "invalid_input namespace enum"},
	} {
		if _, err := inputParsers[test.inputType](json.RawMessage(test.raw)); inputProblems(err) != test.want {
			t.Errorf("%s %s:\n got %s\nwant %s", test.inputType, test.raw, inputProblems(err), test.want)
		}
	}
}

// Each alias of spec 30 §9 fills the field of its property.
func TestInputAliases(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		inputType, alias, raw string
		field                 func(parsed parsedInput) any
		want                  any
	}{
		{"HostrListingsAvailabilityInput", "anchor", `"` + inputRoom + `",` + inputStay, func(p parsedInput) any { return p.(ListingsAvailabilityInput).Anchors[0].Identifier }, "garden-room"},
		{"HostrListingsAnchorsInput", "anchor", `"My room"`, func(p parsedInput) any { return p.(ListingsAnchorsInput).Anchors[0] }, "My room"},
		{"HostrListingsCreateInput", "image", `"u","price":5,"title":"T","description":"D","address":"A"`, func(p parsedInput) any { return p.(ListingsCreateInput).Images[0].URL }, "u"},
		{"HostrListingsCreateInput", "price", `5,` + inputCreation, func(p parsedInput) any { return p.(ListingsCreateInput).Prices[0].Amount.Denomination }, "USD"},
		{"HostrListingsCreateInput", "cancellationPolicies", `{"secondsAfterOrder":60,"refundFraction":1},"price":5,` + inputCreation, func(p parsedInput) any { return *p.(ListingsCreateInput).CancellationPolicy[0].SecondsAfterOrder }, int64(60)},
		{"HostrOrdersOfferInput", "anchor", `"` + inputRoomNAddr + `",` + inputStay, func(p parsedInput) any { return p.(OrdersOfferInput).ListingAnchor.String() }, inputRoom},
		{"HostrThreadViewInput", "anchor", `"x"`, func(p parsedInput) any { return p.(ThreadViewInput).ThreadAnchor }, "x"},
		{"HostrThreadViewInput", "recipientPubkey", `"` + inputGuestNPub + `"`, func(p parsedInput) any { return p.(ThreadViewInput).RecipientPubkeys[0] }, inputGuest},
		{"HostrThreadMessageInput", "anchor", `"x","content":"c"`, func(p parsedInput) any { return p.(ThreadMessageInput).ThreadAnchor }, "x"},
		{"HostrThreadMessageInput", "role", `"host","content":"c"`, func(p parsedInput) any { return p.(ThreadMessageInput).RecipientRole }, "host"},
		{"HostrThreadMessageInput", "recipientPubkey", `"` + inputGuest + `","content":"c"`, func(p parsedInput) any { return p.(ThreadMessageInput).RecipientPubkeys[0] }, inputGuest},
		{"HostrEscrowInvolveInput", "message", `"m","tradeId":"t"`, func(p parsedInput) any { return p.(EscrowInvolveInput).Content }, "m"},
		{"HostrProfileEditInput", "picture", `"p"`, func(p parsedInput) any { return p.(ProfileEditInput).Image }, "p"},
	} {
		parsed, err := inputParsers[test.inputType](json.RawMessage(`{"` + test.alias + `":` + test.raw + `}`))
		if err != nil {
			t.Errorf("%s, %s: %v", test.inputType, test.alias, err)
		} else if got := test.field(parsed); got != test.want {
			t.Errorf("%s, %s gave %v", test.inputType, test.alias, got)
		}
	}
}

// Figures that the old daemon's tests had too (spec 30 §13.5).
func TestInputKnownFigures(t *testing.T) {
	t.Parallel()
	search, err := ParseListingsSearchInput(json.RawMessage(
		`{"rentOrBuy":" Rent ","features":[" wifi ","","kitchen"],"limit":500,"location":"  Lisbon "}`))
	want := ListingsSearchInput{RentOrBuy: "rent", Features: []string{"wifi", "kitchen"}, Limit: 50, Location: "Lisbon"}
	if diff := cmp.Diff(want, search); diff != "" || err != nil {
		t.Errorf("search: %v %s", err, diff)
	}
	availability, err := ParseListingsAvailabilityInput(json.RawMessage(`{"anchor":"` + inputRoom + `",` + inputStay + `}`))
	if err != nil || len(availability.Anchors) != 1 || availability.Anchors[0].Given != inputRoom {
		t.Errorf("availability: %+v, %v", availability, err)
	}
	if !availability.Start.Equal(time.Date(2026, 5, 4, 0, 0, 0, 0, time.UTC)) || !availability.End.Equal(time.Date(2026, 5, 8, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("the stay is %v to %v", availability.Start, availability.End)
	}
	message, err := ParseThreadMessageInput(json.RawMessage(`{"content":" Hello ","recipientPubkey":"` + inputHost + `"}`))
	wantMessage := ThreadMessageInput{Content: "Hello", RecipientPubkeys: []string{inputHost}, DryRun: true, TimeoutSeconds: 12}
	if diff := cmp.Diff(wantMessage, message); diff != "" || err != nil {
		t.Errorf("message: %v %s", err, diff)
	}
}

// With a trade, the listing and the dates of an offer are not read at all.
func TestInputOfferInsideATrade(t *testing.T) {
	t.Parallel()
	offer, err := ParseOrdersOfferInput(json.RawMessage(
		`{"tradeId":"t","listingAnchor":"nonsense","start":"never","end":[],"amount":{"value":"0.002","currency":"BTC"}}`))
	if err != nil {
		t.Fatal(err)
	}
	if offer.TradeID != "t" || !offer.ListingAnchor.IsZero() || offer.Start != nil || offer.End != nil || offer.Amount.Value.String() != "200000" || !offer.DryRun {
		t.Errorf("the offer is %+v", offer)
	}
	first, err := ParseOrdersOfferInput(json.RawMessage(`{"listingAnchor":"` + inputRoomNAddr + `",` + inputStay + `,"dryRun":false}`))
	if err != nil || first.ListingAnchor.Given != inputRoomNAddr || first.ListingAnchor.PubKey != inputHost || first.Start.Day() != 4 || first.Amount != nil || first.IsDryRun() {
		t.Errorf("the first offer is %+v, %v", first, err)
	}
}

// orderGroups takes listing titles, reviews does not (spec 30 §9).
func TestInputAnchorsAreDecodedWhereOnlyAnchorsAreTaken(t *testing.T) {
	t.Parallel()
	parsed, err := ParseListingsAnchorsInput(json.RawMessage(`{"anchors":["` + inputRoomNAddr + `","My garden room"]}`))
	if err != nil || len(parsed.Anchors) != 2 || parsed.Limit != 50 {
		t.Fatalf("%+v, %v", parsed, err)
	}
	if _, err := parsed.DecodeAnchors(); inputProblems(err) != "invalid_input anchors[1] format" {
		t.Errorf("the error is %v", err)
	}
	parsed.Anchors = parsed.Anchors[:1]
	if anchors, err := parsed.DecodeAnchors(); err != nil || anchors[0].String() != inputRoom || anchors[0].Given != inputRoomNAddr {
		t.Errorf("decoded to %+v, %v", anchors, err)
	}
}

func TestInputPubkeysAndTradesAreDecoded(t *testing.T) {
	t.Parallel()
	lookup, err := ParseProfileLookupInput(json.RawMessage(`{"npub":" ` + inputGuestNPub + ` "}`))
	if err != nil || lookup.NPub != inputGuest {
		t.Errorf("lookup: %+v, %v", lookup, err)
	}
	methods, err := ParseEscrowMethodsInput(json.RawMessage(`{"user":"` + strings.ToUpper(inputHost) + `","buyer":"` + inputGuestNPub + `"}`))
	if err != nil || methods.User != inputHost || methods.Buyer != inputGuest {
		t.Errorf("methods: %+v, %v", methods, err)
	}
	settled, err := ParseEscrowArbitrateInput(json.RawMessage(`{"tradeId":"0x` + strings.ToUpper(inputTradeID) + `","paymentForward":"0.7","bondForward":0}`))
	if err != nil || settled.TradeID != inputTradeID || settled.PaymentForward.Text() != "0.7" || !settled.DryRun {
		t.Errorf("settlement: %+v, %v", settled, err)
	}
	award, err := ParseEscrowBadgeAwardInput(json.RawMessage(`{"definitionAnchor":"30009:` + inputHost + `:a:b","recipientPubkey":"` + inputGuestNPub + `"}`))
	if err != nil || award.DefinitionAnchor.Identifier != "a:b" || award.RecipientPubkey != inputGuest || !award.ListingAnchor.IsZero() {
		t.Errorf("award: %+v, %v", award, err)
	}
}

func TestInputCreateVector(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile("../input/testdata/listings.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors struct{ Create json.RawMessage }
	if err := json.Unmarshal(content, &vectors); err != nil {
		t.Fatal(err)
	}
	created, err := ParseListingsCreateInput(vectors.Create)
	if err != nil {
		t.Fatal(err)
	}
	if len(created.Prices) != 2 || created.Prices[0].Amount.Value.String() != "100000" || created.Prices[1].Frequency != "weekly" ||
		created.SecurityDeposit.Value.String() != "50000" || created.MinPaymentAmount.Denomination != "BTC" {
		t.Errorf("amounts: %+v", created)
	}
	var keys []string
	for _, member := range created.Specifications.Members() {
		keys = append(keys, member.Name+"="+string(member.Value))
	}
	if diff := cmp.Diff([]string{"wireless_internet=true", "kitchen=true", "pool=false"}, keys); diff != "" {
		t.Errorf("specifications: %s", diff)
	}
	if *created.Guests != 2 || created.Bedrooms != nil || created.Active != nil || created.MinDuration != "P2D" || *created.MaxDisputePeriod != 86400 ||
		created.DTag != "garden-room" || !created.DryRun || created.Images[0].Alt != "Garden view" {
		t.Errorf("the rest: %+v", created)
	}
}

// The error that docs/actions.md shows is one that really comes.
func TestInputErrorOfTheDocumentation(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/actions.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(page), "lists them all:\n\n```json\n")
	shown, _, found := strings.Cut(after, "```")
	if !found {
		t.Fatal("the page shows no error")
	}
	_, failure := ParseListingsAvailabilityInput(json.RawMessage(`{"anchor":"` + inputRoom + `","start":"May 4"}`))
	coded := fault.From(failure)
	encoded, err := json.Marshal(map[string]any{
		"code": coded.Code, "message": coded.Message, "path": coded.Path, "hint": coded.Hint, "retryable": coded.Retryable, "details": coded.Details,
	})
	if err != nil {
		t.Fatal(err)
	}
	var got, want any
	if err := errors.Join(json.Unmarshal(encoded, &got), json.Unmarshal([]byte(shown), &want)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func FuzzParse(f *testing.F) {
	loaded, err := catalog.Load()
	if err != nil {
		f.Fatal(err)
	}
	for _, action := range loaded.Actions() {
		f.Add([]byte(action.Example))
	}
	for _, seed := range []string{`{}`, `null`, `[]`, `{"limit":1e999,"tradeId":[],"patch":{"prices":[null]},"fee":{"assetOverrides":{"":{}}}}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		for name, parse := range inputParsers {
			parsed, err := parse(raw)
			if err == nil {
				continue
			}
			var coded *fault.Error
			if !errors.As(err, &coded) || coded.Code == "" || coded.Message == "" || coded.Retryable {
				t.Fatalf("%s: the error is %#v", name, err)
			}
			if details, ok := coded.Details.(input.Details); !ok || details.Reason == "" {
				t.Fatalf("%s: the details are %#v", name, coded.Details)
			}
			if !reflect.ValueOf(parsed).IsZero() {
				t.Fatalf("%s gave %+v beside an error", name, parsed)
			}
		}
	})
}

func BenchmarkParseSearch(b *testing.B) {
	raw := json.RawMessage(`{"location":"Lisbon","query":"garden","type":"room","rentOrBuy":"rent","guests":2,"features":["wireless_internet","kitchen"],"limit":20}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseListingsSearchInput(raw); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParseCreate(b *testing.B) {
	loaded, err := catalog.Load()
	if err != nil {
		b.Fatal(err)
	}
	create, _ := loaded.Lookup("hostr.listings.create")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseListingsCreateInput(create.Example); err != nil {
			b.Fatal(err)
		}
	}
}

// inputProblems writes all problems of an error as code, path and reason.
func inputProblems(err error) string {
	if err == nil {
		return ""
	}
	coded := fault.From(err)
	details, _ := coded.Details.(input.Details)
	if len(details.Problems) == 0 {
		return string(coded.Code) + " " + coded.Path + " " + string(details.Reason)
	}
	var told []string
	for _, problem := range details.Problems {
		told = append(told, string(problem.Code)+" "+problem.Path+" "+string(problem.Reason))
	}
	return strings.Join(told, "; ")
}

// withProperty returns an input with another value of one property.
func withProperty(t *testing.T, object json.RawMessage, name, value string) json.RawMessage {
	t.Helper()
	members := map[string]json.RawMessage{}
	if err := json.Unmarshal(object, &members); err != nil {
		t.Fatal(err)
	}
	members[name] = json.RawMessage(value)
	changed, err := json.Marshal(members)
	if err != nil {
		t.Fatal(err)
	}
	return changed
}

func inputCatalog(t *testing.T) *catalog.Catalog {
	t.Helper()
	loaded, err := catalog.Load()
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}
