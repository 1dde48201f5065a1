// Package signer acts for a Nostr account: it signs events and encrypts, with a
// private key held here (Local) or by asking a NIP-46 remote signer (Remote), and
// it does the Nostr Connect handshake that finds one (Invitation, Listen).
//
// It knows keys, the requests a remote signer understands, and that relays and
// signers drop, delay, repeat and forge. It must never know what an event means,
// where keys rest, or print one. The rules are those of spec 20 §4 and 81.
package signer
