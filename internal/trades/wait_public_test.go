package trades

import (
	"slices"
	"testing"
	"time"

	"hostr-daemon/internal/market"
	"hostr-daemon/internal/sandbox"
)

func isCommitted(orders []market.Order) bool {
	return slices.ContainsFunc(orders, func(order market.Order) bool { return order.Stage == market.StageCommit })
}

// Newer orders of strangers come before those of the parties, and must not end a wait.
func TestWaitPublicIsNotEndedByStrangers(t *testing.T) {
	t.Parallel()
	at := startRelay(t)
	host, guest, escrow := newPerson(t, at), newPerson(t, at), newPerson(t, at)
	booked := guest.start().begin(host.offer(escrow), escrow)
	committed := booked.commit()
	for range 3 {
		stranger := newPerson(t, at)
		stranger.strangerOrder(booked, market.StageCommit, committed.Order.Tags[2:]...)
	}
	at.Relay.Break(sandbox.Faults{DelayMillis: 20})
	for name, person := range map[string]*person{"host": host, "guest": guest, "escrow": escrow} {
		found, err := person.newProcess().WaitPublic(patient(t), booked.tradeID(), PublicWait{Limit: patience, Done: isCommitted})
		if err != nil || !slices.ContainsFunc(found.Orders, func(order market.Order) bool { return order.Event.ID == committed.Order.ID }) {
			t.Errorf("the %s found %d orders, but not the guest's, %v", name, len(found.Orders), err)
		}
		if name != "escrow" && len(found.Orders) != 1 {
			t.Errorf("the %s found %d orders", name, len(found.Orders))
		}
	}
}

// Without the seed a guest cannot tell its own order from a stranger's.
func TestWaitPublicWithoutTheSeed(t *testing.T) {
	t.Parallel()
	host, guest, escrow := people(t)
	booked := guest.start().begin(host.offer(escrow), escrow)
	booked.commit()
	for name, person := range map[string]*person{"host": host, "guest": guest} {
		person.seed.held = make(chan struct{})
		run := person.start()
		found, err := run.WaitPublic(patient(t), booked.tradeID(), PublicWait{
			Limit: 100 * time.Millisecond, UntilAnswered: true, Done: func([]market.Order) bool { return false },
		})
		if err != nil || name == "guest" && found.Complete {
			t.Errorf("the %s found %d orders, complete %t, %v", name, len(found.Orders), found.Complete, err)
		}
		close(person.seed.held)
		found, err = run.WaitPublic(patient(t), booked.tradeID(), PublicWait{
			Limit: patience, UntilAnswered: true, Done: func([]market.Order) bool { return false },
		})
		if err != nil || !found.Complete || len(found.Orders) != 1 {
			t.Errorf("with the seed the %s found %d orders, complete %t, %v", name, len(found.Orders), found.Complete, err)
		}
	}
}
