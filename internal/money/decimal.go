package money

import (
	"math/big"
	"strconv"
	"strings"

	"hostr-daemon/internal/fault"
)

// MaxDecimals is the largest number of decimals an amount may have (spec 41 §2).
const MaxDecimals = 255

// maxDigits bounds the digits of an integer that comes from outside. A uint256
// has 78; the bound only keeps a stranger's text from costing real time.
const maxDigits = 1000

// ParseDecimal reads decimal text as smallest units (spec 41 §1): 0.005 at 8
// decimals is 500000. White space around the text is ignored, blank text is 0,
// a longer fraction is cut, never rounded. Anything else but digits with one
// leading minus and one point, more than 1000 digits before the point, and
// decimals outside 0..255 are invalid_amount.
func ParseDecimal(text string, decimals int) (*big.Int, error) {
	if err := checkDecimals(decimals); err != nil {
		return nil, err
	}
	unsigned := strings.TrimSpace(text)
	if unsigned == "" {
		return new(big.Int), nil
	}
	unsigned, negative := strings.CutPrefix(unsigned, "-")
	whole, fraction, _ := strings.Cut(unsigned, ".")
	if len(whole)+len(fraction) == 0 || !allDigits(whole) || !allDigits(fraction) {
		return nil, fault.New(fault.InvalidAmount, "%.40q is not a decimal number", text).
			WithHint("digits with at most one point, for example 12.50")
	}
	if len(whole) > maxDigits {
		return nil, fault.New(fault.InvalidAmount, "a number of %d digits is too long", len(whole))
	}
	value := scaleDigits(whole, fraction, decimals)
	if negative {
		value.Neg(value)
	}
	return value, nil
}

// FormatDecimal writes smallest units as decimal text with all fractional
// digits (spec 41 §1). Quirk that hashed content relies on: with 0 decimals the
// text still ends in .0. For decimals outside 0..255, which no reader lets in,
// the text has an exponent, which no reader takes.
func FormatDecimal(v *big.Int, decimals int) string {
	return FormatDecimalAtMost(v, decimals, MaxDecimals)
}

// FormatDecimalAtMost is FormatDecimal with the fraction cut, not rounded, to
// at most maxDecimals digits; at 0 the point goes as well.
func FormatDecimalAtMost(v *big.Int, decimals, maxDecimals int) string {
	if v == nil {
		v = new(big.Int)
	}
	if checkDecimals(decimals) != nil {
		return v.String() + "e" + strconv.Itoa(-decimals)
	}
	digits := v.Append(make([]byte, 0, 32), 10)
	sign := ""
	if v.Sign() < 0 {
		sign, digits = "-", digits[1:]
	}
	if missing := decimals + 1 - len(digits); missing > 0 {
		digits = append([]byte(strings.Repeat("0", missing)), digits...)
	}
	whole, fraction := digits[:len(digits)-decimals], digits[len(digits)-decimals:]
	if decimals == 0 {
		fraction = []byte("0")
	}
	if maxDecimals < decimals {
		fraction = fraction[:max(maxDecimals, 0)]
	}
	if len(fraction) == 0 {
		return sign + string(whole)
	}
	return sign + string(whole) + "." + string(fraction)
}

// StandardDecimals is the number of decimals of a denomination whose amount
// does not carry them (spec 41 §2). The case of the letters matters.
func StandardDecimals(denomination string) int {
	switch denomination {
	case "USD":
		return 6
	case "ETH":
		return 18
	default:
		return 8
	}
}

// parseInteger reads digits with at most one leading minus.
func parseInteger(text string) (*big.Int, error) {
	digits, negative := strings.CutPrefix(text, "-")
	if digits == "" || !allDigits(digits) || len(digits) > maxDigits {
		return nil, fault.New(fault.InvalidAmount, "%.40q is not a whole number of at most %d digits", text, maxDigits)
	}
	value := scaleDigits(digits, "", 0)
	if negative {
		value.Neg(value)
	}
	return value, nil
}

func checkDecimals(decimals int) error {
	if decimals < 0 || decimals > MaxDecimals {
		return fault.New(fault.InvalidAmount, "%d decimals are outside 0..%d", decimals, MaxDecimals)
	}
	return nil
}

func allDigits(text string) bool {
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return false
		}
	}
	return true
}

// scaleDigits returns whole.fraction × 10^decimals of checked digits.
func scaleDigits(whole, fraction string, decimals int) *big.Int {
	fraction = fraction[:min(len(fraction), decimals)]
	if len(whole)+decimals <= 18 {
		var small int64
		for _, part := range [...]string{whole, fraction} {
			for i := range len(part) {
				small = small*10 + int64(part[i]-'0')
			}
		}
		for range decimals - len(fraction) {
			small *= 10
		}
		return big.NewInt(small)
	}
	value, _ := new(big.Int).SetString("0"+whole+fraction, 10)
	return value.Mul(value, powerOfTen(decimals-len(fraction)))
}

// powerOfTen returns 10^exponent for an exponent of 0 or more.
func powerOfTen(exponent int) *big.Int {
	return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(exponent)), nil)
}
