package terminal

import (
	"fmt"
	"time"

	"github.com/nbd-wtf/go-nostr"
)

// Forms of days and moments for people, in UTC.
const (
	dayForm    = "Mon 2 January 2006"
	momentForm = "2 January 2006, 15:04 UTC"
)

// dates are the days of a stay in words, with how many nights it has. What is no
// ordinary stay is written as it came.
func dates(start, end *string) string {
	if start == nil || end == nil {
		return "no dates"
	}
	from, fromErr := time.Parse(time.RFC3339, *start)
	to, toErr := time.Parse(time.RFC3339, *end)
	if fromErr != nil || toErr != nil {
		return stay(start, end)
	}
	return stayInWords(from.UTC(), to.UTC())
}

func stayInWords(from, to time.Time) string {
	const day = 24 * time.Hour
	nights := int(to.Sub(from) / day)
	if !from.Equal(from.Truncate(day)) || !to.Equal(to.Truncate(day)) || nights < 1 {
		return from.Format(momentForm) + " to " + to.Format(momentForm)
	}
	first := "Mon 2 January"
	if from.Year() != to.Year() {
		first = dayForm
	}
	return fmt.Sprintf("%s to %s, %s", from.Format(first), to.Format(dayForm), counted(nights, "night"))
}

// moment is when a message was written, by its author's word.
func moment(at nostr.Timestamp) string { return at.Time().UTC().Format(momentForm) }
