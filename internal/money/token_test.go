package money_test

import (
	"encoding/json"
	"errors"
	"math/big"
	"strings"
	"testing"
	"testing/quick"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/money"
)

func token(decimals int) money.Token {
	return money.Token{ChainID: 30, Address: "0x7125AbCdEf00000000000000000000000000B03e", Decimals: decimals}
}

func TestTokenOps(t *testing.T) {
	t.Parallel()
	units := map[string]money.Unit{"sat->token": money.Sat, "gwei->token": money.Gwei, "wei->token": money.Wei}
	for _, vector := range readVectors(t).TokenOps {
		value, _ := new(big.Int).SetString(vector.Value, 10)
		sum := money.TokenAmount{Value: value, Token: token(vector.TokenDecimals)}
		var got *big.Int
		var err error
		switch vector.Op {
		case "inSats":
			got, err = sum.Sats()
		case "inMSats":
			got, err = sum.Millisats()
		case "roundDownToSats":
			got = sum.RoundDownToSats().Value
		case "roundUpToSats":
			got = sum.RoundUpToSats().Value
		default:
			unit, known := units[vector.Op]
			if !known {
				t.Fatalf("unknown operation %s", vector.Op)
			}
			var converted money.TokenAmount
			converted, err = unit.Of(value, sum.Token)
			got = converted.Value
		}
		if err != nil || got.String() != vector.Out {
			t.Errorf("%s of %s at %d = %v, %v, want %s", vector.Op, vector.Value, vector.TokenDecimals, got, err, vector.Out)
		}
	}
}

func TestTooFewDecimalsForSatoshis(t *testing.T) {
	t.Parallel()
	sum := money.TokenAmount{Value: big.NewInt(5), Token: token(6)}
	if sats, err := sum.Sats(); err == nil {
		t.Errorf("%s satoshis", sats)
	}
	if msats, err := sum.Millisats(); err == nil {
		t.Errorf("%s millisatoshis", msats)
	}
	if down, up := sum.RoundDownToSats(), sum.RoundUpToSats(); down.Value.Int64() != 5 || up.Value.Int64() != 5 {
		t.Errorf("rounded to %v and %v", down, up)
	}
}

func TestRoundingToSatoshisEncloses(t *testing.T) {
	t.Parallel()
	encloses := func(value int64, more uint8) bool {
		sum := money.TokenAmount{Value: big.NewInt(value), Token: token(8 + int(more)%30)}
		down, up := sum.RoundDownToSats(), sum.RoundUpToSats()
		below, _ := down.Cmp(sum)
		above, _ := up.Cmp(sum)
		width, _ := up.Sub(down)
		sats, err := width.Sats()
		return err == nil && below <= 0 && above >= 0 && sats.Int64() <= 1 && down.RoundUpToSats().Value.Cmp(down.Value) == 0
	}
	if err := quick.Check(encloses, nil); err != nil {
		t.Error(err)
	}
}

func TestTokenIdentity(t *testing.T) {
	t.Parallel()
	native := money.NativeToken(30)
	if native.TagID() != "30:0x0000000000000000000000000000000000000000" || !native.IsNative() || native.Decimals != 18 {
		t.Errorf("%+v", native)
	}
	lower := token(6)
	lower.Address = strings.ToLower(lower.Address)
	if !lower.Equal(token(18)) || lower.Equal(native) || native.Equal(money.NativeToken(31)) {
		t.Error("tokens are compared wrongly")
	}
	if seen := money.TokenAt(30, strings.ToUpper(money.NativeAddress), pointer(6)); seen != native {
		t.Errorf("%+v", seen)
	}
	if seen := money.TokenAt(30, lower.Address, pointer(6)); seen.Decimals != 6 {
		t.Errorf("%+v", seen)
	}
	if seen := money.TokenAt(30, lower.Address, nil); seen.Decimals != 18 {
		t.Errorf("%+v", seen)
	}
}

func pointer[T any](value T) *T { return &value }

func TestParseTokenTagID(t *testing.T) {
	t.Parallel()
	if parsed, err := money.ParseTokenTagID(token(6).TagID(), 6); err != nil || parsed != token(6) {
		t.Errorf("%+v, %v", parsed, err)
	}
	if parsed, err := money.ParseTokenTagID("30:a:b", 0); err != nil || parsed.Address != "a:b" {
		t.Errorf("%+v, %v", parsed, err)
	}
	for _, id := range []string{"", "BTC", "x:0x0", ":0x0", "99999999999999999999:0x0"} {
		if parsed, err := money.ParseTokenTagID(id, 8); err == nil {
			t.Errorf("%q = %+v", id, parsed)
		}
	}
	if _, err := money.ParseTokenTagID("30:0x0", 256); !fault.Is(err, fault.InvalidAmount) {
		t.Errorf("256 decimals: %v", err)
	}
}

