package listings

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"github.com/nbd-wtf/go-nostr"
	"github.com/rs/zerolog"

	"hostr-daemon/internal/input"
	"hostr-daemon/internal/market"
	"hostr-daemon/internal/relay"
	"hostr-daemon/internal/turns"
)

const (
	// sellerPatience is how long a listing waits for the seller configuration, so that
	// slow chains leave enough of an action's time for signing and sending.
	sellerPatience = 40 * time.Second
	// rememberedVersions bounds the listings whose newest version is remembered.
	rememberedVersions = 1024
)

// Author is the account that publishes.
type Author interface {
	// PublicKey returns 64 lower-case hex digits.
	PublicKey() string
	// SignEvent sets id and sig. It may take as long as a person with a phone takes.
	SignEvent(ctx context.Context, event *nostr.Event) error
}

// Publisher is what the editor needs of a session's relay client beside Relays.
type Publisher interface {
	Publish(ctx context.Context, event nostr.Event, options relay.PublishOptions) ([]relay.Receipt, error)
}

// Images puts what an input names as images on Blossom, in the account's name, and
// tells where it lies (spec 40 §9). A preview uploads too.
type Images interface {
	Materialize(ctx context.Context, images []input.Image) (market.ImageSet, []market.PlannedUpload, error)
}

// Addresses finds the H3 cells of an address, finest first, as decimal text (spec 42
// §2). A nil resolution is the finest there is, a nil maximum none.
type Addresses interface {
	AtAddress(ctx context.Context, address string, finest, maximum *int) ([]string, error)
}

// Editor creates and edits the listings of one account. Live edits of one listing
// come one after another. It runs nothing of its own and is safe for concurrent use.
type Editor struct {
	config EditorConfig
	turns  turns.Keyed

	mu sync.Mutex
	// newest holds when the newest version of a listing, by d tag, was made, as far as
	// this session has read or published it.
	newest *simplelru.LRU[string, nostr.Timestamp]
	// lastDTag is the time that the last generated d tag stands for.
	lastDTag time.Time
}

// EditorConfig is what an editor is made of.
type EditorConfig struct {
	// Service is that of the same session.
	Service   *Service
	Publisher Publisher
	Author    Author
	Images    Images
	Addresses Addresses
	// SeedReady returns once the account seed is there (spec 20 §12.1): nothing is
	// published without it.
	SeedReady func(ctx context.Context) error
	// EnsureSeller publishes what the seller accepts (spec 20 §9).
	EnsureSeller func(ctx context.Context) error
	// Now is the clock.
	Now    func() time.Time
	Logger zerolog.Logger
}

// NewEditor returns the editor of one account; it asks nobody anything yet.
func NewEditor(config EditorConfig) *Editor {
	newest, err := simplelru.NewLRU[string, nostr.Timestamp](rememberedVersions, nil)
	if err != nil {
		panic(err) // only a size below 1 fails
	}
	return &Editor{config: config, newest: newest}
}

// Written is a listing as Create or Edit wrote it.
type Written struct {
	// Listing is read from the event, which is signed or, in a preview, unsigned with
	// its id.
	Listing market.Listing
	// Planned tells of the images that were uploaded; nil once published.
	Planned []market.PlannedUpload
	// Receipts has one entry per relay the event was sent to; nil in a preview.
	Receipts []relay.Receipt
}

// Site says where a place is.
type Site struct {
	// Address is looked up at the geocoder and not published.
	Address string
	// Cells are published unchecked in place of those of the address, if there are any.
	Cells []string
	// FinestResolution and MostCells narrow the cells of the address (spec 42 §2).
	FinestResolution *int
	MostCells        *int
}

// cells returns the g values of a site.
func (e *Editor) cells(ctx context.Context, site Site) ([]string, error) {
	if len(site.Cells) > 0 {
		return site.Cells, nil
	}
	return e.config.Addresses.AtAddress(ctx, site.Address, site.FinestResolution, site.MostCells)
}

// seedReady waits for the account seed where something will be published.
func (e *Editor) seedReady(ctx context.Context, dryRun bool) error {
	if dryRun {
		return nil
	}
	if err := e.config.SeedReady(ctx); err != nil {
		return fmt.Errorf("nothing was published, because the account seed is not ready: %w", err)
	}
	return nil
}

// preview shows a draft as it is.
func preview(draft *nostr.Event, planned []market.PlannedUpload) (Written, error) {
	listing, err := market.DecodeListing(draft)
	if err != nil {
		return Written{}, fmt.Errorf("reading the draft: %w", err)
	}
	return Written{Listing: listing, Planned: planned}, nil
}

// publish signs the draft as the newest version of its listing and sends it (spec 40
// §8). The caller has the listing's turn.
func (e *Editor) publish(ctx context.Context, draft *nostr.Event) (Written, error) {
	e.ensureSeller(ctx)
	event := e.stamped(draft)
	if err := e.config.Author.SignEvent(ctx, event); err != nil {
		return Written{}, fmt.Errorf("the listing was not published, because it was not signed: %w", err)
	}
	listing, err := market.DecodeListing(event)
	if err != nil {
		return Written{}, fmt.Errorf("reading the signed listing: %w", err)
	}
	receipts, err := e.config.Publisher.Publish(ctx, *event, relay.PublishOptions{})
	if err != nil {
		return Written{Receipts: receipts}, fmt.Errorf("publishing the listing: %w", err)
	}
	return Written{Listing: listing, Receipts: receipts}, nil
}

// ensureSeller never keeps a listing from being published.
func (e *Editor) ensureSeller(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, sellerPatience)
	defer cancel()
	if err := e.config.EnsureSeller(ctx); err != nil {
		e.config.Logger.Warn().Err(err).Msg("listing.seller_configuration_not_ensured")
	}
}

// stamped returns a copy of the draft that is newer than every version of the listing
// this session knows of (spec 82 §7.1).
func (e *Editor) stamped(draft *nostr.Event) *nostr.Event {
	d, now := draft.Tags.GetD(), nostr.Timestamp(e.config.Now().Unix())
	e.mu.Lock()
	defer e.mu.Unlock()
	known, _ := e.newest.Get(d)
	event := *draft
	event.CreatedAt = market.NextCreatedAt(max(draft.CreatedAt, known), now)
	event.ID, event.Sig = event.GetID(), ""
	e.newest.Add(d, event.CreatedAt)
	return &event
}

// remember notes a version that was read.
func (e *Editor) remember(listing market.Listing) {
	d := listing.Event.Tags.GetD()
	e.mu.Lock()
	defer e.mu.Unlock()
	known, _ := e.newest.Get(d)
	e.newest.Add(d, max(known, listing.Event.CreatedAt))
}

// newDTag returns an identifier that this editor has not given out before.
func (e *Editor) newDTag() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.config.Now().Truncate(time.Microsecond)
	if !now.After(e.lastDTag) {
		now = e.lastDTag.Add(time.Microsecond)
	}
	e.lastDTag = now
	return market.NewDTag(now)
}

// readable replaces bytes that are not UTF-8, which relays refuse.
func readable(event *nostr.Event) *nostr.Event {
	for i, tag := range event.Tags {
		kept := make(nostr.Tag, 0, len(tag))
		for _, item := range tag {
			kept = append(kept, strings.ToValidUTF8(item, "\uFFFD"))
		}
		event.Tags[i] = kept
	}
	event.Content = strings.ToValidUTF8(event.Content, "\uFFFD")
	event.ID = event.GetID()
	return event
}
