package derivation

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/decred/dcrd/dcrec/secp256k1/v4"
	"github.com/rs/zerolog"
)

// digits of a seed and of a key that must never be seen.
const canary = "c0ffee00c0ffee11c0ffee22c0ffee33c0ffee44c0ffee55c0ffee66c0ffee77"

func TestNothingPrintsSecrets(t *testing.T) {
	t.Parallel()
	seed, key := mustSeed(t, canary), mustPrivateKey(t, canary)
	keys := mustKeys(t, seed)
	mnemonic, err := seed.Mnemonic()
	if err != nil {
		t.Fatal(err)
	}
	evm, err := keys.EVM(0)
	if err != nil {
		t.Fatal(err)
	}
	nested := struct {
		Seed     Seed
		Key      *PrivateKey
		private  PrivateKey
		chain    Keys
		Mnemonic []Mnemonic
		Keys     *Keys
	}{seed, &key, key, *keys, []Mnemonic{mnemonic}, keys}
	var out bytes.Buffer
	for _, value := range []any{seed, &seed, key, mnemonic, keys, *keys, nested, &nested, map[string]Seed{"s": seed}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d"} {
			fmt.Fprintf(&out, verb+"\n", value)
		}
		if err := json.NewEncoder(&out).Encode(value); err != nil {
			t.Error(err)
		}
		logger := zerolog.New(&out)
		logger.Info().Interface("value", value).Msg("")
		slog.New(slog.NewTextHandler(&out, nil)).Info("", "value", value)
	}
	text := strings.ToLower(out.String())
	shown := map[string]string{
		"seed": canary, "EVM key": evm.Hex(), "mnemonic": strings.Join(strings.Fields(mnemonic.Words())[:3], " "),
		"bytes": strings.Trim(fmt.Sprint(seed.bytes()[:6]), "[]"),
	}
	for what, secret := range shown {
		if strings.Contains(text, secret) {
			t.Errorf("the %s is shown", what)
		}
	}
	if !strings.Contains(text, "[redacted]") {
		t.Error("nothing says that there was something")
	}
}

func TestErrorsDoNotRepeatSecrets(t *testing.T) {
	t.Parallel()
	words := "abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon zoofarm"
	_, seedErr := ParseSeed(canary + "00")
	_, keyErr := ParsePrivateKey(canary[1:])
	_, wordErr := ParseMnemonic(words)
	_, signatureErr := PersonalSigner(nil, canary)
	for _, err := range []error{seedErr, keyErr, wordErr, signatureErr} {
		if err == nil || strings.Contains(err.Error(), canary[:8]) || strings.Contains(err.Error(), "zoofarm") {
			t.Errorf("error: %v", err)
		}
	}
}

func TestZeroValuesDoNothing(t *testing.T) {
	t.Parallel()
	var seed Seed
	var key PrivateKey
	var mnemonic Mnemonic
	if !seed.IsZero() || !key.IsZero() || !mnemonic.IsZero() || seed.Equal(seed) {
		t.Error("a zero value counts as a secret")
	}
	if seed.Hex()+key.Hex()+key.PublicKey()+key.Address()+mnemonic.Words() != "" {
		t.Error("a zero value has a text")
	}
	_, fromKey := SeedFromPrivateKey(key)
	_, words := seed.Mnemonic()
	_, keys := NewKeys(seed)
	_, nostr := mnemonic.NostrKey(0)
	_, signature := key.PersonalSign(nil)
	for i, err := range []error{fromKey, words, keys, nostr, signature} {
		if err == nil {
			t.Errorf("call %d took a zero value", i)
		}
	}
}

func TestParseSeed(t *testing.T) {
	t.Parallel()
	seed := mustSeed(t, canary)
	if !seed.Equal(mustSeed(t, strings.ToUpper(canary))) || seed.Equal(mustSeed(t, strings.Repeat("0", 64))) {
		t.Error("seeds are compared wrongly")
	}
	for _, bad := range []string{"", canary[2:], canary + "00", "zz" + canary[2:], "0x" + canary[2:], canary[:32] + " " + canary[32:]} {
		if _, err := ParseSeed(bad); err == nil {
			t.Errorf("a seed of %d characters was taken", len(bad))
		}
	}
}

