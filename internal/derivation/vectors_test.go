package derivation

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// accountVector is what one index gives (spec 50, V:derivation).
type accountVector struct {
	Index               uint32 `json:"index"`
	TradeIDChild        string `json:"tradeIdChildPrivateKey"`
	TradeID             string `json:"tradeId"`
	TradePrivateKey     string `json:"tradePrivateKey"`
	TradePublicKey      string `json:"tradePublicKey"`
	EVMPrivateKey       string `json:"evmPrivateKey"`
	EVMAddressLowercase string `json:"evmAddressLowercase"`
}

type seedVector struct {
	IdentityPrivateKey string          `json:"identityPrivateKey"`
	IdentityPublicKey  string          `json:"identityPublicKey"`
	HKDFSeed           string          `json:"hkdfSeedHex"`
	Seed               string          `json:"seedHex"`
	Mnemonic           string          `json:"mnemonic"`
	Accounts           []accountVector `json:"accounts"`
}

type derivationVectors struct {
	FromIdentityKey []seedVector `json:"fromIdentityKey"`
	FromRawSeed     seedVector   `json:"fromRawSeed"`
}

func readVectors[T any](t testing.TB, name string) T {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	var vectors T
	if err := json.Unmarshal(text, &vectors); err != nil {
		t.Fatal(err)
	}
	return vectors
}

func mustSeed(t testing.TB, digits string) Seed {
	t.Helper()
	seed, err := ParseSeed(digits)
	if err != nil {
		t.Fatal(err)
	}
	return seed
}

