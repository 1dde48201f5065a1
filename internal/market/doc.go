// Package market is what Hostr is about, as types read from and written to Nostr
// events: listings and the people who offer them (spec 40, spec 20 §10), orders with
// their proofs, transitions, groups and reviews (spec 50), and the private messages
// that carry offers (spec 60). With them come the rules that decide: search filters,
// prices, verification, availability, and who may be believed.
//
// It knows tags, kinds and result shapes. It must never do I/O, read the clock,
// or let one stranger's odd event spoil an answer.
package market
