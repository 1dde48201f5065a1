// Package fault holds the one error type that reaches the people and programs
// on the other side of the protocol: a code from one list, a sentence for a
// person, and where it helps the input path, a hint and details.
//
// Any other error is internal; From turns it into unexpected_error. The package
// knows no frames and no transport.
package fault

import (
	"errors"
	"fmt"
)

// Error is a coded failure, the "Issue" of spec 10 §3.3.
type Error struct {
	// Code is one of the constants of this package.
	Code Code
	// Message says what happened, to what, and what to do next.
	Message string
	// Path names the input property at fault, nested as prices[0].amount.value.
	Path string
	// Hint shows a form that would have been accepted, or the next step.
	Hint string
	// Retryable is true when the same call may succeed later without a change.
	Retryable bool
	// Details holds machine-readable facts of the failure; it must encode to JSON.
	Details any
	// Cause is the error this one was made from. It is never sent.
	Cause error
}

// New returns a failure with a formatted message. A %w verb sets the cause.
func New(code Code, format string, args ...any) *Error {
	wrapped := fmt.Errorf(format, args...)
	return &Error{Code: code, Message: wrapped.Error(), Cause: errors.Unwrap(wrapped)}
}

// Error returns the code and the message.
func (e *Error) Error() string { return string(e.Code) + ": " + e.Message }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// At returns a copy that names the input property at fault.
func (e *Error) At(path string) *Error {
	moved := *e
	moved.Path = path
	return &moved
}

// WithHint returns a copy with a hint.
func (e *Error) WithHint(hint string) *Error {
	hinted := *e
	hinted.Hint = hint
	return &hinted
}

// WithDetails returns a copy with machine-readable details.
func (e *Error) WithDetails(details any) *Error {
	detailed := *e
	detailed.Details = details
	return &detailed
}

// Transient returns a copy that may be retried unchanged.
func (e *Error) Transient() *Error {
	transient := *e
	transient.Retryable = true
	return &transient
}

// From returns the coded failure inside err, or wraps err as unexpected_error.
// It returns nil for nil.
func From(err error) *Error {
	if err == nil {
		return nil
	}
	var coded *Error
	if errors.As(err, &coded) {
		return coded
	}
	return &Error{Code: UnexpectedError, Message: err.Error(), Cause: err}
}

// Is reports whether err carries the code.
func Is(err error, code Code) bool {
	var coded *Error
	return errors.As(err, &coded) && coded.Code == code
}
