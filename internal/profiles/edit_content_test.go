package profiles_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nbd-wtf/go-nostr"
	"github.com/tidwall/gjson"

	"hostr-daemon/internal/market"
	"hostr-daemon/internal/profiles"
)

func TestMergedContent(t *testing.T) {
	t.Parallel()
	all := profiles.EditRequest{Name: "N", Picture: "P", About: "A", NIP05: "I", LUD16: "L"}
	for name, test := range map[string]struct {
		content string
		request profiles.EditRequest
		want    string
	}{
		"vector of spec 20 §10.5": {
			"", profiles.EditRequest{Name: "Casa Azul", About: "Quiet rooms", LUD16: "casa@example.com"},
			`{"name":"Casa Azul","picture":"","about":"Quiet rooms","nip05":"","lud16":"casa@example.com"}`,
		},
		"no profile, nothing given": {
			" \n", profiles.EditRequest{Name: " ", About: "\t"}, `{"name":"","picture":"","about":"","nip05":"","lud16":""}`,
		},
		"trimmed": {
			"{}", profiles.EditRequest{Name: "  Casa  Azul\n"}, `{"name":"Casa  Azul","picture":"","about":"","nip05":"","lud16":""}`,
		},
		"old places are kept": {
			`{"lud16":"l","x":1,"about":"a","name":"n"}`, all,
			`{"lud16":"L","x":1,"about":"A","name":"N","picture":"P","nip05":"I"}`,
		},
		"foreign fields stay byte for byte": {
			`{ "display_name" : "D\u00e9", "n":1.50e+2 ,"big":123456789012345678901234567890, "o":{"b": [1, 2 ],"a":null},"banner":"","":"e"}`,
			profiles.EditRequest{Name: "N"},
			`{"display_name":"D\u00e9","n":1.50e+2,"big":123456789012345678901234567890,"o":{"b": [1, 2 ],"a":null},"banner":"","":"e",` +
				`"name":"N","picture":"","about":"","nip05":"","lud16":""}`,
		},
		"what is not given stays byte for byte": {
			`{"name":"\u00e9\/","picture":"p","about":"","nip05":"i","lud16":"l"}`, profiles.EditRequest{LUD16: "L"},
			`{"name":"\u00e9\/","picture":"p","about":"","nip05":"i","lud16":"L"}`,
		},
		"a known field that is no text counts as absent": {
			`{"name":7,"picture":null,"about":{"a":1},"nip05":[],"lud16":true}`, profiles.EditRequest{About: "A"},
			`{"name":"","picture":"","about":"A","nip05":"","lud16":""}`,
		},
		"repeated fields": {
			`{"name":"a","x":1,"name":"b","x":2,"about":"c","about":5}`, profiles.EditRequest{},
			`{"name":"b","x":1,"x":2,"about":"","picture":"","nip05":"","lud16":""}`,
		},
		"escaped names": {
			`{"na\u006de":"a","\u006eip05":"i"}`, profiles.EditRequest{Name: "N"},
			`{"na\u006de":"N","\u006eip05":"i","picture":"","about":"","lud16":""}`,
		},
		"names that only look alike": {
			`{"Name":"a","name ":"b","image":"c"}`, profiles.EditRequest{Picture: "P"},
			`{"Name":"a","name ":"b","image":"c","name":"","picture":"P","about":"","nip05":"","lud16":""}`,
		},
		"characters that need escapes": {
			"{}", profiles.EditRequest{Name: "\"a\\b\"\n<c>&é😀", About: "x\x00y\u2028z"},
			`{"name":"\"a\\b\"\n<c>&é😀","picture":"","about":"x\u0000y\u2028z","nip05":"","lud16":""}`,
		},
		"bytes that are no text": {
			"{\"a\xff\":\"b\xfe\"}", profiles.EditRequest{Name: "n\xff"},
			"{\"a\uFFFD\":\"b\uFFFD\",\"name\":\"n\uFFFD\",\"picture\":\"\",\"about\":\"\",\"nip05\":\"\",\"lud16\":\"\"}",
		},
	} {
		got, err := profiles.MergedContent(test.content, test.request)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestMergedContentRefuses(t *testing.T) {
	t.Parallel()
	for _, content := range []string{"hello", "[]", "null", `"x"`, `{`, `{"a":1}x`, `{a:1}`, `{"a":}`} {
		if got, err := profiles.MergedContent(content, profiles.EditRequest{Name: "N"}); err == nil {
			t.Errorf("%s became %s", content, got)
		}
	}
}

// Whatever is read as a profile can be edited, and loses nothing by it.
func FuzzProfileEdit(f *testing.F) {
	for _, seed := range []string{
		``, `{}`, `{"name":"n","picture":"","about":"a","nip05":"","lud16":"l"}`, `{"x":{"y":[1,"z"]},"name":5,"x":1e9}`,
		`{"na\u006de":"\ud800","":null,"display_name":"D","name":"b"}`, "{\"a\":\"\xff\u2028\"}", " {\"a\" : 1.0 } ", `[1]`,
	} {
		f.Add(seed, "N", " A ", "", "l@example.com", "\xff\x00\"")
	}
	f.Fuzz(func(t *testing.T, content, name, about, picture, lud16, nip05 string) {
		request := profiles.EditRequest{Name: name, About: about, Picture: picture, LUD16: lud16, NIP05: nip05}
		before, err := market.DecodeProfile(&nostr.Event{Content: content})
		merged, failure := profiles.MergedContent(content, request)
		if (err == nil) != (failure == nil) {
			t.Fatalf("read: %v, edited: %v", err, failure)
		}
		if err != nil {
			return
		}
		after, err := market.DecodeProfile(&nostr.Event{Content: merged})
		if err != nil || !json.Valid([]byte(merged)) {
			t.Fatalf("%q is no profile: %v", merged, err)
		}
		for _, field := range []struct{ given, before, after string }{
			{name, before.Name, after.Name},
			{about, before.About, after.About},
			{picture, before.Picture, after.Picture},
			{lud16, before.LUD16, after.LUD16},
			{nip05, before.NIP05, after.NIP05},
		} {
			want := strings.ToValidUTF8(strings.TrimSpace(field.given), "\uFFFD")
			if want == "" {
				want = field.before
			}
			if field.after != want {
				t.Fatalf("%q, want %q, in %s", field.after, want, merged)
			}
		}
		if diff := cmp.Diff(foreignMembers(content), foreignMembers(merged)); diff != "" {
			t.Fatalf("foreign fields of %q (-before +after):\n%s", content, diff)
		}
		if again, err := profiles.MergedContent(merged, request); err != nil || again != merged {
			t.Fatalf("edited again: %q, %v, before %q", again, err, merged)
		}
	})
}

// foreignMembers lists the JSON of every member that no edit sets, in order.
func foreignMembers(content string) []string {
	members := []string{}
	own := map[string]bool{"name": true, "picture": true, "about": true, "nip05": true, "lud16": true}
	gjson.Parse(strings.ToValidUTF8(content, "\uFFFD")).ForEach(func(key, value gjson.Result) bool {
		if !own[key.String()] {
			members = append(members, key.Raw+":"+value.Raw)
		}
		return true
	})
	return members
}

func BenchmarkMergedContent(b *testing.B) {
	content := `{"name":"Casa Azul","display_name":"Casa Azul","about":"` + strings.Repeat("Quiet rooms. ", 40) +
		`","picture":"https://example.org/a.png","banner":"https://example.org/b.png","nip05":"casa@example.org","bot":false,"birthday":{"year":1999}}`
	b.ReportAllocs()
	for b.Loop() {
		if _, err := profiles.MergedContent(content, profiles.EditRequest{LUD16: "casa@example.com"}); err != nil {
			b.Fatal(err)
		}
	}
}