func TestTokenAmountArithmetic(t *testing.T) {
	t.Parallel()
	five, seven := money.TokenAmount{Value: big.NewInt(5), Token: token(6)}, money.TokenAmount{Value: big.NewInt(7), Token: token(6)}
	sum, err := five.Add(seven)
	if err != nil || sum.Text() != "0.000012" {
		t.Errorf("%v, %v", sum, err)
	}
	difference, err := five.Sub(seven)
	if err != nil || difference.Text() != "-0.000002" {
		t.Errorf("%v, %v", difference, err)
	}
	other := money.TokenAmount{Value: big.NewInt(5), Token: money.NativeToken(30)}
	failures := map[string]error{}
	_, failures["add"] = five.Add(other)
	_, failures["sub"] = five.Sub(other)
	_, failures["cmp"] = five.Cmp(other)
	for operation, err := range failures {
		if !errors.Is(err, money.ErrTokenMismatch) {
			t.Errorf("%s: %v, want ErrTokenMismatch", operation, err)
		}
	}
	if !(money.TokenAmount{}).IsZero() || five.IsZero() {
		t.Error("zero is read wrongly")
	}
}

func TestAmountsAndTokens(t *testing.T) {
	t.Parallel()
	wei, err := money.Satoshis(100).InToken(money.NativeToken(30))
	if err != nil || wei.Value.String() != "1000000000000" {
		t.Errorf("%v, %v", wei, err)
	}
	if back := wei.Amount(""); back.String() != "0.000001000000000000 BTC" {
		t.Errorf("%s", back)
	}
	if back := wei.Amount("RBTC"); back.Denomination != "RBTC" || back.Decimals != 18 {
		t.Errorf("%s", back)
	}
	if back := (money.TokenAmount{Token: token(6)}).Amount(""); back.Denomination != token(6).TagID() {
		t.Errorf("%s", back)
	}
	if _, err := money.Satoshis(1).InToken(token(999_999_999)); !fault.Is(err, fault.InvalidAmount) {
		t.Errorf("enormous decimals: %v", err)
	}
	if _, err := money.Sat.Of(big.NewInt(1), token(-1)); !fault.Is(err, fault.InvalidAmount) {
		t.Errorf("negative decimals: %v", err)
	}
}

func TestTokenAmountJSON(t *testing.T) {
	t.Parallel()
	sum := money.TokenAmount{Value: big.NewInt(120_000_000), Token: money.Token{ChainID: 30, Address: "0xAb", Decimals: 6}}
	content, _ := json.Marshal(sum)
	if want := `{"value":"120.000000","token":{"chainId":30,"address":"0xAb","decimals":6}}`; string(content) != want {
		t.Errorf("%s, want %s", content, want)
	}
	result, _ := json.Marshal(sum.Result())
	want := `{"value":"120.000000","smallestUnitValue":"120000000","token":{"chainId":30,"address":"0xAb","decimals":6}}`
	if string(result) != want {
		t.Errorf("%s, want %s", result, want)
	}
	var back money.TokenAmount
	if err := json.Unmarshal(content, &back); err != nil || back.Token != sum.Token || back.Value.Cmp(sum.Value) != 0 {
		t.Errorf("%v, %v", back, err)
	}
	if _, err := json.Marshal(money.TokenAmount{Token: token(256)}); err == nil {
		t.Error("256 decimals are written")
	}
	for _, bad := range []string{
		`null`, `[]`, `{"value":"1"}`, `{"value":"1","token":null}`, `{"token":{"chainId":30,"address":"0xAb","decimals":6}}`,
		`{"value":"x","token":{"chainId":30,"address":"0xAb","decimals":6}}`,
		`{"value":"1","token":{"chainId":"30","address":"0xAb","decimals":6}}`,
		`{"value":"1","token":{"chainId":30,"address":5,"decimals":6}}`,
		`{"value":"1","token":{"chainId":30,"address":"0xAb","decimals":999999999}}`,
		`{"value":"1","token":{"chainId":30,"address":"0xAb"}}`,
	} {
		if err := json.Unmarshal([]byte(bad), &back); err == nil {
			t.Errorf("%s is read", bad)
		}
	}
}
