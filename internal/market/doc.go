// Package market is what Hostr is about: listings and the people who offer them,
// as types read from and written to Nostr events (spec 40, spec 20 §10), search
// filters and the choice among what a relay sends back.
//
// It knows tags, kinds and result shapes. It must never do I/O, read the clock,
// or let one stranger's odd event spoil an answer.
package market
