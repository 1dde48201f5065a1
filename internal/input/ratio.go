package input

import (
	"errors"
	"math/big"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
)

// Ratio is a share from 0 to 1. Its JSON is a number.
type Ratio float64

// Text is the shortest decimal text of the share, without exponent.
func (r Ratio) Text() string { return strconv.FormatFloat(float64(r), 'f', -1, 64) }

// Rat is the share as written, exact for up to 15 digits: 0.29 is 29/100.
func (r Ratio) Rat() *big.Rat {
	// The text of a float that is no infinity always is a rational number.
	exact, _ := new(big.Rat).SetString(r.Text())
	return exact
}

// Ratio reads a number from 0 to 1, or text that holds one; absent is 0.
func (p Property) Ratio() Ratio {
	const hint = "a number from 0 to 1, for example 0.5"
	if len(p.candidates) == 0 {
		if p.required {
			p.missing(hint)
		}
		return 0
	}
	number, ok := float(p.candidates[0])
	switch {
	case !ok:
		p.wrongType("a number from 0 to 1", hint)
		return 0
	case !(number >= 0 && number <= 1):
		p.fail(ReasonRange, hint, "must be a number from 0 to 1")
		return 0
	}
	// Adding 0 turns a negative zero into a plain one.
	return Ratio(number + 0)
}

// float reads a JSON number or decimal text. Text may not be one of the words and
// forms that only Go or Dart know as numbers.
func float(value gjson.Result) (float64, bool) {
	text := value.Raw
	if value.Type == gjson.String {
		text = clean(value.Str)
	}
	isNumber := value.Type == gjson.Number || value.Type == gjson.String
	if !isNumber || len(text) > 400 || strings.Trim(text, "0123456789.eE+-") != "" {
		return 0, false
	}
	// Beyond the range of floats the number is infinite, which is no ratio either.
	number, err := strconv.ParseFloat(text, 64)
	return number, err == nil || errors.Is(err, strconv.ErrRange)
}
