package money

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"
)

const (
	// NativeAddress stands for the native coin of a chain.
	NativeAddress = "0x0000000000000000000000000000000000000000"
	// NativeDecimals are the decimals of the native coin of a chain.
	NativeDecimals = 18
)

// Token is a coin or ERC-20 token on a chain (spec 41 §3).
type Token struct {
	// ChainID is the EIP-155 chain id.
	ChainID int64 `json:"chainId"`
	// Address is the contract address as it was given, not re-cased.
	Address string `json:"address"`
	// Decimals is 0..255.
	Decimals int `json:"decimals"`
}

// NativeToken returns the native coin of a chain.
func NativeToken(chainID int64) Token {
	return Token{ChainID: chainID, Address: NativeAddress, Decimals: NativeDecimals}
}

// TokenAt returns the token of a contract address seen in a chain event: the
// native coin for the zero address, else a token with the decimals given, 18
// when they are unknown (nil).
func TokenAt(chainID int64, address string, decimals *int) Token {
	token := Token{ChainID: chainID, Address: address, Decimals: NativeDecimals}
	if token.IsNative() {
		return NativeToken(chainID)
	}
	if decimals != nil {
		token.Decimals = *decimals
	}
	return token
}

// ParseTokenTagID reads "<chainId>:<address>". The tag has no decimals, so the
// caller gives them.
func ParseTokenTagID(id string, decimals int) (Token, error) {
	chain, address, found := strings.Cut(id, ":")
	if !found {
		return Token{}, fmt.Errorf("token %.80q has no colon between chain id and address", id)
	}
	chainID, err := strconv.ParseInt(chain, 10, 64)
	if err != nil {
		return Token{}, fmt.Errorf("token %.80q has no numeric chain id", id)
	}
	return Token{ChainID: chainID, Address: address, Decimals: decimals}, checkDecimals(decimals)
}

// TagID returns "<chainId>:<address>" with the address as stored.
func (t Token) TagID() string { return strconv.FormatInt(t.ChainID, 10) + ":" + t.Address }

// IsNative reports whether this is the native coin of its chain.
func (t Token) IsNative() bool { return strings.EqualFold(t.Address, NativeAddress) }

// Equal compares chain id and address, in any case. Decimals do not count.
func (t Token) Equal(other Token) bool {
	return t.ChainID == other.ChainID && strings.EqualFold(t.Address, other.Address)
}

// TokenAmount is a sum of a token (spec 41 §3). Its value is never changed in
// place.
type TokenAmount struct {
	// Value counts the token's smallest units; nil is 0.
	Value *big.Int
	Token Token
}

// ErrTokenMismatch is the cause when two sums are of different tokens.
var ErrTokenMismatch = errors.New("different tokens")

// Text returns the decimal text with all fractional digits of the token.
func (a TokenAmount) Text() string { return FormatDecimal(a.Value, a.Token.Decimals) }

// Add returns a + b, or ErrTokenMismatch.
func (a TokenAmount) Add(b TokenAmount) (TokenAmount, error) {
	if err := a.checkSame(b); err != nil {
		return TokenAmount{}, err
	}
	return a.with(new(big.Int).Add(a.value(), b.value())), nil
}

// Sub returns a - b, or ErrTokenMismatch.
func (a TokenAmount) Sub(b TokenAmount) (TokenAmount, error) {
	if err := a.checkSame(b); err != nil {
		return TokenAmount{}, err
	}
	return a.with(new(big.Int).Sub(a.value(), b.value())), nil
}

// Cmp returns -1, 0 or 1 as a is less than, equal to or greater than b, or
// ErrTokenMismatch.
func (a TokenAmount) Cmp(b TokenAmount) (int, error) {
	if err := a.checkSame(b); err != nil {
		return 0, err
	}
	return a.value().Cmp(b.value()), nil
}

// IsZero reports whether the amount is 0.
func (a TokenAmount) IsZero() bool { return a.value().Sign() == 0 }

// Amount returns the same value and decimals in a denomination; the empty one
// stands for BTC of a native coin, else for the token's tag id.
func (a TokenAmount) Amount(denomination string) Amount {
	if denomination == "" {
		denomination = a.Token.TagID()
		if a.Token.IsNative() {
			denomination = "BTC"
		}
	}
	return Amount{Denomination: denomination, Value: a.value(), Decimals: a.Token.Decimals}
}

// InToken returns the amount in a token's smallest units, truncated toward zero
// where the token has fewer decimals. Decimals outside 0..255 are
// invalid_amount.
func (a Amount) InToken(token Token) (TokenAmount, error) {
	value, err := rescale(a.value(), a.Decimals, token.Decimals)
	if err != nil {
		return TokenAmount{}, err
	}
	return TokenAmount{Value: value, Token: token}, nil
}

// TokenAmountResult is a token amount as results of actions show it.
type TokenAmountResult struct {
	Value             string `json:"value"`
	SmallestUnitValue string `json:"smallestUnitValue"`
	Token             Token  `json:"token"`
}

// Result returns the form that results of actions show.
func (a TokenAmount) Result() TokenAmountResult {
	return TokenAmountResult{Value: a.Text(), SmallestUnitValue: a.value().String(), Token: a.Token}
}

type tokenAmountContent struct {
	Value string `json:"value"`
	Token Token  `json:"token"`
}

// MarshalJSON writes value and token (spec 41 §3). Decimals outside 0..255 are
// an error.
func (a TokenAmount) MarshalJSON() ([]byte, error) {
	if err := checkDecimals(a.Token.Decimals); err != nil {
		return nil, err
	}
	return encodeContent(tokenAmountContent{Value: a.Text(), Token: a.Token})
}

// UnmarshalJSON reads value and token; the value as Amount.UnmarshalJSON does.
func (a *TokenAmount) UnmarshalJSON(data []byte) error {
	fields, err := readObject(data)
	if err != nil {
		return err
	}
	var token Token
	if err := json.Unmarshal(fields["token"], &token); err != nil {
		return err
	}
	value, err := readValue(fields["value"], token.Decimals)
	if err != nil {
		return err
	}
	*a = TokenAmount{Value: value, Token: token}
	return nil
}

// UnmarshalJSON reads chainId, address and decimals, all required.
func (t *Token) UnmarshalJSON(data []byte) error {
	fields, err := readObject(data)
	if err != nil {
		return err
	}
	chainID, err := strconv.ParseInt(string(fields["chainId"]), 10, 64)
	if err != nil {
		return errors.New("a token needs its chainId as an integer")
	}
	address, ok := jsonText(fields["address"])
	if !ok {
		return errors.New("a token needs its address as text")
	}
	decimals, err := readDecimals(fields["decimals"])
	if err != nil {
		return err
	}
	*t = Token{ChainID: chainID, Address: address, Decimals: decimals}
	return nil
}

func (a TokenAmount) value() *big.Int {
	if a.Value == nil {
		return new(big.Int)
	}
	return a.Value
}

func (a TokenAmount) with(value *big.Int) TokenAmount {
	a.Value = value
	return a
}

func (a TokenAmount) checkSame(b TokenAmount) error {
	if a.Token.Equal(b.Token) {
		return nil
	}
	return fmt.Errorf("%s and %s: %w", a.Token.TagID(), b.Token.TagID(), ErrTokenMismatch)
}
