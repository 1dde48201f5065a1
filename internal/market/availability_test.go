package market_test

import (
	"testing"
	"time"

	"hostr-daemon/internal/market"
)

func TestAvailability(t *testing.T) {
	t.Parallel()
	// The booked stay of orderTerms is the nights of 5 and 6 April 2027.
	booked := orderTerms{author: trader, stage: market.StageCommit, tags: parties(host, trader)}
	cancel := booked
	cancel.stage, cancel.at = market.StageCancel, 2000
	offer := booked
	offer.stage = market.StageNegotiate
	undated := booked
	undated.undated = true
	hostCancel := orderTerms{author: host, stage: market.StageCancel, tags: parties(host, trader)}
	elsewhere := orderTerms{author: stranger, stage: market.StageCancel, tags: parties(host, trader)}
	for name, test := range map[string]struct {
		orders     []orderTerms
		start, end string
		want       bool
		groups     int
	}{
		"no orders":                   {nil, "2027-04-05", "2027-04-07", true, 0},
		"the same stay":               {[]orderTerms{booked}, "2027-04-05", "2027-04-07", false, 1},
		"departure is free":           {[]orderTerms{booked}, "2027-04-07", "2027-04-08", true, 1},
		"up to the arrival":           {[]orderTerms{booked}, "2027-04-03", "2027-04-05", true, 1},
		"one night of it":             {[]orderTerms{booked}, "2027-04-06", "2027-04-09", false, 1},
		"turned round":                {[]orderTerms{booked}, "2027-04-09", "2027-04-06", false, 1},
		"without a night":             {[]orderTerms{booked}, "2027-04-06", "2027-04-06", false, 1},
		"an offer":                    {[]orderTerms{offer}, "2027-04-05", "2027-04-07", true, 1},
		"without dates":               {[]orderTerms{undated}, "2027-04-05", "2027-04-07", true, 1},
		"cancelled by the guest":      {[]orderTerms{booked, cancel}, "2027-04-05", "2027-04-07", true, 1},
		"and seen in turned order":    {[]orderTerms{cancel, booked}, "2027-04-05", "2027-04-07", true, 1},
		"cancelled by the host":       {[]orderTerms{booked, hostCancel}, "2027-04-05", "2027-04-07", true, 1},
		"cancelled by a stranger":     {[]orderTerms{booked, elsewhere}, "2027-04-05", "2027-04-07", false, 2},
		"a stranger blocks the dates": {[]orderTerms{{author: stranger, stage: market.StageCommit, tradeID: "none"}}, "2027-04-05", "2027-04-07", false, 1},
	} {
		var orders []market.Order
		for _, terms := range test.orders {
			orders = append(orders, terms.order(t))
		}
		got := market.AvailabilityOf(orders, market.DateRange{Start: date(test.start), End: date(test.end)})
		if got != (market.Availability{Available: test.want, OrderGroupCount: test.groups}) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestAvailabilityOfOverlapVectors(t *testing.T) {
	t.Parallel()
	for _, vector := range readVectors(t).DatesOverlap {
		order := orderTerms{author: host, stage: market.StageCommit, tags: parties(host)}.order(t)
		order.Start, order.End = pointer(vector.A[0].UTC()), pointer(vector.A[1].In(time.FixedZone("", 3600)))
		got := market.AvailabilityOf([]market.Order{order}, market.DateRange{Start: vector.B[0], End: vector.B[1]})
		if got.Available == vector.Overlap {
			t.Errorf("%v and %v: %+v", vector.A, vector.B, got)
		}
	}
}
