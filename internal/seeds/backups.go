package seeds

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/derivation"
	"hostr-daemon/internal/relay"
	"hostr-daemon/internal/signer"
)

const (
	kindAccountSeed = 17389
	// fetchLimit is how many events are asked for: there should be one.
	fetchLimit = 10

	fetchTimeout     = 12 * time.Second
	reconcileTimeout = 5 * time.Second
	readBackTimeout  = 4 * time.Second
)

// readBackDelays are waited one after the other, each before a look-up.
var readBackDelays = [...]time.Duration{0, 300 * time.Millisecond, time.Second, 2 * time.Second}

// backups are the account's seed backups on the Hostr relay, for one run: within it
// no event is read twice.
type backups struct {
	service *Service
	known   map[string]reading
	// marked may know the seed of an event without reading it; nil knows none.
	marked func(eventID string) (derivation.Seed, bool)
}

// reading is what one event turned out to hold: a seed or a problem. A final one
// will not turn out differently when it is read again.
type reading struct {
	seed    derivation.Seed
	problem error
	final   bool
}

// finding is what the Hostr relay holds.
type finding struct {
	// seed is that of the newest readable event, no seed when there is none.
	seed derivation.Seed
	// eventID is the readable event's, else the newest one's; empty when there is none.
	eventID string
	// problem is why the newest event cannot be read, when none can.
	problem error
	// lost is true when none can be read and none ever will.
	lost bool
	// complete is true when the relay sent all it has.
	complete bool
	answer   relay.Answer
}

func (f finding) readable() bool { return !f.seed.IsZero() }
func (f finding) exists() bool   { return f.eventID != "" }

func (s *Service) backups() *backups { return &backups{service: s, known: map[string]reading{}} }

// fetch asks the Hostr relay and reads the newest event that can be read.
func (b *backups) fetch(ctx context.Context, timeout time.Duration) (finding, error) {
	filter := nostr.Filter{Kinds: []int{kindAccountSeed}, Authors: []string{b.service.public}, Limit: fetchLimit}
	answer, err := b.service.relays.Query(ctx, filter, relay.QueryOptions{Timeout: timeout})
	if err != nil {
		return finding{}, fmt.Errorf("looking the account seed up: %w", err)
	}
	result := finding{complete: answer.Complete, answer: answer, lost: true}
	for _, event := range newestFirst(answer.Events) {
		read := b.read(ctx, event)
		if read.problem == nil {
			return finding{seed: read.seed, eventID: event.ID, complete: answer.Complete, answer: answer}, nil
		}
		if ctx.Err() != nil {
			return finding{}, context.Cause(ctx)
		}
		if result.eventID == "" {
			result.eventID, result.problem = event.ID, read.problem
		}
		result.lost = result.lost && read.final
	}
	return result, nil
}

// read decrypts an event with the account's signer.
func (b *backups) read(ctx context.Context, event *nostr.Event) reading {
	if known, ok := b.known[event.ID]; ok {
		return known
	}
	if b.marked != nil {
		if seed, ok := b.marked(event.ID); ok {
			return reading{seed: seed, final: true}
		}
	}
	read := b.service.decrypt(ctx, event.Content)
	if read.final {
		b.known[event.ID] = read
	}
	return read
}

func (s *Service) decrypt(ctx context.Context, content string) reading {
	ctx, cancel := context.WithTimeout(ctx, s.limits.signer)
	defer cancel()
	plaintext, err := s.account.NIP44Decrypt(ctx, s.public, content)
	if err != nil {
		return reading{problem: err, final: isFinal(err)}
	}
	seed, err := decodeBackup(plaintext)
	return reading{seed, err, true}
}

// isFinal tells whether the same payload will be refused again: it cannot be
// decrypted at all, or the person has said no, who should not be asked once more.
func isFinal(err error) bool {
	var rejected *signer.Rejected
	return errors.Is(err, signer.ErrUndecryptable) || errors.As(err, &rejected)
}

// write makes the event of a seed's backup, signed.
func (b *backups) write(ctx context.Context, seed derivation.Seed) (nostr.Event, error) {
	s := b.service
	content, err := s.encrypt(ctx, encodeBackup(seed))
	if err != nil {
		return nostr.Event{}, err
	}
	event := nostr.Event{
		PubKey: s.public, Kind: kindAccountSeed, CreatedAt: nostr.Timestamp(s.clock.Now().Unix()),
		Tags: nostr.Tags{}, Content: content,
	}
	ctx, cancel := context.WithTimeout(ctx, s.limits.signer)
	defer cancel()
	if err := s.account.SignEvent(ctx, &event); err != nil {
		return nostr.Event{}, err
	}
	return event, nil
}

func (s *Service) encrypt(ctx context.Context, plaintext string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, s.limits.signer)
	defer cancel()
	return s.account.NIP44Encrypt(ctx, s.public, plaintext)
}

func (b *backups) publish(ctx context.Context, event nostr.Event) error {
	_, err := b.service.relays.Publish(ctx, event, relay.PublishOptions{})
	return err
}

// readBack looks the backup up until it shows the expected seed, or as often as
// there are delays, and returns what it saw last. Without an expected seed it looks
// to the end: a device that published at the same moment may have replaced what the
// first look showed.
func (b *backups) readBack(ctx context.Context, expected derivation.Seed) (finding, error) {
	var last finding
	for _, delay := range readBackDelays {
		if err := b.service.clock.Sleep(ctx, delay); err != nil {
			return finding{}, context.Cause(ctx)
		}
		shown, err := b.fetch(ctx, readBackTimeout)
		if err != nil {
			return finding{}, err
		}
		if shown.readable() || !last.readable() {
			last = shown
		}
		if last.seed.Equal(expected) {
			break
		}
	}
	return last, nil
}

func newestFirst(events []*nostr.Event) []*nostr.Event {
	return slices.SortedFunc(slices.Values(events), func(a, b *nostr.Event) int {
		return cmp.Or(cmp.Compare(b.CreatedAt, a.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
}
