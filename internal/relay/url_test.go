package relay

import (
	"strings"
	"testing"
)

func TestCleanURL(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		// The examples of spec 82 §1.1.
		"wss://Relay.Example.org:443/": "wss://relay.example.org",
		"ws://h:7777/a/./b/":           "ws://h:7777/a/b",
		"wss://u:p@h/x?q=1":            "wss://h/x?q=1",
		"WSS:///H//":                   "wss://h",
		"wss://h/%7ea/%2f":             "wss://h/~a/%2F",
		"https://h":                    "",
		"h":                            "",
		"wss://h?q=1":                  "",
		"wss://h/?q=1":                 "",
		"ws://[::1]:7777":              "",
		// The rest of its rules.
		"":                        "",
		"   ":                     "",
		"  wss://h  ":             "wss://h",
		"ws://h:80":               "ws://h",
		"ws://h:443":              "ws://h:443",
		"wss://h:80":              "wss://h:80",
		"wss://h:":                "wss://h",
		"wss://h:65536":           "",
		"wss://h:x":               "",
		"wss://h:+1":              "",
		"wss:////h/a":             "wss://h/a",
		"wss://":                  "",
		"wss://-h":                "",
		"wss://h-":                "",
		"wss://a_b":               "",
		"wss://a..b":              "",
		"wss://h.":                "",
		"wss://h/../../a":         "wss://h/a",
		"wss://h/a/..":            "wss://h",
		"wss://h/a/b/..":          "wss://h/a",
		"wss://h/%2e%2e/a":        "wss://h/a",
		"wss://h/x/?q=%7e#f":      "wss://h/x?q=~#f",
		"wss://h/x#f":             "wss://h/x#f",
		"wss://h#f":               "",
		"wss://h/a b":             "",
		"wss://h/a\u00a0b":        "",
		"wss://h/100%":            "wss://h/100%25",
		"wss://h/%zz":             "wss://h/%25zz",
		"wss://h/%+1":             "wss://h/%25+1",
		"wss://user@evil@h/":      "wss://h",
		"ws:h":                    "",
		"wss://xn--bcher-kva.org": "wss://xn--bcher-kva.org",
		"wss://bücher.org":        "",
	} {
		got, ok := CleanURL(raw)
		if !ok {
			got = ""
		}
		if got != want || ok != (want != "") {
			t.Errorf("CleanURL(%q) = %q, %v; want %q", raw, got, ok, want)
		}
	}
}

func FuzzCleanURL(f *testing.F) {
	for _, seed := range []string{
		"wss://Relay.Example.org:443/", "ws://h:7777/a/./b/", "wss://u:p@h/x?q=1", "WSS:///H//",
		"wss://h/%7ea/%2f", "ws://[::1]:7777", "wss://h/%", "wss://h/..//../", "wss://h/%252e/",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		cleaned, ok := CleanURL(raw)
		if !ok {
			return
		}
		if again, ok := CleanURL(cleaned); !ok || again != cleaned {
			t.Errorf("CleanURL(%q) = %q, but cleaning that gives %q, %v", raw, cleaned, again, ok)
		}
		if authority, _, _ := strings.Cut(cleaned[strings.Index(cleaned, "://")+3:], "/"); strings.Contains(authority, "@") {
			t.Errorf("CleanURL(%q) = %q keeps user info", raw, cleaned)
		}
	})
}
