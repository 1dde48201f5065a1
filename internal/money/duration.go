package money

import (
	"regexp"
	"strings"

	"hostr-daemon/internal/fault"
)

const durationNumber = `\d+(?:[.,]\d+)?`

// durationForm lacks only that a digit must follow T and that there is one at
// all: Go's regular expressions have no look-ahead.
var durationForm = regexp.MustCompile(strings.ReplaceAll(
	`^P(?:NW|(?:NY)?(?:NM)?(?:ND)?(?:T(?:NH)?(?:NM)?(?:NS)?)?)$`, "N", durationNumber))

// ValidDuration reports whether the text, white space around it aside, is an
// ISO 8601 duration that a listing may carry as its shortest stay (spec 41 §8):
// upper case, no sign, weeks alone.
func ValidDuration(text string) bool {
	trimmed := strings.TrimSpace(text)
	return durationForm.MatchString(trimmed) &&
		!strings.HasSuffix(trimmed, "T") &&
		strings.ContainsAny(trimmed, "0123456789")
}

// ParseDuration returns the text as it is stored, trimmed, or invalid_duration.
// Durations are kept as text and never evaluated.
func ParseDuration(text string) (string, error) {
	if !ValidDuration(text) {
		return "", fault.New(fault.InvalidDuration, "%.40q is not an ISO 8601 duration", text).
			At("minDuration").
			WithHint("P2D for two days, P1W for a week, P1M for a month")
	}
	return strings.TrimSpace(text), nil
}
