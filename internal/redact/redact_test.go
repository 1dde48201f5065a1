package redact_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"hostr-daemon/internal/redact"
)

var (
	hexKey = strings.Repeat("0123456789abcdef", 4)
	nsec   = "nsec1vl029mgpspedva04g90vltkh6fvh240zqtv9k0t9af8935ke9laqsnlfe5"
	jwt    = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJlLXNpZ25hdHVyZQ"
	base64 = strings.Repeat("QUJDRGVm", 40)
)

func TestTextShapes(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ in, want string }{
		"nsec":                     {"key " + nsec + " refused", "key [redacted] refused"},
		"nsec in upper case":       {strings.ToUpper(nsec), "[redacted]"},
		"nsec in mixed case":       {"NsEc1" + nsec[5:], "[redacted]"},
		"nsec in a URI":            {"nostr:" + nsec, "nostr:[redacted]"},
		"nsec split by zero width": {"nsec1vl029m\u200bgpspedva04g90", "[redacted]"},
		"two":                      {nsec + "," + nsec, "[redacted],[redacted]"},
		"ncryptsec":                {"x=ncryptsec1qgg9947rlpvqu76pj5ecreduf9jxhselq2nae2kghhvd5g7dgjtcxfqtd67p9m0w57lspw8gsq6yphnm8623nsl8xn9j4jdzz84zm3frztj3z7s35vpzmqf6ksu8r89qk5z2zxfmu5gv8th8wclt0h4p", "x=[redacted]"},
		"bunker":                   {"bunker://" + hexKey + "?relay=wss://r.example&secret=abc failed", "bunker://[redacted] failed"},
		"bunker in upper case":     {"BUNKER://abc?secret=1", "BUNKER://[redacted]"},
		"bunker, escaped slashes":  {`"bunker:\/\/abc?secret=1"`, `"bunker:\/\/[redacted]"`},
		"bunker, percent-encoded":  {"https://h.example/?u=bunker%3A%2f%2Fabc%3Fsecret%3D1&x=2", "https://h.example/?u=bunker%3A%2f%2F[redacted]&x=2"},
		"nostrconnect":             {"(nostrconnect://ab?metadata=%7B%7D&secret=s)", "(nostrconnect://[redacted]"},
		"wallet connect":           {"nostr+walletconnect://ab?secret=cd\nnext", "nostr+walletconnect://[redacted]\nnext"},
		"jwt":                      {"got " + jwt + ", bad", "got [redacted], bad"},
		"jwt behind base64":        {base64 + jwt, "[base64]"},
		"bearer":                   {"Authorization: Bearer abc.DEF-123", "Authorization: [redacted]"},
		"bearer alone":             {"sent bearer   abc.DEF-123 to it", "sent bearer   [redacted] to it"},
		"bearer, percent-encoded":  {"h=Bearer%20abc123", "h=Bearer%20[redacted]"},
		"NIP-98":                   {"Authorization: Nostr eyJpZCI6IjEyMyIsImtpbmQiOjI3MjM1fQ==", "Authorization: [redacted]"},
		"NIP-98 alone":             {"Nostr eyJpZCI6IjEyMyIsImtpbmQiOjI3MjM1fQ==", "Nostr [redacted]"},
		"basic":                    {"Basic dXNlcjpwYXNz", "Basic [redacted]"},
		"hex under a key":          {`{"privateKey":"` + hexKey + `"}`, `{"privateKey":"[redacted]"}`},
		"hex under an escaped key": {`{\"privateKey\": \"` + hexKey + `\"}`, `{\"privateKey\": \"[redacted]\"}`},
		"hex behind a name":        {"secret=" + hexKey + " sk=" + hexKey, "secret=[redacted] sk=[redacted]"},
		"hex behind words":         {"bad private key 0x" + hexKey, "bad private key 0x[redacted]"},
		"hex behind sk":            {"sk " + hexKey + " sk_" + hexKey, "sk [redacted] sk_[redacted]"},
		"preimage":                 {"preimage: " + strings.ToUpper(hexKey), "preimage: [redacted]"},
		"quoted values":            {`password: "hun ter" {'secret': 'x'}`, `password: "[redacted]" {'secret': '[redacted]'}`},
		"values in running text":   {"password: hunter2, secret: abcd", "password: [redacted], secret: abcd"},
		"object under a key":       {`{"private":{"k":["abc"]},"a":1}`, `{"private":[redacted],"a":1}`},
		"broken object":            {`{"private":{"k":["abc"`, `{"private":[redacted]`},
		"number under a key":       {`{"seed":12345,"n":1}`, `{"seed":[redacted],"n":1}`},
		"mnemonic":                 {"mnemonic: legal winner thank year wave sausage worth useful legal winner thank yellow.", "mnemonic: [redacted]."},
		"seed phrase":              {"seed phrase = legal winner thank year wave sausage worth useful legal winner thank yellow", "seed phrase = [redacted]"},
		"image":                    {"got data:image/png;base64,iVBORw0KGgo= here", "got [image] here"},
		"image, escaped slash":     {`"data:image\/png;base64,iVBORw0KGgo="`, `"[image]"`},
		"image, upper case":        {"DATA:IMAGE/svg+xml;utf8,%3Csvg%3E more", "[image] more"},
		"long base64":              {"x " + base64 + "== y", "x [base64]== y"},
		"long hex":                 {"call 0x" + strings.Repeat(hexKey, 5), "call 0x[hex]"},
		"user and password":        {"https://user:pa@ss@h.example/p", "https://[redacted]@h.example/p"},
		"query":                    {"https://h.example/v2?apikey=abc&x=1&token=2&key=3&Secret=4#f", "https://h.example/v2?apikey=[redacted]&x=1&token=[redacted]&key=[redacted]&Secret=[redacted]"},
		"signed links":             {"from https://h.example/a.png?w=5&sig=a%2Fb&auth=c&hmac=d&Policy=e&hdnea=f~g=h&sp=r, then", "from https://h.example/a.png?w=5&sig=[redacted]&auth=[redacted]&hmac=[redacted]&Policy=[redacted]&hdnea=[redacted]&sp=r, then"},
		"percent-encoded query":    {"u=https%3A%2F%2Fh%3Ftoken%3Dabc%26x&y=1", "u=https%3A%2F%2Fh%3Ftoken%3D[redacted]&y=1"},
		"environment":              {"HOSTR_PIMLICO_API_KEY=pim_abc", "HOSTR_PIMLICO_API_KEY=[redacted]"},
		"cookie":                   {"Cookie: a=b; c=d\nHost: x", "Cookie: [redacted]\nHost: x"},
	} {
		if got := redact.Text(test.in); got != test.want {
			t.Errorf("%s: Text(%q)\n got %q\nwant %q", name, test.in, got, test.want)
		}
		once := redact.Text(test.in)
		if twice := redact.Text(once); twice != once {
			t.Errorf("%s: a second pass turns %q into %q", name, once, twice)
		}
	}
}

