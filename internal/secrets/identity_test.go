package secrets

import (
	"strings"
	"testing"
)

// Vectors of spec 20 §3.2.
const (
	vectorNsec     = "nsec1arejuu3aan6q2xh04j8zey7fckepgvfczlxmqxs5jju30jzrdv6sl7e265"
	vectorKey      = "e8f32e723decf4051aefac8e2c93c9c5b214313817cdb01a1494b917c8436b35"
	vectorPubkey   = "39a36013301597daef41fbe593a02cc513d0b55527ec2df1050e2e8ff49c85c2"
	mnemonic       = "abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon about"
	mnemonicKey    = "5f29af3b9676180290e77a4efad265c4c2ff28a5302461f73597fda26bb25731"
	mnemonicPubkey = "e8bcf3823669444d0b49ad45d65088635d9fd8500a75b5f20b59abefa56a144f"
	secondKey      = "603d647baecb475171e2b6ad23113d4ea15052262e7543f5e491387143007521"
	secondPubkey   = "7e956dc460e4f63fc6c5bcb5ab4a541691ff192a398cdcca0fe7ae8da4629dd6"

	// order is n of secp256k1.
	order     = "fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141"
	orderLess = "fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364140"
)

// account is a test account.
type account struct {
	key, pubkey, seed string
	identity          Identity
}

// testAccount returns the account with a small number as its private key.
func testAccount(t testing.TB, number byte) account {
	t.Helper()
	key := strings.Repeat("0", 62) + string([]byte{'0' + number/10, '0' + number%10})
	identity, err := NewPrivateKeyIdentity(NewSecret(key))
	if err != nil {
		t.Fatal(err)
	}
	seed := strings.Repeat(string([]byte{'a' + number/10, '0' + number%10}), 32)
	return account{key: key, pubkey: identity.PublicKey, seed: seed, identity: identity}
}

func TestParsePrivateKey(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][2]string{
		vectorNsec:                              {vectorKey, vectorPubkey},
		vectorKey:                               {vectorKey, vectorPubkey},
		" " + strings.ToUpper(vectorKey) + "\n": {vectorKey, vectorPubkey},
		mnemonicKey:                             {mnemonicKey, mnemonicPubkey},
		secondKey:                               {secondKey, secondPubkey},
		strings.Repeat("0", 63) + "1":           {strings.Repeat("0", 63) + "1", "79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798"},
		orderLess:                               {orderLess, "79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798"},
	} {
		key, pubkey, err := ParsePrivateKey(text)
		if err != nil || key.Reveal() != want[0] || pubkey != want[1] {
			t.Errorf("%.12s…: got %s, %v", text, pubkey, err)
		}
	}
	for _, text := range []string{
		"", "canary", vectorKey[1:], vectorKey + "0", "0x" + vectorKey[2:], vectorNsec[:60], strings.ToUpper(vectorNsec),
		vectorNsec + "canary", "npub1sn0wdenkukak0d9dfczzeacvhkrgz92ak56egt7vdgzn8pv2wfqqhrjdv9", "nsec1", "nsec1canary",
		strings.Repeat("0", 64), order, strings.Repeat("f", 64), mnemonic,
	} {
		if key, _, err := ParsePrivateKey(text); err == nil || !key.IsEmpty() || strings.Contains(err.Error(), "canary") {
			t.Errorf("%.12q…: %v", text, err)
		}
	}
}

func TestIdentityRecordsAsTheOldDaemonWritesThem(t *testing.T) {
	t.Parallel()
	for name, record := range map[string]string{
		"private key": `{"version":1,"credentialType":"private_key","secret":"` + vectorKey + `","publicKey":"` + vectorPubkey +
			`","maxAccountIndex":-1,"keyPair":{"privateKey":"` + vectorKey + `","publicKey":"` + vectorPubkey + `"}}`,
		"mnemonic": `{"version":1,"credentialType":"mnemonic","secret":"` + mnemonic + `","publicKey":"` + mnemonicPubkey +
			`","nostrAccountIndex":0,"maxAccountIndex":12,"keyPair":{"privateKey":"` + mnemonicKey + `","publicKey":"` + mnemonicPubkey + `"}}`,
		"mnemonic, unresolved": `{"version":1,"credentialType":"mnemonic","secret":"` + mnemonic +
			`","publicKey":"","nostrAccountIndex":3,"maxAccountIndex":-1}`,
		"bunker": `{"version":1,"credentialType":"bunker","secret":"","publicKey":"` + secondPubkey +
			`","maxAccountIndex":2,"bunkerConnection":{"privateKey":"` + vectorKey + `","remotePubkey":"` + mnemonicPubkey +
			`","relays":["wss://relay.example/?a=1&b=<2>"]}}`,
		"bunker without relays": `{"version":1,"credentialType":"bunker","secret":"","publicKey":"` + secondPubkey +
			`","maxAccountIndex":-1,"bunkerConnection":{"privateKey":"` + vectorKey + `","remotePubkey":"` + mnemonicPubkey + `","relays":[]}}`,
	} {
		identity, err := ParseIdentity(record)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := identity.record(); got != record {
			t.Errorf("%s: written as\n%s\nwant\n%s", name, got, record)
		}
	}
}

