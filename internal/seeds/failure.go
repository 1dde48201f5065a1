package seeds

import (
	"errors"
	"fmt"
	"strings"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/relay"
)

// unknown says that the relay's answer does not tell whether there is a backup.
func unknown(answer relay.Answer) error {
	return fault.New(fault.UnexpectedError,
		"The account seed could not be looked up on the Hostr relay, so nothing was done. %s", answer.Warning().Message).Transient()
}

// unreadable says that there is a backup which is left as it is.
func unreadable(problem error) error {
	return failure("The backup of the account seed on the Hostr relay cannot be read, so nothing was done", problem).
		WithHint("Open the signer app, make sure that it is this account's and may decrypt (NIP-44), and try again.")
}

// unpublished says that a new seed has no backup.
func unpublished(problem error) error {
	return failure("The newly generated account seed could not be published to the Hostr relay", problem).
		WithHint("Nothing is lost. Try again when the signer and the relay can be reached.")
}

// notShown tells what a relay shows instead of a backup it has accepted.
func notShown(shown finding) error {
	switch {
	case shown.exists():
		return fmt.Errorf("the backup it shows cannot be read: %w", shown.problem)
	case !shown.complete:
		return errors.New(shown.answer.Warning().Message)
	default:
		return errors.New("it has accepted the backup but does not show it")
	}
}

func closed() error {
	return fault.New(fault.UnexpectedError, "The account seed was not looked up because the session was closed: ask again.").Transient()
}

// failure says what happened and why, without the cause's own code.
func failure(what string, cause error) *fault.Error {
	why := strings.TrimRight(fault.From(cause).Message, ".")
	return &fault.Error{Code: fault.UnexpectedError, Message: what + ": " + why + ".", Retryable: true, Cause: cause}
}
