package profiles

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/market"
	"hostr-daemon/internal/relay"
)

// version is what an edit starts from.
type version struct {
	// profile is nil when there is none.
	profile *market.Profile
	// createdAt is that of the newest kind 0, readable or not: the edit replaces it.
	createdAt nostr.Timestamp
}

func versionOf(profile *market.Profile) version {
	if profile == nil {
		return version{}
	}
	return version{profile: profile, createdAt: profile.CreatedAt}
}

// load finds the newest version of the account's profile (spec 20 §10.1, forced):
// on the Hostr relay, on the public relays, on those it will be sent to, and in the
// cache.
func (e *Editor) load(ctx context.Context, pubkey string) (version, error) {
	known := e.service.cache.held(pubkey)
	own, others := e.relays(pubkey)
	var elsewhere relay.Answer
	var failure error
	var asking sync.WaitGroup
	asking.Go(func() { elsewhere, failure = e.query(ctx, pubkey, others, hostrRelayTimeout) })
	answer, err := e.query(ctx, pubkey, own, hostrRelayTimeout)
	asking.Wait()
	switch {
	case err != nil:
		return version{}, err
	case failure != nil:
		return version{}, failure
	case !answer.Complete && known == nil:
		return version{}, unseen(answer)
	}
	events := slices.Concat(answer.Events, elsewhere.Events)
	if len(events) == 0 && known == nil && !elsewhere.Complete {
		// Perhaps the profile of a newcomer who has one elsewhere: give slow relays the
		// rest of the time a look-up has.
		if elsewhere, err = e.query(ctx, pubkey, others, publicTimeout-hostrRelayTimeout); err != nil {
			return version{}, err
		}
		events = elsewhere.Events
	}
	return e.settle(known, events), nil
}

// relays returns the relays whose answer an edit needs, the Hostr relay or, where
// there is none, the bootstrap relays, and the others to ask.
func (e *Editor) relays(pubkey string) (own, others []string) {
	others = append(slices.Clone(e.service.public), e.lists.WriteRelays(pubkey)...)
	if e.service.hostrRelay == "" {
		return e.service.public, others[len(e.service.public):]
	}
	return []string{e.service.hostrRelay}, others
}

func (e *Editor) query(ctx context.Context, pubkey string, relays []string, timeout time.Duration) (relay.Answer, error) {
	if len(relays) == 0 {
		return relay.Answer{Complete: true}, nil
	}
	filter := nostr.Filter{Kinds: []int{nostr.KindProfileMetadata}, Authors: []string{pubkey}, Limit: 1}
	answer, err := e.service.relays.Query(ctx, filter, relay.QueryOptions{Relays: relays, Timeout: timeout})
	if err != nil {
		return relay.Answer{}, fmt.Errorf("looking up the profile to edit: %w", err)
	}
	return answer, nil
}

// settle returns the newest of the known profile and the events found.
func (e *Editor) settle(known *market.Profile, events []*nostr.Event) version {
	current := versionOf(known)
	if found := newest(events); found != nil {
		e.service.cache.Put(found)
		if known == nil || supersedes(found, known) {
			current = versionOf(found)
		}
	}
	for _, event := range events {
		current.createdAt = max(current.createdAt, event.CreatedAt)
	}
	return current
}

// held returns the profile the cache has of a pubkey, however old, or nil.
func (c *Cache) held(pubkey string) *market.Profile {
	c.mu.Lock()
	defer c.mu.Unlock()
	held, _ := c.entries.Peek(pubkey)
	return held.profile
}

// unseen refuses an edit that could replace a profile nobody has looked at.
func unseen(answer relay.Answer) *fault.Error {
	warning := answer.Warning()
	return fault.New(fault.UnexpectedError,
		"The profile was not changed: what it says now could not be read in full and would have been lost. %s", warning.Message).
		WithDetails(warning.Details).Transient()
}
