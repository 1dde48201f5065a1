package profiles

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/market"
	"hostr-daemon/internal/relay"
)

// Author is the account whose profile is edited.
type Author interface {
	// PublicKey returns the account, 64 lower-case hex digits.
	PublicKey() string
	// SignEvent sets id and sig. It may take as long as a person with a phone takes.
	SignEvent(ctx context.Context, event *nostr.Event) error
}

// Publisher is what the editor needs of a session's relay client beside Relays.
type Publisher interface {
	Publish(ctx context.Context, event nostr.Event, options relay.PublishOptions) ([]relay.Receipt, error)
}

// WriteRelays knows where people publish (NIP-65).
type WriteRelays interface {
	// WriteRelays returns the relays of a pubkey as far as they are known, without
	// asking anybody.
	WriteRelays(pubkey string) []string
}

// EditRequest names what to change. Text is trimmed; blank means that the field
// stays as it is, so none can be cleared (spec 20 §10.5).
type EditRequest struct {
	Name    string
	About   string
	Picture string
	// LUD16 is a Lightning address, NIP05 an internet identifier. Neither is checked.
	LUD16 string
	NIP05 string
	// DryRun asks for a preview: nothing is signed or sent.
	DryRun bool
}

// Edited is the new version of a profile.
type Edited struct {
	// Event is signed, or in a preview unsigned with its id. It must not be changed.
	Event *nostr.Event
	// Profile is the event, read.
	Profile *market.Profile
	// Receipts has one entry per relay the event was sent to; none in a preview.
	Receipts []relay.Receipt
	// Warning is set when a preview starts from nothing although a relay's answer was
	// cut off: a profile may exist all the same.
	Warning *fault.Error
}

// Editor changes the profile of a session's account, one edit after another. It
// runs nothing of its own.
type Editor struct {
	service   *Service
	publisher Publisher
	lists     WriteRelays
	now       func() time.Time
	// turn is held by the edit under way: two at a time would start from the same
	// version, and the later one would undo the other.
	turn chan struct{}
}

// NewEditor returns the editor of the session of service; now is the clock.
func NewEditor(service *Service, publisher Publisher, lists WriteRelays, now func() time.Time) *Editor {
	return &Editor{service: service, publisher: publisher, lists: lists, now: now, turn: make(chan struct{}, 1)}
}

// Edit publishes a new version of the author's profile to the Hostr relay and the
// author's known write relays, or previews it. It starts from the newest version
// that exists and keeps all of it but the fields given: unknown fields and tags too.
//
// A live edit fails with a retryable unexpected_error when the Hostr relay does not
// tell in full what it has and no version is known, for it could replace one that
// nobody has seen. It fails when no relay takes the event; the receipts are
// returned all the same. A signer's error is wrapped.
func (e *Editor) Edit(ctx context.Context, request EditRequest, author Author) (Edited, error) {
	pubkey := author.PublicKey()
	if request.DryRun {
		return e.preview(ctx, request, pubkey)
	}
	select {
	case e.turn <- struct{}{}:
		defer func() { <-e.turn }()
	case <-ctx.Done():
		return Edited{}, context.Cause(ctx)
	}
	current, err := e.load(ctx, pubkey)
	if err != nil {
		return Edited{}, err
	}
	event, err := e.draft(current, request, pubkey)
	if err != nil {
		return Edited{}, err
	}
	if err := author.SignEvent(ctx, event); err != nil {
		return Edited{}, fmt.Errorf("the profile was not changed, because it was not signed: %w", err)
	}
	return e.publish(ctx, event)
}

func (e *Editor) preview(ctx context.Context, request EditRequest, pubkey string) (Edited, error) {
	found, err := e.service.Lookup(ctx, pubkey)
	if err != nil {
		return Edited{}, err
	}
	event, err := e.draft(versionOf(found.Profile), request, pubkey)
	if err != nil {
		return Edited{}, err
	}
	profile, err := market.DecodeProfile(event)
	if err != nil {
		return Edited{}, fmt.Errorf("reading the edited profile: %w", err)
	}
	return Edited{Event: event, Profile: profile, Warning: found.Warning}, nil
}

// draft returns the unsigned next version with its id.
func (e *Editor) draft(current version, request EditRequest, pubkey string) (*nostr.Event, error) {
	old := &nostr.Event{}
	if current.profile != nil {
		old = current.profile.Event
	}
	content, err := mergedContent(old.Content, request)
	if err != nil {
		return nil, fmt.Errorf("editing the profile of event %s: %w", old.ID, err)
	}
	event := &nostr.Event{
		PubKey:    pubkey,
		CreatedAt: market.NextCreatedAt(current.createdAt, nostr.Timestamp(e.now().Unix())),
		Kind:      nostr.KindProfileMetadata,
		Tags:      make(nostr.Tags, 0, len(old.Tags)),
		Content:   content,
	}
	for _, tag := range old.Tags {
		kept := make(nostr.Tag, 0, len(tag))
		for _, item := range tag {
			kept = append(kept, strings.ToValidUTF8(item, "\uFFFD"))
		}
		event.Tags = append(event.Tags, kept)
	}
	event.ID = event.GetID()
	return event, nil
}

func (e *Editor) publish(ctx context.Context, event *nostr.Event) (Edited, error) {
	profile, err := market.DecodeProfile(event)
	if err != nil {
		return Edited{}, fmt.Errorf("reading the edited profile: %w", err)
	}
	own, _ := e.relays(event.PubKey)
	targets := slices.Concat(own, e.lists.WriteRelays(event.PubKey))
	receipts, err := e.publisher.Publish(ctx, *event, relay.PublishOptions{Relays: targets})
	if err != nil {
		return Edited{Receipts: receipts}, fmt.Errorf("publishing the profile: %w", err)
	}
	e.service.cache.Put(profile)
	return Edited{Event: event, Profile: profile, Receipts: receipts}, nil
}
