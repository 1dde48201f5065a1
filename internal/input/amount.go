package input

import (
	"math/big"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/money"
)

const amountHint = `{"value":"0.001","currency":"BTC"}`

// Amount reads an amount object (spec 30 §8.1, 41 §4); absent is nil. Its problems
// have the codes currency_required, amount_required and invalid_amount.
func (p Property) Amount() *money.Amount {
	if len(p.candidates) == 0 {
		if p.required {
			p.as(fault.AmountRequired).missing(amountHint)
		}
		return nil
	}
	amount, ok := p.amountOf(p.candidates[0])
	if !ok {
		return nil
	}
	return &amount
}

func (p Property) amountOf(value gjson.Result) (money.Amount, bool) {
	switch {
	case value.IsObject():
		return readAmount(p.reader.nested(value, p.path))
	case value.Type == gjson.Number || value.Type == gjson.String:
		p.as(fault.CurrencyRequired).fail(ReasonType, amountHint, "must be an object that names its currency")
	default:
		p.as(fault.InvalidAmount).wrongType("an object", amountHint)
	}
	return money.Amount{}, false
}

// readAmount reads value, currency, unit and decimals of an amount object.
func readAmount(r *Reader) (money.Amount, bool) {
	currency := r.Property("currency", "denomination").currency()
	value := r.Property("value", "amount").as(fault.InvalidAmount)
	unit := strings.ToLower(r.Property("unit").as(fault.InvalidAmount).Text())
	if currency == "BTC" && (unit == "sat" || unit == "sats" || unit == "satoshis") {
		sats, ok := value.satoshis()
		return money.Amount{Denomination: currency, Value: sats, Decimals: money.StandardDecimals(currency)}, ok
	}
	decimals, ok := r.Property("decimals").decimals(money.StandardDecimals(currency))
	if !ok {
		return money.Amount{}, false
	}
	smallest, ok := value.decimal(decimals)
	return money.Amount{Denomination: currency, Value: smallest, Decimals: decimals}, ok && currency != ""
}

// currency reads a currency code: upper-cased, not trimmed (spec 41 §4).
func (p Property) currency() string {
	p = p.as(fault.CurrencyRequired)
	const hint = "a currency code such as USD or BTC"
	if !p.Given() {
		p.missing(hint)
		return ""
	}
	value := p.candidates[0]
	text, ok := textOf(value)
	if !ok {
		p.wrongType("text", hint)
		return ""
	}
	if value.Type == gjson.String {
		text = replaceBadBytes(value.Str)
	}
	return strings.ToUpper(text)
}

// decimals reads the number of decimals; ok is false after a problem.
func (p Property) decimals(standard int) (int, bool) {
	if len(p.candidates) == 0 {
		return standard, true
	}
	decimals := p.as(fault.InvalidAmount).Range(0, money.MaxDecimals).OptionalInt()
	if decimals == nil {
		return 0, false
	}
	return *decimals, true
}

// decimal reads a decimal number as smallest units.
func (p Property) decimal(decimals int) (*big.Int, bool) {
	text, ok := p.figure()
	if !ok {
		return nil, false
	}
	smallest, err := money.ParseDecimal(text, decimals)
	if err != nil {
		p.fail(ReasonFormat, "digits with at most one point, for example 12.50", "must be a decimal number, without exponent or separators")
		return nil, false
	}
	return smallest, true
}

// satoshis reads a whole number of satoshis.
func (p Property) satoshis() (*big.Int, bool) {
	text, ok := p.figure()
	if !ok {
		return nil, false
	}
	digits := strings.TrimPrefix(text, "-")
	if len(digits) == 0 || len(digits) > maxDigits || strings.Trim(digits, "0123456789") != "" {
		p.fail(ReasonFormat, "digits only, for example 100000", "must be a whole number of satoshis")
		return nil, false
	}
	sats, _ := new(big.Int).SetString(text, 10)
	return sats, true
}

// figure reads the text of an amount's value, which may be blank.
func (p Property) figure() (string, bool) {
	if len(p.candidates) == 0 {
		p.as(fault.AmountRequired).missing("decimal text, for example " + strconv.Quote("12.50"))
		return "", false
	}
	text, ok := textOf(p.candidates[0])
	if !ok {
		p.wrongType("decimal text", "")
	}
	return text, ok
}
