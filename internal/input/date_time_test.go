package input

import (
	"strings"
	"testing"
	"time"
)

// The vectors of spec 30 §10 and more of their kind. An empty want is an error.
var dateTimes = []struct{ text, want, reason string }{
	{"2026-05-04T00:00:00Z", "2026-05-04T00:00:00Z", ""},
	{"2026-05-04T12:30Z", "2026-05-04T12:30:00Z", ""},
	{"2026-05-04T00:00:00.123456789Z", "2026-05-04T00:00:00.123456Z", ""},
	{"2026-05-04", "2026-05-04T00:00:00Z", ""},
	{"20260504", "2026-05-04T00:00:00Z", ""},
	{"2026-05-04 12:00:00", "2026-05-04T12:00:00Z", ""},
	{"2026-05-04T23:30:00-05:00", "2026-05-05T04:30:00Z", ""},
	{"2026-05-04T01:00:00+0200", "2026-05-03T23:00:00Z", ""},
	{"2026-05-04T24:00:00Z", "", "range"},
	{"2026-02-30T00:00:00Z", "", "range"},
	{"1777852800", "", "range"},
	{"05/04/2026", "", "format"},
	{"2026-5-4", "", "format"},
	{"May 4 2026", "", "format"},
	{"2026-05-04Z", "", "format"},

	{" 2026-05-04T00:00:00Z ", "2026-05-04T00:00:00Z", ""},
	{"2026-05-04T12Z", "2026-05-04T12:00:00Z", ""},
	{"20260504T1230", "2026-05-04T12:30:00Z", ""},
	{"20260504T123045,5z", "2026-05-04T12:30:45.5Z", ""},
	{"2026-05-04T12:30:45 Z", "2026-05-04T12:30:45Z", ""},
	{"2026-05-04T12:30:45 +02", "2026-05-04T10:30:45Z", ""},
	{"2026-05-04T00:00:00+14:00", "2026-05-03T10:00:00Z", ""},
	{"+2026-05-04", "2026-05-04T00:00:00Z", ""},
	{"2024-02-29", "2024-02-29T00:00:00Z", ""},
	{"0001-01-01", "0001-01-01T00:00:00Z", ""},
	{"9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999Z", ""},
	{"2026-02-29", "", "range"},
	{"2026-13-01", "", "range"},
	{"2026-00-01", "", "range"},
	{"2026-01-00", "", "range"},
	{"2026-05-04T12:60Z", "", "range"},
	{"2026-05-04T12:30:60Z", "", "range"},
	{"2026-05-04T12:30:00+24:00", "", "range"},
	{"2026-05-04T12:30:00+02:60", "", "range"},
	{"0000-01-01", "", "range"},
	{"-2026-01-01", "", "range"},
	{"10000-01-01", "", "range"},
	{"9999-12-31T23:00:00-05:00", "", "range"},
	{"0001-01-01T00:00:00+01:00", "", "range"},
	{"2026-05-04T", "", "format"},
	{"2026-05-04T1:30Z", "", "format"},
	{"2026-05-04T12:30:45.Z", "", "format"},
	{"2026-05-04t12:30Z", "", "format"},
	{"now", "", "format"},
	{"٢٠٢٦-٠٥-٠٤", "", "format"},
	{"2026-05-04T00:00:00." + strings.Repeat("1", 1000) + "Z", "", "format"},
}

func TestDateTime(t *testing.T) {
	t.Parallel()
	for _, test := range dateTimes {
		r, p := property(`"` + test.text + `"`)
		got := p.Required().DateTime()
		switch {
		case test.want == "":
			if want := "invalid_input p " + test.reason; problemOf(r.Err()) != want || !got.IsZero() {
				t.Errorf("%.60s gave %v, %q", test.text, got, problemOf(r.Err()))
			}
		case r.Err() != nil || got.Location() != time.UTC || got.Format(time.RFC3339Nano) != test.want:
			t.Errorf("%s gave %s, %v", test.text, got.Format(time.RFC3339Nano), r.Err())
		}
	}
}

func TestDateTimeOfOtherValues(t *testing.T) {
	t.Parallel()
	for value, problem := range map[string]string{
		`20260504`: "", `null`: "invalid_input p missing", `""`: "invalid_input p missing",
		`1777852800000`: "invalid_input p format", `true`: "invalid_input p format", `{}`: "invalid_input p type",
	} {
		r, p := property(value)
		if p.Required().DateTime(); problemOf(r.Err()) != problem {
			t.Errorf("%s is %q", value, problemOf(r.Err()))
		}
	}
	r, p := property(`null`)
	if p.OptionalDateTime() != nil || !p.DateTime().IsZero() || r.Err() != nil {
		t.Error("an absent date has a value")
	}
}

func TestDurationVectors(t *testing.T) {
	t.Parallel()
	vectors := readVectors(t).Durations
	if len(vectors) < 20 {
		t.Fatalf("there are %d vectors", len(vectors))
	}
	for _, vector := range vectors {
		r, p := property(`"` + vector.Input + `"`)
		got := p.Duration()
		// In an input blank text is absence (spec 41 §8).
		valid := vector.Valid || vector.Input == ""
		if (r.Err() == nil) != valid || got != vector.Normalized {
			t.Errorf("%q gave %q, %v", vector.Input, got, r.Err())
		}
	}
}

func TestRatio(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ value, text, problem string }{
		{`0`, "0", ""}, {`1`, "1", ""}, {`0.7`, "0.7", ""}, {`1.0`, "1", ""}, {`-0.0`, "0", ""}, {`5e-1`, "0.5", ""},
		{`" 0.25 "`, "0.25", ""}, {`".5"`, "0.5", ""}, {`"1e-3"`, "0.001", ""}, {`0.29`, "0.29", ""},
		{`1e-400`, "0", ""},
		{`1.0001`, "0", "invalid_input p range"}, {`-0.1`, "0", "invalid_input p range"}, {`"2"`, "0", "invalid_input p range"},
		{`1e400`, "0", "invalid_input p range"},
		{`"NaN"`, "0", "invalid_input p type"}, {`"nan"`, "0", "invalid_input p type"}, {`"Infinity"`, "0", "invalid_input p type"},
		{`"0x1p-1"`, "0", "invalid_input p type"}, {`"0_1"`, "0", "invalid_input p type"}, {`""`, "0", "invalid_input p type"},
		{`"half"`, "0", "invalid_input p type"}, {`true`, "0", "invalid_input p type"}, {`[0.5]`, "0", "invalid_input p type"},
		{`null`, "0", "invalid_input p missing"},
	} {
		r, p := property(test.value)
		if got := p.Required().Ratio(); got.Text() != test.text || problemOf(r.Err()) != test.problem {
			t.Errorf("%s gave %s, %q", test.value, got.Text(), problemOf(r.Err()))
		}
	}
	if exact := Ratio(0.29).Rat().RatString(); exact != "29/100" {
		t.Errorf("0.29 is %s", exact)
	}
}
