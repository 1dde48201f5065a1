package market

// Availability is whether a place is free, by the public orders that name it.
type Availability struct {
	Available bool
	// OrderGroupCount counts all groups, those that cannot be shown too.
	OrderGroupCount int
}

// AvailabilityOf tells whether none of the orders takes a night of the stay: the
// orders of a group with a commit, without a cancellation and with both dates
// (spec 50 §16, spec 40 §12). The orders are all public ones of the listing, from
// a complete answer: half of one never shows that a place is free. Nothing is
// verified, so anybody can block dates.
func AvailabilityOf(orders []Order, stay DateRange) Availability {
	groups := groupByRawID(orders)
	availability := Availability{Available: true, OrderGroupCount: len(groups)}
	for _, group := range groups {
		start, end := group.Start(), group.End()
		if group.Active() && start != nil && end != nil && stay.Overlaps(DateRange{Start: *start, End: *end}) {
			availability.Available = false
		}
	}
	return availability
}
