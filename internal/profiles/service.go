// Package profiles finds people's kind-0 profiles on relays and remembers them
// (spec 20 §10). It is built for one session; the cache behind it is shared by
// all sessions of the process.
//
// It knows where a profile may lie and for how long a found one is good. It knows
// nothing of actions, results or sign-in.
package profiles

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/flight"
	"hostr-daemon/internal/market"
	"hostr-daemon/internal/relay"
)

const (
	// hostrRelayTimeout bounds the look-up on the Hostr relay (spec 20 §10.1).
	hostrRelayTimeout = 5 * time.Second
	// publicTimeout bounds the look-up on each public relay, connecting included.
	publicTimeout = 12 * time.Second
	// lookupTimeout bounds a whole look-up.
	lookupTimeout = 25 * time.Second
)

// ErrClosed ends the look-ups of a session that is closed.
var ErrClosed = fault.New(fault.UnexpectedError, "The profile was not looked up because the session was closed: ask again.").Transient()

// Relays is what the service needs of a session's relay client.
type Relays interface {
	Query(ctx context.Context, filter nostr.Filter, options relay.QueryOptions) (relay.Answer, error)
}

// Service looks profiles up for one session.
type Service struct {
	relays     Relays
	hostrRelay string
	public     []string
	cache      *Cache
	lookups    flight.Group[Found]
}

// New returns the service of one session. bootstrap lists the relays to ask (spec
// 11 §2); the Hostr relay, which comes first among them, is asked on its own. cache
// is shared by all sessions.
func New(relays Relays, hostrRelay string, bootstrap []string, cache *Cache) *Service {
	service := &Service{relays: relays, hostrRelay: hostrRelay, cache: cache}
	for _, url := range bootstrap {
		if url != hostrRelay {
			service.public = append(service.public, url)
		}
	}
	return service
}

// Close ends look-ups under way and waits for them; later ones fail with ErrClosed.
func (s *Service) Close() { s.lookups.Close() }

// Found is the outcome of a look-up.
type Found struct {
	// Profile is nil when no relay has one.
	Profile *market.Profile
	// Warning is set when there is no Profile but a relay's answer was cut off, so
	// that it may exist all the same.
	Warning *fault.Error
}

// Lookup returns the profile of a pubkey (64 lower-case hex digits). A known one is
// served at once, and renewed behind the answer when it is older than five minutes.
//
// A relay that fails is no error: the profile then counts as not found, with a
// warning. Errors are the cause of ctx, and ErrClosed. Equal look-ups under way are
// one; it outlives ctx, because others may wait for it too.
func (s *Service) Lookup(ctx context.Context, pubkey string) (Found, error) {
	find := func(ctx context.Context) (Found, error) { return s.find(ctx, pubkey) }
	if known, fresh := s.cache.get(pubkey); known != nil {
		if !fresh {
			s.lookups.Start(ctx, pubkey, find)
		}
		return Found{Profile: known}, nil
	}
	found, err := s.lookups.Do(ctx, pubkey, find)
	if errors.Is(err, flight.ErrClosed) {
		return Found{}, ErrClosed
	}
	return found, err
}

// Shown returns the profile that is shown of somebody, nil when there is none: it is
// Lookup, but whoever was found to have no profile is not searched for again within a
// minute, since such a search asks all relays to the end (spec 60 §10.1).
func (s *Service) Shown(ctx context.Context, pubkey string) (*market.Profile, error) {
	if s.cache.isAbsent(pubkey) {
		return nil, nil
	}
	found, err := s.Lookup(ctx, pubkey)
	if err == nil && found.Profile == nil {
		s.cache.putAbsent(pubkey)
	}
	return found.Profile, err
}

// find runs one look-up.
func (s *Service) find(ctx context.Context, pubkey string) (Found, error) {
	// An equal look-up may have ended since the caller looked into the cache.
	if known, fresh := s.cache.get(pubkey); fresh {
		return Found{Profile: known}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	found, err := s.ask(ctx, pubkey)
	if found.Profile != nil {
		found.Profile = s.cache.Put(found.Profile)
	}
	return found, err
}

// ask asks the Hostr relay and the public relays side by side. What the Hostr relay
// has wins if it comes in time; otherwise the newest version found does.
func (s *Service) ask(ctx context.Context, pubkey string) (Found, error) {
	public, stop := context.WithCancel(ctx)
	defer stop()
	elsewhere := make(chan reply, len(s.public))
	for _, url := range s.public {
		go func() { elsewhere <- s.query(public, pubkey, url, publicTimeout) }()
	}
	first := s.query(ctx, pubkey, s.hostrRelay, hostrRelayTimeout)
	profile := newest(first.answer.Events)
	if profile != nil {
		stop()
	}
	replies := []reply{first}
	for range s.public {
		replies = append(replies, <-elsewhere)
	}
	if profile != nil {
		return Found{Profile: profile}, nil
	}
	return conclude(replies)
}

// reply is what one relay brought.
type reply struct {
	answer relay.Answer
	err    error
}

func (s *Service) query(ctx context.Context, pubkey, url string, timeout time.Duration) reply {
	filter := nostr.Filter{Kinds: []int{nostr.KindProfileMetadata}, Authors: []string{pubkey}, Limit: 1}
	answer, err := s.relays.Query(ctx, filter, relay.QueryOptions{Relays: []string{url}, Timeout: timeout})
	if err != nil {
		return reply{err: fmt.Errorf("asking %s for a profile: %w", url, err)}
	}
	return reply{answer: answer}
}

// conclude makes one outcome of all replies.
func conclude(replies []reply) (Found, error) {
	whole := relay.Answer{Complete: true}
	for _, reply := range replies {
		if reply.err != nil {
			return Found{}, reply.err
		}
		whole.Events = append(whole.Events, reply.answer.Events...)
		whole.Relays = append(whole.Relays, reply.answer.Relays...)
		whole.Complete = whole.Complete && reply.answer.Complete
	}
	if profile := newest(whole.Events); profile != nil {
		return Found{Profile: profile}, nil
	}
	return Found{Warning: whole.Warning()}, nil
}

// newest returns the newest profile among the events, nil when none is one.
func newest(events []*nostr.Event) *market.Profile {
	var newest *market.Profile
	for _, event := range events {
		profile, err := market.DecodeProfile(event)
		if err == nil && (newest == nil || supersedes(profile, newest)) {
			newest = profile
		}
	}
	return newest
}
