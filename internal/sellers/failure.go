package sellers

import (
	"strings"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/relay"
)

// unknown says what an incomplete answer leaves open.
func unknown(what string, answer relay.Answer) error {
	return fault.New(fault.UnexpectedError, "%s %s", what, answer.Warning().Message).Transient()
}

// failure says what happened and why, without the cause's own code.
func failure(what string, cause error) error {
	coded := fault.From(cause)
	return &fault.Error{
		Code:      fault.UnexpectedError,
		Message:   what + ": " + strings.TrimRight(coded.Message, ".") + ".",
		Retryable: coded.Retryable,
		Cause:     cause,
	}
}
