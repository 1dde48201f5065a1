package actions

import (
	"strings"

	"github.com/nbd-wtf/go-nostr/nip19"
)

// sessionKey is the session that a pubkey parameter names: an account written as npub
// is the account it is, any other text stands for itself (spec 10 §3.4, 20 §2).
func sessionKey(pubkey string) string {
	pubkey = strings.TrimSpace(pubkey)
	if !strings.HasPrefix(pubkey, "npub1") {
		return pubkey
	}
	_, decoded, err := nip19.Decode(pubkey)
	if account, isKey := decoded.(string); err == nil && isKey {
		return account
	}
	return pubkey
}
