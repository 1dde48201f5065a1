package money_test

import (
	"encoding/json"
	"math/big"
	"testing"
	"time"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/money"
)

func TestParseFrequency(t *testing.T) {
	t.Parallel()
	for _, vector := range readVectors(t).Frequencies {
		frequency, err := money.ParseFrequency(vector.Input)
		if vector.Error != "" {
			if !fault.Is(err, fault.Code(vector.Error)) || fault.From(err).Path != "frequency" {
				t.Errorf("%q = %q, %v, want %s", vector.Input, frequency, err, vector.Error)
			}
			continue
		}
		if err != nil || string(frequency) != vector.Frequency {
			t.Errorf("%q = %q, %v, want %q", vector.Input, frequency, err, vector.Frequency)
		}
	}
}

func TestFrequencySpellings(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		frequency money.Frequency
		noun      string
		duration  string
		recurring bool
	}{
		{money.OneTime, "", "", false},
		{money.Daily, "day", "P1D", true},
		{money.Weekly, "week", "P1W", true},
		{money.Monthly, "month", "P1M", true},
		{money.Yearly, "year", "P1Y", true},
	} {
		f := test.frequency
		if f.Noun() != test.noun || f.DefaultMinDuration() != test.duration || f.Recurring() != test.recurring {
			t.Errorf("%q: %q, %q, %v", f, f.Noun(), f.DefaultMinDuration(), f.Recurring())
		}
		if back := money.FrequencyOfNoun(test.noun); back != f {
			t.Errorf("%q reads as %q", test.noun, back)
		}
	}
	for _, noun := range []string{"Day", "daily", "night", "hour", " day"} {
		if f := money.FrequencyOfNoun(noun); f != money.OneTime {
			t.Errorf("%q reads as %q", noun, f)
		}
	}
}

func TestPriceJSON(t *testing.T) {
	t.Parallel()
	price := money.Price{Amount: money.Satoshis(100_000), Frequency: money.Daily}
	for want, value := range map[string]any{
		`{"amount":{"value":"0.00100000","denomination":"BTC","decimals":8},"frequency":"daily"}`:                              price,
		`{"amount":{"value":"0.00000001","denomination":"BTC","decimals":8}}`:                                                  money.Price{Amount: money.Satoshis(1)},
		`{"amount":{"value":"0.00100000","smallestUnitValue":"100000","denomination":"BTC","decimals":8},"frequency":"daily"}`: price.Result(),
	} {
		data, err := json.Marshal(value)
		if err != nil || string(data) != want {
			t.Errorf("%s, %v, want %s", data, err, want)
		}
	}
}

func TestCost(t *testing.T) {
	t.Parallel()
	for _, vector := range readVectors(t).Cost {
		var prices []money.Price
		for _, entry := range vector.Prices {
			value, ok := new(big.Int).SetString(entry[0], 10)
			if !ok {
				t.Fatalf("price %q", entry[0])
			}
			prices = append(prices, money.Price{
				Amount:    money.Amount{Denomination: "BTC", Value: value, Decimals: 8},
				Frequency: money.Frequency(entry[1]),
			})
		}
		cost, err := money.Cost(prices, vector.Start, vector.End, vector.Quantity)
		if err != nil || cost.Value.String() != vector.Cost {
			t.Errorf("%v from %s to %s = %v, %v, want %s", vector.Prices, vector.Start, vector.End, cost, err, vector.Cost)
		}
	}
}

func TestCostOfOddStays(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)
	daily := money.Price{Amount: money.Satoshis(100), Frequency: money.Daily}
	at := func(end time.Time) *time.Time { return &end }
	dollars := money.Price{Amount: money.Amount{Denomination: "USD", Value: money.Satoshis(300).Value, Decimals: 6}}
	if _, err := money.Cost(nil, &start, &start, 1); err == nil {
		t.Error("a stay without price has a cost")
	}
	for name, test := range map[string]struct {
		prices []money.Price
		end    *time.Time
		want   string
	}{
		"first of equal prices":       {[]money.Price{dollars, daily}, at(start.AddDate(0, 0, 3)), "0.000300 USD"},
		"denominations not compared":  {[]money.Price{daily, dollars}, at(start.AddDate(0, 0, 4)), "0.000300 USD"},
		"a second short of a day":     {[]money.Price{daily}, at(start.Add(24*time.Hour - time.Second)), "0.00000000 BTC"},
		"a microsecond short":         {[]money.Price{daily}, at(start.Add(48*time.Hour - time.Microsecond)), "0.00000100 BTC"},
		"a thousand years":            {[]money.Price{daily}, at(start.AddDate(1000, 0, 0)), "0.36524200 BTC"},
		"one date is none":            {[]money.Price{daily, dollars}, nil, "0.000300 USD"},
		"the first day of all is one": {[]money.Price{daily}, at(time.Time{}), "0.73964700 BTC"},
	} {
		cost, err := money.Cost(test.prices, &start, test.end, 1)
		if err != nil || cost.String() != test.want {
			t.Errorf("%s: %s, %v, want %s", name, cost, err, test.want)
		}
	}
	if daily.Amount.Value.Int64() != 100 {
		t.Error("computing a cost changed the price")
	}
}
