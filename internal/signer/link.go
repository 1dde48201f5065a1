package signer

import (
	"cmp"
	"context"
	"time"

	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/relay"
)

const (
	// standLimit is how long requests wait for the subscription to stand before they
	// are sent all the same (spec 81, NIP-46).
	standLimit = 2 * time.Second
	// reopenFirst and reopenLongest pace new subscriptions at a relay that refused one.
	reopenFirst, reopenLongest = 2 * time.Second, time.Minute
)

// link is the way to the signer over one relay: the subscription for its answers.
type link struct {
	remote *Remote
	number int
	url    string

	// The rest is guarded by the Remote's lock.

	// open is closed once requests may be sent.
	open   chan struct{}
	opened bool
	// refusal is the relay's reason not to serve the subscription, "" while it does.
	refusal string
}

func newLink(r *Remote, number int, url string) *link {
	return &link{remote: r, number: number, url: url, open: make(chan struct{})}
}

// run keeps a subscription open until the signer is closed. A relay that refuses it
// is asked again later.
func (l *link) run() {
	for refusals := 0; ; refusals++ {
		began := l.remote.clock.Now()
		if !l.listen() {
			return
		}
		if l.remote.clock.Now().Sub(began) > reopenLongest {
			refusals = 0
		}
		if !wait(l.remote.ctx, l.remote.clock, doubled(reopenFirst, reopenLongest, refusals)) {
			return
		}
		l.close()
	}
}

// listen serves one subscription. It returns true when the relay has refused it.
func (l *link) listen() bool {
	r := l.remote
	subscription, err := r.client.Subscribe(r.ctx, nostr.Filter{
		Kinds:   []int{nostr.KindNostrConnect},
		Authors: []string{r.connection.RemotePubkey},
		Tags:    nostr.TagMap{"p": {r.connection.PrivateKey.PublicKey()}},
	}, relay.SubscribeOptions{Relays: []string{l.url}, BeforeAuth: true})
	if err != nil { // The client is closed.
		r.shut()
		return false
	}
	defer subscription.Close()
	late, stop := timer(r.clock, standLimit)
	defer stop()
	for stored := subscription.Stored(); ; {
		select {
		case event, more := <-subscription.Events():
			if !more { // The signer or the client is closed.
				r.shut()
				return false
			}
			r.receive(event)
		case <-stored:
			stored = nil
			if subscription.Complete() {
				l.stand()
			}
		case <-subscription.Restored():
			l.stand()
		case <-late:
			late = nil
			r.mu.Lock()
			l.letThrough()
			r.mu.Unlock()
		case refusal := <-subscription.Refusals():
			l.refuse(cmp.Or(refusal.Reason, noReason))
			if refusal.Final {
				return true
			}
		}
	}
}

// ready waits until a request may be sent, or returns why it would be in vain. It
// returns false when the context ends first.
func (l *link) ready(ctx context.Context) (refusal string, ok bool) {
	l.remote.mu.Lock()
	open := l.open
	l.remote.mu.Unlock()
	select {
	case <-open:
		l.remote.mu.Lock()
		defer l.remote.mu.Unlock()
		return l.refusal, true
	case <-ctx.Done():
		return "", false
	}
}

// stand is called when the subscription stands, at first and after each interruption.
func (l *link) stand() {
	r := l.remote
	r.mu.Lock()
	repeated := r.sentOver(l) // Before those that wait are let through.
	l.refusal = ""
	l.letThrough()
	r.mu.Unlock()
	for _, q := range repeated {
		if event, err := r.newEvent(q); err != nil {
			r.finish(q, "", err)
		} else {
			r.send(q, l, event)
		}
	}
}

// refuse fails what is under way over this relay alone.
func (l *link) refuse(reason string) {
	r := l.remote
	var waiting []*request
	r.mu.Lock()
	l.refusal = reason
	l.letThrough()
	for _, q := range r.byID {
		waiting = append(waiting, q)
	}
	r.mu.Unlock()
	for _, q := range waiting {
		r.record(q, l, func(d *delivery) { d.accepted, d.refusal = false, reason })
	}
}

// letThrough lets requests be sent. The lock is held.
func (l *link) letThrough() {
	if !l.opened {
		l.opened = true
		close(l.open)
	}
}

// close lets requests wait again for a new subscription.
func (l *link) close() {
	l.remote.mu.Lock()
	defer l.remote.mu.Unlock()
	l.refusal = ""
	if l.opened {
		l.opened, l.open = false, make(chan struct{})
	}
}
