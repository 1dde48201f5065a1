package signer

import (
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/nbd-wtf/go-nostr"
)

// Kinds that are signed without telling a person (spec 10 §5.1).
const (
	kindReceivedHeartbeat   = 10017
	kindRelayAuthentication = nostr.KindClientAuthentication
)

// checkUnsigned tells whether the account may sign the event, and whether everybody
// will compute the same id from it (spec 82 §10.2).
func checkUnsigned(event *nostr.Event, account string) error {
	if event.PubKey != "" && event.PubKey != account {
		return fmt.Errorf("an event of %s cannot be signed by %s", foreignText(event.PubKey), account)
	}
	valid := utf8.ValidString(event.Content)
	for _, tag := range event.Tags {
		valid = valid && !slices.ContainsFunc(tag, func(value string) bool { return !utf8.ValidString(value) })
	}
	if !valid {
		return fmt.Errorf("the event of kind %d holds bytes that are not UTF-8", event.Kind)
	}
	return nil
}

// verify checks id and signature behind the guards of spec 82 §10.5.
func verify(event *nostr.Event) error {
	if !isPublicKey(event.PubKey) || !isLowerHex(event.ID, 64) || !isLowerHex(event.Sig, 128) {
		return errors.New("its pubkey, id or sig is not lower-case hex of the right length")
	}
	if !event.CheckID() {
		return errors.New("its id is not that of its content")
	}
	if genuine, err := event.CheckSignature(); err != nil || !genuine {
		return errors.New("its signature is wrong")
	}
	return nil
}
