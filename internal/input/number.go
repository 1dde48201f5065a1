package input

import (
	"math/big"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
)

// maxDigits bounds whole numbers from outside: the largest uint256 has 78 digits.
const maxDigits = 78

type bounds struct {
	low, high int
	// refuse makes a number outside a problem; otherwise it is moved to the bound.
	refuse bool
}

// Clamp moves a number below low to low and one above high to high.
func (p Property) Clamp(low, high int) Property {
	p.bounds = &bounds{low: low, high: high}
	return p
}

// Range makes a number outside low..high a problem.
func (p Property) Range(low, high int) Property {
	p.bounds = &bounds{low: low, high: high, refuse: true}
	return p
}

// Int reads a whole number; absent is 0.
func (p Property) Int() int { return p.IntOr(0) }

// IntOr reads a whole number with a default, which Clamp and Range leave alone.
func (p Property) IntOr(standard int) int {
	if number := p.OptionalInt(); number != nil {
		return *number
	}
	return standard
}

// OptionalInt reads a whole number; absent is nil. Numbers with a fraction are
// cut toward zero; text may hold a sign and hexadecimal digits after 0x.
func (p Property) OptionalInt() *int {
	if len(p.candidates) == 0 {
		p.absentNumber()
		return nil
	}
	number, ok := wholeNumber(p.candidates[0])
	if !ok {
		p.wrongType("a whole number", "a number without quotes, for example 10")
		return nil
	}
	return p.withinBounds(number)
}

func (p Property) absentNumber() {
	if !p.required {
		return
	}
	hint := ""
	if p.bounds != nil {
		hint = p.bounds.text()
	}
	p.missing(hint)
}

func (p Property) withinBounds(number whole) *int {
	fits := !number.tooLarge && number.IsInt64()
	value := int(number.Int64())
	if p.bounds == nil {
		if !fits {
			p.fail(ReasonRange, "", "is too large")
			return nil
		}
		return &value
	}
	nearest := p.bounds.high
	switch {
	case fits:
		nearest = min(max(value, p.bounds.low), p.bounds.high)
	case number.Sign() < 0:
		nearest = p.bounds.low
	}
	if p.bounds.refuse && (!fits || value != nearest) {
		p.fail(ReasonRange, p.bounds.text(), "must lie in %s", p.bounds.text())
		return nil
	}
	return &nearest
}

func (b bounds) text() string { return strconv.Itoa(b.low) + ".." + strconv.Itoa(b.high) }

// whole is a whole number of at most maxDigits digits.
type whole struct {
	*big.Int
	// tooLarge tells of more digits; the number then has nothing but its sign.
	tooLarge bool
}

// wholeNumber reads a JSON number, cut toward zero, or integer text.
func wholeNumber(value gjson.Result) (whole, bool) {
	switch value.Type {
	case gjson.Number:
		return truncate(value.Raw), true
	case gjson.String:
		return integerText(clean(value.Str))
	default:
		return whole{}, false
	}
}

// integerText reads digits with a sign, or hexadecimal digits after 0x.
func integerText(text string) (whole, bool) {
	digits, negative := strings.CutPrefix(text, "-")
	if !negative {
		digits = strings.TrimPrefix(text, "+")
	}
	base, allowed := 10, "0123456789"
	if len(digits) > 2 && strings.EqualFold(digits[:2], "0x") {
		base, allowed, digits = 16, "0123456789abcdefABCDEF", digits[2:]
	}
	if digits == "" || strings.Trim(digits, allowed) != "" {
		return whole{}, false
	}
	return newWhole(negative, strings.TrimLeft(digits, "0"), base), true
}

// truncate cuts a JSON number toward zero, without going through a float.
func truncate(literal string) whole {
	unsigned, negative := strings.CutPrefix(literal, "-")
	digits, point := decompose(unsigned)
	switch {
	case digits == "" || point <= 0:
		digits = ""
	case point > maxDigits || point <= len(digits):
		digits = digits[:min(point, len(digits))]
	default:
		digits += strings.Repeat("0", point-len(digits))
	}
	number := newWhole(negative, digits, 10)
	number.tooLarge = digits != "" && point > maxDigits
	return number
}

// newWhole makes a number of digits without leading zeros.
func newWhole(negative bool, digits string, base int) whole {
	number := whole{Int: new(big.Int), tooLarge: len(digits) > maxDigits}
	if number.tooLarge {
		digits = digits[:1]
	}
	if digits != "" {
		number.SetString(digits, base)
	}
	if negative {
		number.Neg(number.Int)
	}
	return number
}

// decompose splits a JSON number without sign into its digits, zeros around them
// dropped, and the place of the decimal point counted from their start. Exponents
// beyond any use are cut to ±maxExponent.
func decompose(literal string) (digits string, point int) {
	const maxExponent = 1_000_000
	mantissa, exponent := literal, 0
	if place := strings.IndexAny(literal, "eE"); place >= 0 {
		mantissa = literal[:place]
		var err error
		if exponent, err = strconv.Atoi(literal[place+1:]); err != nil {
			exponent = maxExponent
			if literal[place+1] == '-' {
				exponent = -maxExponent
			}
		}
		exponent = min(max(exponent, -maxExponent), maxExponent)
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits = strings.TrimLeft(whole+fraction, "0")
	point = len(digits) - len(fraction) + exponent
	return strings.TrimRight(digits, "0"), point
}

// numberText is the text of a JSON number: integers as they stand, others as
// plain decimal text with at least one digit behind the point. A number outside
// 10^-7..10^21 keeps the exponent it was written with (spec 41 §4).
func numberText(literal string) string {
	if !strings.ContainsAny(literal, ".eE") {
		return literal
	}
	sign, unsigned := "", literal
	if rest, negative := strings.CutPrefix(literal, "-"); negative {
		sign, unsigned = "-", rest
	}
	digits, point := decompose(unsigned)
	switch {
	case digits == "":
		return sign + "0.0"
	case point < -5 || point > 21:
		return literal
	case point <= 0:
		return sign + "0." + strings.Repeat("0", -point) + digits
	case point >= len(digits):
		return sign + digits + strings.Repeat("0", point-len(digits)) + ".0"
	default:
		return sign + digits[:point] + "." + digits[point:]
	}
}
