package input

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/btcsuite/btcd/btcutil/bech32"
	"github.com/google/go-cmp/cmp"
	"github.com/nbd-wtf/go-nostr/nip19"

	"hostr-daemon/internal/fault"
)

const (
	pubkeyA = "79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798"
	pubkeyB = "c6047f9441ed7d6d3045406e95c07cd85c778e4b8cef3ca7abac09b95c709ee5"
)

func TestAnchors(t *testing.T) {
	t.Parallel()
	plain := "30402:" + pubkeyA + ":garden-room"
	address := naddr(t, 30402, pubkeyA, "garden-room")
	for _, test := range []struct{ raw, want, paths string }{
		{`{"anchors":["` + plain + `","` + address + `"]}`, plain + " " + address, ""},
		{`{"anchor":" ` + plain + ` "}`, plain, ""},
		{`{"anchors":"` + plain + `,` + address + `"}`, plain + " " + address, ""},
		{`{"anchors":["",null,"bad","` + plain + `","worse"]}`, plain, "anchors[2] anchors[4]"},
		{`{"anchor":"bad"}`, "", "anchors[0]"},
		{`{}`, "", "anchors"},
	} {
		r := NewReader([]byte(test.raw))
		var given []string
		for _, anchor := range r.Property("anchors", "anchor").Required().Anchors() {
			given = append(given, anchor.Given)
			if anchor.Kind != 30402 || anchor.PubKey != pubkeyA || anchor.Identifier != "garden-room" || anchor.IsZero() {
				t.Errorf("%s was decoded to %+v", anchor.Given, anchor)
			}
		}
		if strings.Join(given, " ") != test.want || allPaths(r.Err()) != test.paths {
			t.Errorf("%s gave %v, problems at %q", test.raw, given, allPaths(r.Err()))
		}
	}
	if r := NewReader([]byte(`{}`)); !r.Property("anchor").Anchor().IsZero() || r.Err() != nil {
		t.Error("an absent anchor has a value")
	}
}

func TestDecodeAnchors(t *testing.T) {
	t.Parallel()
	plain := "30402:" + pubkeyA + ":garden-room"
	anchors, err := DecodeAnchors("anchors", []string{plain})
	if err != nil || len(anchors) != 1 || anchors[0].Identifier != "garden-room" {
		t.Errorf("decoded to %v, %v", anchors, err)
	}
	_, err = DecodeAnchors("anchors", []string{plain, "My garden room", "x"})
	if problemOf(err) != "invalid_input anchors[1] format" || allPaths(err) != "anchors[1] anchors[2]" {
		t.Errorf("the error is %v", err)
	}
}

func TestParsePubkey(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		pubkeyA, strings.ToUpper(pubkeyA), "  " + pubkeyA + "\n", npub(t, pubkeyA), strings.ToUpper(npub(t, pubkeyA)),
	} {
		if pubkey, err := ParsePubkey(text); err != nil || pubkey != pubkeyA {
			t.Errorf("%s gave %s, %v", text, pubkey, err)
		}
	}
	note, err := nip19.EncodeNote(pubkeyA)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		"", "x", pubkeyA[1:], pubkeyA + "0", pubkeyA[1:] + "g", "0x" + pubkeyA, npub(t, pubkeyA)[:62], npub(t, pubkeyA) + "q",
		note, "nostr:" + npub(t, pubkeyA), "npub1", strings.Repeat("a", 100_000), "npub1" + strings.Repeat("q", 100_000),
		naddr(t, 1, pubkeyA, "x"), encodeTLV(t, "npub", []byte("too short")),
	} {
		if pubkey, err := ParsePubkey(text); !fault.Is(err, fault.InvalidInput) || pubkey != "" {
			t.Errorf("%.80s gave %s, %v", text, pubkey, err)
		}
	}
}

