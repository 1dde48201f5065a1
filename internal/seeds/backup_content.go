package seeds

import (
	"encoding/json"
	"errors"

	"hostr-daemon/internal/derivation"
)

// errBackupFormat says nothing of the content, which is a secret.
var errBackupFormat = errors.New("it is encrypted to this account but holds no seed of 64 hex digits")

// encodeBackup returns the plaintext of a seed's backup.
func encodeBackup(seed derivation.Seed) string { return `{"v":1,"seed":"` + seed.Hex() + `"}` }

// decodeBackup reads the plaintext of a backup. The version is not looked at, as by
// the other clients.
func decodeBackup(plaintext string) (derivation.Seed, error) {
	var content map[string]json.RawMessage
	var text string
	if json.Unmarshal([]byte(plaintext), &content) != nil || json.Unmarshal(content["seed"], &text) != nil {
		return derivation.Seed{}, errBackupFormat
	}
	seed, err := derivation.ParseSeed(text)
	if err != nil {
		return derivation.Seed{}, errBackupFormat
	}
	return seed, nil
}
