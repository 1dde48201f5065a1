package input

import (
	"math/big"
	"strings"
	"testing"

	"hostr-daemon/internal/money"
)

func TestAmountVectors(t *testing.T) {
	t.Parallel()
	vectors := readVectors(t).AmountInputs
	if len(vectors) < 20 {
		t.Fatalf("there are %d vectors", len(vectors))
	}
	for _, vector := range vectors {
		r, p := property(string(vector.Input))
		amount := p.Amount()
		switch {
		case vector.Amount == nil:
			if amount != nil || r.Err() == nil || failure(t, r).Code != vector.Error || !strings.HasPrefix(failure(t, r).Path, "p") {
				t.Errorf("%s gave %v, %v instead of %s", vector.Input, amount, r.Err(), vector.Error)
			}
		case amount == nil || r.Err() != nil:
			t.Errorf("%s was refused: %v", vector.Input, r.Err())
		case amount.Denomination != vector.Amount.Denomination || amount.Decimals != vector.Amount.Decimals ||
			amount.Value.String() != vector.Amount.SmallestUnitValue ||
			money.FormatDecimal(amount.Value, amount.Decimals) != vector.Amount.Value:
			t.Errorf("%s gave %+v", vector.Input, amount)
		}
	}
}

// The table of spec 30 §8.1.
func TestAmount(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ value, smallest, problem string }{
		{`{"value":"1.2345678","currency":"USD"}`, "1234567 USD 6", ""},
		{`{"value":"7","currency":"EUR"}`, "700000000 EUR 8", ""},
		{`{"value":"50000","currency":"BTC","decimals":0}`, "50000 BTC 0", ""},
		{`{"value":12.50,"currency":"usd","decimals":"2"}`, "1250 USD 2", ""},
		{`{"value":"0","currency":"BTC","unit":" Satoshis "}`, "0 BTC 8", ""},
		{`{"value":" 21 ","currency":"btc","unit":"sats","decimals":3}`, "21 BTC 8", ""},
		{`{"value":5,"currency":"BTC","unit":"sats"}`, "5 BTC 8", ""},
		{`{"value":null,"amount":"3","currency":null,"denomination":"EUR"}`, "300000000 EUR 8", ""},
		{`{"value":"1","currency":"USD","unit":null,"decimals":null}`, "1000000 USD 6", ""},
		{`{"value":"1","currency":"USD","decimals":255}`, "1" + strings.Repeat("0", 255) + " USD 255", ""},
		{`{"value":"1","currency":" USD"}`, "100000000  USD 8", ""},
		{`null`, "", ""},
		{`true`, "", "invalid_amount p type"},
		{`"5 USD"`, "", "currency_required p type"},
		{`{"value":"5","currency":"  "}`, "", "currency_required p.currency missing"},
		{`{"value":"5","currency":["USD"]}`, "", "currency_required p.currency type"},
		{`{"value":5.0,"currency":"BTC","unit":"sats"}`, "", "invalid_amount p.value format"},
		{`{"value":"5","currency":"BTC","unit":"sats","amount":"6"}`, "5 BTC 8", ""},
		{`{"value":"+5","currency":"BTC","unit":"sats"}`, "", "invalid_amount p.value format"},
		{`{"value":"1e5","currency":"BTC"}`, "", "invalid_amount p.value format"},
		{`{"value":1e30,"currency":"BTC"}`, "", "invalid_amount p.value format"},
		{`{"value":"1,000","currency":"USD"}`, "", "invalid_amount p.value format"},
		{`{"value":[1],"currency":"USD"}`, "", "invalid_amount p.value type"},
		{`{"value":"1","currency":"USD","decimals":256}`, "", "invalid_amount p.decimals range"},
		{`{"value":"1","currency":"USD","decimals":"two"}`, "", "invalid_amount p.decimals type"},
		{`{"value":"1","currency":"USD","unit":{}}`, "", "invalid_amount p.unit type"},
		{`{"value":"` + strings.Repeat("9", 2_000_000) + `","currency":"USD"}`, "", "invalid_amount p.value format"},
		{`{"value":"` + strings.Repeat("9", 79) + `","currency":"BTC","unit":"sats"}`, "", "invalid_amount p.value format"},
	} {
		r, p := property(test.value)
		amount := p.Amount()
		if problemOf(r.Err()) != test.problem {
			t.Errorf("%.80s: the problem is %q", test.value, problemOf(r.Err()))
		}
		if amount != nil && r.Err() == nil && describe(*amount) != test.smallest || amount == nil && test.smallest != "" {
			t.Errorf("%.80s gave %v", test.value, amount)
		}
	}
}

