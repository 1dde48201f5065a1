package signer

import (
	"fmt"
	"slices"

	"hostr-daemon/internal/relay"
)

// Connection is what has to be kept to talk to a remote signer: whoever has it can
// ask that signer, so its key is a secret. To keep it, take PrivateKey.Hex; JSON shows
// the key as [redacted].
type Connection struct {
	// PrivateKey is the client key that signs and encrypts requests.
	PrivateKey PrivateKey
	// RemotePubkey is the signer's communication key, 64 lower-case hex digits. The
	// account may have another one (spec 11 §5.3).
	RemotePubkey string
	Relays       []string
}

// check returns the connection's relays, cleaned and each once.
func (c Connection) check() ([]string, error) {
	if c.PrivateKey.isEmpty() {
		return nil, fmt.Errorf("the connection to the remote signer has no client key")
	}
	if err := checkPeer(c.RemotePubkey); err != nil {
		return nil, fmt.Errorf("the connection to the remote signer: %w", err)
	}
	relays := cleanRelays(c.Relays)
	if len(relays) == 0 {
		return nil, fmt.Errorf("the connection to the remote signer names no usable relay")
	}
	return relays, nil
}

// cleanRelays drops unusable relay URLs and repeated ones.
func cleanRelays(raw []string) []string {
	var clean []string
	for _, text := range raw {
		if url, ok := relay.CleanURL(text); ok && !slices.Contains(clean, url) {
			clean = append(clean, url)
		}
	}
	return clean
}
