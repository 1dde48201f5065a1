package input

import (
	"errors"
	"time"

	"hostr-daemon/internal/market"
)

const dateTimeHint = "2026-05-04T00:00:00Z"

// DateTime reads a date with or without time; absent is the zero time.
func (p Property) DateTime() time.Time {
	if instant := p.OptionalDateTime(); instant != nil {
		return *instant
	}
	return time.Time{}
}

// OptionalDateTime reads a date with or without time as an instant in UTC,
// precise to the microsecond; absent is nil. Without a zone the time is UTC.
// Impossible dates and years outside 1..9999 are problems.
func (p Property) OptionalDateTime() *time.Time {
	if len(p.candidates) == 0 && p.required {
		p.missing(dateTimeHint)
		return nil
	}
	text, ok := p.text()
	if !ok || text == "" {
		return nil
	}
	instant, err := market.ParseInstant(text)
	switch {
	case err == nil:
		return &instant
	case errors.Is(err, market.ErrNoSuchInstant):
		p.fail(ReasonRange, dateTimeHint, "is a date or time that does not exist, or lies outside the years 1 to 9999")
	default:
		p.fail(ReasonFormat, dateTimeHint, "must be a date such as %s", dateTimeHint)
	}
	return nil
}
