package relaylists_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/relay"
	"hostr-daemon/internal/relaylists"
)

func TestParse(t *testing.T) {
	t.Parallel()
	a, b, c := "wss://a.example.org", "wss://b.example.org", "wss://c.example.org"
	for name, test := range map[string]struct {
		tags nostr.Tags
		want relaylists.List
	}{
		"nothing":   {nil, relaylists.List{}},
		"no marker": {nostr.Tags{{"r", a}}, relaylists.List{Read: []string{a}, Write: []string{a}}},
		"markers": {
			nostr.Tags{{"r", a, "read"}, {"r", b, "write"}, {"r", c, ""}},
			relaylists.List{Read: []string{a, c}, Write: []string{b, c}},
		},
		"loose markers": {
			nostr.Tags{{"r", a, " Read "}, {"r", b, "both"}},
			relaylists.List{Read: []string{a, b}, Write: []string{b}},
		},
		"the two sides of one relay": {
			nostr.Tags{{"r", a, "read"}, {"r", b}, {"r", a, "write"}, {"r", a}},
			relaylists.List{Read: []string{a, b}, Write: []string{b, a}},
		},
		"cleaned": {
			nostr.Tags{{"r", " WSS://A.example.org:443/ ", "write"}, {"r", "wss://a.example.org", "write"}},
			relaylists.List{Write: []string{a}},
		},
		"unusable": {
			nostr.Tags{
				nil, {}, {"r"}, {"r", ""}, {"r", "https://a.example.org"}, {"r", "a.example.org"}, {"r", "ws://[::1]:7777"},
				{"R", a}, {"relay", a}, {"r", a + "/" + strings.Repeat("x", 300)},
			},
			relaylists.List{},
		},
	} {
		if diff := cmp.Diff(test.want, relaylists.Parse(test.tags)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestLongListIsCut(t *testing.T) {
	t.Parallel()
	var tags nostr.Tags
	for i := range 100 {
		tags = append(tags, nostr.Tag{"r", fmt.Sprintf("wss://r%d.example.org", i)})
	}
	list := relaylists.Parse(tags)
	if len(list.Read) != 20 || len(list.Write) != 20 || list.Write[0] != "wss://r0.example.org" || list.Write[19] != "wss://r19.example.org" {
		t.Errorf("%d to read, %d to write: %v", len(list.Read), len(list.Write), list.Write)
	}
}

func FuzzRelayList(f *testing.F) {
	for _, seed := range []string{
		`[["r","wss://a.example.org"],["r","wss://b.example.org","read"],["r","WSS://B.example.org/","write"]]`,
		`[["r"],[],["r","ws://h:80/%7ea/../x?q=1#f","Write"],["p","wss://a"]]`, `[["r","wss://` + "\xff" + `","read"]]`, `[]`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var tags nostr.Tags
		if json.Unmarshal([]byte(text), &tags) != nil {
			return
		}
		list := relaylists.Parse(tags)
		for _, urls := range [][]string{list.Read, list.Write} {
			if len(urls) > 20 {
				t.Fatalf("%d relays", len(urls))
			}
			for i, url := range urls {
				if cleaned, ok := relay.CleanURL(url); !ok || cleaned != url || len(url) > 256 {
					t.Fatalf("%q is not clean", url)
				}
				if slices.Contains(urls[:i], url) {
					t.Fatalf("%q is there twice", url)
				}
			}
		}
	})
}

func BenchmarkParse(b *testing.B) {
	tags := nostr.Tags{
		{"r", "wss://a.example.org"}, {"r", "wss://b.example.org/", "read"}, {"r", "wss://C.example.org:443", "write"}, {"r", "wss://d.example.org"},
	}
	b.ReportAllocs()
	for b.Loop() {
		if list := relaylists.Parse(tags); len(list.Write) != 3 {
			b.Fatal(list)
		}
	}
}