// A link as a whole is shown without its query: nobody knows all the names that services
// give to the password in it.
func TestLinksInJSON(t *testing.T) {
	t.Parallel()
	long := "https://h.example/" + strings.Repeat("a/", 400)
	for in, want := range map[string]string{
		`{"images":["https://h.example/a.png?sv=2&se=3&k9=s3cret",{"url":"HTTP://h.example/b?x"}]}`: `{"images":["https://h.example/a.png?[redacted]",{"url":"HTTP://h.example/b?[redacted]"}]}`,
		`" https:\/\/h.example\/a?x=y"`:                               `" https://h.example/a?[redacted]"`,
		`"{\"url\":\"https://h.example/a?x=y\"}"`:                     `"{\"url\":\"https://h.example/a?[redacted]\"}"`,
		`"https://user:pass@h.example/a?x=y"`:                         `"https://[redacted]@h.example/a?[redacted]"`,
		`"` + long + `?x=y` + strings.Repeat("z", 1000) + `"`:         `"` + long + `?[redacted]... [truncated 1822 chars]"`,
		`["https://h.example/a#b","https://h.example/?",""," ","h"]`:  `["https://h.example/a#b","https://h.example/?",""," ","h"]`,
		`["wss://r.example/?a=b","Is http://h.example/?a=b a link?"]`: `["wss://r.example/?a=b","Is http://h.example/?a=b a link?"]`,
	} {
		once := string(redact.JSON([]byte(in)))
		if once != want {
			t.Errorf("%s\n got %s\nwant %s", in, once, want)
		}
		if twice := string(redact.JSON([]byte(once))); twice != once && !strings.Contains(once, "truncated") {
			t.Errorf("a second pass turns %s into %s", once, twice)
		}
	}
}

