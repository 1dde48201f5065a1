package money

import (
	"encoding/json"
	"math/big"
	"strconv"
	"strings"

	"hostr-daemon/internal/fault"
)

// AmountResult is an amount as results of actions show it, the amountJson of
// spec 41 §2: text for both figures, keys in this order.
type AmountResult struct {
	// Value is the decimal text.
	Value string `json:"value"`
	// SmallestUnitValue is the integer text of the smallest units.
	SmallestUnitValue string `json:"smallestUnitValue"`
	Denomination      string `json:"denomination"`
	Decimals          int    `json:"decimals"`
}

// Result returns the form that results of actions show.
func (a Amount) Result() AmountResult {
	return AmountResult{
		Value:             a.Text(),
		SmallestUnitValue: a.value().String(),
		Denomination:      a.Denomination,
		Decimals:          a.Decimals,
	}
}

type amountContent struct {
	Value        string `json:"value"`
	Denomination string `json:"denomination"`
	Decimals     int    `json:"decimals"`
}

// MarshalJSON writes the form of orders and other event content (spec 41 §2):
// value, denomination, decimals. Decimals outside 0..255 are an error.
func (a Amount) MarshalJSON() ([]byte, error) {
	if err := checkDecimals(a.Decimals); err != nil {
		return nil, err
	}
	return encodeContent(amountContent{Value: a.Text(), Denomination: a.Denomination, Decimals: a.Decimals})
}

// UnmarshalJSON reads the form of event content, and of results, whose further
// key is ignored. A value that is a JSON integer counts smallest units, other
// values are decimal (spec 41 §2). Anything unreadable is invalid_amount.
func (a *Amount) UnmarshalJSON(data []byte) error {
	fields, err := readObject(data)
	if err != nil {
		return err
	}
	denomination, ok := jsonText(fields["denomination"])
	if !ok {
		return fault.New(fault.InvalidAmount, "an amount needs its denomination as text")
	}
	decimals, err := readDecimals(fields["decimals"])
	if err != nil {
		return err
	}
	value, err := readValue(fields["value"], decimals)
	if err != nil {
		return err
	}
	*a = Amount{Denomination: denomination, Value: value, Decimals: decimals}
	return nil
}

// encodeContent encodes without HTML escapes: content is hashed as it stands.
func encodeContent(content any) ([]byte, error) {
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(content); err != nil {
		return nil, err
	}
	return []byte(strings.TrimSuffix(text.String(), "\n")), nil
}

// readObject keeps the case of the keys, which decoding into a struct would not.
func readObject(data []byte) (map[string]json.RawMessage, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil || fields == nil {
		return nil, fault.New(fault.InvalidAmount, "an amount must be a JSON object")
	}
	return fields, nil
}

func readDecimals(raw json.RawMessage) (int, error) {
	decimals, err := strconv.Atoi(string(raw))
	if err != nil {
		return 0, fault.New(fault.InvalidAmount, "an amount needs its decimals as an integer")
	}
	return decimals, checkDecimals(decimals)
}

func readValue(raw json.RawMessage, decimals int) (*big.Int, error) {
	if text, ok := jsonText(raw); ok {
		return ParseDecimal(text, decimals)
	}
	if !isNumber(raw) {
		return nil, fault.New(fault.InvalidAmount, "an amount needs its value as text or number")
	}
	if !strings.ContainsAny(string(raw), ".eE") {
		return parseInteger(string(raw))
	}
	return ParseDecimal(shortestText(string(raw)), decimals)
}

// shortestText is the one place where a float is right: every Hostr client reads
// such a number as a double and takes its shortest text, and all must agree on
// the amount. Doubles that need an exponent keep it, so that they are refused.
func shortestText(number string) string {
	double, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return number
	}
	magnitude := max(double, -double)
	if magnitude != 0 && (magnitude < 1e-6 || magnitude >= 1e21) {
		return strconv.FormatFloat(double, 'e', -1, 64)
	}
	return strconv.FormatFloat(double, 'f', -1, 64)
}

func jsonText(raw json.RawMessage) (string, bool) {
	if len(raw) == 0 || raw[0] != '"' {
		return "", false
	}
	var text string
	err := json.Unmarshal(raw, &text)
	return text, err == nil
}

// isNumber reports whether a JSON value, already checked to be one, is a number.
func isNumber(raw json.RawMessage) bool {
	return len(raw) > 0 && (raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9')
}