func TestNewSeed(t *testing.T) {
	t.Parallel()
	one, err := NewSeed(rand.Reader)
	other, otherErr := NewSeed(rand.Reader)
	if err != nil || otherErr != nil || one.Equal(other) || len(one.Hex()) != 64 {
		t.Errorf("seeds drawn: equal %t, errors %v, %v", one.Equal(other), err, otherErr)
	}
	broken := errors.New("no entropy")
	if seed, err := NewSeed(iotest.ErrReader(broken)); !errors.Is(err, broken) || !seed.IsZero() {
		t.Errorf("a seed came of a broken source: %v", err)
	}
	if _, err := NewSeed(strings.NewReader("short")); err == nil {
		t.Error("a seed came of five bytes")
	}
}

func TestParsePrivateKey(t *testing.T) {
	t.Parallel()
	const order = "fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141"
	for _, bad := range []string{"", "01", strings.Repeat("0", 64), order, strings.Repeat("f", 64), " " + canary, canary + "00"} {
		if _, err := ParsePrivateKey(bad); err == nil {
			t.Errorf("the key %q was taken", bad)
		}
	}
	one := strings.Repeat("0", 63) + "1"
	if key := mustPrivateKey(t, one); key.Hex() != one || key.Address() != "0x7E5F4552091A69125d5DfCb7b8C2659029395Bdf" {
		t.Errorf("key 1 has the address %s", key.Address())
	}
	last := order[:63] + "0"
	if key := mustPrivateKey(t, last); key.PublicKey() != mustPrivateKey(t, one).PublicKey() {
		t.Error("the keys 1 and n-1 have the same x")
	}
}

