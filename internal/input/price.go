package input

import (
	"github.com/tidwall/gjson"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/money"
)

const priceHint = `{"amount":{"value":"50","currency":"USD"},"frequency":"daily"}`

// Prices reads a list of prices, or one of them (spec 30 §9.1). An item is an
// object with an amount inside or flat beside its frequency. A bare number or
// text is that many US dollars per day. Null items are dropped; none left is
// price_required.
func (p Property) Prices() []money.Price { return p.prices(Property.dollars) }

// prices reads items that are no object with bare.
func (p Property) prices(bare func(item Property) (money.Price, bool)) []money.Price {
	var prices []money.Price
	any := false
	for _, candidate := range p.candidates {
		for index, value := range elements(candidate) {
			if value.Type == gjson.Null {
				continue
			}
			any = true
			item, read := p.item(index, value), bare
			if value.IsObject() {
				read = Property.priceObject
			}
			if price, ok := read(item); ok {
				prices = append(prices, price)
			}
		}
		if any {
			return prices
		}
	}
	p.as(fault.PriceRequired).fail(ReasonMissing, priceHint, "is required: at least one price")
	return nil
}

func (p Property) priceObject() (money.Price, bool) {
	reader := p.reader.nested(p.candidates[0], p.path)
	var amount money.Amount
	var amountOK bool
	if nested := reader.Property("amount"); len(nested.candidates) > 0 {
		amount, amountOK = nested.amountOf(nested.candidates[0])
	} else {
		amount, amountOK = readAmount(reader)
	}
	frequency, frequencyOK := reader.Property("frequency").as(fault.InvalidFrequency).frequency()
	return money.Price{Amount: amount, Frequency: frequency}, amountOK && frequencyOK
}

func (p Property) frequency() (money.Frequency, bool) {
	text, ok := p.text()
	if !ok {
		return money.OneTime, false
	}
	frequency, err := money.ParseFrequency(text)
	if err != nil {
		const words = "daily, weekly, monthly, yearly, fixed"
		p.fail(ReasonEnum, words, "must be one of: %s", words)
		return money.OneTime, false
	}
	return frequency, true
}

// dollars reads a bare number or text as US dollars per day.
func (p Property) dollars() (money.Price, bool) {
	const currency = "USD"
	if kind := p.candidates[0].Type; kind != gjson.Number && kind != gjson.String {
		return p.noPrice()
	}
	p = p.as(fault.InvalidAmount)
	if !p.Given() {
		p.missing(priceHint)
		return money.Price{}, false
	}
	decimals := money.StandardDecimals(currency)
	value, ok := p.decimal(decimals)
	amount := money.Amount{Denomination: currency, Value: value, Decimals: decimals}
	return money.Price{Amount: amount, Frequency: money.Daily}, ok
}

// noPrice refuses a price that is no object.
func (p Property) noPrice() (money.Price, bool) {
	p.as(fault.InvalidPrice).wrongType("a price object", priceHint)
	return money.Price{}, false
}
