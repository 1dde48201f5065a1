package input

import (
	"math"
	"strings"
	"testing"
)

func TestInt(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		value   string
		want    int
		problem string
	}{
		{`12`, 12, ""},
		{`-3`, -3, ""},
		{`-0`, 0, ""},
		{`12.9`, 12, ""},
		{`-12.9`, -12, ""},
		{`0.99`, 0, ""},
		{`1e3`, 1000, ""},
		{`1.5e1`, 15, ""},
		{`1234e-2`, 12, ""},
		{`1e-400`, 0, ""},
		{`0e999999999999`, 0, ""},
		{`9007199254740993`, 9007199254740993, ""},
		{`9007199254740993.7`, 9007199254740993, ""},
		{`9223372036854775807`, math.MaxInt64, ""},
		{`-9223372036854775808`, math.MinInt64, ""},
		{`9223372036854775808`, 0, "invalid_input p range"},
		{`1e30`, 0, "invalid_input p range"},
		{`1e999999999999999999999`, 0, "invalid_input p range"},
		{`" 12 "`, 12, ""},
		{`"+12"`, 12, ""},
		{`"-12"`, -12, ""},
		{`"0x1F"`, 31, ""},
		{`"-0xff"`, -255, ""},
		{`"007"`, 7, ""},
		{`"99999999999999999999"`, 0, "invalid_input p range"},
		{`"-` + strings.Repeat("9", 100) + `"`, 0, "invalid_input p range"},
		{`null`, 0, ""},
		{`""`, 0, "invalid_input p type"},
		{`"12.0"`, 0, "invalid_input p type"},
		{`"1e3"`, 0, "invalid_input p type"},
		{`"0x"`, 0, "invalid_input p type"},
		{`"1_000"`, 0, "invalid_input p type"},
		{`"--1"`, 0, "invalid_input p type"},
		{`"+-1"`, 0, "invalid_input p type"},
		{`"ten"`, 0, "invalid_input p type"},
		{`true`, 0, "invalid_input p type"},
		{`[1]`, 0, "invalid_input p type"},
		{`{}`, 0, "invalid_input p type"},
	} {
		r, p := property(test.value)
		if got := p.Int(); got != test.want || problemOf(r.Err()) != test.problem {
			t.Errorf("%s gave %d, %q", test.value, got, problemOf(r.Err()))
		}
	}
}

func TestClamp(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]int{
		`null`: 10, `1`: 1, `0`: 1, `-5`: 1, `50`: 50, `51`: 50, `500`: 50, `0.5`: 1, `50.9`: 50,
		`1e30`: 50, `-1e30`: 1, `"99999999999999999999999999"`: 50, `"-99999999999999999999999999"`: 1,
		`1e99999999999999999999`: 50, `-1e99999999999999999999`: 1,
	} {
		r, p := property(value)
		if got := p.Clamp(1, 50).IntOr(10); got != want || r.Err() != nil {
			t.Errorf("%s was clamped to %d, %v", value, got, r.Err())
		}
	}
	if _, p := property(`null`); p.Clamp(1, 50).OptionalInt() != nil {
		t.Error("an absent number was clamped")
	}
}

func TestRange(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]struct {
		number  int
		problem string
	}{
		`1`: {1, ""}, `5`: {5, ""}, `"3"`: {3, ""}, `4.9`: {4, ""},
		`0`: {0, "invalid_input p range"}, `6`: {0, "invalid_input p range"}, `0.5`: {0, "invalid_input p range"},
		`-1e40`: {0, "invalid_input p range"}, `1e40`: {0, "invalid_input p range"},
		`null`: {0, "invalid_input p missing"}, `"good"`: {0, "invalid_input p type"},
	} {
		r, p := property(value)
		if got := p.Required().Range(1, 5).Int(); got != want.number || problemOf(r.Err()) != want.problem {
			t.Errorf("%s gave %d, %q", value, got, problemOf(r.Err()))
		}
	}
}

func TestNumberText(t *testing.T) {
	t.Parallel()
	for literal, want := range map[string]string{
		"0": "0", "-5": "-5", "100000000000000000000000000": "100000000000000000000000000",
		"12.50": "12.5", "5.0": "5.0", "0.10": "0.1", "-0.0": "-0.0", "0.000001": "0.000001",
		"1e2": "100.0", "1.25E+1": "12.5", "-1e-3": "-0.001", "1e-6": "0.000001", "1e-7": "1e-7",
		"1e20": "100000000000000000000.0", "1e21": "1e21", "0e5": "0.0",
		"0.12345678901234567890123": "0.12345678901234567890123",
	} {
		if got := numberText(literal); got != want {
			t.Errorf("%s is written %s, not %s", literal, got, want)
		}
	}
}
