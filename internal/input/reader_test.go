package input

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"

	"hostr-daemon/internal/fault"
)

func TestReaderTakesOnlyObjects(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{``, `null`, `[]`, `"text"`, `5`, `{}`, ` { } `, `{"limit":null}`} {
		r := NewReader(json.RawMessage(raw))
		if limit := r.Property("limit").IntOr(10); limit != 10 || r.Err() != nil {
			t.Errorf("%s gave %d, %v", raw, limit, r.Err())
		}
	}
}

// An image of a hundred megabytes stays where it came in.
func TestTextIsNotCopied(t *testing.T) {
	t.Parallel()
	raw := json.RawMessage(`{"images":[{"base64":" ` + strings.Repeat("A", 1000) + ` "}]}`)
	r := NewReader(raw)
	images := r.Property("images").Images()
	if r.Err() != nil || len(images) != 1 {
		t.Fatalf("%d images, %v", len(images), r.Err())
	}
	if first := &raw[strings.IndexByte(string(raw), 'A')]; unsafe.StringData(images[0].Base64) != first {
		t.Error("the text was copied")
	}
}

func TestReaderRefusesWhatIsNotJSON(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{`{`, `{"limit":}`, `{"limit":1}}`, `{'limit':1}`, strings.Repeat(`[`, 1_000_000)} {
		r := NewReader(json.RawMessage(raw))
		if limit := r.Property("limit").IntOr(10); limit != 10 || !fault.Is(r.Err(), fault.InvalidInput) {
			t.Errorf("%.20s gave %d, %v", raw, limit, r.Err())
		}
		if r.Property("title").Required().Text(); len(failure(t, r).Details.(Details).Problems) != 0 {
			t.Errorf("%.20s: more is told than that it is no JSON", raw)
		}
	}
}

func TestDeepAndRepeatedKeys(t *testing.T) {
	t.Parallel()
	deep := `{"specifications":` + strings.Repeat(`{"a":`, 9000) + `1` + strings.Repeat(`}`, 9000) + `,"limit":1,"limit":2}`
	r := NewReader(json.RawMessage(deep))
	if specifications := r.Property("specifications").Object(); specifications.Len() != 1 {
		t.Errorf("the deep object has %d keys", specifications.Len())
	}
	if limit := r.Property("limit").IntOr(10); limit != 2 || r.Err() != nil {
		t.Errorf("of a repeated key %d counts, %v", limit, r.Err())
	}
}

func TestAllProblemsAreTold(t *testing.T) {
	t.Parallel()
	r := NewReader(json.RawMessage(`{"limit":"many","mine":"perhaps","recipientPubkey":"x"}`))
	r.Property("title").Required().Text()
	r.Property("limit").IntOr(10)
	r.Property("mine").BoolOr(false)
	r.Property("recipientPubkeys", "recipientPubkey").Pubkeys()
	want := []Problem{
		{Code: fault.InvalidInput, Message: "title is required", Path: "title", Reason: ReasonMissing},
		{
			Code: fault.InvalidInput, Message: "limit must be a whole number, not this text", Path: "limit",
			Hint: "a number without quotes, for example 10", Reason: ReasonType,
		},
		{
			Code: fault.InvalidInput, Message: "mine must be true or false, not this text", Path: "mine",
			Hint: "true, yes, 1, false, no or 0", Reason: ReasonType,
		},
		{
			Code: fault.InvalidInput, Message: "recipientPubkeys[0] must be a public key: 64 hex digits or npub1…",
			Path: "recipientPubkeys[0]", Hint: "64 hex digits or npub1…", Reason: ReasonFormat,
		},
	}
	err := failure(t, r)
	if err.Code != want[0].Code || err.Message != want[0].Message || err.Path != want[0].Path || err.Retryable {
		t.Errorf("the error is not the first problem: %+v", err)
	}
	details := err.Details.(Details)
	if diff := cmp.Diff(want, details.Problems, cmp.AllowUnexported(Problem{})); diff != "" || details.Reason != ReasonMissing {
		t.Errorf("details: %s", diff)
	}
}

func TestOneProblemIsToldOnce(t *testing.T) {
	t.Parallel()
	r := NewReader(json.RawMessage(`{"title":[]}`))
	r.Property("title").Required().Text()
	encoded, err := json.Marshal(failure(t, r).Details)
	if err != nil || string(encoded) != `{"reason":"type"}` {
		t.Errorf("details are %s, %v", encoded, err)
	}
}

func TestProblemsAreBounded(t *testing.T) {
	t.Parallel()
	list := strings.TrimSuffix(strings.Repeat(`[],`, 10_000), ",")
	r := NewReader(json.RawMessage(`{"images":[` + list + `]}`))
	r.Property("images").Images()
	if count := len(failure(t, r).Details.(Details).Problems); count != maxProblems {
		t.Errorf("%d problems are told", count)
	}
}

// An alias counts when the name is null or absent, and its problems are told of
// the name.
func TestAliases(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ raw, want, path string }{
		{`{"anchor":"a"}`, "a", ""},
		{`{"threadAnchor":"t","anchor":"a"}`, "t", ""},
		{`{"threadAnchor":null,"anchor":"a"}`, "a", ""},
		{`{"threadAnchor":"","anchor":"a"}`, "", ""},
		{`{"anchor":{}}`, "", "threadAnchor"},
	} {
		r := NewReader(json.RawMessage(test.raw))
		got := r.Property("threadAnchor", "anchor").Text()
		if got != test.want || pathOf(r.Err()) != test.path {
			t.Errorf("%s gave %q, path %q", test.raw, got, pathOf(r.Err()))
		}
	}
}

