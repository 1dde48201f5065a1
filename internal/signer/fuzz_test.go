package signer

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/nbd-wtf/go-nostr"
	"github.com/rs/zerolog"
)

// FuzzResponse reads what stands in a signer's decrypted answer.
func FuzzResponse(f *testing.F) {
	for _, seed := range []string{
		`{"id":"a","result":"ack"}`, `{"id":"a","result":"auth_url","error":"https://x"}`, `{"id":"a","result":null,"error":"no"}`,
		`{"id":"a","error":""}`, `{"id":"a","result":"x","error":""}`, `{"id":"a","result":5}`, `{"id":7}`, `[]`, `null`, `{"result":{"a":1},"error":{}}`,
		`{"id":"a","result":"{\"id\":\"\",\"kind\":1,\"tags\":[[]],\"sig\":\"\"}"}`, `{"id":"a","error":"nsec1qqqqqqqqqqq"}`, "{", "\xff",
		`{"ID":"a","Result":"x","id":"b"}`, `{"id":"\ud800","result":"\u0000"}`,
	} {
		f.Add(seed)
	}
	asked := note("asked")
	account := "79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798"
	f.Fuzz(func(t *testing.T, text string) {
		parsed, err := parseResponse(text)
		if err != nil {
			return
		}
		parsed.waits()
		result, err := parsed.outcome("ping")
		var rejected *Rejected
		var wrong *WrongAnswer
		switch {
		case err == nil:
			if _, err := acceptSigned(result, asked, account); err == nil {
				t.Fatalf("%q signs without the key", text)
			}
		case errors.As(err, &rejected):
			if rejected.Text == "" || len([]rune(rejected.Text)) > maxForeignText+1 || !utf8.ValidString(rejected.Text) || strings.ContainsAny(rejected.Text, "\r\n") {
				t.Fatalf("%q is told as %q", text, rejected.Text)
			}
		case !errors.As(err, &wrong) || result != "":
			t.Fatalf("%q gives %q, %v", text, result, err)
		}
	})
}

// FuzzSignedEvent reads the result of sign_event: whatever it is, only the event that
// was asked for passes.
func FuzzSignedEvent(f *testing.F) {
	local, err := NewLocal(accountKey)
	if err != nil {
		f.Fatal(err)
	}
	asked := note("asked")
	genuine := *asked
	if err := local.SignEvent(context.Background(), &genuine); err != nil {
		f.Fatal(err)
	}
	text, err := json.Marshal(genuine)
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{
		string(text), strings.Replace(string(text), "asked", "other", 1), strings.Replace(string(text), `"kind":1`, `"kind":1.0`, 1), "{}", "null", `"x"`,
		strings.Replace(string(text), `"tags":`, `"more":{},"tags":`, 1), `{"tags":null}`, `{"tags":[null]}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		signed, err := acceptSigned(text, asked, genuine.PubKey)
		if err == nil && (signed.ID != genuine.ID || verify(&signed) != nil) {
			t.Fatalf("%q passes as %v", text, signed)
		}
	})
}

// FuzzPayload decrypts what anybody can send.
func FuzzPayload(f *testing.F) {
	local, err := NewLocal(accountKey)
	if err != nil {
		f.Fatal(err)
	}
	peer := "c6047f9441ed7d6d3045406e95c07cd85c778e4b8cef3ca7abac09b95c709ee5"
	ctx := context.Background()
	good44, err := local.NIP44Encrypt(ctx, peer, "x")
	if err != nil {
		f.Fatal(err)
	}
	good04, err := local.NIP04Encrypt(ctx, peer, "x")
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{good44, good04, strings.Repeat("\n", 132), "?iv=", "AAAA?iv=AAAA", strings.Repeat("A", 132), "", "#"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, payload string) {
		for _, decrypt := range []func(context.Context, string, string) (string, error){local.NIP44Decrypt, local.NIP04Decrypt} {
			if _, err := decrypt(ctx, peer, payload); err != nil && !errors.Is(err, ErrUndecryptable) {
				t.Fatalf("%q: %v", payload, err)
			}
		}
	})
}

// FuzzHandshake examines what strangers send to an invitation.
func FuzzHandshake(f *testing.F) {
	key, err := ParsePrivateKey(transportKey)
	if err != nil {
		f.Fatal(err)
	}
	secret := "8PHy8_T19vf4-fr7_P3-_w=="
	l := &listening{invitation: Invitation{client: key, secret: &secret}, log: zerolog.Nop()}
	stranger, err := ParsePrivateKey(strangerKey)
	if err != nil {
		f.Fatal(err)
	}
	channel, err := newChannel(stranger, key.PublicKey())
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{`{"result":"ack"}`, `{"result":"` + secret[1:] + `"}`, "[]", "null", " ", `{"result":["x"]}`, "{"} {
		f.Add(seed, true)
	}
	f.Add(strings.Repeat("\r", 140), false)
	f.Fuzz(func(t *testing.T, content string, sealed bool) {
		text := content
		if sealed {
			if content, err = channel.seal(text); err != nil {
				return
			}
		}
		accepted := l.accepts(&nostr.Event{PubKey: stranger.PublicKey(), Content: content})
		var object struct{ Result any }
		if accepted && (json.Unmarshal([]byte(text), &object) != nil || object.Result != secret) {
			t.Fatalf("%q is accepted", text)
		}
	})
}