func mustKeys(t testing.TB, seed Seed) *Keys {
	t.Helper()
	keys, err := NewKeys(seed)
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

func mustPrivateKey(t testing.TB, digits string) PrivateKey {
	t.Helper()
	key, err := ParsePrivateKey(digits)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func TestSeedVectors(t *testing.T) {
	t.Parallel()
	vectors := readVectors[derivationVectors](t, "derivation.json")
	for _, vector := range vectors.FromIdentityKey {
		identity := mustPrivateKey(t, strings.ToUpper(vector.IdentityPrivateKey))
		if got := identity.PublicKey(); got != vector.IdentityPublicKey {
			t.Errorf("public key %s, want %s", got, vector.IdentityPublicKey)
		}
		seed, err := SeedFromPrivateKey(identity)
		if err != nil || seed.Hex() != vector.HKDFSeed {
			t.Errorf("account %s: another seed than the vector's, error %v", vector.IdentityPublicKey, err)
		}
		checkKeys(t, seed, vector)
	}
	raw := vectors.FromRawSeed
	checkKeys(t, mustSeed(t, " "+strings.ToUpper(raw.Seed)+"\n"), raw)
}

// The seed of the nsec of spec 20 §3.2.
func TestSeedOfNsec(t *testing.T) {
	t.Parallel()
	seed, err := SeedFromPrivateKey(mustPrivateKey(t, "e8f32e723decf4051aefac8e2c93c9c5b214313817cdb01a1494b917c8436b35"))
	if err != nil || seed.Hex() != "f08b6ce0cffa0ac70169dcef121b9f592192c3ebdd563267845e72bfc71da291" {
		t.Errorf("another seed than the vector's, error %v", err)
	}
}

func checkKeys(t *testing.T, seed Seed, vector seedVector) {
	t.Helper()
	mnemonic, err := seed.Mnemonic()
	if err != nil || mnemonic.Words() != vector.Mnemonic {
		t.Errorf("another mnemonic than the vector's, error %v", err)
	}
	keys := mustKeys(t, seed)
	for _, account := range vector.Accounts {
		tradeID, tradeErr := keys.TradeID(account.Index)
		trade, keyErr := keys.Trade(account.Index)
		evm, evmErr := keys.EVM(account.Index)
		for _, check := range []struct {
			what, got, want string
			err             error
		}{
			{"trade id", tradeID, account.TradeID, tradeErr},
			{"trade private key", trade.Hex(), account.TradePrivateKey, keyErr},
			{"trade public key", trade.PublicKey(), account.TradePublicKey, keyErr},
			{"EVM private key", evm.Hex(), account.EVMPrivateKey, evmErr},
			{"EVM address", strings.ToLower(evm.Address()), account.EVMAddressLowercase, evmErr},
		} {
			if check.err != nil || check.got != check.want {
				t.Errorf("index %d: %s %s, want %s, error %v", account.Index, check.what, check.got, check.want, check.err)
			}
		}
	}
}

func TestNIP06Vectors(t *testing.T) {
	t.Parallel()
	type vector struct {
		Mnemonic   string `json:"mnemonic"`
		Account    uint32 `json:"account"`
		PrivateKey string `json:"privateKey"`
		PublicKey  string `json:"publicKey"`
	}
	for _, vector := range readVectors[[]vector](t, "nip06.json") {
		mnemonic, err := ParseMnemonic("\t" + strings.ReplaceAll(vector.Mnemonic, " ", " \n") + " ")
		if err != nil || mnemonic.Words() != vector.Mnemonic {
			t.Fatalf("the mnemonic was not read: %v", err)
		}
		key, err := mnemonic.NostrKey(vector.Account)
		if err != nil || key.Hex() != vector.PrivateKey || key.PublicKey() != vector.PublicKey {
			t.Errorf("account %d: %s %s, want %s %s, error %v",
				vector.Account, key.Hex(), key.PublicKey(), vector.PrivateKey, vector.PublicKey, err)
		}
	}
}

func TestEVMVectors(t *testing.T) {
	t.Parallel()
	vectors := readVectors[struct {
		Identity struct {
			AccountSeed string `json:"accountSeed"`
		} `json:"identity"`
		EVMKeys []struct {
			Index      uint32 `json:"index"`
			PrivateKey string `json:"privateKey"`
			Address    string `json:"address"`
		} `json:"evmKeys"`
		EIP191 struct {
			Lines        []string `json:"lines"`
			MessageBytes int      `json:"messageBytes"`
			MessageHash  string   `json:"messageHash"`
			SignerIndex  uint32   `json:"signerIndex"`
			Signature    string   `json:"signature"`
		} `json:"eip191"`
		UserOp struct {
			OwnerIndex uint32 `json:"ownerIndex"`
			Hash       string `json:"userOpHash"`
			Signature  string `json:"signature"`
		} `json:"userOp"`
	}](t, "evm.json")
	keys := mustKeys(t, mustSeed(t, vectors.Identity.AccountSeed))
	for _, vector := range vectors.EVMKeys {
		key, err := keys.EVM(vector.Index)
		if err != nil || key.Hex() != vector.PrivateKey || key.Address() != vector.Address {
			t.Errorf("EVM key %d: %s, want %s, error %v", vector.Index, key.Address(), vector.Address, err)
		}
	}

	message := []byte(strings.Join(vectors.EIP191.Lines, "\n"))
	if got := "0x" + hex.EncodeToString(personalHash(message)); len(message) != vectors.EIP191.MessageBytes || got != vectors.EIP191.MessageHash {
		t.Errorf("hash of %d bytes is %s, want %s", len(message), got, vectors.EIP191.MessageHash)
	}
	checkSignature(t, keys, vectors.EIP191.SignerIndex, message, vectors.EIP191.Signature)
	hash, err := hex.DecodeString(strings.TrimPrefix(vectors.UserOp.Hash, "0x"))
	if err != nil {
		t.Fatal(err)
	}
	checkSignature(t, keys, vectors.UserOp.OwnerIndex, hash, vectors.UserOp.Signature)
}

func checkSignature(t *testing.T, keys *Keys, index uint32, message []byte, want string) {
	t.Helper()
	key, err := keys.EVM(index)
	if err != nil {
		t.Fatal(err)
	}
	signature, err := key.PersonalSign(message)
	if err != nil || signature != want {
		t.Errorf("signature %s, want %s, error %v", signature, want, err)
	}
	for _, spelling := range []string{signature, strings.ToUpper(strings.TrimPrefix(signature, "0x"))} {
		if signer, err := PersonalSigner(message, spelling); err != nil || signer != key.Address() {
			t.Errorf("signer of %s is %s, want %s, error %v", spelling, signer, key.Address(), err)
		}
	}
}
