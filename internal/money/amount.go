package money

import (
	"errors"
	"fmt"
	"math/big"
	"slices"

	"hostr-daemon/internal/fault"
)

// Amount is a sum in a denomination, the DenominatedAmount of spec 41 §2. Its
// value is never changed in place. The zero Amount is 0 of no denomination.
type Amount struct {
	// Denomination is a code such as BTC, USD, EUR; its case matters.
	Denomination string
	// Value counts smallest units, 10^-Decimals of the denomination; nil is 0.
	Value *big.Int
	// Decimals is 0..255.
	Decimals int
}

// ErrMismatch is the cause when two amounts cannot be added or ordered, because
// their denominations or decimals differ.
var ErrMismatch = errors.New("different denominations or decimals")

// ParseAmount reads decimal text. Text that is no number and decimals outside
// 0..255 are invalid_amount.
func ParseAmount(text, denomination string, decimals int) (Amount, error) {
	value, err := ParseDecimal(text, decimals)
	if err != nil {
		return Amount{}, err
	}
	return Amount{Denomination: denomination, Value: value, Decimals: decimals}, nil
}

// Satoshis returns an amount of bitcoin in satoshis, 8 decimals.
func Satoshis(count int64) Amount {
	return Amount{Denomination: "BTC", Value: big.NewInt(count), Decimals: 8}
}

// Text returns the decimal text with all fractional digits.
func (a Amount) Text() string { return FormatDecimal(a.Value, a.Decimals) }

// String returns the decimal text and the denomination, for people.
func (a Amount) String() string { return a.Text() + " " + a.Denomination }

// Add returns a + b, or ErrMismatch.
func (a Amount) Add(b Amount) (Amount, error) {
	if err := a.checkSame(b); err != nil {
		return Amount{}, err
	}
	return a.with(new(big.Int).Add(a.value(), b.value())), nil
}

// Sub returns a - b, or ErrMismatch.
func (a Amount) Sub(b Amount) (Amount, error) {
	if err := a.checkSame(b); err != nil {
		return Amount{}, err
	}
	return a.with(new(big.Int).Sub(a.value(), b.value())), nil
}

// Cmp returns -1, 0 or 1 as a is less than, equal to or greater than b, or
// ErrMismatch.
func (a Amount) Cmp(b Amount) (int, error) {
	if err := a.checkSame(b); err != nil {
		return 0, err
	}
	return a.value().Cmp(b.value()), nil
}

// Min returns the smaller amount, a when they are equal, or ErrMismatch.
func (a Amount) Min(b Amount) (Amount, error) {
	order, err := a.Cmp(b)
	if err != nil {
		return Amount{}, err
	}
	if order > 0 {
		return b, nil
	}
	return a, nil
}

// Max returns the greater amount, a when they are equal, or ErrMismatch.
func (a Amount) Max(b Amount) (Amount, error) {
	order, err := a.Cmp(b)
	if err != nil {
		return Amount{}, err
	}
	if order < 0 {
		return b, nil
	}
	return a, nil
}

// Equal compares denomination and smallest units. Decimals do not count
// (spec 41 §2).
func (a Amount) Equal(b Amount) bool {
	return a.Denomination == b.Denomination && a.value().Cmp(b.value()) == 0
}

// Mul returns the amount n times.
func (a Amount) Mul(n int64) Amount {
	return a.with(new(big.Int).Mul(a.value(), big.NewInt(n)))
}

// Quo returns the amount divided by n, truncated toward zero. Division by zero
// is an error.
func (a Amount) Quo(n int64) (Amount, error) {
	if n == 0 {
		return Amount{}, fmt.Errorf("%s cannot be divided by zero", a)
	}
	return a.with(new(big.Int).Quo(a.value(), big.NewInt(n))), nil
}

// Abs returns the amount without its sign.
func (a Amount) Abs() Amount { return a.with(new(big.Int).Abs(a.value())) }

// IsZero reports whether the amount is 0.
func (a Amount) IsZero() bool { return a.value().Sign() == 0 }

// IsNegative reports whether the amount is below 0.
func (a Amount) IsNegative() bool { return a.value().Sign() < 0 }

// Rescale returns the amount with other decimals; what no longer fits is
// truncated toward zero. Decimals outside 0..255 are invalid_amount.
func (a Amount) Rescale(decimals int) (Amount, error) {
	value, err := rescale(a.value(), a.Decimals, decimals)
	if err != nil {
		return Amount{}, err
	}
	return Amount{Denomination: a.Denomination, Value: value, Decimals: decimals}, nil
}

// RequireOneDenomination returns mixed_currencies, with the denominations in
// first-seen order, when the amounts of one listing differ in denomination
// (spec 41 §4). Decimals may differ.
func RequireOneDenomination(amounts ...Amount) error {
	var currencies []string
	for _, amount := range amounts {
		if !slices.Contains(currencies, amount.Denomination) {
			currencies = append(currencies, amount.Denomination)
		}
	}
	if len(currencies) <= 1 {
		return nil
	}
	return fault.New(fault.MixedCurrencies, "the amounts are in different currencies: %q", currencies).
		WithHint("give all prices, the deposit and the minimum payment in one currency").
		WithDetails(MixedCurrencies{Currencies: currencies})
}

// MixedCurrencies are the details of a mixed_currencies failure.
type MixedCurrencies struct {
	Currencies []string `json:"currencies"`
}

func (a Amount) value() *big.Int {
	if a.Value == nil {
		return new(big.Int)
	}
	return a.Value
}

func (a Amount) with(value *big.Int) Amount {
	a.Value = value
	return a
}

func (a Amount) checkSame(b Amount) error {
	if a.Denomination == b.Denomination && a.Decimals == b.Decimals {
		return nil
	}
	return fmt.Errorf("%s with %d decimals and %s with %d decimals: %w",
		a.Denomination, a.Decimals, b.Denomination, b.Decimals, ErrMismatch)
}

// rescale returns value × 10^(to-from), truncated toward zero.
func rescale(value *big.Int, from, to int) (*big.Int, error) {
	for _, decimals := range [...]int{from, to} {
		if err := checkDecimals(decimals); err != nil {
			return nil, err
		}
	}
	if to >= from {
		return new(big.Int).Mul(value, powerOfTen(to-from)), nil
	}
	return new(big.Int).Quo(value, powerOfTen(from-to)), nil
}
