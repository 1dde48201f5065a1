// Package daemon is the line protocol: it turns lines of JSON into typed calls of a
// Product, runs a bounded number of them at a time, and answers every request with
// an id exactly once, in whole lines, whatever the work behind it does.
//
// Three loops share the job. The reader takes lines apart, answers what needs no
// work, and never waits for work. The schedule runs calls in slots, in order of
// arrival. The outbox writes frames in order from one goroutine. Whoever settles a
// call first answers it: its work, a cancel, its time limit, or the end.
//
// It knows methods, frames, envelopes and the request log (spec 10). It must never
// know actions, sessions or relays, and never block on a peer.
package daemon
