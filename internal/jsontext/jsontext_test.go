package jsontext_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"hostr-daemon/internal/jsontext"
)

func TestDocument(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		text    string
		problem string // "" = valid
		offset  int
	}{
		{text: `{}`},
		{text: ` [1, -0.5e+3, "a\u00e9\n", true, false, null] `},
		{text: `"` + strings.Repeat("x", 100) + `"`},
		{text: ``, problem: "the text ends", offset: 0},
		{text: `nope`, problem: "expected a value, found 'n'", offset: 0},
		{text: `{"a":1`, problem: "expected ',' or '}'", offset: 6},
		{text: `{"a" 1}`, problem: "expected ':', found '1'", offset: 5},
		{text: `{a:1}`, problem: "expected a string, found 'a'", offset: 1},
		{text: `[1,]`, problem: "expected a value, found ']'", offset: 3},
		{text: `[1 2]`, problem: "expected ',' or ']', found '2'", offset: 3},
		{text: `{} {}`, problem: "expected the end of the text, found '{'", offset: 3},
		{text: `01`, problem: "a number has a leading zero", offset: 1},
		{text: `1.`, problem: "expected a digit", offset: 2},
		{text: `1e`, problem: "expected a digit", offset: 2},
		{text: `-`, problem: "expected a value", offset: 1},
		{text: `"abc`, problem: "a string does not end", offset: 4},
		{text: `"abc\`, problem: "a string does not end", offset: 5},
		{text: `"\u12`, problem: "a string does not end", offset: 5},
		{text: `"\u12g4"`, problem: "four hexadecimal digits", offset: 1},
		{text: `"\x"`, problem: "no such escape in a string, found 'x'", offset: 2},
		{text: "\"a\x01b\"", problem: "control character 0x01 in a string", offset: 2},
		{text: "\x00", problem: "expected a value, found byte 0x00", offset: 0},
	} {
		_, err := jsontext.Document([]byte(test.text))
		if test.problem == "" {
			if err != nil {
				t.Errorf("%q: %v", test.text, err)
			}
			continue
		}
		var syntax *jsontext.SyntaxError
		if !errors.As(err, &syntax) || !strings.Contains(syntax.Problem, test.problem) || syntax.Offset != test.offset {
			t.Errorf("%q: got %v, want %q at byte %d", test.text, err, test.problem, test.offset)
		}
	}
}

func TestDepthIsBounded(t *testing.T) {
	t.Parallel()
	nested := func(depth int) []byte {
		return []byte(strings.Repeat("[", depth) + strings.Repeat("]", depth))
	}
	if _, err := jsontext.Document(nested(jsontext.MaxDepth)); err != nil {
		t.Errorf("at the bound: %v", err)
	}
	for _, text := range [][]byte{nested(jsontext.MaxDepth + 1), bytes.Repeat([]byte("["), 5_000_000), bytes.Repeat([]byte(`{"a":`), 1_000_000)} {
		if _, err := jsontext.Document(text); err == nil || !strings.Contains(err.Error(), "nested deeper than") {
			t.Errorf("%.12s… of %d bytes: %v", text, len(text), err)
		}
	}
}

func TestMembers(t *testing.T) {
	t.Parallel()
	text := []byte(` { "a" : 1 , "b":{"c":[]}, "a":"2" } `)
	var got []string
	err := jsontext.Members(text, func(key, value jsontext.Span) {
		got = append(got, string(key.Of(text))+"="+string(value.Of(text)))
	})
	if err != nil {
		t.Fatal(err)
	}
	if joined := strings.Join(got, " "); joined != `"a"=1 "b"={"c":[]} "a"="2"` {
		t.Errorf("members: %s", joined)
	}
	for _, bad := range []string{`[1]`, ``, `{"a":1} x`, `{"a":tru}`} {
		if err := jsontext.Members([]byte(bad), func(_, _ jsontext.Span) {}); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

func TestAppendSafe(t *testing.T) {
	t.Parallel()
	got := jsontext.AppendSafe(nil, []byte("{\"a\u2028b\":\"\xff\u2029é<&\"}"))
	if want := "{\"a\\u2028b\":\"\ufffd\\u2029é<&\"}"; string(got) != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func FuzzDocument(f *testing.F) {
	for _, seed := range []string{`{"id":"1","params":{"a":[1,2.5e-3,"\ud83d\ude00\ud800"]}}`, `[[[[`, `"\u2028`, "\xef\xbb\xbf{}", `-0`, `1e5`, `{"":{}}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		span, err := jsontext.Document(text)
		if (err == nil) != json.Valid(text) {
			t.Fatalf("jsontext: %v, encoding/json valid: %v", err, json.Valid(text))
		}
		if err != nil {
			return
		}
		safe := jsontext.AppendSafe(nil, span.Of(text))
		if !utf8.Valid(safe) || !json.Valid(safe) || bytes.ContainsAny(safe, "\u2028\u2029") {
			t.Fatalf("AppendSafe made %q of %q", safe, text)
		}
		if safe[0] == '"' {
			checkUnquoted(t, safe)
		}
	})
}

func checkUnquoted(t *testing.T, quoted []byte) {
	var want string
	if err := json.Unmarshal(quoted, &want); err != nil {
		t.Fatal(err)
	}
	if got := jsontext.AppendUnquoted(nil, quoted); string(got) != want {
		t.Fatalf("unquoted %q to %q, want %q", quoted, got, want)
	}
}

func FuzzQuoted(f *testing.F) {
	for _, seed := range []string{"", "plain", "a\"b\\c\n\r\t\x00\x1f\x7f", "\u2028\u2029\ufffd", "\xff\xc3", "0123456\"", "é😀"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		quoted := jsontext.AppendQuoted(nil, content)
		if end, _, err := jsontext.String(quoted, 0); err != nil || end != len(quoted) {
			t.Fatalf("%q is no string: %v", quoted, err)
		}
		if !utf8.Valid(quoted) || bytes.ContainsAny(quoted, "\u2028\u2029\n\r") {
			t.Fatalf("unsafe characters in %q", quoted)
		}
		var got string
		if err := json.Unmarshal(quoted, &got); err != nil {
			t.Fatalf("%q does not decode: %v", quoted, err)
		}
		var want string
		reference, _ := json.Marshal(string(content))
		if err := json.Unmarshal(reference, &want); err != nil || got != want {
			t.Fatalf("%q decodes to %q, want %q (%v)", quoted, got, want, err)
		}
	})
}

func BenchmarkDocument(b *testing.B) {
	for name, text := range map[string][]byte{
		"small":  []byte(`{"id":"17","method":"callAction","traceId":"0123456789abcdef","params":{"action":"hostr.listings.search","input":{"limit":20}}}`),
		"base64": []byte(`{"base64":"` + strings.Repeat("QUJD", 1<<20) + `"}`),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := jsontext.Document(text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
