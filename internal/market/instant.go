package market

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// dateForm is the form of spec 30 §10: year, month, day, hour, minute, second,
// fraction, zone, sign, zone hour, zone minute.
var dateForm = regexp.MustCompile(
	`^([+-]?\d{4,6})-?(\d\d)-?(\d\d)(?:[ T](\d\d)(?::?(\d\d)(?::?(\d\d)(?:[.,](\d+))?)?)?( ?[zZ]| ?([-+])(\d\d)(?::?(\d\d))?)?)?$`)

// ErrNoInstant means that a text is no date, ErrNoSuchInstant that the date or time
// does not exist, or lies outside the years 1 to 9999.
var (
	ErrNoInstant     = errors.New("is no date")
	ErrNoSuchInstant = errors.New("is a date that does not exist")
)

// ParseInstant reads a date with or without a time (spec 30 §10), in UTC without a
// zone, and cuts it to microseconds. The error is ErrNoInstant or ErrNoSuchInstant.
func ParseInstant(text string) (time.Time, error) {
	const longest = 100
	if len(text) > longest {
		return time.Time{}, ErrNoInstant
	}
	groups := dateForm.FindStringSubmatch(text)
	if groups == nil {
		return time.Time{}, ErrNoInstant
	}
	var parts [6]int
	for i := range parts {
		// The form lets only digits through; an absent part is 0.
		parts[i], _ = strconv.Atoi(groups[i+1])
	}
	microseconds, _ := strconv.Atoi((groups[7] + "000000")[:6])
	instant := time.Date(parts[0], time.Month(parts[1]), parts[2], parts[3], parts[4], parts[5], microseconds*1000, time.UTC)
	// time.Date moves impossible parts on to the next unit.
	year, month, day := instant.Date()
	hour, minute, second := instant.Clock()
	if parts[0] < 1 || parts != [6]int{year, int(month), day, hour, minute, second} {
		return time.Time{}, ErrNoSuchInstant
	}
	offset, ok := zoneOffset(groups[9], groups[10], groups[11])
	instant = instant.Add(-offset)
	if !ok || instant.Year() < 1 || instant.Year() > 9999 {
		return time.Time{}, ErrNoSuchInstant
	}
	return instant, nil
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

// instantForm and preciseInstantForm are the forms that are hashed (spec 50 §2.2).
const (
	instantForm        = "2006-01-02T15:04:05.000Z"
	preciseInstantForm = "2006-01-02T15:04:05.000000Z"
)

func formatInstant(instant time.Time) string {
	instant = instant.UTC().Truncate(time.Microsecond)
	if instant.Nanosecond()%int(time.Millisecond) != 0 {
		return instant.Format(preciseInstantForm)
	}
	return instant.Format(instantForm)
}
