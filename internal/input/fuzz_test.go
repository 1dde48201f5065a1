package input

import (
	"encoding/json"
	"errors"
	"math/big"
	"strings"
	"testing"

	"hostr-daemon/internal/fault"
)

// FuzzReadings gives any value to every reading method. None may panic, and what
// cannot be read is a coded error.
func FuzzReadings(f *testing.F) {
	for _, seed := range []string{
		`null`, `true`, `12`, `-1.5e3`, `1e999999999`, `"text"`, `"0x1F"`, `"2026-05-04T00:00:00Z"`, `"P2D"`, `[]`, `[null,"a",{"b":[]}]`, `{}`,
		`{"value":"1","currency":"USD","frequency":"daily"}`, `{"amount":{"value":"1","currency":"BTC","unit":"sats"}}`,
		`{"url":"https://a.example/1.png","alt":null}`, `{"ppm":1,"assetOverrides":{"native":{"base":"5"}}}`,
		`[{"secondsBeforeStart":1,"refundFraction":0.5}]`, `{"title":"x","images":[],"address":null,"quantity":"0x2"}`,
		`"30402:79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798:a,b"`, `{"p":1,"p":2}`, "\"\xff\"", `"\ud800"`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		raw := json.RawMessage(`{"p":` + value + `}`)
		for name, read := range readings {
			r := NewReader(raw)
			read(r)
			if err := r.Err(); err != nil {
				checkCoded(t, name, err)
			}
		}
	})
}

func checkCoded(t *testing.T, name string, err error) {
	t.Helper()
	var coded *fault.Error
	if !errors.As(err, &coded) || coded.Code == "" || coded.Message == "" || coded.Retryable {
		t.Fatalf("%s: the error is %#v", name, err)
	}
	details, ok := coded.Details.(Details)
	if !ok || details.Reason == "" || len(details.Problems) == 1 || len(details.Problems) > maxProblems {
		t.Fatalf("%s: the details are %#v", name, coded.Details)
	}
	for _, problem := range details.Problems {
		if problem.Code == "" || problem.Message == "" || problem.Reason == "" || problem.Path == "" {
			t.Fatalf("%s: a problem is %#v", name, problem)
		}
	}
	if _, err := json.Marshal(coded.Details); err != nil {
		t.Fatalf("%s: the details cannot be encoded: %v", name, err)
	}
}

func FuzzParsePubkey(f *testing.F) {
	f.Add(pubkeyA)
	f.Add(npub(f, pubkeyA))
	f.Add("npub1")
	f.Fuzz(func(t *testing.T, text string) {
		pubkey, err := ParsePubkey(text)
		if err != nil {
			checkCoded(t, "ParsePubkey", err)
		} else if !isHex64(pubkey) {
			t.Fatalf("%q gave %q", text, pubkey)
		}
	})
}

// FuzzWholeNumber compares JSON numbers with exact arithmetic.
func FuzzWholeNumber(f *testing.F) {
	for _, seed := range []string{"0", "-0.0", "12.9", "-12.9", "1e3", "1234e-2", "9007199254740993.7", "0.000e99", "1E+5"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, literal string) {
		r := NewReader(json.RawMessage(`{"p":` + literal + `}`))
		property := r.Property("p")
		if r.Err() != nil || len(property.candidates) == 0 || len(literal) > 60 || !isNumber(literal) {
			return
		}
		got := truncate(property.candidates[0].Raw)
		exact, ok := new(big.Rat).SetString(property.candidates[0].Raw)
		if !ok {
			t.Fatalf("%s is no rational number", literal)
		}
		want := new(big.Int).Quo(exact.Num(), exact.Denom())
		if !got.tooLarge && got.Cmp(want) != 0 || got.tooLarge && len(want.String()) <= maxDigits {
			t.Fatalf("%s was cut to %v, not %v", literal, got, want)
		}
		if text, ok := new(big.Rat).SetString(numberText(property.candidates[0].Raw)); !ok || text.Cmp(exact) != 0 {
			t.Fatalf("%s is written %s", literal, numberText(property.candidates[0].Raw))
		}
	})
}

// isNumber tells of JSON numbers whose exponent does not make exact arithmetic
// slow.
func isNumber(literal string) bool {
	place := strings.IndexAny(literal, "eE")
	return json.Valid([]byte(literal)) && strings.Trim(literal, "0123456789.eE+-") == "" && (place < 0 || len(literal)-place < 5)
}
