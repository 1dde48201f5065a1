package relay

import (
	"time"

	"github.com/nbd-wtf/go-nostr"
)

// receiver takes what one REQ brings from one relay. None of its methods blocks,
// and none is called with a lock of the connection held.
type receiver interface {
	// admit is asked by the socket's reader for each event that matches the filter,
	// before it is verified. size is what it takes in memory, in bytes.
	admit(event *nostr.Event, size int) bool
	// deliver is called for each admitted event in the order of the frames.
	deliver(event *nostr.Event, size int, genuine bool)
	// stored tells that every stored event was delivered (EOSE).
	stored()
	// restored tells that the REQ stands again after it was lost or paused.
	restored()
	// refused tells that the relay wants an AUTH that failed. The REQ is sent again
	// once one succeeds.
	refused(reason string)
	// ended tells that nothing more comes from this relay.
	ended(end End, reason string)
}

// wireState is where a REQ stands at its relay.
type wireState int

const (
	// wireQueued waits until the connection has fewer open REQs.
	wireQueued wireState = iota
	// wireUnsent goes out as soon as the connection is there and ready.
	wireUnsent
	// wireOpen is at the relay.
	wireOpen
	// wireRetrying was closed by the relay and is sent again after a pause or an AUTH.
	wireRetrying
	// wirePaused was closed by us until its consumer has caught up.
	wirePaused
	// wireDormant was refused for want of an AUTH.
	wireDormant
	// wireEnded takes no part any more.
	wireEnded
)

// wireSubscription is one REQ at one relay, over as many sockets as it takes.
type wireSubscription struct {
	filter     nostr.Filter
	receiver   receiver
	sequence   *sequence
	live       bool
	beforeAuth bool
	// number gives the order in which REQs were opened.
	number uint64

	// The rest is guarded by the connection's lock.

	id    string
	state wireState
	// everSent is true once the REQ was on a socket: from then on a lost connection
	// is worth waiting for.
	everSent bool
	// standing is true from EOSE until the REQ is sent again.
	standing bool
	// awaited is true from a repeated REQ until restored was told.
	awaited bool
	sentAt  time.Time
	retries int
	// oversized counts the connections that ended in a frame too large to read.
	oversized int
	// reason is the relay's last word on this REQ, or why the connection was lost.
	reason string
	// authRound is the socket on which this REQ has had its AUTH round.
	authRound *socket
	// generation is how many AUTHs the socket had accepted when the REQ was sent.
	generation int
}

// needsConnection reports whether the connection is to be restored for it.
func (w *wireSubscription) needsConnection() bool {
	waiting := w.state == wireUnsent || w.state == wireOpen || w.state == wireRetrying
	return waiting && (w.live || w.everSent)
}

// needsFirstConnection reports whether it ends when the next attempt fails.
func (w *wireSubscription) needsFirstConnection() bool {
	return !w.live && !w.everSent && (w.state == wireQueued || w.state == wireUnsent)
}

// request returns the REQ frame.
func (w *wireSubscription) request() ([]byte, error) {
	return nostr.ReqEnvelope{SubscriptionID: w.id, Filters: splitAuthors(w.filter)}.MarshalJSON()
}