func TestRequiredUnless(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ raw, want, paths string }{
		{`{}`, "", "listingAnchor start"},
		{`{"tradeId":" "}`, "", "listingAnchor start"},
		{`{"tradeId":null,"anchor":"x"}`, "x", "start"},
		{`{"tradeId":"t"}`, "", ""},
		{`{"tradeId":7,"listingAnchor":"x","start":"nonsense"}`, "", ""},
	} {
		r := NewReader(json.RawMessage(test.raw))
		got := r.Property("listingAnchor", "anchor").RequiredUnless("tradeId").Text()
		start := r.Property("start").RequiredUnless("tradeId").OptionalDateTime()
		if got != test.want || start != nil || allPaths(r.Err()) != test.paths {
			t.Errorf("%s gave %q, %v, problems at %q", test.raw, got, start, allPaths(r.Err()))
		}
		if test.raw == `{}` && !strings.Contains(r.Err().Error(), "listingAnchor is required unless tradeId is given") {
			t.Errorf("the message is %v", r.Err())
		}
	}
}

func TestMessagesNeverHoldTheValue(t *testing.T) {
	t.Parallel()
	const secret = "nsec1vl029mgpspedva04g90vltkh6fvh240zqtv9k0t9af8935ke9laqsnlfe5"
	for name, read := range readings {
		for _, value := range []string{secret, secret + ",x", "30402:" + secret + ":d", "0x" + secret} {
			r := NewReader(json.RawMessage(`{"p":"` + value + `"}`))
			read(r)
			encoded, err := json.Marshal(r.Err())
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(encoded)+fmt.Sprint(r.Err()), secret) {
				t.Errorf("%s repeats %s in %s", name, value, encoded)
			}
		}
	}
}

// readings are all ways to read a property named p.
var readings = map[string]func(*Reader){
	"Text":                 func(r *Reader) { r.Property("p").Required().Text() },
	"Lower":                func(r *Reader) { r.Property("p").Lower().Text() },
	"Word":                 func(r *Reader) { r.Property("p").Code(fault.InvalidListingType).Word("a", "b") },
	"Int":                  func(r *Reader) { r.Property("p").Required().Int() },
	"Clamp":                func(r *Reader) { r.Property("p").Clamp(1, 60).IntOr(12) },
	"Range":                func(r *Reader) { r.Property("p").Required().Range(1, 5).Int() },
	"BoolOr":               func(r *Reader) { r.Property("p").BoolOr(true) },
	"TextList":             func(r *Reader) { r.Property("p").TextList() },
	"Object":               func(r *Reader) { r.Property("p").Object() },
	"Anchor":               func(r *Reader) { r.Property("p").Required().Anchor() },
	"Anchors":              func(r *Reader) { r.Property("p").Required().Anchors() },
	"AnchorTexts":          func(r *Reader) { r.Property("p").Required().AnchorTexts() },
	"Pubkey":               func(r *Reader) { r.Property("p").Pubkey() },
	"NPub":                 func(r *Reader) { r.Property("p").Required().Code(fault.InvalidNPub).Pubkey() },
	"Pubkeys":              func(r *Reader) { r.Property("p").Pubkeys() },
	"TradeID":              func(r *Reader) { r.Property("p").TradeID() },
	"DateTime":             func(r *Reader) { r.Property("p").Required().DateTime() },
	"Duration":             func(r *Reader) { r.Property("p").Code(fault.InvalidDuration).Duration() },
	"Ratio":                func(r *Reader) { r.Property("p").Required().Ratio() },
	"Amount":               func(r *Reader) { r.Property("p").Amount() },
	"Prices":               func(r *Reader) { r.Property("p").Prices() },
	"Images":               func(r *Reader) { r.Property("p").Images() },
	"Fee":                  func(r *Reader) { r.Property("p").Fee() },
	"CancellationPolicies": func(r *Reader) { r.Property("p").CancellationPolicies() },
	"ListingPatch":         func(r *Reader) { r.ListingPatch("p") },
}

// failure returns the error of a reader, which must be a coded one.
func failure(t *testing.T, r *Reader) *fault.Error {
	t.Helper()
	var coded *fault.Error
	if !errors.As(r.Err(), &coded) {
		t.Fatalf("the error is %v", r.Err())
	}
	return coded
}

func pathOf(err error) string {
	if err == nil {
		return ""
	}
	return fault.From(err).Path
}

// allPaths lists the paths of all problems.
func allPaths(err error) string {
	if err == nil {
		return ""
	}
	details := fault.From(err).Details.(Details)
	if len(details.Problems) == 0 {
		return fault.From(err).Path
	}
	var paths []string
	for _, problem := range details.Problems {
		paths = append(paths, problem.Path)
	}
	return strings.Join(paths, " ")
}

// problemOf describes an error as code, path and reason.
func problemOf(err error) string {
	if err == nil {
		return ""
	}
	coded := fault.From(err)
	return fmt.Sprintf("%s %s %s", coded.Code, coded.Path, coded.Details.(Details).Reason)
}

// property returns the property p of an object that holds the value there.
func property(value string) (*Reader, Property) {
	r := NewReader(json.RawMessage(`{"p":` + value + `}`))
	return r, r.Property("p")
}
