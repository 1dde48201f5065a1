package money_test

import (
	"strings"
	"testing"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/money"
)

func TestDurations(t *testing.T) {
	t.Parallel()
	for _, vector := range readVectors(t).ISODuration {
		if valid := money.ValidDuration(vector.Input); valid != vector.Valid {
			t.Errorf("%q is valid: %v", vector.Input, valid)
		}
		text, err := money.ParseDuration(vector.Input)
		if text != vector.Normalized || fault.Is(err, fault.InvalidDuration) == vector.Valid {
			t.Errorf("%q = %q, %v", vector.Input, text, err)
		}
	}
	for text, want := range map[string]bool{
		"P1DT12H": true, "PT1.5H": true, "P1Y2M": true, "PT1M2S": true, "2": false, "P1M1Y": false, "PT1S1H": false,
		"P1D\n": true, "P1D P1D": false, "P١D": false, "P1T": false, "PTT1H": false, "P1DT1": false, "P1.5.5D": false,
	} {
		if valid := money.ValidDuration(text); valid != want {
			t.Errorf("%q is valid: %v", text, valid)
		}
	}
}

func FuzzDuration(f *testing.F) {
	for _, seed := range []string{"P1D", "P1Y2M3DT4H5M6S", "P1,5W", "PT", "P1DT", " P1D ", "p1d", "-P1D"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		stored, err := money.ParseDuration(text)
		if (err == nil) != money.ValidDuration(text) {
			t.Fatalf("%q: %v", text, err)
		}
		if err != nil {
			return
		}
		if again, err := money.ParseDuration(stored); err != nil || again != stored {
			t.Fatalf("%q is stored as %q and read as %q, %v", text, stored, again, err)
		}
		if stored[0] != 'P' || strings.Trim(stored, "PYMWDTHS.,0123456789") != "" {
			t.Fatalf("%q is valid", stored)
		}
	})
}
