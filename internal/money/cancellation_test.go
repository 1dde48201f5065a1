package money_test

import (
	"encoding/json"
	"slices"
	"testing"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/money"
)

func TestRefundFraction(t *testing.T) {
	t.Parallel()
	for _, vector := range readVectors(t).RefundFraction {
		var fraction money.Fraction
		if err := json.Unmarshal(vector.Input, &fraction); err != nil {
			t.Errorf("%s: %v", vector.Input, err)
			continue
		}
		shown, _ := json.Marshal(fraction)
		if fraction.String() != vector.Tag || string(shown) != string(vector.JSON) {
			t.Errorf("%s = %s, %s, want %s, %s", vector.Input, fraction, shown, vector.Tag, vector.JSON)
		}
	}
}

func TestParseFraction(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		" 0.50 ": "0.5", "1e-7": "0.0000001", "5E-1": "0.5", "-0": "0.0", "+1": "1.0", ".25": "0.25", "1.": "1.0",
		"0.30000000000000004": "0.30000000000000004", "1e-999999999": "0.0",
	} {
		if fraction, err := money.ParseFraction(text); err != nil || fraction.String() != want {
			t.Errorf("%q = %s, %v, want %s", text, fraction, err, want)
		}
	}
	for _, text := range []string{
		"", "NaN", "nan", "Infinity", "-0.1", "1.0000001", "2", "1e999999999", "0x1p-1", "0_1", "half", "1/2", "0,5", ".", "-",
	} {
		if fraction, err := money.ParseFraction(text); !fault.Is(err, fault.InvalidCancellationPolicy) {
			t.Errorf("%q = %s, %v, want invalid_cancellation_policy", text, fraction, err)
		}
	}
	for _, bad := range []string{`null`, `[]`, `{}`, `true`, `2`, `"NaN"`} {
		var fraction money.Fraction
		if err := json.Unmarshal([]byte(bad), &fraction); !fault.Is(err, fault.InvalidCancellationPolicy) {
			t.Errorf("%s = %s, %v", bad, fraction, err)
		}
	}
}

func TestCancellationRuleLabels(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		labels []string
		want   []string
	}{
		"all":            {[]string{"refundFraction", "1", "secondsBeforeStart", "2", "secondsAfterOrder", "3"}, []string{"refundFraction", "1.0", "secondsBeforeStart", "2", "secondsAfterOrder", "3"}},
		"any order":      {[]string{"secondsAfterOrder", "0", "x", "y", "refundFraction", "0.5", "odd"}, []string{"refundFraction", "0.5", "secondsAfterOrder", "0"}},
		"last counts":    {[]string{"refundFraction", "x", "refundFraction", "0", "secondsBeforeStart", "1"}, []string{"refundFraction", "0.0", "secondsBeforeStart", "1"}},
		"one unreadable": {[]string{"refundFraction", "0", "secondsBeforeStart", "1", "secondsAfterOrder", "1.5"}, []string{"refundFraction", "0.0", "secondsBeforeStart", "1"}},
		"no fraction":    {[]string{"secondsBeforeStart", "1", "secondsAfterOrder", "1"}, nil},
		"no time":        {[]string{"refundFraction", "0", "x", "y"}, nil},
		"negative":       {[]string{"refundFraction", "0", "secondsBeforeStart", "1", "secondsAfterOrder", "-1"}, nil},
		"nothing":        {nil, nil},
	} {
		rule, ok := money.CancellationRuleOf(test.labels)
		if ok != (test.want != nil) {
			t.Errorf("%s: %v", name, ok)
		}
		if ok && !slices.Equal(rule.Labels(), test.want) {
			t.Errorf("%s: %q, want %q", name, rule.Labels(), test.want)
		}
	}
}

func TestCancellationRuleJSON(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{"secondsBeforeStart":172800,"secondsAfterOrder":3600,"refundFraction":1}`,
		`{"secondsAfterOrder":0,"refundFraction":0.333}`,
	} {
		var rule money.CancellationRule
		if err := json.Unmarshal([]byte(text), &rule); err != nil {
			t.Fatal(err)
		}
		if again, _ := json.Marshal(rule); string(again) != text {
			t.Errorf("%s, want %s", again, text)
		}
		if err := rule.Check(); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, rule := range []money.CancellationRule{
		{}, {SecondsAfterOrder: pointer[int64](-1)}, {SecondsAfterOrder: pointer[int64](1), SecondsBeforeStart: pointer[int64](-1)},
	} {
		if err := rule.Check(); !fault.Is(err, fault.InvalidCancellationPolicy) {
			t.Errorf("%+v: %v", rule, err)
		}
	}
}
