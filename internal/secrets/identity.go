package secrets

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// CredentialType is what an account signs with.
type CredentialType string

// The credential types (spec 11 §5.3).
const (
	PrivateKeyCredential CredentialType = "private_key"
	MnemonicCredential   CredentialType = "mnemonic"
	BunkerCredential     CredentialType = "bunker"
)

// NoAccountIndex is the MaxAccountIndex of an account without trades.
const NoAccountIndex = -1

// Identity is a stored sign-in (spec 11 §5.3). It prints without its secrets.
type Identity struct {
	Version        int
	CredentialType CredentialType
	// Secret is the private key as 64 lowercase hex digits, the normalised mnemonic,
	// or empty for a bunker.
	Secret Secret
	// PublicKey is the account, 64 lowercase hex digits. It is empty only for a
	// mnemonic that was never resolved.
	PublicKey string
	// NostrAccountIndex is the account of a mnemonic's derivation path.
	NostrAccountIndex int
	// MaxAccountIndex is the highest trade account index reserved, or NoAccountIndex.
	MaxAccountIndex int
	// KeyPair is the account's key; nil for a bunker and an unresolved mnemonic.
	KeyPair *KeyPair
	// Bunker is the connection to a remote signer; nil for the other types.
	Bunker *BunkerConnection
}

// KeyPair is a private key, 64 lowercase hex digits, and its x-only public key.
type KeyPair struct {
	PrivateKey Secret
	PublicKey  string
}

// BunkerConnection is how to reach a remote signer (NIP-46).
type BunkerConnection struct {
	// PrivateKey is the client's key for this connection, 64 lowercase hex digits.
	PrivateKey Secret
	// RemotePubkey is the signer's key of communication, not the account.
	RemotePubkey string
	Relays       []string
}

// NewPrivateKeyIdentity returns the sign-in of an account whose key is at hand,
// given as 64 hex digits or an nsec.
func NewPrivateKeyIdentity(privateKey Secret) (Identity, error) {
	key, account, err := ParsePrivateKey(privateKey.Reveal())
	if err != nil {
		return Identity{}, err
	}
	return Identity{
		Version: 1, CredentialType: PrivateKeyCredential, Secret: key, PublicKey: account,
		MaxAccountIndex: NoAccountIndex, KeyPair: &KeyPair{key, account},
	}, nil
}

// NewBunkerIdentity returns the sign-in of an account behind a remote signer.
func NewBunkerIdentity(account string, connection BunkerConnection) (Identity, error) {
	identity := Identity{
		Version: 1, CredentialType: BunkerCredential, PublicKey: account,
		MaxAccountIndex: NoAccountIndex, Bunker: &connection,
	}
	return identity, identity.checkBunker()
}

func (i *Identity) checkBunker() error {
	switch {
	case !isHexKey(i.PublicKey):
		return errors.New("publicKey is not 64 hex digits")
	case i.Bunker == nil:
		return errors.New("bunkerConnection is missing")
	case !isHexKey(i.Bunker.RemotePubkey):
		return errors.New("bunkerConnection.remotePubkey is not 64 hex digits")
	}
	key, _, err := ParsePrivateKey(i.Bunker.PrivateKey.Reveal())
	if err != nil {
		return fmt.Errorf("bunkerConnection.privateKey is %w", err)
	}
	connection := *i.Bunker // others may hold the one given
	connection.PrivateKey = key
	i.Bunker = &connection
	return nil
}

// ParseIdentity reads the record of a sign-in, leniently: also the old form, a bare
// private key. Errors name a key of the record and repeat no value.
func ParseIdentity(text string) (Identity, error) {
	var record map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &record) != nil || isAbsent(record["secret"]) {
		identity, err := NewPrivateKeyIdentity(NewSecret(text))
		if err != nil {
			return Identity{}, errors.New("neither a record with a secret nor a private key")
		}
		return identity, nil
	}
	reader := recordReader{}
	identity := Identity{
		Version:           reader.integer(record, "version", 1),
		CredentialType:    CredentialType(reader.text(record, "credentialType", string(PrivateKeyCredential))),
		Secret:            NewSecret(strings.TrimSpace(reader.text(record, "secret", ""))),
		PublicKey:         strings.ToLower(reader.text(record, "publicKey", "")),
		NostrAccountIndex: reader.integer(record, "nostrAccountIndex", 0),
		MaxAccountIndex:   max(reader.integer(record, "maxAccountIndex", NoAccountIndex), NoAccountIndex),
	}
	pair := reader.object(record, "keyPair")
	if reader.problem == nil && pair != nil && identity.CredentialType != BunkerCredential {
		identity.KeyPair = &KeyPair{PrivateKey: NewSecret(reader.text(pair, "privateKey", ""))}
	}
	if bunker := reader.object(record, "bunkerConnection"); bunker != nil && identity.CredentialType == BunkerCredential {
		identity.Bunker = &BunkerConnection{
			PrivateKey:   NewSecret(reader.text(bunker, "privateKey", "")),
			RemotePubkey: strings.ToLower(reader.text(bunker, "remotePubkey", "")),
			Relays:       nonBlank(parseList(string(bunker["relays"]))),
		}
	}
	if reader.problem != nil {
		return Identity{}, reader.problem
	}
	return identity, identity.resolve()
}

