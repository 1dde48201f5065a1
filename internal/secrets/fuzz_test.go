package secrets

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func FuzzIdentityRecord(f *testing.F) {
	content, err := os.ReadFile(filepath.Join("testdata", "old-secrets.json"))
	if err != nil {
		f.Fatal(err)
	}
	entries, err := parseDocument(content)
	if err != nil {
		f.Fatal(err)
	}
	for _, key := range entries.keys() {
		if text, _ := entries.value(key); strings.HasSuffix(key, "auth") {
			f.Add(text)
		}
	}
	for _, record := range []string{`{"secret":7}`, `{"secret":"a b c","credentialType":"mnemonic","nostrAccountIndex":1e1}`, mnemonic} {
		f.Add(encodeJSON([]string{record}))
	}
	f.Fuzz(func(t *testing.T, text string) {
		identity, ok, err := parseAuth(text)
		if err != nil || !ok {
			return
		}
		written := encodeJSON([]string{identity.record()})
		again, ok, err := parseAuth(written)
		if err != nil || !ok || again.record() != identity.record() {
			t.Fatalf("%s reads back as %v, %v", written, ok, err)
		}
		if identity.KeyPair != nil {
			_, pubkey, err := ParsePrivateKey(identity.KeyPair.PrivateKey.Reveal())
			if err != nil || pubkey != identity.PublicKey {
				t.Fatalf("the account is %s, the key's is %s", identity.PublicKey, pubkey)
			}
		}
		if merged := mergeIdentities(written, text); merged != written {
			t.Fatalf("merged with itself %s is %s", written, merged)
		}
	})
}

func FuzzSecretsFile(f *testing.F) {
	content, err := os.ReadFile(filepath.Join("testdata", "old-secrets.json"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(content, "auth", "[]")
	f.Add([]byte(`{"a":null,"b":[1.0,"\ud800"],"a":{}}`), "b", "\u2028<&>")
	f.Add([]byte("\xef\xbb\xbf {}"), "", "")
	f.Fuzz(func(t *testing.T, content []byte, key, value string) {
		entries, err := parseDocument(content)
		if err != nil {
			return
		}
		value = strings.ToValidUTF8(value, "?")
		key = strings.ToValidUTF8(key, "?")
		text, err := entries.with(key, value, true).text()
		if err != nil || !json.Valid(text) {
			t.Fatalf("written as %s, %v", text, err)
		}
		again, err := parseDocument(text)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := again.value(key); !ok || got != value {
			t.Fatalf("%q reads as %q, %v", value, got, ok)
		}
		for _, other := range entries.keys() {
			before, there := entries.value(other)
			after, still := again.value(other)
			if other != key && (there != still || before != after) {
				t.Fatalf("%q was changed from %q to %q", other, before, after)
			}
		}
		if _, ok := again.with(key, "", false).value(key); ok {
			t.Fatal("a removed entry is there")
		}
	})
}

func FuzzEncryptedFile(f *testing.F) {
	// Not made here: the workers must know the same file.
	good, err := os.ReadFile(filepath.Join("testdata", "quick-stretch.enc"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add(good[:len(good)-1])
	f.Add(good[:headerLength])
	f.Add([]byte(magicStart + "9\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		codec := &envelope{key: quickKey, derive: quickStretch}
		entries, err := codec.decode(content)
		if err != nil {
			return
		}
		if !bytes.Equal(content, good) {
			t.Fatalf("a forged file was accepted: %x", content)
		}
		if got, _ := entries.value("auth"); got != `["x"]` {
			t.Fatalf("read %q", got)
		}
	})
}
