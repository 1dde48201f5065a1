// Package secrets is where private keys rest (spec 11 §5): a store of entries in
// the keyring of the operating system, in an encrypted file or, only when asked
// for, in a plain file; and the typed records of a session in those entries.
//
// A store keeps what the old daemon stored readable, in the same places and forms.
// It never falls back from one place to another silently, and a crash at any line
// loses nothing that was acknowledged. Secrets are in no error and, as Secret, in
// nothing that is printed. It must never know signers, relays or frames.
package secrets