// TestTextAtEveryOffset: runs are found wherever they lie.
func TestTextAtEveryOffset(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ in, want string }{
		{"preimage " + hexKey + " x", "preimage [redacted] x"},
		{strings.Repeat("xY3", 86), "[base64]"},
		{"sk_" + hexKey, "sk_[redacted]"},
		{nsec, "[redacted]"},
		{base64 + jwt + " " + hexKey, "[base64] " + hexKey},
		{hexKey + " secret=" + hexKey, hexKey + " secret=[redacted]"},
		{"lnbc" + strings.Repeat("q0", 500) + " " + nsec, "lnbc" + strings.Repeat("q0", 500) + " [redacted]"},
	} {
		for offset := range 200 {
			padding := strings.Repeat(". ", offset/2) + strings.Repeat(" ", offset%2)
			if got := redact.Text(padding + test.in); got != padding+test.want {
				t.Fatalf("at %d: Text(%q)\n got %q", offset, padding+test.in, got)
			}
		}
	}
}

// TestTextIsLinear: no text makes the search run away. It would take hours.
func TestTextIsLinear(t *testing.T) {
	t.Parallel()
	for _, unit := range []string{
		"a", "://", "data:image/", "data:image/,", "secret=", "secret: ", `secret="`, `"secret":[`, "bearer ", "nostr a", "eyJ", "eyJ.", "sec1", "1",
		"%3a%2f%2f", "%3d", "authorization: a ", "cookie: ", "x://y", "key ", "mnemonic: word ", "0123456789abcdef", "\\", `\"`, "=", "bunker%3a%2f%2f%",
	} {
		redact.Text(strings.Repeat(unit, 100_000/len(unit)))
		redact.JSON([]byte(`["` + strings.ReplaceAll(strings.Repeat(unit, 20_000/len(unit)), `"`, `\"`) + `"]`))
	}
}

func TestTextKeepsWhatIsPublic(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"",
		"pubkey " + hexKey + " and event " + hexKey,
		`{"id":"` + hexKey + `","pubkey":"` + hexKey + `","sig":"` + hexKey + hexKey + `"}`,
		"30402:" + hexKey + ":my-listing",
		"the nsec belongs to pubkey " + hexKey,
		"send an nsec1… or a bunker:// or nostrconnect:// URI",
		"paste bunker://<pubkey>?relay=<relay>",
		"npub10elfcs4fr0l0r8af98jlmgdh9c8tcxjvz9qkw038js35mp4dma8qzvjptg",
		"a bearer token is missing; Basic authentication is not offered; Nostr Connect timed out",
		"invalid preimage: must be 64 digits",
		"unknown token: 0xdAC17F958D2ee523a2206206994597C13D831ec7, known tokens: USDT, tBTC",
		"images[0] must be https://… or data:image/png;base64,…",
		"lnbc" + strings.Repeat("20u1p3y0x3hpp5743k2g0fsqqxj7n8qzuhns5gmkk4djeejk3wkp64ppevgekvc0j", 5),
		"https://relay.example/path?limit=5#top and wss://relay.example",
		"call hostr.listings.search key=value",
		`unknown field "secret", did you mean secret?`,
		"if a == b && token == nil",
		"secret=<value>, token=",
		`{"secret":null,"token":""}`,
	} {
		if got := redact.Text(text); got != text {
			t.Errorf("Text(%q)\n got %q", text, got)
		}
	}
}

func TestJSONKeys(t *testing.T) {
	t.Parallel()
	for _, key := range []string{
		"secret", "clientSecret", "SECRET_KEY", "token", "notificationToken", "tokenPubkey", "tokenSymbol", "authorization",
		"cookie", "password", "privateKey", "nsec", "jwt", "qrImage", "QRIMAGE", "nostrconnect", "qr", "mnemonic", "seed",
		"seedPhrase", "preimage", "preimageHex", "signature", "sk", "apiKey", "api_key", `\u006esec`, `to\u006ben`,
	} {
		in := `{"` + key + `":{"a":[1,"canary"]},"b":true}`
		if got := string(redact.JSON([]byte(in))); !strings.Contains(got, `"[redacted]","b":true}`) || strings.Contains(got, "canary") {
			t.Errorf("%s: %s", key, got)
		}
	}
	for _, key := range []string{"base64", "pubkey", "invoice", "qrCode", "risk", "id", "sig", "key", "nip05", "anchor"} {
		in := `{"` + key + `":"value"}`
		if got := string(redact.JSON([]byte(in))); got != in {
			t.Errorf("%s: %s", key, got)
		}
	}
}

