// Package relaylists finds out which relays people say they use (NIP-65, kind
// 10002; spec 20 §13.5, 82 §9) and remembers it. It is built for one session; the
// cache behind it is shared by all sessions of the process.
//
// It knows where a list may lie and how to read one. It never publishes a list and
// must never know what the relays are wanted for.
package relaylists

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/relay"
)

// loadTimeout bounds the look-up of a list, connecting included (spec 20 §13.3).
const loadTimeout = 10 * time.Second

// Relays is what the service needs of a session's relay client. Equal queries that
// run at the same time have to be one.
type Relays interface {
	Query(ctx context.Context, filter nostr.Filter, options relay.QueryOptions) (relay.Answer, error)
}

// Lists looks relay lists up for one session. It is safe for concurrent use and
// runs nothing of its own.
type Lists struct {
	relays    Relays
	bootstrap []string
	cache     *Cache
}

// New returns the service of one session. bootstrap lists the relays to ask (spec
// 11 §2), the Hostr relay among them. cache is shared by all sessions.
func New(relays Relays, bootstrap []string, cache *Cache) *Lists {
	return &Lists{relays: relays, bootstrap: slices.Clone(bootstrap), cache: cache}
}

// Load returns the relay list of a pubkey (64 lower-case hex digits): the newest
// version that any bootstrap relay has. Equal loads that run at the same time are
// one. What was learned in the last five minutes is not asked for again, nor for
// half a minute what could not be learned.
//
// found is false when there is no list, or none with a usable relay. A relay that
// fails is no error: what the others and the cache have counts. Errors are the
// cause of ctx and relay.ErrClosed.
func (l *Lists) Load(ctx context.Context, pubkey string) (list List, found bool, err error) {
	if known, fresh := l.cache.fresh(pubkey); fresh {
		return known.clone(), known.usable(), nil
	}
	filter := nostr.Filter{Kinds: []int{nostr.KindRelayListMetadata}, Authors: []string{pubkey}, Limit: 1}
	answer, err := l.relays.Query(ctx, filter, relay.QueryOptions{Relays: l.bootstrap, Timeout: loadTimeout})
	if err != nil {
		return List{}, false, fmt.Errorf("looking the relay list of %s up: %w", pubkey, err)
	}
	known := l.cache.learn(pubkey, answer)
	return known.clone(), known.usable(), nil
}

// Cached returns the list that is known of a pubkey, however old, and asks nobody.
// known is false when no list with a usable relay is.
func (l *Lists) Cached(pubkey string) (list List, known bool) {
	cached := l.cache.known(pubkey)
	return cached.clone(), cached.usable()
}

// WriteRelays returns the relays a pubkey publishes to as far as its list is known,
// or nil. It asks nobody.
func (l *Lists) WriteRelays(pubkey string) []string {
	return slices.Clone(l.cache.known(pubkey).Write)
}

// Hint returns the relay to name beside a pubkey in a tag: the first one it
// publishes to as far as its list is known, or "". It asks nobody.
func (l *Lists) Hint(pubkey string) string {
	if write := l.cache.known(pubkey).Write; len(write) > 0 {
		return write[0]
	}
	return ""
}
