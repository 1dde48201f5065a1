package money

import (
	"fmt"
	"math/big"
)

// Unit is a scale in which chain figures are given (spec 41 §3).
type Unit int

const (
	// Wei is the smallest unit of whatever token; it is never scaled.
	Wei Unit = iota
	// Sat is 10^-8.
	Sat
	// Gwei is 10^-9.
	Gwei
)

const satDecimals = 8

// Of returns count units as a sum of the token, truncated toward zero where the
// token is coarser. Token decimals outside 0..255 are invalid_amount.
func (u Unit) Of(count *big.Int, token Token) (TokenAmount, error) {
	decimals := map[Unit]int{Wei: token.Decimals, Sat: satDecimals, Gwei: 9}[u]
	value, err := rescale(count, decimals, token.Decimals)
	if err != nil {
		return TokenAmount{}, err
	}
	return TokenAmount{Value: value, Token: token}, nil
}

// Sats returns whole satoshis, truncated. A token of fewer than 8 decimals
// cannot be counted in them.
func (a TokenAmount) Sats() (*big.Int, error) {
	if a.Token.Decimals < satDecimals {
		return nil, fmt.Errorf("token %s has %d decimals, too few to count satoshis",
			a.Token.TagID(), a.Token.Decimals)
	}
	return rescale(a.value(), a.Token.Decimals, satDecimals)
}

// Millisats returns millisatoshis, truncated. Below 11 decimals they are whole
// satoshis times 1000.
func (a TokenAmount) Millisats() (*big.Int, error) {
	const msatDecimals = 11
	if a.Token.Decimals >= msatDecimals {
		return rescale(a.value(), a.Token.Decimals, msatDecimals)
	}
	sats, err := a.Sats()
	if err != nil {
		return nil, err
	}
	return sats.Mul(sats, big.NewInt(1000)), nil
}

// RoundDownToSats returns the next lower multiple of a satoshi; a token of at
// most 8 decimals stays as it is.
func (a TokenAmount) RoundDownToSats() TokenAmount {
	if a.Token.Decimals <= satDecimals {
		return a
	}
	satoshi := powerOfTen(a.Token.Decimals - satDecimals)
	floor := new(big.Int).Div(a.value(), satoshi)
	return a.with(floor.Mul(floor, satoshi))
}

// RoundUpToSats returns the next higher multiple of a satoshi; a token of at
// most 8 decimals stays as it is.
func (a TokenAmount) RoundUpToSats() TokenAmount {
	negated := a.with(new(big.Int).Neg(a.value())).RoundDownToSats()
	return a.with(new(big.Int).Neg(negated.value()))
}
