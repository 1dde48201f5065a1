package market_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/market"
)

func TestDecodeEmbeddedEvent(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		text string
		want nostr.Event
	}{
		"least":    {`{"kind":1,"created_at":2}`, nostr.Event{Kind: 1, CreatedAt: 2, Tags: nostr.Tags{}}},
		"nulls":    {`{"id":null,"pubkey":null,"tags":null,"content":null,"sig":null,"kind":1,"created_at":-2}`, nostr.Event{Kind: 1, CreatedAt: -2, Tags: nostr.Tags{}}},
		"all":      {` {"sig":"s","content":"c","tags":[["a","b"],[]],"kind":1,"created_at":2,"pubkey":"p","id":"i","seen":[1]} `, nostr.Event{ID: "i", PubKey: "p", CreatedAt: 2, Kind: 1, Tags: nostr.Tags{{"a", "b"}, {}}, Content: "c", Sig: "s"}},
		"odd tags": {`{"kind":1,"created_at":2,"tags":[null,7,"x",{},["a",1,2.50,null,true,{"b":[]}]]}`, nostr.Event{Kind: 1, CreatedAt: 2, Tags: nostr.Tags{{"a", "1", "2.50", "", "true", `{"b":[]}`}}}},
	} {
		got, err := market.DecodeEmbeddedEvent(test.text)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if diff := cmp.Diff(test.want, *got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	for name, text := range map[string]string{
		"nothing": "", "null": "null", "array": "[]", "no kind": `{"created_at":1}`, "no time": `{"kind":1}`, "null kind": `{"kind":null,"created_at":1}`,
		"fraction": `{"kind":1,"created_at":5.0}`, "text for a kind": `{"kind":"1","created_at":1}`, "id": `{"kind":1,"created_at":1,"id":1}`,
		"tags": `{"kind":1,"created_at":1,"tags":{}}`, "content": `{"kind":1,"created_at":1,"content":{}}`, "sig": `{"kind":1,"created_at":1,"sig":false}`,
		"long": `{"kind":1,"created_at":1,"content":"` + strings.Repeat("x", 1<<20) + `"}`,
	} {
		if event, err := market.DecodeEmbeddedEvent(text); err == nil {
			t.Errorf("%s: %v", name, event)
		}
	}
}

func TestEncodeEmbeddedEvent(t *testing.T) {
	t.Parallel()
	event := &nostr.Event{Kind: 1, CreatedAt: 2, Tags: nostr.Tags{{"a", "\u2028"}, nil}, Content: "a\x01\b\t\n\f\r\"\\<\u007fé\xff"}
	want := "{\"id\":\"\",\"pubkey\":\"\",\"created_at\":2,\"kind\":1,\"tags\":[[\"a\",\"\u2028\"],[]]," +
		"\"content\":\"a\\u0001\\b\\t\\n\\f\\r\\\"\\\\<\u007fé\ufffd\",\"sig\":null}"
	if diff := cmp.Diff(want, market.EncodeEmbeddedEvent(event)); diff != "" {
		t.Error(diff)
	}
	vectors := readTradeVectors(t)
	if got := market.EncodeEmbeddedEvent(eventOf(t, vectors.TradeKeyAuthorization.Event)); got != vectors.TradeKeyAuthorization.Plaintext {
		t.Error(got)
	}
}

func TestIsSigned(t *testing.T) {
	t.Parallel()
	genuine := eventOf(t, readTradeVectors(t).CommitAuthorization)
	if !market.IsSigned(genuine) {
		t.Fatal("a signed event is not")
	}
	for name, change := range map[string]func(*nostr.Event){
		"content": func(e *nostr.Event) { e.Content += " " }, "content and id": func(e *nostr.Event) { e.Content += " "; e.ID = e.GetID() },
		"id": func(e *nostr.Event) { e.ID = strings.Repeat("0", 64) }, "no id": func(e *nostr.Event) { e.ID = "" },
		"no signature": func(e *nostr.Event) { e.Sig = "" }, "short pubkey": func(e *nostr.Event) { e.PubKey = e.PubKey[2:] },
		"capitals": func(e *nostr.Event) { e.Sig = strings.ToUpper(e.Sig) }, "author": func(e *nostr.Event) { e.PubKey = author; e.ID = e.GetID() },
	} {
		changed := *genuine
		change(&changed)
		if market.IsSigned(&changed) {
			t.Errorf("%s: still signed", name)
		}
	}
	if market.IsSigned(nil) {
		t.Error("nothing is signed")
	}
}

func FuzzEmbeddedEvent(f *testing.F) {
	f.Add(`{"id":"01","pubkey":"02","created_at":3,"kind":4,"tags":[["d","x"]],"content":"c","sig":"05","more":null}`)
	f.Add(`{"kind":1,"created_at":2,"tags":[null,["a",1,{"b":"\ud800"}]],"content":"\u0000\u2028"}`)
	f.Fuzz(func(t *testing.T, text string) {
		event, err := market.DecodeEmbeddedEvent(text)
		if err != nil {
			return
		}
		encoded := market.EncodeEmbeddedEvent(event)
		if !json.Valid([]byte(encoded)) {
			t.Fatalf("%q is no JSON", encoded)
		}
		again, err := market.DecodeEmbeddedEvent(encoded)
		if err != nil && len(encoded) <= 1<<20 {
			t.Fatalf("%q is read, %q is not: %v", text, encoded, err)
		}
		if err == nil && !cmp.Equal(event, again) {
			t.Fatalf("%q becomes %q", text, encoded)
		}
		market.IsSigned(event)
	})
}
