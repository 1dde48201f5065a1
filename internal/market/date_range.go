package market

import "time"

// DateRange is a stay or a block of days. Times of day do not count, a reversed
// range is turned round, and one without a night lasts one day (spec 40 §12).
type DateRange struct {
	Start time.Time
	End   time.Time
}

// Overlaps reports whether both ranges need the same night. The day of departure
// is free.
func (r DateRange) Overlaps(other DateRange) bool {
	start, end := r.days()
	otherStart, otherEnd := other.days()
	return start.Before(otherEnd) && end.After(otherStart)
}

func (r DateRange) days() (start, end time.Time) {
	start, end = midnight(r.Start), midnight(r.End)
	if start.After(end) {
		start, end = end, start
	}
	if start.Equal(end) {
		end = end.AddDate(0, 0, 1)
	}
	return start, end
}

func midnight(instant time.Time) time.Time {
	year, month, day := instant.UTC().Date()
	return time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
}