func TestParseMnemonic(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{
		"", "abandon", strings.Repeat("abandon ", 12), // checksum
		strings.Repeat("abandon ", 11) + "abouts",
		strings.Repeat("Abandon ", 11) + "about",
		strings.Repeat("abandon ", 14) + "address", // 15 words, right checksum
		strings.Repeat("abandon ", 23) + "about",
	} {
		if _, err := ParseMnemonic(bad); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
	if _, err := ParseMnemonic(strings.Repeat("abandon ", 23) + "art"); err != nil {
		t.Errorf("24 words: %v", err)
	}
}

func TestIndexBounds(t *testing.T) {
	t.Parallel()
	keys := mustKeys(t, mustSeed(t, canary))
	mnemonic, err := mustSeed(t, canary).Mnemonic()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := keys.EVM(hardened - 1); err != nil {
		t.Errorf("the last index: %v", err)
	}
	_, evm := keys.EVM(hardened)
	_, trade := keys.Trade(hardened)
	_, id := keys.TradeID(1<<32 - 1)
	_, nostr := mnemonic.NostrKey(hardened)
	for _, err := range []error{evm, trade, id, nostr} {
		if !errors.Is(err, errIndex) {
			t.Errorf("an index out of bounds: %v", err)
		}
	}
}

func TestKeysMayBeUsedConcurrently(t *testing.T) {
	t.Parallel()
	keys := mustKeys(t, mustSeed(t, canary))
	want, err := keys.TradeID(7)
	if err != nil {
		t.Fatal(err)
	}
	var deriving sync.WaitGroup
	for range 8 {
		deriving.Go(func() {
			for range 20 {
				if got, err := keys.TradeID(7); err != nil || got != want {
					t.Errorf("trade id %s, want %s, error %v", got, want, err)
				}
			}
		})
	}
	deriving.Wait()
}

// The vectors of EIP-55.
func TestChecksummed(t *testing.T) {
	t.Parallel()
	for _, want := range []string{
		"0x52908400098527886E0F7030069857D2E4169EE7", "0x8617E340B3D01FA5F11F306F4090FD50E238070D",
		"0xde709f2102306220921060314715629080e2fb77", "0x27b1fdb04752bbc536007a920d24acb045561c26",
		"0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed", "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359",
		"0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB", "0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb",
	} {
		if got := checksummed(strings.ToLower(want[2:])); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestPersonalSigner(t *testing.T) {
	t.Parallel()
	key := mustPrivateKey(t, canary)
	message := []byte("a message")
	signature, err := key.PersonalSign(message)
	if err != nil {
		t.Fatal(err)
	}
	if signer, err := PersonalSigner([]byte("another"), signature); err == nil && signer == key.Address() {
		t.Error("a signature holds for another message")
	}
	body := signature[:len(signature)-2]
	for _, bad := range []string{"", "0x", body, body + "00", body + "01", body + "1d", signature + "00", "0x0x" + signature[4:],
		"0x" + strings.Repeat("0", 128) + "1b", "0x" + strings.Repeat("f", 128) + "1b", "zz" + signature[2:]} {
		if signer, err := PersonalSigner(message, bad); err == nil {
			t.Errorf("%q has the signer %s", bad, signer)
		}
	}
	if high := highS(t, signature); high == signature {
		t.Error("s was not turned")
	} else if signer, err := PersonalSigner(message, high); err != nil || signer != key.Address() {
		t.Errorf("with high s the signer is %s, want %s, error %v", signer, key.Address(), err)
	}
}

func FuzzParseSeed(f *testing.F) {
	f.Add(canary)
	f.Add(" " + strings.ToUpper(canary) + "\n")
	f.Add("0x00")
	f.Fuzz(func(t *testing.T, text string) {
		seed, err := ParseSeed(text)
		if (err == nil) == seed.IsZero() {
			t.Fatalf("zero %t, error %v", seed.IsZero(), err)
		}
		if err == nil && seed.Hex() != strings.ToLower(strings.TrimSpace(text)) {
			t.Fatal("another seed was read")
		}
	})
}

func FuzzParsePrivateKey(f *testing.F) {
	f.Add(canary)
	f.Add(strings.Repeat("f", 64))
	f.Fuzz(func(t *testing.T, text string) {
		key, err := ParsePrivateKey(text)
		if err == nil && (key.Hex() != strings.ToLower(text) || len(key.PublicKey()) != 64 || len(key.Address()) != 42) {
			t.Fatal("another key was read")
		}
	})
}

func FuzzParseMnemonic(f *testing.F) {
	f.Add(strings.Repeat("abandon ", 11) + "about")
	f.Add(strings.Repeat("zoo ", 23) + "vote")
	f.Add(strings.Repeat("\u00a0zoo ", 12))
	f.Fuzz(func(t *testing.T, text string) {
		mnemonic, err := ParseMnemonic(text)
		if err == nil && mnemonic.Words() != strings.Join(strings.Fields(text), " ") {
			t.Fatal("other words were read")
		}
	})
}

func FuzzPersonalSigner(f *testing.F) {
	f.Add([]byte("message"), "0x"+strings.Repeat("11", 64)+"1b")
	f.Add([]byte{}, strings.Repeat("00", 65))
	f.Fuzz(func(t *testing.T, message []byte, signature string) {
		signer, err := PersonalSigner(message, signature)
		if err == nil && (len(signer) != 42 || !strings.HasPrefix(signer, "0x")) {
			t.Fatalf("signer %q", signer)
		}
	})
}

func BenchmarkNewKeys(b *testing.B) {
	seed := mustSeed(b, canary)
	for b.Loop() {
		if _, err := NewKeys(seed); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkTradeID(b *testing.B) {
	keys := mustKeys(b, mustSeed(b, canary))
	for index := uint32(0); b.Loop(); index++ {
		if _, err := keys.TradeID(index); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPersonalSign(b *testing.B) {
	key := mustPrivateKey(b, canary)
	for b.Loop() {
		if _, err := key.PersonalSign([]byte("a message")); err != nil {
			b.Fatal(err)
		}
	}
}

// highS returns the other signature of the same message: n-s, with v turned.
func highS(t *testing.T, signature string) string {
	t.Helper()
	raw, err := hex.DecodeString(signature[2:])
	if err != nil {
		t.Fatal(err)
	}
	turned := negate(raw[32:64])
	return "0x" + hex.EncodeToString(raw[:32]) + hex.EncodeToString(turned) + hex.EncodeToString([]byte{27 + 28 - raw[64]})
}

func negate(scalar []byte) []byte {
	var s secp256k1.ModNScalar
	s.SetByteSlice(scalar)
	negated := s.Negate().Bytes()
	return negated[:]
}
