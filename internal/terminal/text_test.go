package terminal

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestWrap(t *testing.T) {
	t.Parallel()
	ten := "ten runes "                         // with its blank
	url := "https://" + strings.Repeat("x", 90) // longer than any line
	for name, c := range map[string]struct{ text, indent, want string }{
		"empty":              {"", "  ", ""},
		"short":              {"a  b\tc", "  ", "  a b c"},
		"exactly a line":     {strings.Repeat(ten, 7) + "ten runes!", "", strings.Repeat(ten, 7) + "ten runes!"},
		"one column more":    {strings.Repeat(ten, 7) + "elevenrunes", "", strings.TrimSpace(strings.Repeat(ten, 7)) + "\nelevenrunes"},
		"paragraphs":         {"a\n\nb\r\nc\rd", "> ", "> a\n\n> b\n> c d"},
		"a long word":        {"see " + url + " there", "", "see\n" + url + "\nthere"},
		"a long word alone":  {url, "  ", "  " + url},
		"wide signs":         {strings.Repeat("漢", 41), "", strings.Repeat("漢", 40) + "\n漢"},
		"wide after narrow":  {strings.Repeat("x", 79) + "漢", "", strings.Repeat("x", 79) + "\n漢"},
		"combining marks":    {strings.Repeat("e\u0301", 80), "", strings.Repeat("e\u0301", 80)},
		"indent of wide use": {strings.Repeat("漢", 40), "    ", "    " + strings.Repeat("漢", 38) + "\n    漢漢"},
		"joined emoji":       {strings.Repeat("a", 76) + "👨\u200d👩\u200d👧", "", strings.Repeat("a", 76) + "\n👨\u200d👩\u200d👧"},
		"escapes":            {"\x1b[31mred\x1b[0m \u009b1Amoved", "", "[31mred[0m 1Amoved"},
		"bad bytes":          {"a\xff\xfeb \x9b2J", "", "a\ufffd\ufffdb \ufffd2J"},
	} {
		if got := wrap(c.text, c.indent); got != c.want {
			t.Errorf("%s:\n%q, want\n%q", name, got, c.want)
		}
	}
}

func TestList(t *testing.T) {
	t.Parallel()
	forty := strings.Repeat("x", 40)
	for name, c := range map[string]struct {
		items []string
		want  string
	}{
		"none":          {nil, ""},
		"one":           {[]string{"a b"}, "  a b"},
		"a line":        {[]string{"a", "b c", "d"}, "  a · b c · d"},
		"no room":       {[]string{forty, forty, "e"}, "  " + forty + "\n  " + forty + " · e"},
		"just room":     {[]string{forty, strings.Repeat("y", 35), "e"}, "  " + forty + " · " + strings.Repeat("y", 35) + "\n  e"},
		"wide":          {[]string{strings.Repeat("漢", 37), "ab", "c"}, "  " + strings.Repeat("漢", 37) + "\n  ab · c"},
		"longer itself": {[]string{forty + " " + forty, "f"}, "  " + forty + " " + forty + "\n  f"},
		"steering":      {[]string{"a\nb\x1b[1m"}, "  a b[1m"},
	} {
		if got := list(c.items, "  "); got != c.want {
			t.Errorf("%s:\n%q, want\n%q", name, got, c.want)
		}
	}
}

func TestPrintable(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"plain": "plain",
		"línea – 漢字 🏝\ufe0f مرحبا":         "línea – 漢字 🏝\ufe0f مرحبا",
		"tab\tand\vfeed\f":                 "tab and feed ",
		"line\nend\r\n":                    "line\nend \n",
		"bell\a null\x00 del\x7f":          "bell null del",
		"\x1b]8;;http://evil\x1b\\click":   "]8;;http://evil\\click",
		"next\u0085line\u2028sep\u2029end": "next line sep end",
		"\u202ereversed\u202c\u061c":       "reversed",
		"\ufeffmark":                       "mark",
	} {
		if got := printable(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}

func FuzzText(f *testing.F) {
	for _, seed := range []string{"", "plain words", hostile, strings.Repeat("漢", 100), "e\u0301", "👨\u200d👩\u200d👧", "\xff\xfe", "\n\n \t\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		wantHarmless(t, "printable", printable(text))
		wantHarmless(t, "excerpt", excerpt(text))
		for line := range strings.SplitSeq(wrap(text, "  "), "\n") {
			wantHarmless(t, "wrap", line)
			// Only a single piece may be longer than a line.
			if columns(line) > lineWidth && strings.Contains(strings.TrimLeft(line, " "), " ") {
				t.Errorf("a line of %d columns: %q", columns(line), line)
			}
		}
		// Wrapping changes nothing but blanks.
		bare := func(text string) string { return strings.Join(strings.Fields(text), "") }
		if got, want := bare(wrap(text, "  ")), bare(printable(text)); got != want {
			t.Errorf("wrapping %q made %q", want, got)
		}
		var out bytes.Buffer
		if err := JSON(&out, text); err != nil {
			t.Fatal(err)
		}
		wantHarmless(t, "JSON", out.String())
		var back string
		if err := json.Unmarshal(out.Bytes(), &back); err != nil || utf8.ValidString(text) && back != text {
			t.Errorf("%q came back from JSON as %q (%v)", text, back, err)
		}
	})
}