func TestInvalidNPub(t *testing.T) {
	t.Parallel()
	for given, shownAs := range map[string]string{
		"nobody":                 "nobody",
		strings.Repeat("a", 200): strings.Repeat("a", 100) + "…",
		"nsec1vl029mgpspedva04g90vltkh6fvh240zqtv9k0t9af8935ke9laqsnlfe5": "(private key left out)",
	} {
		r := NewReader([]byte(`{"npub":"` + given + `"}`))
		r.Property("npub").Required().Code(fault.InvalidNPub).Pubkey()
		encoded, err := json.Marshal(failure(t, r).Details)
		if want := `{"reason":"format","npub":"` + shownAs + `"}`; err != nil || string(encoded) != want || failure(t, r).Code != fault.InvalidNPub {
			t.Errorf("%.20s: %s, %v", given, encoded, err)
		}
	}
	r := NewReader([]byte(`{}`))
	r.Property("npub").Required().Code(fault.InvalidNPub).Pubkey()
	if problemOf(r.Err()) != "invalid_input npub missing" {
		t.Errorf("a missing npub is %s", problemOf(r.Err()))
	}
}

func TestPubkeys(t *testing.T) {
	t.Parallel()
	r := NewReader([]byte(`{"recipientPubkeys":"` + strings.ToUpper(pubkeyA) + `, ` + npub(t, pubkeyB) + `"}`))
	got := r.Property("recipientPubkeys", "recipientPubkey").Pubkeys()
	if diff := cmp.Diff([]string{pubkeyA, pubkeyB}, got); diff != "" || r.Err() != nil {
		t.Errorf("%s, %v", diff, r.Err())
	}
	r = NewReader([]byte(`{"recipientPubkey":"x"}`))
	if r.Property("recipientPubkeys", "recipientPubkey").Pubkeys(); problemOf(r.Err()) != "invalid_input recipientPubkeys[0] format" {
		t.Errorf("a bad pubkey is %s", problemOf(r.Err()))
	}
}

func TestTradeID(t *testing.T) {
	t.Parallel()
	const id = "00ff000000000000000000000000000000000000000000000000000000000abc"
	for value, want := range map[string]string{
		`"` + id + `"`: id, `" 0x` + id + ` "`: id, `"0X` + strings.ToUpper(id) + `"`: id, `null`: "", `""`: "",
	} {
		r, p := property(value)
		if got := p.TradeID(); got != want || r.Err() != nil {
			t.Errorf("%s gave %s, %v", value, got, r.Err())
		}
	}
	for _, value := range []string{`"trade-1"`, `"` + id[1:] + `"`, `"0x0x` + id + `"`, `"` + id + `0"`, `12`} {
		r, p := property(value)
		if p.TradeID(); problemOf(r.Err()) != "invalid_input p format" {
			t.Errorf("%s is %q", value, problemOf(r.Err()))
		}
	}
}

// vectors are those of the specification, copied into testdata.
type vectors struct {
	Anchors []struct {
		Anchor         string `json:"anchor"`
		NAddr          string `json:"naddr"`
		NAddrWithRelay string `json:"naddrWithRelay"`
	} `json:"anchors"`
	Create json.RawMessage `json:"create"`
	Edit   json.RawMessage `json:"edit"`

	AmountInputs []struct {
		Input  json.RawMessage `json:"input"`
		Amount *struct {
			Value             string `json:"value"`
			SmallestUnitValue string `json:"smallestUnitValue"`
			Denomination      string `json:"denomination"`
			Decimals          int    `json:"decimals"`
		} `json:"amount"`
		Error fault.Code `json:"error"`
	} `json:"amountInputs"`
	Frequencies []struct {
		Input     json.RawMessage `json:"input"`
		Frequency string          `json:"frequency"`
		Error     fault.Code      `json:"error"`
	} `json:"frequencies"`
	Durations []struct {
		Input      string `json:"input"`
		Valid      bool   `json:"valid"`
		Normalized string `json:"normalized"`
	} `json:"isoDuration"`
}

func readVectors(t testing.TB) vectors {
	t.Helper()
	var read vectors
	for _, file := range []string{"testdata/listings.json", "testdata/amounts.json"} {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(content, &read); err != nil {
			t.Fatal(err)
		}
	}
	return read
}

func naddr(t testing.TB, kind int, pubkey, identifier string) string {
	t.Helper()
	text, err := nip19.EncodeEntity(pubkey, kind, identifier, nil)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func npub(t testing.TB, pubkey string) string {
	t.Helper()
	text, err := nip19.EncodePublicKey(pubkey)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// encodeTLV writes bytes as bech32 under any prefix.
func encodeTLV(t testing.TB, prefix string, content []byte) string {
	t.Helper()
	bits, err := bech32.ConvertBits(content, 8, 5, true)
	if err != nil {
		t.Fatal(err)
	}
	text, err := bech32.Encode(prefix, bits)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
