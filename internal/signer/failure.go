package signer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/nip44guard"
	"hostr-daemon/internal/redact"
)

var (
	// ErrClosed is returned by every call on a signer that is closed, also by those
	// under way. Where the account got another signer the call may be repeated there.
	ErrClosed = errors.New("the signer is closed")
	// ErrNoSigner is returned by a Holder without a signer.
	ErrNoSigner = errors.New("the account has no signer at the moment; its connection has to be restored first")
	// ErrUndecryptable is in the error of a payload that cannot be decrypted here.
	ErrUndecryptable = nip44guard.ErrUndecryptable
	// ErrNoApproval is returned by Listen when no event came within the idle time.
	ErrNoApproval = errors.New("no signer has answered the sign-in request")
)

// Rejected is the remote signer's own "no".
type Rejected struct {
	Method string
	// Text is what the signer said, in one line, bounded, without secrets.
	Text string
}

func (e *Rejected) Error() string {
	return fmt.Sprintf("the signer rejected %s: %s", e.Method, e.Text)
}

// NotAuthorized reports whether the signer no longer knows this connection, so that
// the account has to sign in again (spec 20 §6.3).
func (e *Rejected) NotAuthorized() bool {
	return strings.Contains(strings.ToLower(e.Text), "not authorized")
}

// RelayProblem is what kept one relay from carrying a request.
type RelayProblem struct {
	RelayURL string `json:"relayUrl"`
	// Text is the relay's own, or says why there is none.
	Text string `json:"message"`
}

// Refused means that no relay of the connection carries the request: each has
// refused it, or the subscription for its answer.
type Refused struct {
	Method string
	Relays []RelayProblem
}

func (e *Refused) Error() string {
	return fmt.Sprintf("%s did not reach the signer, its relay refuses it: %s", e.Method, problemTexts(e.Relays))
}

// As makes it a retryable unexpected_error for people.
func (e *Refused) As(target any) bool { return asRetryable(e, target) }

// Unanswered means that the caller's time ended before the signer's answer came. It
// is a context.DeadlineExceeded.
type Unanswered struct {
	Method string
	// Delivered is true when a relay has taken the request: then the signer is
	// offline, or waits for a person.
	Delivered bool
	// ApprovalPage is true when the signer said that a person has to approve the
	// request on a web page.
	ApprovalPage bool
	// Relays are those that have not taken the request.
	Relays []RelayProblem
}

func (e *Unanswered) Error() string {
	switch {
	case e.ApprovalPage:
		return fmt.Sprintf("the signer did not answer %s in time; it waits for an approval on its web page", e.Method)
	case e.Delivered:
		return fmt.Sprintf("the signer did not answer %s in time; open the signer app, approve there and try again", e.Method)
	default:
		return fmt.Sprintf("the signer did not answer %s in time; no relay has taken the request: %s", e.Method, problemTexts(e.Relays))
	}
}

// Unwrap returns context.DeadlineExceeded.
func (e *Unanswered) Unwrap() error { return context.DeadlineExceeded }

// As makes it a retryable unexpected_error for people.
func (e *Unanswered) As(target any) bool { return asRetryable(e, target) }

// WrongAnswer means that the signer answered something that was not asked for.
type WrongAnswer struct {
	Method string
	// Problem says what is wrong with the answer, without quoting it.
	Problem string
}

func (e *WrongAnswer) Error() string {
	return fmt.Sprintf("the signer's answer to %s cannot be used: %s", e.Method, e.Problem)
}

// WrongAccount means that the remote signer acts for another account than the one
// it is known for here.
type WrongAccount struct{ Want, Got string }

func (e *WrongAccount) Error() string {
	return fmt.Sprintf("the signer signs for account %s, not for %s; connect again with the right one", e.Got, e.Want)
}

func asRetryable(err error, target any) bool {
	coded, ok := target.(**fault.Error)
	if ok {
		*coded = fault.New(fault.UnexpectedError, "%w", err).Transient()
	}
	return ok
}

func problemTexts(problems []RelayProblem) string {
	texts := make([]string, len(problems))
	for i, problem := range problems {
		texts[i] = problem.RelayURL + ": " + problem.Text
	}
	return strings.Join(texts, "; ")
}

// maxForeignText bounds what of a signer's words reaches errors, in runes.
const maxForeignText = 300

// foreignText makes a signer's words fit to be shown: one line, bounded, printable,
// without secrets.
func foreignText(text string) string {
	// Redaction looks at words, so they are bounded by bytes first and not cut yet.
	text = redact.Text(strings.ToValidUTF8(text[:min(len(text), 4*maxForeignText)], ""))
	var out strings.Builder
	runes := 0
	for _, r := range text {
		if runes++; runes > maxForeignText {
			out.WriteRune('…')
			break
		}
		if !unicode.IsGraphic(r) {
			r = ' '
		}
		out.WriteRune(r)
	}
	return strings.Join(strings.Fields(out.String()), " ")
}
