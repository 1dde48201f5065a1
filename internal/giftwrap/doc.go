// Package giftwrap puts messages into gift wraps and takes them out again (NIP-59,
// NIP-17; spec 60 §3.2, §4.1), with an account that signs, encrypts and decrypts.
//
// It knows seals and wraps, but not what a message says. It does no I/O of its own,
// never reads the clock, and never logs: what it holds is private.
package giftwrap
