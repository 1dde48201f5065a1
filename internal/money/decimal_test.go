package money_test

import (
	"math/big"
	"strings"
	"testing"
	"testing/quick"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/money"
)

func TestParseDecimal(t *testing.T) {
	t.Parallel()
	for _, vector := range readVectors(t).DecimalParse {
		value, err := money.ParseDecimal(vector.Input, vector.Decimals)
		if err != nil {
			t.Errorf("%q at %d: %v", vector.Input, vector.Decimals, err)
			continue
		}
		if value.String() != vector.Smallest {
			t.Errorf("%q at %d = %s, want %s", vector.Input, vector.Decimals, value, vector.Smallest)
		}
		if text := money.FormatDecimal(value, vector.Decimals); text != vector.Formatted {
			t.Errorf("%q at %d prints %s, want %s", vector.Input, vector.Decimals, text, vector.Formatted)
		}
	}
}

func TestParseDecimalRefuses(t *testing.T) {
	t.Parallel()
	for _, vector := range readVectors(t).DecimalParseErrors {
		if value, err := money.ParseDecimal(vector.Input, vector.Decimals); !fault.Is(err, fault.InvalidAmount) {
			t.Errorf("%q at %d = %v, %v, want invalid_amount", vector.Input, vector.Decimals, value, err)
		}
	}
	for text, decimals := range map[string]int{
		"1":                         256,
		"2":                         -1,
		"3":                         999_999_999,
		"١":                         8,
		"1.5\x00":                   8,
		"- 5":                       8,
		"1 .5":                      8,
		strings.Repeat("9", 1001):   8,
		"0." + "1" + "e" + "999999": 8,
	} {
		if value, err := money.ParseDecimal(text, decimals); !fault.Is(err, fault.InvalidAmount) {
			t.Errorf("%.20q at %d = %v, %v, want invalid_amount", text, decimals, value, err)
		}
	}
}

func TestParseDecimalLargeFigures(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		text     string
		decimals int
		want     string
	}{
		{"9999999999.99999999", 8, "999999999999999999"},
		{"99999999999.99999999", 8, "9999999999999999999"},
		{"115792089237316195423570985008687907853269984665640564039457584007913129639935", 0,
			"115792089237316195423570985008687907853269984665640564039457584007913129639935"},
		{"-1", 255, "-1" + strings.Repeat("0", 255)},
		{strings.Repeat("9", 1000), 0, strings.Repeat("9", 1000)},
		{"0." + strings.Repeat("1", 100_000), 2, "11"},
	} {
		value, err := money.ParseDecimal(test.text, test.decimals)
		if err != nil || value.String() != test.want {
			t.Errorf("%.30q at %d = %v, %v, want %.30s", test.text, test.decimals, value, err, test.want)
		}
	}
}

func TestFormatDecimal(t *testing.T) {
	t.Parallel()
	for _, vector := range readVectors(t).DecimalFormat {
		value, _ := new(big.Int).SetString(vector.Smallest, 10)
		text := money.FormatDecimal(value, vector.Decimals)
		if vector.MaxDecimals != nil {
			text = money.FormatDecimalAtMost(value, vector.Decimals, *vector.MaxDecimals)
		}
		if text != vector.Out {
			t.Errorf("%s at %d, at most %v = %s, want %s",
				vector.Smallest, vector.Decimals, vector.MaxDecimals, text, vector.Out)
		}
	}
	if text := money.FormatDecimal(nil, 2); text != "0.00" {
		t.Errorf("nil = %s, want 0.00", text)
	}
}

// Decimals that no reader lets in must neither eat memory nor print a wrong
// figure.
func TestFormatDecimalOutOfRange(t *testing.T) {
	t.Parallel()
	for _, decimals := range []int{-1, 256, 999_999_999} {
		text := money.FormatDecimal(big.NewInt(7), decimals)
		if len(text) > 20 {
			t.Errorf("7 at %d prints %d characters", decimals, len(text))
		}
		if value, err := money.ParseDecimal(text, 8); err == nil {
			t.Errorf("7 at %d prints %q, which reads as %s", decimals, text, value)
		}
	}
}

func TestDecimalRoundTrip(t *testing.T) {
	t.Parallel()
	roundTrip := func(magnitude []byte, negative bool, decimals uint8) bool {
		value := new(big.Int).SetBytes(magnitude)
		if negative {
			value.Neg(value)
		}
		read, err := money.ParseDecimal(money.FormatDecimal(value, int(decimals)), int(decimals))
		return err == nil && read.Cmp(value) == 0
	}
	if err := quick.Check(roundTrip, &quick.Config{MaxCount: 5000}); err != nil {
		t.Error(err)
	}
}

func TestDecimalKeepsOrder(t *testing.T) {
	t.Parallel()
	ordered := func(a, b int64, decimals uint8) bool {
		small, _ := money.ParseDecimal(money.FormatDecimal(big.NewInt(min(a, b)), int(decimals)), int(decimals))
		great, _ := money.ParseDecimal(money.FormatDecimal(big.NewInt(max(a, b)), int(decimals)), int(decimals))
		return small.Cmp(great) == big.NewInt(min(a, b)).Cmp(big.NewInt(max(a, b)))
	}
	if err := quick.Check(ordered, nil); err != nil {
		t.Error(err)
	}
}

func TestStandardDecimals(t *testing.T) {
	t.Parallel()
	for denomination, want := range map[string]int{
		"BTC": 8, "USD": 6, "ETH": 18, "EUR": 8, "usd": 8, "": 8,
	} {
		if got := money.StandardDecimals(denomination); got != want {
			t.Errorf("%q has %d decimals, want %d", denomination, got, want)
		}
	}
}

func FuzzParseDecimal(f *testing.F) {
	for _, seed := range []string{"0.005", "-0.25", "", " 12.30 ", ".5", "5.", "1e5", "1.2.3", "--5", "0x10", "-", "."} {
		f.Add(seed, 8)
	}
	f.Add("7.9", 0)
	f.Add("1", 255)
	f.Add("1", 999_999_999)
	f.Fuzz(func(t *testing.T, text string, decimals int) {
		value, err := money.ParseDecimal(text, decimals)
		if err != nil {
			if !fault.Is(err, fault.InvalidAmount) {
				t.Fatalf("%q: %v is not invalid_amount", text, err)
			}
			return
		}
		again, err := money.ParseDecimal(money.FormatDecimal(value, decimals), decimals)
		if err != nil || again.Cmp(value) != 0 {
			t.Fatalf("%q at %d reads as %s, printed and read again %v, %v", text, decimals, value, again, err)
		}
	})
}

func BenchmarkParseDecimal(b *testing.B) {
	for b.Loop() {
		if _, err := money.ParseDecimal("0.00100000", 8); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkFormatDecimal(b *testing.B) {
	value := big.NewInt(100_000)
	for b.Loop() {
		money.FormatDecimal(value, 8)
	}
}
