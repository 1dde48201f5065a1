package secrets

import (
	"crypto/subtle"
	"fmt"
	"log/slog"

	"hostr-daemon/internal/redact"
)

// Secret is a text that nothing prints: every verb of fmt, JSON and loggers show
// it as [redacted], also inside other values. The zero value is the empty secret.
type Secret struct {
	// value is behind a pointer because fmt prints the unexported fields of other
	// packages' structs without asking their methods.
	value *string
}

// NewSecret returns the secret that holds a text.
func NewSecret(value string) Secret { return Secret{value: &value} }

// Reveal returns the text. What is done with it is the caller's responsibility.
func (s Secret) Reveal() string {
	if s.value == nil {
		return ""
	}
	return *s.value
}

// IsEmpty reports whether there is no text.
func (s Secret) IsEmpty() bool { return s.Reveal() == "" }

// Equal compares two secrets in a time that does not depend on their texts.
func (s Secret) Equal(other Secret) bool {
	return subtle.ConstantTimeCompare([]byte(s.Reveal()), []byte(other.Reveal())) == 1
}

// Format implements fmt.Formatter for every verb.
func (s Secret) Format(state fmt.State, _ rune) { _, _ = state.Write([]byte(redact.Redacted)) }

// String implements fmt.Stringer.
func (s Secret) String() string { return redact.Redacted }

// GoString implements fmt.GoStringer.
func (s Secret) GoString() string { return redact.Redacted }

// MarshalText implements encoding.TextMarshaler, and with it JSON.
func (s Secret) MarshalText() ([]byte, error) { return []byte(redact.Redacted), nil }

// LogValue implements slog.LogValuer.
func (s Secret) LogValue() slog.Value { return slog.StringValue(redact.Redacted) }
