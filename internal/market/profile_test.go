package market_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/market"
)

func profileEvent(content string, tags ...nostr.Tag) *nostr.Event {
	return &nostr.Event{PubKey: author, CreatedAt: 1780000000, Content: content, Tags: tags}
}

func TestMetadata(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		event *nostr.Event
		want  string
	}{
		"flat and nested": {
			profileEvent(` {"name":"Casa Azul", "age":5,"picture":"","bot":false,"custom":"x <b>"} `),
			`{"name":"Casa Azul","picture":"","custom":"x <b>","pubKey":"` + author +
				`","content":{"name":"Casa Azul","age":5,"picture":"","bot":false,"custom":"x <b>"},"updatedAt":1780000000}`,
		},
		"blank content": {
			profileEvent(" \n"), `{"pubKey":"` + author + `","content":{},"updatedAt":1780000000}`,
		},
		"names of our own": {
			profileEvent(`{"pubKey":"p","content":"c","updatedAt":"u","tags":"t","about":"a"}`),
			`{"about":"a","pubKey":"` + author +
				`","content":{"pubKey":"p","content":"c","updatedAt":"u","tags":"t","about":"a"},"updatedAt":1780000000}`,
		},
		"tags": {
			profileEvent(`{}`, nostr.Tag{"i", "github:x"}, nil),
			`{"pubKey":"` + author + `","content":{},"updatedAt":1780000000,"tags":[["i","github:x"],[]]}`,
		},
		"last of a repeated field": {
			profileEvent(`{"name":"a","about":"b","name":"c","about":5}`),
			`{"name":"c","pubKey":"` + author + `","content":{"name":"a","about":"b","name":"c","about":5},"updatedAt":1780000000}`,
		},
		"escapes": {
			profileEvent(`{"na\u006de":"\u00e9\"\n"}`),
			`{"name":"é\"\n","pubKey":"` + author + `","content":{"na\u006de":"\u00e9\"\n"},"updatedAt":1780000000}`,
		},
		"bytes that are no text": {
			profileEvent("{\"name\":\"a\xff\"}"),
			`{"name":"a` + "\uFFFD" + `","pubKey":"` + author + `","content":{"name":"a` + "\uFFFD" + `"},"updatedAt":1780000000}`,
		},
	} {
		profile, err := market.DecodeProfile(test.event)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var text strings.Builder
		encoder := json.NewEncoder(&text)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(profile.Metadata()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := strings.TrimSuffix(text.String(), "\n"); got != test.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, test.want)
		}
	}
}

func TestDecodeProfile(t *testing.T) {
	t.Parallel()
	profile, err := market.DecodeProfile(profileEvent(`{"name":"n","display_name":"d","about":7,"picture":"p",
		"banner":"b","website":"w","nip05":"i","lud06":"6","lud16":"1","Name":"other"}`))
	if err != nil {
		t.Fatal(err)
	}
	got := []string{
		profile.PubKey, profile.Name, profile.DisplayName, profile.About, profile.Picture, profile.Banner,
		profile.Website, profile.NIP05, profile.LUD06, profile.LUD16,
	}
	if want := author + " n d  p b w i 6 1"; strings.Join(got, " ") != want {
		t.Errorf("%q", got)
	}
	if profile.CreatedAt != 1780000000 || profile.Event.Kind != 0 {
		t.Errorf("%+v", profile)
	}
}

func TestDecodeProfileRefuses(t *testing.T) {
	t.Parallel()
	for _, content := range []string{"hello", "[]", "null", "5", `"x"`, `{`, `{"a":1}x`, `{a:1}`, strings.Repeat(`{"a":`, 20_000)} {
		if profile, err := market.DecodeProfile(profileEvent(content)); err != market.ErrNotProfile {
			t.Errorf("%.20s = %v, %v", content, profile, err)
		}
	}
	for _, event := range []*nostr.Event{nil, {Kind: 1, Content: "{}"}} {
		if _, err := market.DecodeProfile(event); err != market.ErrNotProfile {
			t.Errorf("%v: %v", event, err)
		}
	}
}

func TestEventJSON(t *testing.T) {
	t.Parallel()
	profile, err := market.DecodeProfile(profileEvent(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"id":"","pubkey":"` + author + `","created_at":1780000000,"kind":0,"tags":[],"content":"{}","sig":null}`
	if got := encode(t, profile.EventJSON()); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	signed := profileEvent("c", nostr.Tag{"a"})
	signed.ID, signed.Sig = "i", "s"
	want = `{"id":"i","pubkey":"` + author + `","created_at":1780000000,"kind":0,"tags":[["a"]],"content":"c","sig":"s"}`
	if got := encode(t, market.NewEventJSON(signed)); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func FuzzProfile(f *testing.F) {
	for _, seed := range []string{
		`{"name":"Casa Azul","picture":"","about":"Quiet rooms","nip05":"","lud16":"casa@example.com"}`,
		``, ` `, `[]`, `{"name":5}`, `{"a":"\ud800"}`, `{"":""}`, `{"tags":"x","name":"a","name":"b"}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, content string) {
		profile, err := market.DecodeProfile(profileEvent(content))
		if err != nil {
			if err != market.ErrNotProfile {
				t.Fatal(err)
			}
			return
		}
		data, err := json.Marshal(profile.Metadata())
		if err != nil {
			t.Fatal(err)
		}
		var shown map[string]json.RawMessage
		if err := json.Unmarshal(data, &shown); err != nil {
			t.Fatalf("%s: %v", data, err)
		}
		if string(shown["pubKey"]) != `"`+author+`"` || shown["content"][0] != '{' || string(shown["updatedAt"]) != "1780000000" {
			t.Fatalf("%s", data)
		}
	})
}
