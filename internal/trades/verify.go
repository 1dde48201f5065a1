package trades

import (
	"context"
	"time"

	"hostr-daemon/internal/market"
)

// enqueue has a group verified that has changed; lists wait for it. The lock is held.
func (s *Service) enqueue(group *tradeGroup) {
	if !group.awaited {
		group.awaited = true
		s.unverified++
	}
	s.enqueueAgain(group)
}

// forget takes a group out of the queue. The lock is held.
func (s *Service) forget(group *tradeGroup) {
	group.queued = false
	if group.awaited {
		group.awaited = false
		s.unverified--
	}
}

// enqueueAgain has a group verified once more, for which no list waits. The lock is
// held.
func (s *Service) enqueueAgain(group *tradeGroup) {
	if group.queued {
		return
	}
	group.queued = true
	s.queue = append(s.queue, group)
	signal(s.wake)
}

// verify verifies groups one after the other (spec 50 §13.4). What could not be found
// out is tried again later.
func (s *Service) verify(ctx context.Context) {
	retry := s.limits.retryFirst
	timer := time.NewTimer(retry)
	defer timer.Stop()
	for {
		groups, awaited := s.takeQueued()
		if len(groups) > 0 {
			s.verifyGroups(ctx, groups)
			s.finish(awaited)
			continue
		}
		select {
		case <-s.wake:
		case <-timer.C:
			if s.enqueueDoubtful() {
				retry = min(2*retry, s.limits.retryLongest)
			} else {
				retry = s.limits.retryFirst
			}
			timer.Reset(retry)
		case <-ctx.Done():
			return
		}
	}
}

// takeQueued returns the next groups, as many as one query can find the listings of,
// and how many of them are waited for.
func (s *Service) takeQueued() (groups []*tradeGroup, awaited int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.queue) > 0 && len(groups) < listingsAtOnce {
		group := s.queue[0]
		s.queue[0] = nil // The list's memory outlives it.
		s.queue = s.queue[1:]
		if !group.queued {
			continue
		}
		if group.awaited {
			awaited++
		}
		group.queued, group.awaited = false, false
		groups = append(groups, group)
	}
	return groups, awaited
}

// finish ends the wait for groups that were taken.
func (s *Service) finish(awaited int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unverified -= awaited
	s.notify()
}

// enqueueDoubtful has groups verified again about which something is not known.
func (s *Service) enqueueDoubtful() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := false
	for _, trade := range s.listed {
		for _, group := range trade.groups {
			if group.unsure || group.unopened {
				s.enqueueAgain(group)
				found = true
			}
		}
	}
	return found
}

// verifyGroups verifies groups with the listings that are asked for together.
func (s *Service) verifyGroups(ctx context.Context, groups []*tradeGroup) {
	s.mu.Lock()
	orders := make([]market.OrderGroup, len(groups))
	var anchors []market.Anchor
	for i, group := range groups {
		orders[i] = group.group
		anchors = append(anchors, group.group.Listing())
	}
	s.mu.Unlock()
	s.contain("looking listings up", func() { s.listings.load(ctx, anchors) })
	for i, group := range groups {
		if ctx.Err() != nil {
			return
		}
		s.contain("verifying an order", func() { s.verifyGroup(ctx, group, orders[i]) })
	}
}

// verifyGroup verifies a group as it was when it was taken. What has changed since is
// in the queue again.
func (s *Service) verifyGroup(ctx context.Context, group *tradeGroup, orders market.OrderGroup) {
	listing, known := s.listings.get(orders.Listing())
	var chain market.ChainVerifier
	if s.verifier != nil {
		chain = func(order market.Order) market.ChainVerdict { return s.verifier.VerifyPayment(ctx, order) }
	}
	verification := orders.Verify(listing, false, chain)
	found := s.resolve(ctx, orders)
	s.mu.Lock()
	defer s.mu.Unlock()
	group.verified = &verifiedGroup{group: orders, verification: verification, participants: found.participants}
	group.unsure = verification.Transient || !known
	group.needsKeys, group.unasked, group.unopened = found.needsKeys, found.unasked, false
	if t, ok := s.trades[orders.TradeID()]; ok {
		s.askSigner(t)
	}
}

// askSigner has the proofs opened of the group that stands for a trade: strangers can
// publish any number of others. The lock is held.
func (s *Service) askSigner(t *trade) {
	group := s.choose(t)
	if group == nil || len(group.unasked) == 0 {
		return
	}
	for _, job := range group.unasked {
		job.group = group
		if job.awaited = !group.signerFailed; job.awaited {
			s.unopened++
		}
		s.proofQueue = append(s.proofQueue, job)
	}
	group.unasked = nil
	signal(s.openProofs)
}
