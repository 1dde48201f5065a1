// Package relay talks to Nostr relays for one session: stored queries, live
// subscriptions, publishing and NIP-42, over one WebSocket per relay and client.
//
// It knows which relay may see which kind, what each relay answered, and whether
// an answer is complete. Every event it hands out has a verified id and
// signature, matches its filter and is given once. It must never know what an
// event means, hold a private key, or let a slow consumer hold up a socket.
// The rules are those of spec 82.
package relay
