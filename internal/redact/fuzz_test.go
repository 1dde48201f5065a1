package redact_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"hostr-daemon/internal/redact"
)

// canaries hold a secret each; core is the part that must not be seen.
var canaries = []struct{ text, core string }{
	{nsec, "vl029mgpspedva04g90vltkh6fvh240zqtv9k0t9af8935ke9laqsnlfe5"},
	{"NSEC1" + strings.ToUpper(nsec[5:]), "GPSPEDVA04G90VLTKH6"},
	{"bunker://" + hexKey + "?secret=0canary0", "0canary0"},
	{"nostrconnect://" + hexKey + "?secret=0canary0", "0canary0"},
	{"nostr+walletconnect://x?secret=0canary0", "0canary0"},
	{jwt, "eyJzdWIiOiIxIn0"},
	{"Bearer 0canary0", "0canary0"},
	{"wss://user:0canary0@relay.example", "0canary0"},
}

func FuzzText(f *testing.F) {
	for i, seed := range []string{"", "a", "1", "secret=", `{"seed":`, "://", "%3a%2f%2f", "data:image/png;base64,", "Bearer ", "eyJ", "nsec1\u200b", "\xff", "0x", `\"sk\":\"`} {
		f.Add(seed, seed, uint8(i))
	}
	f.Fuzz(func(t *testing.T, before, after string, which uint8) {
		redact.Text(before) // must not panic on anything
		redact.Head([]byte(before), 16)
		canary := canaries[int(which)%len(canaries)]
		// A letter or digit in front would make another word of it.
		text := before + " " + canary.text + " " + after
		if got := redact.Text(text); strings.Contains(got, canary.core) {
			t.Fatalf("Text(%q) shows it: %q", text, got)
		}
	})
}

func FuzzJSON(f *testing.F) {
	for i, seed := range []string{`{"a":[1,"b",{"token":"c"}]}`, `[["secret","x"],`, `"\ud800\u2028"`, `{"qr`, "[[[[", "\x00", `"` + strings.Repeat("a", 1100) + `"`} {
		f.Add([]byte(seed), "k", "before ", " after", uint8(i))
	}
	f.Fuzz(func(t *testing.T, raw []byte, key, before, after string, which uint8) {
		for _, limit := range []int{0, 50} {
			got := redact.AppendJSON(nil, raw, limit)
			if !json.Valid(got) || !utf8.Valid(got) && utf8.Valid(raw) || strings.ContainsAny(string(got), "\n\r\u2028\u2029") {
				t.Fatalf("AppendJSON(%q, %d) is %q", raw, limit, got)
			}
		}
		canary := canaries[int(which)%len(canaries)]
		document, err := json.Marshal(map[string]any{key: []any{before + " " + canary.text + " " + after, before}, canary.text: 1})
		if err != nil {
			t.Fatal(err)
		}
		for _, form := range [][]byte{document, escaped(document)} {
			got := redact.JSON(form)
			if !json.Valid(got) || strings.Contains(string(got), canary.core) {
				t.Fatalf("JSON(%s) is %s", form, got)
			}
			var out strings.Builder
			if _, err := redact.Writer(&out).Write(append(form, '\n')); err != nil || strings.Contains(out.String(), canary.core) {
				t.Fatalf("a line %s is written as %s", form, out.String())
			}
			quoted, err := json.Marshal(string(form))
			if err != nil {
				t.Fatal(err)
			}
			if got := redact.JSON(quoted); !json.Valid(got) || strings.Contains(string(got), canary.core) {
				t.Fatalf("JSON(%s) is %s", quoted, got)
			}
			if got := redact.Head(form, 128); len(got) > 128+len("…") || strings.Contains(string(got), canary.core) {
				t.Fatalf("Head(%s) is %s", form, got)
			}
		}
	})
}

// escaped writes every "n", "/" and "e" of the document's strings as an escape.
func escaped(document []byte) []byte {
	var out []byte
	for i, b := range document {
		inEscape := i > 0 && document[i-1] == '\\' || i > 1 && strings.LastIndexByte(string(document[max(0, i-6):i]), '\\') >= 0
		switch {
		case inEscape:
			out = append(out, b)
		case b == '/':
			out = append(out, '\\', '/')
		case b == 'n':
			out = append(out, `\u006e`...)
		case b == 'e':
			out = append(out, `\u0065`...)
		default:
			out = append(out, b)
		}
	}
	return out
}

func BenchmarkWriterCleanLine(b *testing.B) {
	line := []byte(`{"level":"info","event":"request","id":"12345","traceId":"4f1d2c3b4a59687700112233445566ff","method":"callAction","params":{"action":"hostr.listings.search","input":{"limit":20}},"time":"2024-05-01T10:00:00.123Z"}` + "\n")
	w := redact.Writer(discard{})
	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := w.Write(line); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkJSON(b *testing.B) {
	listing := `{"id":"` + hexKey + `","title":"A quiet room under the roof","description":"` + strings.Repeat("Bright and calm, with a view. ", 10) + `","prices":[{"amount":{"value":"0.001","denomination":"BTC"},"frequency":"daily"}],"active":true},`
	document := []byte(`{"listings":[` + strings.TrimSuffix(strings.Repeat(listing, 200), ",") + `]}`)
	upload := []byte(`{"base64":"` + strings.Repeat("QUJD", 16<<20) + `","mime":"image/png"}`)
	for name, test := range map[string]struct {
		raw   []byte
		limit int
	}{"whole": {document, 0}, "cut": {document, 16 << 10}, "upload of 64 MB": {upload, 16 << 10}} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(test.raw)))
			b.ReportAllocs()
			buffer := make([]byte, 0, len(document)+1<<10)
			for b.Loop() {
				buffer = redact.AppendJSON(buffer[:0], test.raw, test.limit)
			}
		})
	}
}

func BenchmarkText(b *testing.B) {
	text := "unknown action hostr.listings.serch: see describe for the list of actions, relay wss://relay.example"
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		redact.Text(text)
	}
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