func TestInput(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		action    string
		arguments []string
		want      string
	}{
		"nothing":                 {arguments: nil, want: `{}`},
		"text":                    {arguments: []string{"location=San Salvador"}, want: `{"location":"San Salvador"}`},
		"text like a number":      {arguments: []string{"query=2026", "type=1e3"}, want: `{"query":"2026","type":"1e3"}`},
		"text like JSON":          {arguments: []string{`query="quoted"`, "location=null"}, want: `{"location":"null","query":"\"quoted\""}`},
		"number":                  {arguments: []string{"limit=5", "guests=two"}, want: `{"guests":"two","limit":5}`},
		"list":                    {arguments: []string{`features=["pool","gym"]`}, want: `{"features":["pool","gym"]}`},
		"list with commas":        {arguments: []string{"features=pool,gym"}, want: `{"features":"pool,gym"}`},
		"empty value":             {arguments: []string{"location=", "limit="}, want: `{"limit":"","location":""}`},
		"more equals signs":       {arguments: []string{"query=a=b"}, want: `{"query":"a=b"}`},
		"blanks around a key":     {arguments: []string{" query =x"}, want: `{"query":"x"}`},
		"boolean":                 {action: "hostr.session.status", arguments: []string{"includeStorageDetails=true"}, want: `{"includeStorageDetails":true}`},
		"object":                  {action: "hostr.orders.bookAndPay", arguments: []string{`amount={"value":"1","currency":"BTC"}`}, want: `{"amount":{"value":"1","currency":"BTC"}}`},
		"unknown key":             {arguments: []string{"colour=blue", "depth=3"}, want: `{"colour":"blue","depth":3}`},
		"whole input":             {arguments: []string{` {"limit": 5} `}, want: ` {"limit": 5} `},
		"bytes that are no UTF-8": {arguments: []string{"query=\xff"}, want: `{"query":"\ufffd"}`},
	} {
		id := c.action
		if id == "" {
			id = "hostr.listings.search"
		}
		got, err := Input(lookup(t, id), c.arguments)
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %s, %v; want %s", name, got, err, c.want)
		}
	}
}

func TestInputRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		arguments []string
		want      string
	}{
		"no pair":           {[]string{"Lisbon"}, "Lisbon is no input: write key=value"},
		"no key":            {[]string{"=5"}, "=5 is no input"},
		"twice":             {[]string{"limit=5", "limit=6"}, "limit is given twice"},
		"broken object":     {[]string{"{limit: 5}"}, "no valid JSON object: {limit: 5}"},
		"object and a pair": {[]string{"{}", "limit=5"}, "{} is no input"},
		"a long one":        {[]string{strings.Repeat("x", 100)}, strings.Repeat("x", 60) + "… is no input"},
		"an escape":         {[]string{"\x1b[31m"}, "[31m is no input"},
	} {
		got, err := Input(lookup(t, "hostr.listings.search"), c.arguments)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %s, %v; want %q", name, got, err, c.want)
		}
	}
}

func TestUnknownInput(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ action, input, want string }{
		"known":              {"hostr.listings.search", `{"guests":4,"features":["pool"]}`, ""},
		"a slip":             {"hostr.listings.search", `{"guest":4}`, "Note: there is no input guest; did you mean guests? It has no effect.\n"},
		"capitals":           {"hostr.listings.search", `{"Location":"Lisbon"}`, "did you mean location?"},
		"another word":       {"hostr.listings.search", `{"colour":"blue"}`, "hostr-daemon\ndescribe hostr.listings.search\n"},
		"an alias":           {"hostr.listings.create", `{"price":1,"image":"x","cancellationPolicies":[]}`, ""},
		"a patch":            {"hostr.listings.edit", `{"anchor":"a","patch":{"title":"x"}}`, ""},
		"without its patch":  {"hostr.listings.edit", `{"anchor":"a","title":"x","price":{},"specs":{}}`, ""},
		"a slip in a patch":  {"hostr.listings.edit", `{"patch":{"titel":"x","active":true}}`, "no input titel; did you mean title?"},
		"no change":          {"hostr.listings.edit", `{"patch":{"dTag":"x"}}`, "the listing stays as it is.\n"},
		"nothing at all":     {"hostr.listings.edit", `{"anchor":"a"}`, "the listing stays as it is.\n"},
		"another amenity":    {"hostr.listings.create", `{"specifications":{"Wi-Fi":true}}`, "wireless_internet?"},
		"in a patch":         {"hostr.listings.edit", `{"patch":{"specs":{"sauna_outside":true}}}`, "sauna_outside is no amenity of the catalog"},
		"a feature":          {"hostr.listings.search", `{"features":["kitchen","pol"]}`, "mean pool?"},
		"features as text":   {"hostr.listings.search", `{"features":"kitchen, wifi"}`, "wireless_internet?"},
		"beside its patch":   {"hostr.listings.edit", `{"anchor":"a","patch":{},"title":"x"}`, "no input title"},
		"a slip beside it":   {"hostr.listings.edit", `{"anchor":"a","titel":"x","patch":{}}`, "no input titel"},
		"none is taken":      {"hostr.profile.show", `{"verbose":true}`, "no input verbose, so it has no effect: hostr.profile.show takes\nno input."},
		"what steers":        {"hostr.listings.search", `{"\u001b[31m":1}`, "no input [31m, so"},
		"two":                {"hostr.listings.search", `{"guest":4,"limitt":3}`, "did you mean limit?"},
		"input that is none": {"hostr.listings.search", `{"guest`, ""},
	} {
		var out bytes.Buffer
		if err := UnknownInput(&out, loadCatalog(t), lookup(t, c.action), json.RawMessage(c.input)); err != nil {
			t.Fatal(err)
		}
		wantHarmless(t, name, out.String())
		if (out.Len() == 0) != (c.want == "") || !strings.Contains(out.String(), c.want) {
			t.Errorf("%s: %q, want %q", name, out.String(), c.want)
		}
	}
}

