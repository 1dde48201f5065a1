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

func amount(t *testing.T, text, denomination string, decimals int) money.Amount {
	t.Helper()
	parsed, err := money.ParseAmount(text, denomination, decimals)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func TestAmountArithmetic(t *testing.T) {
	t.Parallel()
	two, three := amount(t, "2", "BTC", 8), amount(t, "-3", "BTC", 8)
	must := func(result money.Amount, err error) money.Amount {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
	for name, test := range map[string]struct {
		got  money.Amount
		want string
	}{
		"add":            {must(two.Add(three)), "-1.00000000"},
		"sub":            {must(two.Sub(three)), "5.00000000"},
		"min":            {must(two.Min(three)), "-3.00000000"},
		"max":            {must(three.Max(two)), "2.00000000"},
		"mul":            {two.Mul(3), "6.00000000"},
		"quo":            {must(three.Quo(2)), "-1.50000000"},
		"quo truncates":  {must(money.Satoshis(-7).Quo(2)), "-0.00000003"},
		"abs":            {three.Abs(), "3.00000000"},
		"zero value":     {money.Amount{}.Mul(5), "0.0"},
		"operands stay":  {two, "2.00000000"},
		"operand stays":  {three, "-3.00000000"},
		"rescale":        {must(two.Rescale(2)), "2.00"},
		"rescale larger": {must(two.Rescale(10)), "2.0000000000"},
	} {
		if test.got.Text() != test.want {
			t.Errorf("%s = %s, want %s", name, test.got.Text(), test.want)
		}
	}
	if !three.IsNegative() || two.IsNegative() || !(money.Amount{}).IsZero() || two.IsZero() {
		t.Error("signs are read wrongly")
	}
	if _, err := two.Quo(0); err == nil {
		t.Error("division by zero succeeds")
	}
}

func TestAmountMismatch(t *testing.T) {
	t.Parallel()
	bitcoin := amount(t, "1", "BTC", 8)
	for name, other := range map[string]money.Amount{
		"denomination": amount(t, "1", "USD", 8),
		"decimals":     amount(t, "1", "BTC", 6),
		"letter case":  amount(t, "1", "btc", 8),
	} {
		failures := map[string]error{}
		_, failures["add"] = bitcoin.Add(other)
		_, failures["sub"] = bitcoin.Sub(other)
		_, failures["cmp"] = bitcoin.Cmp(other)
		_, failures["min"] = bitcoin.Min(other)
		_, failures["max"] = bitcoin.Max(other)
		for operation, err := range failures {
			if !errors.Is(err, money.ErrMismatch) {
				t.Errorf("%s of other %s: %v, want ErrMismatch", operation, name, err)
			}
		}
	}
}

func TestAmountEqualIgnoresDecimals(t *testing.T) {
	t.Parallel()
	sats := money.Satoshis(5)
	if !sats.Equal(money.Amount{Denomination: "BTC", Value: big.NewInt(5), Decimals: 2}) {
		t.Error("other decimals count")
	}
	if sats.Equal(money.Amount{Denomination: "USD", Value: big.NewInt(5), Decimals: 8}) || sats.Equal(money.Satoshis(6)) {
		t.Error("denomination or value does not count")
	}
}

func TestRescale(t *testing.T) {
	t.Parallel()
	for _, vector := range readVectors(t).Rescale {
		value, _ := new(big.Int).SetString(vector.Value, 10)
		scaled, err := money.Amount{Denomination: "BTC", Value: value, Decimals: vector.From}.Rescale(vector.To)
		if err != nil || scaled.Value.String() != vector.Out || scaled.Decimals != vector.To {
			t.Errorf("%s from %d to %d = %v, %v, want %s", vector.Value, vector.From, vector.To, scaled, err, vector.Out)
		}
	}
	for _, decimals := range []int{-1, 256, 999_999_999} {
		if _, err := money.Satoshis(1).Rescale(decimals); !fault.Is(err, fault.InvalidAmount) {
			t.Errorf("rescale to %d: %v, want invalid_amount", decimals, err)
		}
		odd := money.Amount{Denomination: "BTC", Value: big.NewInt(1), Decimals: decimals}
		if _, err := odd.Rescale(8); !fault.Is(err, fault.InvalidAmount) {
			t.Errorf("rescale from %d: %v, want invalid_amount", decimals, err)
		}
	}
}

func TestRescaleUpAndBackIsIdentity(t *testing.T) {
	t.Parallel()
	identity := func(value int64, from, more uint8) bool {
		before := money.Amount{Denomination: "BTC", Value: big.NewInt(value), Decimals: int(from) / 2}
		up, err := before.Rescale(before.Decimals + int(more)/2)
		if err != nil {
			return false
		}
		back, err := up.Rescale(before.Decimals)
		order, mismatch := back.Cmp(before)
		return err == nil && mismatch == nil && order == 0
	}
	if err := quick.Check(identity, nil); err != nil {
		t.Error(err)
	}
}

func TestAmountOrderIsThatOfAddition(t *testing.T) {
	t.Parallel()
	consistent := func(a, b int64) bool {
		left, right := money.Satoshis(a), money.Satoshis(b)
		difference, _ := left.Sub(right)
		order, _ := left.Cmp(right)
		back, _ := difference.Add(right)
		return order == difference.Value.Sign() && back.Equal(left)
	}
	if err := quick.Check(consistent, nil); err != nil {
		t.Error(err)
	}
}

func TestRequireOneDenomination(t *testing.T) {
	t.Parallel()
	usd, btc := amount(t, "1", "USD", 6), amount(t, "1", "BTC", 8)
	if err := money.RequireOneDenomination(); err != nil {
		t.Errorf("no amounts: %v", err)
	}
	if err := money.RequireOneDenomination(usd, amount(t, "1", "USD", 2)); err != nil {
		t.Errorf("other decimals: %v", err)
	}
	err := money.RequireOneDenomination(usd, btc, usd)
	if !fault.Is(err, fault.MixedCurrencies) {
		t.Fatalf("%v, want mixed_currencies", err)
	}
	details, _ := json.Marshal(fault.From(err).Details)
	if string(details) != `{"currencies":["USD","BTC"]}` {
		t.Errorf("details %s", details)
	}
}

func TestAmountJSONForms(t *testing.T) {
	t.Parallel()
	sum := amount(t, "0.001", "BTC", 8)
	content, _ := json.Marshal(sum)
	if want := `{"value":"0.00100000","denomination":"BTC","decimals":8}`; string(content) != want {
		t.Errorf("content %s, want %s", content, want)
	}
	result, _ := json.Marshal(sum.Result())
	want := `{"value":"0.00100000","smallestUnitValue":"100000","denomination":"BTC","decimals":8}`
	if string(result) != want {
		t.Errorf("result %s, want %s", result, want)
	}
	var back money.Amount
	if err := json.Unmarshal(result, &back); err != nil || !back.Equal(sum) || back.Decimals != 8 {
		t.Errorf("the result form reads as %v, %v", back, err)
	}
	unescaped, err := money.Amount{Denomination: "<&>"}.MarshalJSON()
	if want := `{"value":"0.0","denomination":"<&>","decimals":0}`; err != nil || string(unescaped) != want {
		t.Errorf("%s, %v, want %s", unescaped, err, want)
	}
	if _, err := json.Marshal(money.Amount{Decimals: 256}); err == nil {
		t.Error("256 decimals are written")
	}
}

func TestAmountCodec(t *testing.T) {
	t.Parallel()
	var file struct {
		AmountCodec []struct {
			Input    json.RawMessage `json:"input"`
			Smallest string          `json:"smallest"`
			Encoded  string          `json:"encoded"`
		} `json:"amountCodec"`
	}
	decodeFile(t, "testdata/amount-codec-vectors.json", &file)
	if len(file.AmountCodec) == 0 {
		t.Fatal("no vectors")
	}
	for _, vector := range file.AmountCodec {
		var sum money.Amount
		if err := json.Unmarshal(vector.Input, &sum); err != nil {
			t.Errorf("%s: %v", vector.Input, err)
			continue
		}
		if sum.Value.String() != vector.Smallest || sum.Text() != vector.Encoded {
			t.Errorf("%s = %s, %s", vector.Input, sum.Value, sum.Text())
		}
	}
}

func TestAmountJSONReads(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		`"12.5"`: "12500000", `""`: "0", `7`: "7", `-7`: "-7", `0`: "0",
		`5.0`: "5000000", `12.50`: "12500000", `1e2`: "100000000", `1.5e-3`: "1500",
		`0.0000019`: "1", `0.30000000000000004`: "300000",
		`123456789012345678901234567890`: "123456789012345678901234567890",
	} {
		var sum money.Amount
		if err := json.Unmarshal([]byte(`{"value":`+value+`,"denomination":"USD","decimals":6}`), &sum); err != nil {
			t.Errorf("%s: %v", value, err)
		} else if sum.Value.String() != want {
			t.Errorf("%s = %s, want %s", value, sum.Value, want)
		}
	}
	for name, text := range map[string]string{
		"null":                  `null`,
		"array":                 `[]`,
		"text":                  `"5"`,
		"value missing":         `{"denomination":"USD","decimals":6}`,
		"value null":            `{"value":null,"denomination":"USD","decimals":6}`,
		"value bool":            `{"value":true,"denomination":"USD","decimals":6}`,
		"value object":          `{"value":{},"denomination":"USD","decimals":6}`,
		"value word":            `{"value":"ten","denomination":"USD","decimals":6}`,
		"value tiny":            `{"value":1e-7,"denomination":"USD","decimals":6}`,
		"value great":           `{"value":1e21,"denomination":"USD","decimals":6}`,
		"value beyond a double": `{"value":1e999,"denomination":"USD","decimals":6}`,
		"value long":            `{"value":` + strings.Repeat("9", 1001) + `,"denomination":"USD","decimals":6}`,
		"denomination missing":  `{"value":"1","decimals":6}`,
		"denomination number":   `{"value":"1","denomination":5,"decimals":6}`,
		"key in other case":     `{"Value":"1","denomination":"USD","decimals":6}`,
		"decimals missing":      `{"value":"1","denomination":"USD"}`,
		"decimals text":         `{"value":"1","denomination":"USD","decimals":"6"}`,
		"decimals fraction":     `{"value":"1","denomination":"USD","decimals":6.0}`,
		"decimals 256":          `{"value":"1","denomination":"USD","decimals":256}`,
		"decimals -1":           `{"value":"1","denomination":"USD","decimals":-1}`,
		"decimals enormous":     `{"value":"1","denomination":"USD","decimals":999999999}`,
		"decimals beyond int64": `{"value":"1","denomination":"USD","decimals":99999999999999999999}`,
	} {
		var sum money.Amount
		if err := json.Unmarshal([]byte(text), &sum); !fault.Is(err, fault.InvalidAmount) {
			t.Errorf("%s: %v, %v, want invalid_amount", name, sum, err)
		}
	}
}

func FuzzAmountJSON(f *testing.F) {
	for _, seed := range []string{
		`{"value":"0.005","denomination":"BTC","decimals":8}`,
		`{"value":7,"denomination":"USD","decimals":6}`,
		`{"value":12.5,"denomination":"USD","decimals":999999999}`,
		`{"value":1e-9,"denomination":"BTC","decimals":8}`,
		`{"value":"ten"}`, `null`, `[]`, `5`, `"5"`, `{`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var sum money.Amount
		if err := json.Unmarshal(data, &sum); err == nil {
			checkAmountRoundTrip(t, sum)
		}
	})
}

func checkAmountRoundTrip(t *testing.T, sum money.Amount) {
	t.Helper()
	content, err := json.Marshal(sum)
	if err != nil {
		t.Fatalf("%v does not encode: %v", sum, err)
	}
	var again money.Amount
	if err := json.Unmarshal(content, &again); err != nil {
		t.Fatalf("%s does not read: %v", content, err)
	}
	if !again.Equal(sum) || again.Decimals != sum.Decimals {
		t.Fatalf("%v was written as %s and read as %v", sum, content, again)
	}
}