// resolve checks the keys and computes what follows from them: the account of a
// local key is that of the key, whatever else the record says.
func (i *Identity) resolve() error {
	switch i.CredentialType {
	case BunkerCredential:
		i.Secret, i.NostrAccountIndex = Secret{}, 0
		return i.checkBunker()
	case PrivateKeyCredential:
		if i.KeyPair == nil {
			i.KeyPair = &KeyPair{PrivateKey: i.Secret}
		}
		i.NostrAccountIndex = 0
	case MnemonicCredential:
		if i.Secret.IsEmpty() {
			return errors.New("secret is empty")
		}
		if i.NostrAccountIndex < 0 {
			return errors.New("nostrAccountIndex is negative")
		}
	default:
		return errors.New("credentialType is none of private_key, mnemonic and bunker")
	}
	if i.KeyPair == nil {
		if i.PublicKey != "" && !isHexKey(i.PublicKey) {
			return errors.New("publicKey is not 64 hex digits")
		}
		return nil
	}
	key, account, err := ParsePrivateKey(i.KeyPair.PrivateKey.Reveal())
	if err != nil {
		return fmt.Errorf("the private key is %w", err)
	}
	i.KeyPair, i.PublicKey = &KeyPair{key, account}, account
	if i.CredentialType == PrivateKeyCredential {
		i.Secret = key
	}
	return nil
}

// The records as they are stored, with the keys in the order of the old daemon.
type (
	identityRecord struct {
		Version           int            `json:"version"`
		CredentialType    CredentialType `json:"credentialType"`
		Secret            string         `json:"secret"`
		PublicKey         string         `json:"publicKey"`
		NostrAccountIndex *int           `json:"nostrAccountIndex,omitempty"`
		MaxAccountIndex   int            `json:"maxAccountIndex"`
		KeyPair           *keyPairRecord `json:"keyPair,omitempty"`
		Bunker            *bunkerRecord  `json:"bunkerConnection,omitempty"`
	}
	keyPairRecord struct {
		PrivateKey string `json:"privateKey"`
		PublicKey  string `json:"publicKey"`
	}
	bunkerRecord struct {
		PrivateKey   string   `json:"privateKey"`
		RemotePubkey string   `json:"remotePubkey"`
		Relays       []string `json:"relays"`
	}
)

// record returns the JSON text to store, secrets and all.
func (i Identity) record() string {
	record := identityRecord{
		Version: i.Version, CredentialType: i.CredentialType, Secret: i.Secret.Reveal(),
		PublicKey: i.PublicKey, MaxAccountIndex: i.MaxAccountIndex,
	}
	if i.CredentialType == MnemonicCredential {
		record.NostrAccountIndex = &i.NostrAccountIndex
	}
	if i.KeyPair != nil {
		record.KeyPair = &keyPairRecord{i.KeyPair.PrivateKey.Reveal(), i.KeyPair.PublicKey}
	}
	if i.Bunker != nil {
		record.Bunker = &bunkerRecord{i.Bunker.PrivateKey.Reveal(), i.Bunker.RemotePubkey, append([]string{}, i.Bunker.Relays...)}
	}
	return encodeJSON(record)
}

// carryIndex returns the identity with the higher index of an earlier sign-in of
// the same account: an index that was used once is used up (spec 11 §7).
func (i Identity) carryIndex(earlier Identity) Identity {
	if i.PublicKey != "" && i.PublicKey == earlier.PublicKey {
		i.MaxAccountIndex = max(i.MaxAccountIndex, earlier.MaxAccountIndex)
	}
	return i
}

// recordReader reads the keys of a record and keeps the first problem.
type recordReader struct{ problem error }

func (r *recordReader) fail(key, expected string) {
	if r.problem == nil {
		r.problem = fmt.Errorf("%s is not %s", key, expected)
	}
}

func (r *recordReader) text(record map[string]json.RawMessage, key, fallback string) string {
	if isAbsent(record[key]) {
		return fallback
	}
	var text string
	if json.Unmarshal(record[key], &text) != nil {
		r.fail(key, "a text")
	}
	return text
}

// integer takes 3.0 for 3, as JSON does.
func (r *recordReader) integer(record map[string]json.RawMessage, key string, fallback int) int {
	if isAbsent(record[key]) {
		return fallback
	}
	number, err := strconv.ParseFloat(string(record[key]), 64)
	if err != nil || number != math.Trunc(number) || math.Abs(number) > math.MaxInt32 {
		r.fail(key, "a whole number")
		return fallback
	}
	return int(number)
}

func (r *recordReader) object(record map[string]json.RawMessage, key string) map[string]json.RawMessage {
	if isAbsent(record[key]) {
		return nil
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(record[key], &object) != nil {
		r.fail(key, "an object")
	}
	return object
}

func isAbsent(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

func nonBlank(list []string) []string {
	var kept []string
	for _, text := range list {
		if strings.TrimSpace(text) != "" {
			kept = append(kept, text)
		}
	}
	return kept
}
