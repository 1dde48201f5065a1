package input

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

// dateTimeForm is the form of spec 30 §10: year, month, day, hour, minute,
// second, fraction, zone, sign, zone hour, zone minute.
var dateTimeForm = regexp.MustCompile(
	`^([+-]?\d{4,6})-?(\d\d)-?(\d\d)(?:[ T](\d\d)(?::?(\d\d)(?::?(\d\d)(?:[.,](\d+))?)?)?( ?[zZ]| ?([-+])(\d\d)(?::?(\d\d))?)?)?$`)

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
	instant, reason := parseDateTime(text)
	switch reason {
	case "":
		return &instant
	case ReasonRange:
		p.fail(ReasonRange, dateTimeHint, "is a date or time that does not exist, or lies outside the years 1 to 9999")
	default:
		p.fail(ReasonFormat, dateTimeHint, "must be a date such as %s", dateTimeHint)
	}
	return nil
}

// parseDateTime returns an empty reason when the text is a date.
func parseDateTime(text string) (time.Time, Reason) {
	const longest = 100
	if len(text) > longest {
		return time.Time{}, ReasonFormat
	}
	groups := dateTimeForm.FindStringSubmatch(text)
	if groups == nil {
		return time.Time{}, ReasonFormat
	}
	var parts [6]int
	for i := range parts {
		// The form lets only digits through; an absent part is 0.
		parts[i], _ = strconv.Atoi(groups[i+1])
	}
	year, month, day, hour, minute, second := parts[0], parts[1], parts[2], parts[3], parts[4], parts[5]
	microseconds, _ := strconv.Atoi((groups[7] + "000000")[:6])
	instant := time.Date(year, time.Month(month), day, hour, minute, second, microseconds*1000, time.UTC)
	// time.Date moves impossible parts on to the next unit, upstream did too.
	if year < 1 || instant.Year() != year || int(instant.Month()) != month || instant.Day() != day ||
		instant.Hour() != hour || instant.Minute() != minute || instant.Second() != second {
		return time.Time{}, ReasonRange
	}
	offset, ok := zoneOffset(groups[9], groups[10], groups[11])
	instant = instant.Add(-offset)
	if !ok || instant.Year() < 1 || instant.Year() > 9999 {
		return time.Time{}, ReasonRange
	}
	return instant, ""
}

func zoneOffset(sign, hourText, minuteText string) (time.Duration, bool) {
	hours, _ := strconv.Atoi(hourText)
	minutes, _ := strconv.Atoi(minuteText)
	offset := time.Duration(hours)*time.Hour + time.Duration(minutes)*time.Minute
	if strings.HasPrefix(sign, "-") {
		offset = -offset
	}
	return offset, hours < 24 && minutes < 60
}