func TestJSONValues(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ab ", 400)
	emoji := strings.Repeat("😀 ", 400) // three units, five bytes each
	for name, test := range map[string]struct{ in, want string }{
		"scalars":            {` [1, -2.5e3, true, null, "a"] `, `[1,-2.5e3,true,null,"a"]`},
		"empty":              {`{ "a" : [ ] , "b" : { } }`, `{"a":[],"b":{}}`},
		"shape in a string":  {`{"note":"` + nsec + `"}`, `{"note":"[redacted]"}`},
		"shape in a key":     {`{"` + nsec + `":1}`, `{"[redacted]":"[redacted]"}`},
		"escaped shape":      {`["\u006e\u0073ec1vl029mgpsp","bunker:\/\/a?secret=1"]`, `["[redacted]","bunker://[redacted]"]`},
		"JSON in a string":   {`{"text":"{\"seed\":\"abc\",\"n\":1}"}`, `{"text":"{\"seed\":\"[redacted]\",\"n\":1}"}`},
		"private text":       {`{"content":"door code 1234","address":"1 Palm Street","about":"x"}`, `{"content":"[redacted]","address":"[redacted]","about":"x"}`},
		"tag":                {`{"tags":[["p","` + hexKey + `"],["preimage","` + hexKey + `","x"]]}`, `{"tags":[["p","` + hexKey + `"],["preimage","[redacted]","[redacted]"]]}`},
		"base64":             {`{"base64":"` + base64 + `"}`, `{"base64":"[base64]"}`},
		"long":               {`"` + long + `"`, `"` + long[:1000] + `... [truncated 1200 chars]"`},
		"long in units":      {`"` + emoji + `"`, `"` + emoji[:1667-1-1] + `... [truncated 1200 chars]"`},
		"long with escapes":  {`"` + strings.Repeat(`\n\u00e9`, 600) + `"`, `"` + strings.Repeat(`\né`, 500) + `... [truncated 1200 chars]"`},
		"long of bytes only": {`"` + strings.Repeat("é", 900) + `"`, `"` + strings.Repeat("é", 900) + `"`},
		"secret at the cut":  {`"` + long[:990] + nsec + long + `"`, `"` + long[:990] + `[redacted]... [truncated ` + fmt.Sprint(990+len(nsec)+1200) + ` chars]"`},
		"line separators":    {"[\"a\u2028b\xff\"]", "[\"a\\u2028b\ufffd\"]"},
		"not JSON":           {`{"a":`, `"[not JSON]"`},
		"nothing":            {``, `"[not JSON]"`},
		"two values":         {`{} {}`, `"[not JSON]"`},
		"too deep":           {strings.Repeat("[", 20000) + strings.Repeat("]", 20000), `"[not JSON]"`},
	} {
		if got := string(redact.JSON([]byte(test.in))); got != test.want {
			t.Errorf("%s:\n got %.300q\nwant %.300q", name, got, test.want)
		}
	}
}

func TestAppendJSONStopsAtTheLimit(t *testing.T) {
	t.Parallel()
	in := `{"a":[` + strings.Repeat(`{"b":"0123456789"},`, 100) + `1],"c":2}`
	got := redact.AppendJSON([]byte("x"), []byte(in), 100)
	if !json.Valid(got[1:]) || len(got) > 150 {
		t.Errorf("%d bytes, valid %v: %s", len(got), json.Valid(got[1:]), got)
	}
	if !strings.HasSuffix(string(got), `"[left out]"]}`) {
		t.Errorf("the end does not tell that something is missing: %s", got)
	}
	if whole := redact.AppendJSON(nil, []byte(in), 10_000); string(whole) != in {
		t.Errorf("cut below the limit: %s", whole)
	}
}

func TestError(t *testing.T) {
	t.Parallel()
	if got := redact.Error(nil); got != "" {
		t.Errorf("nil: %q", got)
	}
	if got := redact.Error(fmt.Errorf("dial: %w", errors.New("wss://a:b@relay.example"))); got != "dial: wss://[redacted]@relay.example" {
		t.Error(got)
	}
}

