package listings

import (
	"context"
	"fmt"

	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/input"
	"hostr-daemon/internal/market"
)

// CreateRequest describes a new listing.
type CreateRequest struct {
	// Fields are what the host says of the place, its images aside.
	Fields market.ListingFields
	Images []input.Image
	Site   Site
	// DTag identifies the listing; "" makes a new identifier. The one of a preview makes
	// publishing and every retry meet the same listing.
	DTag string
	// DryRun asks for a preview: images are uploaded, nothing is published.
	DryRun bool
}

// Create publishes a new listing to the Hostr relay, or previews it (spec 40 §5).
//
// What is wrong with the fields is told before anything is uploaded: the errors of
// market.ListingDraft.Check. Then come those of the account seed (only when
// publishing), of Images, of the geocoder, a retryable unexpected_error when an earlier
// version could not be looked up, those of the signer, and unexpected_error when the
// relay does not take the event.
func (e *Editor) Create(ctx context.Context, request CreateRequest) (Written, error) {
	draft := market.ListingDraft{
		PubKey: e.config.Author.PublicKey(), DTag: request.DTag,
		CreatedAt: e.timestamp(), ListingFields: request.Fields,
	}
	if draft.DTag == "" {
		draft.DTag = e.newDTag()
	}
	draft.Images = imagePlaceholders(request.Images).URLs
	if err := draft.Check(); err != nil {
		return Written{}, err
	}
	if err := e.seedReady(ctx, request.DryRun); err != nil {
		return Written{}, err
	}
	images, planned, err := e.config.Images.Materialize(ctx, request.Images)
	if err != nil {
		return Written{}, err
	}
	draft.Images, draft.ImageMetadata = images.URLs, images.Metadata
	if draft.Cells, err = e.cells(ctx, request.Site); err != nil {
		return Written{}, err
	}
	draft.CreatedAt = e.timestamp()
	event, err := draft.Event()
	switch {
	case err != nil:
		return Written{}, err
	case request.DryRun:
		return preview(event, planned)
	}
	end, err := e.turns.Take(ctx, draft.DTag)
	if err != nil {
		return Written{}, err
	}
	defer end()
	if request.DTag != "" {
		if err := e.learnNewest(ctx, request.DTag); err != nil {
			return Written{}, err
		}
	}
	return e.publish(ctx, event)
}

// learnNewest looks up the listing that has the given dTag already, so that what is
// published becomes newer. A relay says OK to an older version too, and keeps the one it
// has: an earlier daemon, another device or a clock that was ahead may have made that.
// Where the relay does not answer in full nothing is published, as nobody could tell
// whether it would show; the same call is good for the next try.
func (e *Editor) learnNewest(ctx context.Context, dTag string) error {
	found, err := e.config.Service.Find(ctx, market.Anchor{Kind: market.KindListing, PubKey: e.config.Author.PublicKey(), Identifier: dTag})
	switch {
	case err != nil:
		return fmt.Errorf("looking for an earlier version of the listing: %w", err)
	case found.Listing != nil:
		e.remember(*found.Listing)
	case found.Warning != nil:
		return fault.New(fault.UnexpectedError,
			"The listing %.200s was not published, because it could not be looked up whether there is an earlier version of it. %s", dTag, found.Warning.Message).
			WithDetails(found.Warning.Details).Transient()
	}
	return nil
}

func (e *Editor) timestamp() nostr.Timestamp { return nostr.Timestamp(e.config.Now().Unix()) }

// imagePlaceholders stand for images while everything else is checked: uploads come
// last.
func imagePlaceholders(images []input.Image) market.ImageSet {
	return market.ImageSet{URLs: make([]string, len(images))}
}
