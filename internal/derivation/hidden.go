package derivation

import (
	"fmt"
	"log/slog"

	"hostr-daemon/internal/redact"
)

// hidden, embedded, keeps a value out of every text: all verbs of fmt, JSON and
// loggers show [redacted]. The value itself must be a *string or in a func: where it
// is an unexported field of another struct fmt does not ask its methods, and looks
// even behind pointers to arrays and structs for verbs such as %s.
type hidden struct{}

// Format implements fmt.Formatter for every verb.
func (hidden) Format(state fmt.State, _ rune) { _, _ = state.Write([]byte(redact.Redacted)) }

// String implements fmt.Stringer.
func (hidden) String() string { return redact.Redacted }

// GoString implements fmt.GoStringer.
func (hidden) GoString() string { return redact.Redacted }

// MarshalText implements encoding.TextMarshaler, and with it JSON.
func (hidden) MarshalText() ([]byte, error) { return []byte(redact.Redacted), nil }

// LogValue implements slog.LogValuer.
func (hidden) LogValue() slog.Value { return slog.StringValue(redact.Redacted) }
