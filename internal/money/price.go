package money

import (
	"strings"

	"hostr-daemon/internal/fault"
)

// Price is what a stay costs per period, or once (spec 41 §5). Its JSON is the
// stored form; PriceResult is what results show.
type Price struct {
	Amount    Amount    `json:"amount"`
	Frequency Frequency `json:"frequency,omitempty"`
}

// PriceResult is a price as results of actions show it (spec 40 §7.1).
type PriceResult struct {
	Amount    AmountResult `json:"amount"`
	Frequency Frequency    `json:"frequency,omitempty"`
}

// Result returns the form that results of actions show.
func (p Price) Result() PriceResult {
	return PriceResult{Amount: p.Amount.Result(), Frequency: p.Frequency}
}

// Frequency tells per what period a price is meant, in the words of results and
// stored JSON. Price tags and inputs have words of their own (spec 41 §5).
type Frequency string

// The frequencies. OneTime is no period at all, a fixed price.
const (
	OneTime Frequency = ""
	Daily   Frequency = "daily"
	Weekly  Frequency = "weekly"
	Monthly Frequency = "monthly"
	Yearly  Frequency = "yearly"
)

type period struct {
	frequency       Frequency
	tagNoun         string
	days            int64
	defaultDuration string
	inputWords      []string
}

var periods = []period{
	{Daily, "day", 1, "P1D", []string{"", "daily", "day", "night", "nightly"}},
	{Weekly, "week", 7, "P1W", []string{"weekly", "week"}},
	{Monthly, "month", 30, "P1M", []string{"monthly", "month"}},
	{Yearly, "year", 365, "P1Y", []string{"yearly", "year"}},
	{frequency: OneTime, inputWords: []string{"fixed", "once", "one_time"}},
}

// ParseFrequency reads the words of an input in any case (spec 41 §5); blank is
// daily. An unknown word is invalid_frequency.
func ParseFrequency(text string) (Frequency, error) {
	word := strings.ToLower(strings.TrimSpace(text))
	for _, p := range periods {
		for _, known := range p.inputWords {
			if word == known {
				return p.frequency, nil
			}
		}
	}
	return OneTime, fault.New(fault.InvalidFrequency, "%.40q is not a price frequency", text).
		At("frequency").
		WithHint("daily, weekly, monthly, yearly, or fixed for a one-time price")
}

// FrequencyOfNoun reads the fourth element of a price tag: day, week, month or
// year, exactly so. Anything else means one-time (spec 41 §5).
func FrequencyOfNoun(noun string) Frequency {
	for _, p := range periods {
		if p.tagNoun == noun {
			return p.frequency
		}
	}
	return OneTime
}

// Noun returns the fourth element of a price tag; empty when there is none.
func (f Frequency) Noun() string { return f.period().tagNoun }

// Recurring reports whether the price is charged per period.
func (f Frequency) Recurring() bool { return f.period().days > 0 }

// DefaultMinDuration returns the ISO 8601 duration of one period, the shortest
// stay where the host names none; empty for a one-time price (spec 41 §8).
func (f Frequency) DefaultMinDuration() string { return f.period().defaultDuration }

func (f Frequency) period() period {
	for _, p := range periods {
		if p.frequency == f {
			return p
		}
	}
	return period{}
}
