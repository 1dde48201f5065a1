package money

import (
	"errors"
	"time"
)

// Cost returns what a stay costs (spec 41 §6): the cheapest of all prices, in
// that price's denomination. Dates may be nil; recurring prices do not count then.
// Quantity multiplies one-time prices only. Without any price it is an error.
//
// Partial periods are free and denominations are not compared. Guest, host and
// escrow must all compute this same figure, so neither is mended here.
func Cost(prices []Price, start, end *time.Time, quantity int64) (Amount, error) {
	if len(prices) == 0 {
		return Amount{}, errors.New("a stay without any price has no cost")
	}
	dated := start != nil && end != nil
	var cheapest *Amount
	for _, price := range prices {
		cost := price.Amount.Mul(quantity)
		if period := price.Frequency.period(); period.days > 0 {
			if !dated {
				continue
			}
			cost = price.Amount.Mul(wholeDays(*start, *end) / period.days)
		}
		if cheapest == nil || cost.Value.Cmp(cheapest.Value) < 0 {
			cheapest = &cost
		}
	}
	if cheapest == nil {
		return prices[0].Amount.Mul(quantity), nil
	}
	return *cheapest, nil
}

// wholeDays counts 24-hour days between two instants in either order. Not by
// time.Duration, which ends at 292 years.
func wholeDays(start, end time.Time) int64 {
	micros := end.UnixMicro() - start.UnixMicro()
	return max(micros, -micros) / (24 * time.Hour).Microseconds()
}
