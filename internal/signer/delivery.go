package signer

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/relay"
)

const (
	// repeatFirst is how long a request stays unanswered before it is sent once more;
	// that doubles up to repeatLongest. A signer that holds the request already knows
	// it by its id.
	repeatFirst, repeatLongest = 10 * time.Second, time.Minute
	// unheardFirst and unheardLongest pace requests for which a relay says that
	// nobody listens at present.
	unheardFirst, unheardLongest = time.Second, 8 * time.Second
	// publishLimit is how long a relay has to take a request.
	publishLimit = 10 * time.Second

	noReason = "no reason given"
	noAnswer = "no answer from the relay"
	unheard  = "nobody listens there for the signer"
)

// delivery is how far a request has come at one relay.
type delivery struct {
	// busy is true while it is being sent there; again asks to send it once more.
	busy, again bool
	// sent is true once it was sent there.
	sent bool
	// accepted is true once the relay has taken it; else refusal is the relay's text,
	// or problem says why there was no answer.
	accepted         bool
	refusal, problem string
}

// deliver sends the request over every link, and again for as long as the signer is
// silent.
func (r *Remote) deliver(q *request) {
	for attempt := 0; ; attempt++ {
		event, err := r.newEvent(q)
		if err != nil {
			r.finish(q, "", err)
			return
		}
		for _, l := range r.links {
			r.send(q, l, event)
		}
		if !wait(q.ctx, r.clock, doubled(repeatFirst, repeatLongest, attempt)) {
			return
		}
		r.mu.Lock()
		held := q.approvalPage // The signer has it and a person is at work.
		r.mu.Unlock()
		if held {
			return
		}
	}
}

// newEvent seals the request. Each time it is another event, as a relay or a signer
// may drop one it has seen (spec 81, NIP-46).
func (r *Remote) newEvent(q *request) (nostr.Event, error) {
	sealed, err := r.channel.seal(q.content)
	if err != nil {
		return nostr.Event{}, fmt.Errorf("encrypting %s for the signer: %w", q.Method, err)
	}
	event := nostr.Event{
		Kind: nostr.KindNostrConnect, CreatedAt: nostr.Timestamp(r.clock.Now().Unix()),
		Tags: nostr.Tags{{"p", r.connection.RemotePubkey}}, Content: sealed,
	}
	if event.Sign(r.connection.PrivateKey.Hex()) != nil { // Its text may hold the key.
		return nostr.Event{}, fmt.Errorf("the request %s cannot be signed", q.Method)
	}
	return event, nil
}

// send begins to send the request over a link, unless that is under way.
func (r *Remote) send(q *request, l *link, event nostr.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	d := &q.deliveries[l.number]
	if q.ctx.Err() != nil || r.closed || d.busy {
		return
	}
	d.busy = true
	r.tasks.Go(func() { r.sendOver(q, l, event) })
}

// sentOver returns the requests that were sent over a link before and have to be
// sent once more, as their answers may have been missed. Those being sent right now
// see to it themselves. The lock is held.
func (r *Remote) sentOver(l *link) []*request {
	var repeated []*request
	for _, q := range r.byID {
		d := &q.deliveries[l.number]
		if d.busy {
			d.again = d.sent
		} else if d.sent {
			repeated = append(repeated, q)
		}
	}
	return repeated
}

// sendOver sends the request over one link until the relay has taken or refused it.
func (r *Remote) sendOver(q *request, l *link, event nostr.Event) {
	for times := 0; ; times++ {
		unheardThere, done := r.sendOnce(q, l, event)
		if done || !r.goesOn(q, l, unheardThere) {
			return
		}
		if unheardThere && !wait(q.ctx, r.clock, doubled(unheardFirst, unheardLongest, times)) {
			return
		}
		var err error
		if event, err = r.newEvent(q); err != nil {
			r.finish(q, "", err)
			return
		}
	}
}

// sendOnce returns done when the request has ended, and unheardThere when the relay
// says that nobody listens.
func (r *Remote) sendOnce(q *request, l *link, event nostr.Event) (unheardThere, done bool) {
	refusal, ready := l.ready(q.ctx)
	if !ready {
		return false, true
	}
	if refusal != "" {
		r.record(q, l, func(d *delivery) { d.accepted, d.refusal = false, refusal })
		return false, false
	}
	r.announce(q, l)
	receipts, err := r.client.Publish(q.ctx, event, relay.PublishOptions{Relays: []string{l.url}, Timeout: publishLimit})
	switch {
	case q.ctx.Err() != nil:
		return false, true
	case len(receipts) == 0:
		r.finish(q, "", l.publishFailure(err))
		return false, true
	default:
		return r.take(q, l, receipts[0]), false
	}
}

// announce makes the request one that was sent.
func (r *Remote) announce(q *request, l *link) {
	r.mu.Lock()
	first := !q.announced && !q.finished
	q.deliveries[l.number].sent = true
	if first {
		q.announced, q.CreatedAt = true, r.clock.Now()
	}
	pending := q.PendingRequest
	r.mu.Unlock()
	if first && r.onPending != nil {
		r.onPending(pending)
	}
}

// take records a relay's answer. It returns true when the relay says that nobody
// listens there: then the signer cannot have the request.
func (r *Remote) take(q *request, l *link, receipt relay.Receipt) (unheardThere bool) {
	r.record(q, l, func(d *delivery) {
		switch {
		case receipt.BroadcastSuccessful:
			d.accepted, d.refusal, d.problem = true, "", ""
		case receipt.OKReceived && isUnheard(receipt.Message):
			d.refusal, d.problem = "", unheard
			unheardThere = !d.accepted
		case receipt.OKReceived:
			d.refusal = cmp.Or(receipt.Message, noReason)
		default:
			d.problem = cmp.Or(receipt.Message, noAnswer)
		}
	})
	return unheardThere
}

// isUnheard recognises the refusal of an ephemeral event without a listener.
func isUnheard(message string) bool { return strings.HasPrefix(strings.TrimSpace(message), "mute") }

// record changes a delivery and fails the request when every relay has refused it.
func (r *Remote) record(q *request, l *link, change func(*delivery)) {
	r.mu.Lock()
	change(&q.deliveries[l.number])
	refused := &Refused{Method: q.Method}
	for i, d := range q.deliveries {
		if !d.accepted && d.refusal != "" {
			refused.Relays = append(refused.Relays, RelayProblem{r.links[i].url, d.refusal})
		}
	}
	everywhere := len(refused.Relays) == len(r.links)
	r.mu.Unlock()
	if everywhere {
		r.finish(q, "", refused)
	}
}

// goesOn ends the sending over a link unless there is a reason to send again.
func (r *Remote) goesOn(q *request, l *link, unheardThere bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	d := &q.deliveries[l.number]
	again := d.again || unheardThere
	d.again = false
	d.busy = again && q.ctx.Err() == nil
	return d.busy
}

// publishFailure is what kept an event from being sent at all.
func (l *link) publishFailure(err error) error {
	if errors.Is(err, relay.ErrClosed) {
		return ErrClosed
	}
	return fmt.Errorf("sending a request to the signer over %s: %w", l.url, err)
}
