package market

import (
	"time"

	"hostr-daemon/internal/money"
)

// ExpectedAmount is what must be paid for an order, and how its own amount stands
// to the price of the listing (spec 50 §11).
type ExpectedAmount struct {
	// Amount is what must be paid: the price, or the order's amount where the
	// seller has signed it.
	Amount money.Amount
	// Price is what the listing asks for these dates.
	Price money.Amount
	// OffPrice tells that the order has another amount, BelowPrice that it is a
	// lower one in the denomination of the price.
	OffPrice   bool
	BelowPrice bool
	// SellerCommitted tells that the order needs no signature of the seller or has
	// it, NegotiationAllowed that a lower amount may be offered or is signed.
	SellerCommitted    bool
	NegotiationAllowed bool
}

// OverrideFailure says why the amount of an order does not hold.
type OverrideFailure string

// The reasons why an amount other than the price does not hold.
const (
	MissingSellerCommitment OverrideFailure = "missing seller commitment"
	NegotiationNotAllowed   OverrideFailure = "negotiation below price not allowed"
	noOverrideFailure       OverrideFailure = ""
)

// Failure returns why the amount of the order does not hold; "" when it does.
func (e ExpectedAmount) Failure() OverrideFailure {
	switch {
	case !e.OffPrice:
		return noOverrideFailure
	case !e.SellerCommitted:
		return MissingSellerCommitment
	case !e.NegotiationAllowed:
		return NegotiationNotAllowed
	}
	return noOverrideFailure
}

// Cost returns what a stay costs; see money.Cost for its rules. Dates may be nil.
// A listing without prices is an error.
func (f ListingFields) Cost(start, end *time.Time, quantity int64) (money.Amount, error) {
	return money.Cost(f.Prices, start, end, quantity)
}

// ExpectedAmount returns what must be paid for the order at this listing. Values
// are compared in smallest units, whatever the decimals, as all clients do. A
// listing without prices is an error.
func (o Order) ExpectedAmount(listing Listing) (ExpectedAmount, error) {
	price, err := listing.Cost(o.Start, o.End, o.Quantity)
	if err != nil {
		return ExpectedAmount{}, err
	}
	expected := ExpectedAmount{Amount: price, Price: price, SellerCommitted: true, NegotiationAllowed: true}
	if o.Amount == nil || o.Amount.Equal(price) {
		return expected, nil
	}
	expected.OffPrice = true
	expected.BelowPrice = o.Amount.Denomination == price.Denomination && compareUnits(*o.Amount, price) < 0
	expected.SellerCommitted = o.CheckCommitAuthorization() == nil
	expected.NegotiationAllowed = !expected.BelowPrice || listing.Negotiable || expected.SellerCommitted
	if expected.SellerCommitted {
		expected.Amount = *o.Amount
	}
	return expected, nil
}

// compareUnits compares raw smallest units.
func compareUnits(a, b money.Amount) int {
	a.Denomination, a.Decimals = b.Denomination, b.Decimals
	order, _ := a.Cmp(b) // cannot fail: they are alike now
	return order
}