func TestThousands(t *testing.T) {
	t.Parallel()
	for number, want := range map[string]string{
		"": "", "7": "7", "999": "999", "1000": "1,000", "1234567.50": "1,234,567.50", "-45000": "-45,000", "-450": "-450", "0.001": "0.001",
	} {
		if got := thousands(number); got != want {
			t.Errorf("%s: %s, want %s", number, got, want)
		}
	}
}

func FuzzInput(f *testing.F) {
	action := lookup(f, "hostr.listings.search")
	for _, seed := range []string{"limit=5", "query=x", `{"limit":5}`, "=", "features=[", "a=\xff", "{", "key"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, argument string) {
		input, err := Input(action, []string{argument})
		if err != nil {
			wantHarmless(t, "error", err.Error())
			return
		}
		var object map[string]any
		if err := json.Unmarshal(input, &object); err != nil {
			t.Errorf("%q became %q, which is no object: %v", argument, input, err)
		}
	})
}

func TestLogLinesAreReadable(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := Log(&out)
	lines := `{"level":"warn","stateDir":"a b","time":"2026-01-01T10:20:30Z","message":"another process holds it"}` + "\n" +
		`{"event":"request","id":"1","params":{"text":"\u001b[31m\u009b"},"message":"\u001b]0;owned\u0007"}` + "\n" +
		"no JSON \x1b[2J\n"
	if n, err := log.Write([]byte(lines)); n != len(lines) || err != nil {
		t.Fatalf("%d, %v", n, err)
	}
	wantHarmless(t, "log", out.String())
	got := strings.Split(out.String(), "\n")
	clock := time.Date(2026, 1, 1, 10, 20, 30, 0, time.UTC).Local().Format(time.TimeOnly)
	if len(got) != 4 || got[0] != clock+` WRN another process holds it stateDir="a b"` {
		t.Errorf("lines %q", got)
	}
	if !strings.Contains(got[1], "event=request") || !strings.Contains(got[1], "]0;owned") || got[2] != "no JSON [2J" {
		t.Errorf("lines %q", got)
	}
	out.Reset()
	long := `{"event":"response","id":"1","method":"describe","result":"` + strings.Repeat("é", 500) + `"}` + "\n"
	if _, err := log.Write([]byte(long)); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); utf8.RuneCountInString(got) != maxLogLine+2 || !strings.HasSuffix(got, "é…\n") || !strings.Contains(got, "event=response id=1 method=describe") {
		t.Errorf("a long line is %q", got)
	}
	if n, err := Log(brokenWriter{}).Write([]byte(lines)); n != 0 || !errors.Is(err, errBroken) {
		t.Errorf("%d, %v", n, err)
	}
}

func TestProgress(t *testing.T) {
	t.Parallel()
	ticks := make(chan time.Time)
	out := &bytes.Buffer{}
	stop := progress(out, "hostr.listings.search", ticks)
	ticks <- time.Time{}
	ticks <- time.Time{}
	stop()
	stop() // harmless
	const line = "hostr.listings.search … 2 s"
	want := "\rhostr.listings.search … 1 s\r" + line + "\r" + strings.Repeat(" ", utf8.RuneCountInString(line)) + "\r"
	if out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}

	quick := &bytes.Buffer{}
	progress(quick, "quick", make(chan time.Time))()
	Progress(quick, "quick")()
	if quick.String() != "" {
		t.Errorf("what took no second left %q", quick.String())
	}
}

func BenchmarkWrap(b *testing.B) {
	text := strings.Repeat("A quiet room with its own door to the garden, ", 40)
	for b.Loop() {
		wrap(text, "    ")
	}
}
