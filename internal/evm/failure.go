package evm

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"hostr-daemon/internal/fault"
)

// Failure is a call that gave no result.
type Failure struct {
	ChainID int64
	Method  string
	// Host is the node that was asked last; empty when none was.
	Host string
	// Transient is true when the same call may succeed later.
	Transient bool
	// Cause is an *RPCError, *HTTPError, *WrongChainError, ErrClosed or another error
	// that says what went wrong.
	Cause error
}

func (f *Failure) Error() string {
	at := ""
	if f.Host != "" {
		at = " at " + f.Host
	}
	return fmt.Sprintf("chain %d: %s%s: %v", f.ChainID, f.Method, at, f.Cause)
}

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Cause }

// As makes it an unexpected_error for people, retryable when it is transient.
func (f *Failure) As(target any) bool {
	coded, ok := target.(**fault.Error)
	if ok {
		*coded = fault.New(fault.UnexpectedError, "%w", f)
		if f.Transient {
			*coded = (*coded).Transient()
		}
	}
	return ok
}

// RPCError is a node's own "no".
type RPCError struct {
	// Code is 0 when the node gave none.
	Code int64
	// Message is what the node said, in one line, bounded, without secrets.
	Message string
	// Data is as the node sent it, for example the revert data of a call.
	Data json.RawMessage
}

func (e *RPCError) Error() string {
	return fmt.Sprintf("the node answered error %d: %s", e.Code, e.Message)
}

// HTTPError is an answer with another status than 200 and no JSON-RPC error in it.
type HTTPError struct{ Status int }

func (e *HTTPError) Error() string {
	return strings.TrimSpace(fmt.Sprintf("the node answered HTTP %d %s", e.Status, http.StatusText(e.Status)))
}

// WrongChainError means that a node is of another chain than it is configured for.
type WrongChainError struct {
	Want int64
	Got  uint64
}

func (e *WrongChainError) Error() string {
	return fmt.Sprintf("the node is of chain %d, not %d; correct the RPC URL in the configuration", e.Got, e.Want)
}

// noAnswerError means that no usable answer came.
type noAnswerError struct{ error }

func (e noAnswerError) Unwrap() error { return e.error }

// transientCodes and transientWords are those of spec 73 §3.
var (
	transientCodes = []int64{429, -32000, -32603}
	transientWords = []string{"too many requests", "internal server", "block range", "limited to", "rate limit"}
)

// isTransient tells whether the same request may succeed later, or elsewhere.
func isTransient(err error) bool {
	var refused *RPCError
	if errors.As(err, &refused) {
		message := strings.ToLower(refused.Message)
		return slices.Contains(transientCodes, refused.Code) ||
			slices.ContainsFunc(transientWords, func(words string) bool { return strings.Contains(message, words) })
	}
	var status *HTTPError
	var unanswered noAnswerError
	return errors.As(err, &status) || errors.As(err, &unanswered)
}
