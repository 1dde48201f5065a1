package relay

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/nbd-wtf/go-nostr"
)

// register opens a REQ as soon as the connection and the number of open ones allow.
func (c *connection) register(w *wireSubscription) {
	c.mu.Lock()
	c.name(w)
	if w.live {
		c.live++
		w.state = wireUnsent
		c.sendIfReady(w)
	} else {
		c.queue = append(c.queue, w)
		c.letThrough()
	}
	c.mu.Unlock()
	c.poke()
}

// unregister ends a REQ on behalf of its owner and tells where it stood.
func (c *connection) unregister(w *wireSubscription) (end End, reason string) {
	c.mu.Lock()
	end, reason = c.presentEnd(w)
	c.remove(w)
	c.mu.Unlock()
	w.sequence.close()
	return end, reason
}

// finish ends a REQ on behalf of the relay; the receiver is told after the events
// that came before.
func (c *connection) finish(w *wireSubscription, end End, reason string) {
	c.mu.Lock()
	ended := c.remove(w)
	c.mu.Unlock()
	if ended {
		w.sequence.after(func() { w.receiver.ended(end, reason) })
	}
}

// pause closes a live REQ at the relay until resume; events under way under the
// old id are dropped.
func (c *connection) pause(w *wireSubscription) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w.state != wireOpen {
		return
	}
	c.sendClose(w)
	w.state = wirePaused
	c.name(w)
	c.log.Warn().Msg("a subscription is paused until its consumer has caught up")
}

func (c *connection) resume(w *wireSubscription) {
	c.mu.Lock()
	if w.state == wirePaused {
		w.state = wireUnsent
		c.sendIfReady(w)
	}
	c.mu.Unlock()
	c.poke()
}

// resend sends a REQ again that the relay had closed on this socket.
func (c *connection) resend(w *wireSubscription, s *socket) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.socket == s && w.state == wireRetrying {
		c.send(w)
	}
}

// isStanding reports whether the relay has sent EOSE to the REQ as it is open now.
func (c *connection) isStanding(w *wireSubscription) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return w.state == wireOpen && w.standing
}

// tellRestored tells the receiver once per repeated REQ.
func (c *connection) tellRestored(w *wireSubscription) {
	c.mu.Lock()
	tell := w.awaited && w.state == wireOpen
	w.awaited = w.awaited && !tell
	c.mu.Unlock()
	if tell {
		w.sequence.after(w.receiver.restored)
	}
}

// The functions below expect the lock to be held.

// inOrder returns the REQs in the order they were opened.
func (c *connection) inOrder() []*wireSubscription {
	all := make([]*wireSubscription, 0, len(c.subscriptions))
	for _, w := range c.subscriptions {
		all = append(all, w)
	}
	slices.SortFunc(all, func(a, b *wireSubscription) int { return cmp.Compare(a.number, b.number) })
	return all
}

// name gives a REQ a subscription id that this client has never used.
func (c *connection) name(w *wireSubscription) {
	delete(c.subscriptions, w.id)
	prefix := "q"
	if w.live {
		prefix = "s"
	}
	w.id = prefix + strconv.FormatUint(c.client.lastID.Add(1), 36)
	c.subscriptions[w.id] = w
}

// letThrough gives free places to queries in the order they came.
func (c *connection) letThrough() {
	for len(c.queue) > 0 && c.queries < max(minQueries, maxRequests-c.live) {
		w := c.queue[0]
		c.queue = c.queue[1:]
		c.queries++
		w.state = wireUnsent
		c.sendIfReady(w)
	}
}

func (c *connection) sendIfReady(w *wireSubscription) {
	if c.socket != nil && (c.socket.ready || w.beforeAuth) {
		c.send(w)
	}
}

// send writes the REQ, new or again.
func (c *connection) send(w *wireSubscription) {
	request, err := w.request()
	if err != nil {
		c.log.Error().Err(err).Msg("a REQ could not be encoded")
		return
	}
	s := c.socket
	s.send(request)
	w.awaited = w.awaited || w.everSent && w.live
	w.state, w.everSent, w.standing = wireOpen, true, false
	w.sentAt, w.generation = c.client.clock.Now(), s.authentication.generation
	if w.awaited {
		s.tasks.Go(func() {
			if wait(s.ctx, c.client.clock, restoreLimit) == nil {
				c.tellRestored(w)
			}
		})
	}
}

func (c *connection) sendClose(w *wireSubscription) {
	if frame, err := nostr.CloseEnvelope(w.id).MarshalJSON(); err == nil && c.socket != nil && w.state == wireOpen {
		c.socket.send(frame)
	}
}

// remove takes a REQ off the connection and gives its place to the next. It
// returns false when that was done before.
func (c *connection) remove(w *wireSubscription) bool {
	if w.state == wireEnded {
		return false
	}
	c.sendClose(w)
	delete(c.subscriptions, w.id)
	switch {
	case w.live:
		c.live--
	case w.state == wireQueued:
		c.queue = slices.DeleteFunc(c.queue, func(queued *wireSubscription) bool { return queued == w })
	default:
		c.queries--
	}
	w.state = wireEnded
	c.letThrough()
	return true
}

// presentEnd tells how a REQ ends that is ended now by its owner.
func (c *connection) presentEnd(w *wireSubscription) (End, string) {
	switch {
	case w.state == wireEnded:
		return EndTimeout, "its last events were still being verified"
	case w.state == wireRetrying:
		return EndClosed, w.reason
	case w.state == wireOpen:
		return EndTimeout, "no EOSE in time"
	case w.everSent:
		return EndDropped, cmp.Or(w.reason, errConnectionLost.Error())
	case c.socket != nil:
		return EndTimeout, "other requests to this relay had to be answered first"
	default:
		return EndUnreachable, "no connection in time"
	}
}