func TestWriter(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ in, want string }{
		"clean":           {`{"level":"info","id":"1","params":{"pubkey":"` + hexKey + `"}}` + "\n", `{"level":"info","id":"1","params":{"pubkey":"` + hexKey + `"}}` + "\n"},
		"redacted once":   {`{"params":{"nsec":"[redacted]"}}` + "\n", `{"params":{"nsec":"[redacted]"}}` + "\n"},
		"key":             {`{"nsec":"abc","message":"m"}` + "\n", `{"nsec":"[redacted]","message":"m"}` + "\n"},
		"shape":           {`{"message":"got ` + nsec + `"}` + "\n", `{"message":"got [redacted]"}` + "\n"},
		"escapes":         {`{"message":"\u006esec1vl029mgpsp"}` + "\n", `{"message":"[redacted]"}` + "\n"},
		"text":            {"panic: " + nsec + "\n", "panic: [redacted]\n"},
		"broken JSON":     {`{"message":"` + nsec + "\n", `{"message":"[redacted]` + "\n"},
		"several lines":   {"a\n{\"seed\":\"b\"}\nc " + nsec, "a\n{\"seed\":\"[redacted]\"}\nc [redacted]"},
		"line separators": {"{\"m\":\"a\u2028b\"}\na\u2028b\u2029c\n", `{"m":"a\u2028b"}` + "\n" + `a\u2028b\u2029c` + "\n"},
		"long stays":      {`{"stack":"` + strings.Repeat("a.go:1 ", 500) + nsec + `"}` + "\n", `{"stack":"` + strings.Repeat("a.go:1 ", 500) + `[redacted]"}` + "\n"},
	} {
		var out strings.Builder
		n, err := redact.Writer(&out).Write([]byte(test.in))
		if n != len(test.in) || err != nil || out.String() != test.want {
			t.Errorf("%s: %d, %v\n got %q\nwant %q", name, n, err, out.String(), test.want)
		}
	}
	failing := errors.New("no room")
	if n, err := redact.Writer(failingWriter{failing}).Write([]byte("x\n")); n != 0 || !errors.Is(err, failing) {
		t.Errorf("a failed write gives %d, %v", n, err)
	}
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }

// TestEscapesHideNothing: secrets behind JSON's escapes, in text that was quoted more
// than once.
func TestEscapesHideNothing(t *testing.T) {
	t.Parallel()
	escaped := ""
	for _, b := range []byte(nsec) {
		escaped += fmt.Sprintf(`\u%04x`, b)
	}
	pad := strings.Repeat("p ", 80)
	for name, text := range map[string]string{
		"escaped shape":            `n\u0073ec1` + nsec[5:],
		"escaped twice":            `n\\\\u0073ec1` + nsec[5:],
		"escaped backslash":        `n\u005cu0073ec1` + nsec[5:],
		"escaped whole":            escaped,
		"escaped whole and quoted": `"` + escaped + `"`,
		"object":                   `{"p\u0061ssword":"canary with \"canary\" words","q":1}`,
		"object, cut":              `{"q":1,"p\u0061ssword":"canary ` + strings.Repeat("w", 9000),
		"object in a string":       `{"a":"{\"p\\u0061ssword\":\"canary with \\\"canary\\\" words\"}"}`,
		"escaped key":              `{"p\\u0061ssword":"canary"}`,
		"array":                    `["preimage","canary"]`,
		"slashes":                  `bunker:\\/\\/canary?secret=canary`,
		"name":                     `s\u0065cret=canary123canary`,
		"sk with a slash":          "sk/" + hexKey,
		"sk with a prefix":         "sk|0x" + hexKey,
	} {
		for _, padding := range []string{"", pad} {
			in := text
			if strings.HasPrefix(text, "{") {
				in = strings.Replace(text, "{", `{"pad":"`+padding+`",`, 1)
			} else if text[0] != '[' && text[0] != '"' {
				in = padding + text
			}
			quoted, err := json.Marshal(in)
			if err != nil {
				t.Fatal(err)
			}
			var line strings.Builder
			if _, err := redact.Writer(&line).Write([]byte(`{"message":` + string(quoted) + "}\n")); err != nil {
				t.Fatal(err)
			}
			shown := map[string]string{
				"JSON":   string(redact.JSON(quoted)),
				"twice":  string(redact.JSON([]byte(`{"a":` + string(quoted) + `}`))),
				"Head":   string(redact.Head([]byte(in), 128)),
				"Writer": line.String(),
			}
			if text[0] != '[' { // a tag is known by its place only
				shown["Text"] = redact.Text(in)
			}
			if name == "array" {
				delete(shown, "Writer") // which reads whole lines by shape first
			}
			for by, got := range shown {
				for _, core := range []string{"canary", nsec[5:25], hexKey[:32], escaped[30:60]} {
					if strings.Contains(got, core) {
						t.Errorf("%s by %s: %s", name, by, got)
					}
				}
			}
		}
	}
}

func TestHead(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ in, want string }{
		"short":             {`a "b" \d`, `a "b" \d`},
		"long":              {strings.Repeat("ab", 10), "abababababababab…"},
		"no half character": {strings.Repeat("a", 15) + "é", strings.Repeat("a", 15) + "…"},
		"JSON":              {`{"seed":"x"}`, `{"seed":"[redact…`},
		"behind the window": {"data:image/png;base64," + strings.Repeat("A", 4096-30) + " " + nsec, "[image] [redacte…"},
	} {
		if got := string(redact.Head([]byte(test.in), 16)); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
