package seed

import (
	"testing"
	"time"
)

// A host who blocks the same days of two places does not do so by one order.
func TestBlockedDaysHaveTheirOwnOrders(t *testing.T) {
	t.Parallel()
	host, err := newPerson(1, Host, 0)
	if err != nil {
		t.Fatal(err)
	}
	first := Stay{Anchor: "first", Start: time.Date(2027, time.July, 5, 0, 0, 0, 0, time.UTC), End: time.Date(2027, time.July, 8, 0, 0, 0, 0, time.UTC)}
	second := first
	second.Anchor = "second"
	blocked := make(map[string]bool)
	for _, stay := range []*Stay{&first, &second} {
		if err := stay.block(host, Epoch, blocked); err != nil {
			t.Fatal(err)
		}
	}
	if first.TradeID == second.TradeID || !second.Start.Equal(first.Start.AddDate(0, 0, 1)) || !second.End.Equal(first.End.AddDate(0, 0, 1)) {
		t.Errorf("%+v and %+v", first, second)
	}
}