func TestAllProblemsOfAnAmount(t *testing.T) {
	t.Parallel()
	r, p := property(`{"decimals":-1}`)
	if p.Amount(); allPaths(r.Err()) != "p.currency p.decimals" {
		t.Errorf("the problems stand at %q", allPaths(r.Err()))
	}
}

func TestPrices(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ raw, want, problem string }{
		{`{"prices":[{"amount":{"value":"100000","currency":"BTC","unit":"sats"},"frequency":"night"}]}`, "100000 BTC 8 daily", ""},
		{`{"prices":{"amount":{"value":"5","currency":"USD"}}}`, "5000000 USD 6 daily", ""},
		{`{"prices":[{"value":"5","currency":"USD","frequency":" Weekly "}]}`, "5000000 USD 6 weekly", ""},
		{`{"price":50}`, "50000000 USD 6 daily", ""},
		{`{"prices":[],"price":"12.5"}`, "12500000 USD 6 daily", ""},
		{`{"prices":[null,"50",{"value":"1","currency":"USD","frequency":"fixed"}]}`, "50000000 USD 6 daily;1000000 USD 6 ", ""},
		{`{"prices":[{"amount":null,"value":"2","currency":"USD"}]}`, "2000000 USD 6 daily", ""},
		{`{}`, "", "price_required prices missing"},
		{`{"prices":[]}`, "", "price_required prices missing"},
		{`{"prices":[null]}`, "", "price_required prices missing"},
		{`{"prices":null,"price":null}`, "", "price_required prices missing"},
		{`{"prices":[true]}`, "", "invalid_price prices[0] type"},
		{`{"prices":[[5]]}`, "", "invalid_price prices[0] type"},
		{`{"prices":["fifty"]}`, "", "invalid_amount prices[0] format"},
		{`{"prices":[""]}`, "", "invalid_amount prices[0] missing"},
		{`{"prices":[{"amount":"50","currency":"USD"}]}`, "", "currency_required prices[0].amount type"},
		{`{"prices":[{"amount":{"value":"50"}}]}`, "", "currency_required prices[0].amount.currency missing"},
		{`{"prices":[{"amount":{"currency":"USD"}}]}`, "", "amount_required prices[0].amount.value missing"},
		{`{"prices":[5,{"amount":{"value":"x","currency":"USD"}}]}`, "5000000 USD 6 daily", "invalid_amount prices[1].amount.value format"},
		{`{"prices":[{"value":"x","currency":"USD"}]}`, "", "invalid_amount prices[0].value format"},
		{`{"prices":[{"frequency":"daily"}]}`, "", "currency_required prices[0].currency missing"},
		{`{"prices":[{"value":"1","currency":"USD","frequency":"hourly"}]}`, "", "invalid_frequency prices[0].frequency enum"},
		{`{"prices":[{"value":"1","currency":"USD","frequency":["daily"]}]}`, "", "invalid_frequency prices[0].frequency type"},
	} {
		r := NewReader([]byte(test.raw))
		var got []string
		for _, price := range r.Property("prices", "price").Required().Prices() {
			got = append(got, describe(price.Amount)+" "+string(price.Frequency))
		}
		if strings.Join(got, ";") != test.want || problemOf(r.Err()) != test.problem {
			t.Errorf("%s gave %q, %q", test.raw, got, problemOf(r.Err()))
		}
	}
}

