package signer

import (
	"bytes"
	"strings"
	"testing"
)

func TestParsePrivateKey(t *testing.T) {
	t.Parallel()
	const order = "fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141"
	sequence := "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
	for text, public := range map[string]string{
		sequence:                  "6d6caac248af96f6afa7f904f550253a0f3ef3f5aa2fe6838a95b216691468e2",
		strings.ToUpper(sequence): "6d6caac248af96f6afa7f904f550253a0f3ef3f5aa2fe6838a95b216691468e2",
		accountKey:                "79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798",
		order[:63] + "0":          "79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798",
		order:                     "",
		strings.Repeat("f", 64):   "",
		strings.Repeat("0", 64):   "",
		sequence[2:]:              "",
		sequence + "00":           "",
		sequence[:62] + "zz":      "",
		"":                        "",
	} {
		key, err := ParsePrivateKey(text)
		if key.PublicKey() != public || (err == nil) != (public != "") {
			t.Errorf("%q: public key %q, error %v", text, key.PublicKey(), err)
		}
		if err == nil && key.Hex() != strings.ToLower(text) {
			t.Errorf("%q became another key", text)
		}
		if err != nil && len(text) > 0 && strings.Contains(err.Error(), text) {
			t.Errorf("the error repeats the text: %v", err)
		}
	}
}

func TestNewPrivateKeyDrawsUntilOneIsGood(t *testing.T) {
	t.Parallel()
	good := bytes.Repeat([]byte{7}, 32)
	key, err := NewPrivateKey(bytes.NewReader(append(bytes.Repeat([]byte{0xff}, 32), append(make([]byte, 32), good...)...)))
	if err != nil || key.Hex() != strings.Repeat("07", 32) {
		t.Errorf("the error is %v, the key another", err)
	}
	if _, err := NewPrivateKey(bytes.NewReader(good[:31])); err == nil {
		t.Error("a key of 31 bytes")
	}
}
