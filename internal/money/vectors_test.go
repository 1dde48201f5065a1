package money_test

import (
	"encoding/json"
	"os"
	"testing"
	"time"
)

// vectors are testdata/amounts-vectors.json, the figures of spec 41. Its group
// amountInputs is for the parsers of inputs.
type vectors struct {
	DecimalParse []struct {
		Input     string `json:"input"`
		Decimals  int    `json:"decimals"`
		Smallest  string `json:"smallest"`
		Formatted string `json:"formatted"`
	} `json:"decimalParse"`
	DecimalParseErrors []struct {
		Input    string `json:"input"`
		Decimals int    `json:"decimals"`
	} `json:"decimalParseErrors"`
	DecimalFormat []struct {
		Smallest    string `json:"smallest"`
		Decimals    int    `json:"decimals"`
		MaxDecimals *int   `json:"maxDecimals"`
		Out         string `json:"out"`
	} `json:"decimalFormat"`
	Frequencies []struct {
		Input     string `json:"input"`
		Frequency string `json:"frequency"`
		Error     string `json:"error"`
	} `json:"frequencies"`
	Cost []struct {
		Prices   [][2]string `json:"prices"`
		Start    *time.Time  `json:"start"`
		End      *time.Time  `json:"end"`
		Quantity int64       `json:"quantity"`
		Cost     string      `json:"cost"`
	} `json:"cost"`
	Rescale []struct {
		Value string `json:"value"`
		From  int    `json:"from"`
		To    int    `json:"to"`
		Out   string `json:"out"`
	} `json:"rescale"`
	TokenOps []struct {
		Op            string `json:"op"`
		Value         string `json:"value"`
		TokenDecimals int    `json:"tokenDecimals"`
		Out           string `json:"out"`
	} `json:"tokenOps"`
	RefundFraction []struct {
		Input json.RawMessage `json:"input"`
		Tag   string          `json:"tag"`
		JSON  json.RawMessage `json:"json"`
	} `json:"refundFraction"`
	ISODuration []struct {
		Input      string `json:"input"`
		Valid      bool   `json:"valid"`
		Normalized string `json:"normalized"`
	} `json:"isoDuration"`
}

func readVectors(t *testing.T) vectors {
	t.Helper()
	var read vectors
	decodeFile(t, "testdata/amounts-vectors.json", &read)
	for name, count := range map[string]int{
		"decimalParse":       len(read.DecimalParse),
		"decimalParseErrors": len(read.DecimalParseErrors),
		"decimalFormat":      len(read.DecimalFormat),
		"frequencies":        len(read.Frequencies),
		"cost":               len(read.Cost),
		"rescale":            len(read.Rescale),
		"tokenOps":           len(read.TokenOps),
		"refundFraction":     len(read.RefundFraction),
		"isoDuration":        len(read.ISODuration),
	} {
		if count == 0 {
			t.Fatalf("no vectors of %s", name)
		}
	}
	return read
}

func decodeFile(t *testing.T, path string, into any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}
