package signer

import (
	"crypto/rand"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const bunkerKey = "79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798"

func TestParseBunkerURI(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		relays []string
		secret string
	}{
		"bunker://" + bunkerKey + "?relay=wss%3A%2F%2Frelay.example.org&secret=abc":                                 {[]string{"wss://relay.example.org"}, "abc"},
		" BUNKER://" + strings.ToUpper(bunkerKey) + "/?secret=a%2Bb&relay=wss://a.example/&relay=ws://b:1#x":        {[]string{"wss://a.example", "ws://b:1"}, "a+b"},
		"bunker://" + bunkerKey + "?relay=https://x&relay=wss://a.example&relay=wss://A.example/&secret=s&secret=t": {[]string{"wss://a.example"}, "s"},
	} {
		got, err := ParseBunkerURI(text)
		if err != nil || got.RemotePubkey != bunkerKey || got.Secret() != want.secret || !cmp.Equal(got.Relays, want.relays) {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
		connection, err := got.Connection(rand.Reader)
		if err != nil || connection.RemotePubkey != bunkerKey || connection.PrivateKey.Hex() == "" || !cmp.Equal(connection.Relays, want.relays) {
			t.Errorf("%s gives %+v, %v", text, connection, err)
		}
	}
	for _, text := range []string{
		"", "bunker", "bunker://", "nostrconnect://" + bunkerKey + "?relay=wss://a.example&secret=canary",
		"bunker://" + bunkerKey, "bunker://" + bunkerKey + "?secret=canary", "bunker://" + bunkerKey + "?relay=wss://a.example",
		"bunker://" + bunkerKey + "?relay=wss://a.example&secret=", "bunker://" + bunkerKey[1:] + "?relay=wss://a.example&secret=canary",
		"bunker://" + strings.Repeat("f", 64) + "?relay=wss://a.example&secret=canary",
		"bunker://" + bunkerKey + "?relay=canary&secret=canary", "bunker://" + bunkerKey + "?relay=wss://a.example&secret=canary%zz",
		"bunker://user:canary@" + bunkerKey + "?relay=wss://a.example&secret=canary",
	} {
		if got, err := ParseBunkerURI(text); err == nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

func FuzzBunkerURI(f *testing.F) {
	for _, seed := range []string{
		"bunker://" + bunkerKey + "?relay=wss%3A%2F%2Frelay.example.org&secret=abc", "bunker://", "bunker://?relay=&secret=",
		"bunker://" + bunkerKey + "?relay=wss://[::1]&relay=ws://h:99999&secret=%00", "BUNKER://" + bunkerKey + "/?#",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		uri, err := ParseBunkerURI(text)
		if err != nil {
			return
		}
		if uri.Secret() == "" || len(uri.Relays) == 0 || !isPublicKey(uri.RemotePubkey) {
			t.Fatalf("%q is read as %+v without an error", text, uri)
		}
		again, err := ParseBunkerURI("bunker://" + uri.RemotePubkey + "?" +
			url.Values{"relay": uri.Relays, "secret": {uri.Secret()}}.Encode())
		if err != nil || again.Secret() != uri.Secret() || !cmp.Equal(again.Relays, uri.Relays) {
			t.Fatalf("%q is not read the same again: %v", text, err)
		}
	})
}
