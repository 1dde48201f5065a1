// Package money is the exact arithmetic of Hostr (spec 41): amounts with a
// denomination and decimals, chain tokens, prices and what a stay costs,
// cancellation rules, minimum-stay durations.
//
// It knows how these things are read, written and compared, as integers of any
// size. It must never know a listing, an order, a relay or a clock, and never
// compute in floats.
package money
