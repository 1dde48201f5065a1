package market_test

import (
	"strings"
	"testing"

	"github.com/btcsuite/btcd/btcutil/bech32"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/market"
)

func TestParseAnchor(t *testing.T) {
	t.Parallel()
	for _, vector := range readVectors(t).Anchors {
		for _, form := range []string{
			vector.Anchor, " " + vector.Anchor + " ", vector.Naddr, vector.NaddrWithRelay,
			"nostr:" + vector.Naddr, "NOSTR:" + strings.ToUpper(vector.Naddr),
		} {
			anchor, err := market.ParseAnchor(form)
			if err != nil {
				t.Errorf("%s: %v", form, err)
			} else if anchor.String() != vector.Anchor {
				t.Errorf("%s = %s, want %s", form, anchor, vector.Anchor)
			}
		}
	}
	for form, want := range map[string]market.Anchor{
		"30402:" + author + ":a:b:c":                {Kind: 30402, PubKey: author, Identifier: "a:b:c"},
		"30402:" + author + ":":                     {Kind: 30402, PubKey: author},
		"1:" + strings.ToUpper(author) + ":x":       {Kind: 1, PubKey: author, Identifier: "x"},
		"nostr:30402:" + author + ":naddr1":         {Kind: 30402, PubKey: author, Identifier: "naddr1"},
		"30402:" + author + ":Zimmer mit Aussicht ": {Kind: 30402, PubKey: author, Identifier: "Zimmer mit Aussicht"},
	} {
		if anchor, err := market.ParseAnchor(form); err != nil || anchor != want {
			t.Errorf("%s = %v, %v", form, anchor, err)
		}
	}
}

func TestParseAnchorRefuses(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "Garden room", "30402", "30402:" + author, "x:" + author + ":a", "-1:" + author + ":a",
		"30402:" + author[:62] + ":a", "30402:" + author + "00:a", "30402:" + strings.Repeat("z", 64) + ":a",
		"naddr1", "naddr1qqqq", "nostr:", "65536:" + author + ":a", "99999999999:" + author + ":a",
		"nostr:nostr:naddr1qvzqqqrkcgpzq7d7vel0nh9m4326qc54e6rskpczn07dktww9rv4nu5ptvt0s9ucqq9kwctjv3jkuttjdahk6v0uw5y",
		"naddr1" + strings.Repeat("q", 10_000),
		"npub1d4k24sjg47t0dta8lyz025p98g8naul44gh7dqu2jkepv6g5dr3q97c7ha",
		naddr(t, []byte{0, 1, 'a', 3, 1, 0}),                                               // kind of one byte: the library panics
		naddr(t, []byte{0, 1, 'a'}),                                                        // neither author nor kind
		naddr(t, append([]byte{0, 1, 0xff, 3, 4, 0, 0, 0, 1, 2, 32}, make([]byte, 32)...)), // identifier is no text
	} {
		anchor, err := market.ParseAnchor(text)
		if !fault.Is(err, fault.InvalidInput) {
			t.Errorf("%q = %v, %v, want invalid_input", text, anchor, err)
			continue
		}
		if details := encode(t, fault.From(err).Details); details != `{"reason":"format"}` {
			t.Errorf("%q: details %s", text, details)
		}
	}
}

func naddr(t *testing.T, fields []byte) string {
	t.Helper()
	words, err := bech32.ConvertBits(fields, 8, 5, true)
	if err != nil {
		t.Fatal(err)
	}
	text, err := bech32.Encode("naddr", words)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func FuzzParseAnchor(f *testing.F) {
	f.Add("30402:" + author + ":a:b")
	f.Add("nostr:naddr1qvzqqqrkcgpzq7d7vel0nh9m4326qc54e6rskpczn07dktww9rv4nu5ptvt0s9ucqq9kwctjv3jkuttjdahk6v0uw5y")
	f.Add("naddr1qq")
	f.Fuzz(func(t *testing.T, text string) {
		anchor, err := market.ParseAnchor(text)
		if err != nil {
			if !fault.Is(err, fault.InvalidInput) {
				t.Fatal(err)
			}
			return
		}
		if again, err := market.ParseAnchor(anchor.String()); err != nil || again.String() != anchor.String() {
			// White space at the end of an identifier is all that may be lost.
			if strings.TrimSpace(anchor.String()) == anchor.String() {
				t.Fatalf("%q reads as %q, then as %v, %v", text, anchor, again, err)
			}
		}
	})
}