func TestFrequencyVectors(t *testing.T) {
	t.Parallel()
	vectors := readVectors(t).Frequencies
	if len(vectors) < 15 {
		t.Fatalf("there are %d vectors", len(vectors))
	}
	for _, vector := range vectors {
		r := NewReader([]byte(`{"prices":[{"value":"1","currency":"USD","frequency":` + string(vector.Input) + `}]}`))
		prices := r.Property("prices").Prices()
		switch {
		case vector.Error != "":
			if r.Err() == nil || failure(t, r).Code != vector.Error {
				t.Errorf("%s gave %v", vector.Input, r.Err())
			}
		case r.Err() != nil || string(prices[0].Frequency) != vector.Frequency:
			t.Errorf("%s gave %v, %v", vector.Input, prices, r.Err())
		}
	}
}

func TestFee(t *testing.T) {
	t.Parallel()
	r, p := property(`{"ppm":"10000","base":1.9,"max":"115792089237316195423570985008687907853269984665640564039457584007913129639935",
		"assetOverrides":{"native":{"ppm":5},"  ":7,"0xAb":{"min":"9","assetOverrides":{"x":{}}},"gone":null}}`)
	fee := p.Fee()
	if r.Err() != nil {
		t.Fatal(r.Err())
	}
	largest := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 256), big.NewInt(1))
	if fee.PPM != 10000 || fee.Base.String() != "1" || fee.Min.Sign() != 0 || fee.Max.Cmp(largest) != 0 {
		t.Errorf("the fee is %+v", fee)
	}
	if len(fee.Overrides) != 2 || fee.Overrides[0].Asset != "native" || fee.Overrides[0].Fee.PPM != 5 ||
		fee.Overrides[1].Asset != "0xAb" || fee.Overrides[1].Fee.Min.String() != "9" || fee.Overrides[1].Fee.Overrides[0].Asset != "x" {
		t.Errorf("the overrides are %+v", fee.Overrides)
	}
	if _, absent := property(`null`); absent.Fee() != nil {
		t.Error("an absent fee has a value")
	}
}

func TestFeeRefuses(t *testing.T) {
	t.Parallel()
	nested := strings.Repeat(`{"assetOverrides":{"x":`, 50) + `{}` + strings.Repeat(`}}`, 50)
	for value, problem := range map[string]string{
		`"100"`:                           "invalid_input p type",
		`[]`:                              "invalid_input p type",
		`{"ppm":-1}`:                      "invalid_input p.ppm range",
		`{"ppm":"ten"}`:                   "invalid_input p.ppm type",
		`{"ppm":1e20}`:                    "invalid_input p.ppm range",
		`{"base":"-5"}`:                   "invalid_input p.base range",
		`{"min":"0x10"}`:                  "invalid_input p.min type",
		`{"max":"1.5"}`:                   "invalid_input p.max type",
		`{"max":[]}`:                      "invalid_input p.max type",
		`{"max":1e78}`:                    "invalid_input p.max range",
		`{"max":1e999}`:                   "invalid_input p.max range",
		`{"assetOverrides":[]}`:           "invalid_input p.assetOverrides type",
		`{"assetOverrides":{"native":5}}`: `invalid_input p.assetOverrides["native"] type`,
		`{"assetOverrides":{"native":{"ppm":-1}}}`: `invalid_input p.assetOverrides["native"].ppm range`,
	} {
		r, p := property(value)
		if p.Fee(); problemOf(r.Err()) != problem {
			t.Errorf("%s is %q", value, problemOf(r.Err()))
		}
	}
	r, p := property(nested)
	if p.Fee(); r.Err() == nil || failure(t, r).Details.(Details).Reason != ReasonFormat {
		t.Errorf("a deeply nested fee gave %v", r.Err())
	}
}

func describe(amount money.Amount) string {
	return strings.Join([]string{amount.Value.String(), amount.Denomination, big.NewInt(int64(amount.Decimals)).String()}, " ")
}
