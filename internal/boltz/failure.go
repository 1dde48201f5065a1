package boltz

import (
	"fmt"
	"net/http"
	"strings"
	"unicode"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/redact"
)

// Failure is a request that brought nothing usable.
type Failure struct {
	// Host and Path say what was asked for.
	Host, Path string
	// Status is the HTTP status of a refusal, 0 when no answer came.
	Status int
	// Text is what the provider said, in one line, bounded, without secrets.
	Text string
	// Cause is why there is no usable answer; nil for a refusal.
	Cause error
}

func (f *Failure) Error() string {
	reason := f.Text
	switch {
	case f.Cause != nil:
		reason = f.Cause.Error()
	case f.Text == "":
		reason = http.StatusText(f.Status)
	}
	if f.Status != 0 {
		reason = strings.TrimSpace(fmt.Sprintf("HTTP %d %s", f.Status, reason))
	}
	return fmt.Sprintf("the swap provider %s gave no answer to %s: %s", f.Host, f.Path, reason)
}

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Cause }

// As makes it an unexpected_error for people, retryable unless the provider refused
// the request for good.
func (f *Failure) As(target any) bool {
	coded, ok := target.(**fault.Error)
	if ok {
		*coded = fault.New(fault.UnexpectedError, "%w", f)
		if f.transient() {
			*coded = (*coded).Transient()
		}
	}
	return ok
}

func (f *Failure) transient() bool {
	switch f.Status {
	case 0, http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	default:
		return f.Status >= http.StatusInternalServerError
	}
}

// shown makes the provider's words fit to be shown.
func shown(text string) string {
	const maxBytes, maxRunes = 4096, 300
	text = redact.Text(strings.ToValidUTF8(text[:min(len(text), maxBytes)], ""))
	text = strings.Map(func(r rune) rune {
		if !unicode.IsGraphic(r) {
			return ' '
		}
		return r
	}, text)
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > maxRunes {
		return string(runes[:maxRunes]) + "…"
	}
	return text
}
