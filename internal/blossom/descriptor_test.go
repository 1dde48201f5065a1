package blossom_test

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"hostr-daemon/internal/blossom"
)

func TestDescriptorRules(t *testing.T) {
	t.Parallel()
	other := strings.Repeat("ab", 32)
	for answer, want := range map[string]blossom.Descriptor{
		`{"url":"https://b.example/1"}`:                                                                         {SHA256: helloHash, Size: 11, Type: "image/png"},
		`{"url":"https://b.example/1","sha256":"","size":0,"type":""}`:                                          {SHA256: helloHash, Size: 11, Type: "image/png"},
		`{"url":"https://b.example/1","sha256":"zz","size":-4}`:                                                 {SHA256: helloHash, Size: 11, Type: "image/png"},
		`{"url":"https://b.example/1","sha256":7,"size":{},"type":null}`:                                        {SHA256: helloHash, Size: 11, Type: "image/png"},
		`{"url":"https://b.example/1","sha256":"` + strings.ToUpper(other) + `","size":12,"type":"image/webp"}`: {SHA256: other, Size: 12, Type: "image/webp"},
		`{"url":" https://b.example/1 ","size":"13"}`:                                                           {SHA256: helloHash, Size: 13, Type: "image/png"},
		`{"url":"https://b.example/1","size":1.4e1}`:                                                            {SHA256: helloHash, Size: 14, Type: "image/png"},
		`{"url":"https://b.example/1","size":1.5}`:                                                              {SHA256: helloHash, Size: 11, Type: "image/png"},
		`{"url":"https://b.example/1","type":"image/svg+xml; charset=utf-8"}`:                                   {SHA256: helloHash, Size: 11, Type: "image/svg+xml; charset=utf-8"},
		`{"url":"https://b.example/1","type":"picture"}`:                                                        {SHA256: helloHash, Size: 11, Type: "image/png"},
		`{"url":"https://b.example/1","type":"image/x\r\ny"}`:                                                   {SHA256: helloHash, Size: 11, Type: "image/png"},
		`{"url":"https://b.example/1","type":"image/` + strings.Repeat("x", 300) + `"}`:                         {SHA256: helloHash, Size: 11, Type: "image/png"},
		`{"url":"https://b.example/1","size":1e300}`:                                                            {SHA256: helloHash, Size: 11, Type: "image/png"},
	} {
		got, err := blossom.ParseDescriptor([]byte(answer), hello("image/png", ""), false)
		if err != nil {
			t.Errorf("%s: %v", answer, err)
			continue
		}
		want.URL = "https://b.example/1"
		checkDescriptor(t, got, want)
	}
	for answer, problem := range map[string]string{
		``: "no JSON object", `[]`: "no JSON object", `null`: "no JSON object", `"x"`: "no JSON object", `{"url"`: "no JSON object",
		`{}`: "no HTTP", `{"url":null}`: "no HTTP", `{"url":5}`: "no HTTP", `{"url":"/relative"}`: "no HTTP",
		`{"url":"https://b.example/a b"}`: "no HTTP", `{"url":"https://b.example/a\nb"}`: "no HTTP", `{"url":"https://b.example/a\u2028b"}`: "no HTTP",
		`{"url":"https://b.example/a\u0085b"}`: "no HTTP", `{"url":"https://b.example/` + strings.Repeat("x", 2048) + `"}`: "no HTTP",
		`{"url":"javascript:alert(1)"}`: "no HTTP", `{"url":"https://"}`: "no HTTP", `{"URL":"https://b.example/1"}`: "no HTTP",
	} {
		if _, err := blossom.ParseDescriptor([]byte(answer), hello("", ""), false); err == nil || !strings.Contains(err.Error(), problem) {
			t.Errorf("%s: got %v, want %q", answer, err, problem)
		}
	}
}

// What an account has signed for is one file.
func TestDescriptorOfAnotherFile(t *testing.T) {
	t.Parallel()
	for hash, refused := range map[string]bool{
		helloHash: false, strings.ToUpper(helloHash): false, "": false, "zz": false, strings.Repeat("ab", 32): true,
	} {
		answer := []byte(`{"url":"https://b.example/1","sha256":"` + hash + `"}`)
		got, err := blossom.ParseDescriptor(answer, hello("", ""), true)
		if (err != nil) != refused || !refused && got.SHA256 != helloHash {
			t.Errorf("%q: %+v, %v", hash, got, err)
		}
		if _, err := blossom.ParseDescriptor(answer, hello("", ""), false); err != nil {
			t.Errorf("%q, unsigned: %v", hash, err)
		}
	}
}

func FuzzDescriptor(f *testing.F) {
	for _, seed := range []string{
		`{"url":"https://b.example/1","sha256":"` + helloHash + `","size":"11","type":"image/png","uploaded":1}`,
		`{"url":"https://b.example/1","size":1e400}`, `{"url":"HTTP://[::1]:80/x"}`, `{}`, `null`, "{\"url\":\"https://\xff\"}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, answer []byte) {
		got, err := blossom.ParseDescriptor(answer, hello("image/png", ""), false)
		if err != nil {
			return
		}
		if parsed, err := url.Parse(got.URL); err != nil || parsed.Host == "" {
			t.Fatalf("url %q", got.URL)
		}
		if len(got.SHA256) != 64 || got.Size <= 0 || got.Type == "" {
			t.Fatalf("something was not filled: %+v", got)
		}
		text, err := json.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		again, err := blossom.ParseDescriptor(text, hello("", ""), false)
		if err != nil || again.URL != got.URL || again.SHA256 != got.SHA256 || again.Size != got.Size {
			t.Fatalf("%s reads back as %+v, %v", text, again, err)
		}
	})
}