func TestIdentityIsReadLeniently(t *testing.T) {
	t.Parallel()
	whole := `{"version":1,"credentialType":"private_key","secret":"` + vectorKey + `","publicKey":"` + vectorPubkey +
		`","maxAccountIndex":-1,"keyPair":{"privateKey":"` + vectorKey + `","publicKey":"` + vectorPubkey + `"}}`
	bunker := `{"version":1,"credentialType":"bunker","secret":"","publicKey":"` + secondPubkey +
		`","maxAccountIndex":-1,"bunkerConnection":{"privateKey":"` + vectorKey + `","remotePubkey":"` + mnemonicPubkey + `","relays":["wss://a.example"]}}`
	for text, want := range map[string]string{
		vectorNsec:                         whole,
		strings.ToUpper(vectorKey):         whole,
		`{"secret":"` + vectorKey + `"}`:   whole,
		`{"secret":" ` + vectorNsec + `"}`: whole,
		`{"secret":"` + vectorKey + `","version":null,"credentialType":null,"maxAccountIndex":-5,"keyPair":null}`:                           whole,
		`{"secret":"` + strings.ToUpper(vectorKey) + `","publicKey":"` + mnemonicPubkey + `","maxAccountIndex":-1.0,"nostrAccountIndex":3}`: whole,
		`{"secret":"` + secondKey + `","keyPair":{"privateKey":"` + vectorKey + `","publicKey":"` + secondPubkey + `"}}`:                    whole,
		`{"credentialType":"bunker","secret":"left over","publicKey":"` + strings.ToUpper(secondPubkey) + `","keyPair":{"privateKey":"x"},"bunkerConnection":{"privateKey":"` +
			strings.ToUpper(vectorKey) + `","remotePubkey":"` + strings.ToUpper(mnemonicPubkey) + `","relays":["wss://a.example",""," ",7,null]}}`: bunker,
	} {
		identity, err := ParseIdentity(text)
		if err != nil {
			t.Errorf("%.60s…: %v", text, err)
			continue
		}
		if got := identity.record(); got != want {
			t.Errorf("%.60s… reads as\n%s\nwant\n%s", text, got, want)
		}
	}
}

func TestUnreadableIdentities(t *testing.T) {
	t.Parallel()
	for text, problem := range map[string]string{
		"":                           "neither a record",
		"canary":                     "neither a record",
		`["canary"]`:                 "neither a record",
		`{"publicKey":"x"}`:          "neither a record",
		`{"secret":null}`:            "neither a record",
		`{"Secret":"canary"}`:        "neither a record",
		mnemonic:                     "neither a record",
		`{"secret":7}`:               "secret is not a text",
		`{"secret":""}`:              "the private key is not a private key",
		`{"secret":"canary"}`:        "the private key is not a private key",
		`{"secret":"` + order + `"}`: "the private key is outside the range",
		`{"secret":"` + vectorKey + `","version":"1"}`:                                                     "version is not a whole number",
		`{"secret":"` + vectorKey + `","maxAccountIndex":1.5}`:                                             "maxAccountIndex is not a whole number",
		`{"secret":"` + vectorKey + `","maxAccountIndex":1e99}`:                                            "maxAccountIndex is not a whole number",
		`{"secret":"` + vectorKey + `","publicKey":{}}`:                                                    "publicKey is not a text",
		`{"secret":"` + vectorKey + `","keyPair":["canary"]}`:                                              "keyPair is not an object",
		`{"secret":"` + vectorKey + `","keyPair":{}}`:                                                      "the private key is not a private key",
		`{"secret":"` + vectorKey + `","credentialType":"canary"}`:                                         "credentialType is none of",
		`{"secret":" ","credentialType":"mnemonic"}`:                                                       "secret is empty",
		`{"secret":"canary","credentialType":"mnemonic","nostrAccountIndex":-1}`:                           "nostrAccountIndex is negative",
		`{"secret":"canary","credentialType":"mnemonic","publicKey":"canary"}`:                             "publicKey is not 64 hex digits",
		`{"secret":"","credentialType":"bunker","publicKey":"canary"}`:                                     "publicKey is not 64 hex digits",
		`{"secret":"","credentialType":"bunker","publicKey":"` + secondPubkey + `"}`:                       "bunkerConnection is missing",
		`{"secret":"","credentialType":"bunker","publicKey":"` + secondPubkey + `","bunkerConnection":{}}`: "bunkerConnection.remotePubkey is not",
		`{"secret":"","credentialType":"bunker","publicKey":"` + secondPubkey + `","bunkerConnection":{"privateKey":"canary","remotePubkey":"` + secondPubkey + `"}}`: "bunkerConnection.privateKey is not",
	} {
		identity, err := ParseIdentity(text)
		if err == nil {
			t.Errorf("%.60s… was read as %v", text, identity)
			continue
		}
		if !strings.Contains(err.Error(), problem) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%.60s…: got %q, want %q", text, err, problem)
		}
	}
}
