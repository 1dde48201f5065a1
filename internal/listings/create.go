package listings

import (
	"context"

	"github.com/nbd-wtf/go-nostr"

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
// market.ListingDraft.Event. Then come those of the account seed (only when
// publishing), of Images, of the geocoder, of the signer, and unexpected_error when
// the relay does not take the event.
func (e *Editor) Create(ctx context.Context, request CreateRequest) (Written, error) {
	draft := market.ListingDraft{
		PubKey: e.config.Author.PublicKey(), DTag: request.DTag,
		CreatedAt: e.timestamp(), ListingFields: request.Fields,
	}
	if draft.DTag == "" {
		draft.DTag = e.newDTag()
	}
	placeholders := imagePlaceholders(request.Images)
	draft.Images = placeholders.URLs
	if _, err := draft.Event(); err != nil {
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
	end, err := e.turns.take(ctx, draft.DTag)
	if err != nil {
		return Written{}, err
	}
	defer end()
	return e.publish(ctx, event)
}

func (e *Editor) timestamp() nostr.Timestamp { return nostr.Timestamp(e.config.Now().Unix()) }

// imagePlaceholders stand for images while everything else is checked: uploads come
// last.
func imagePlaceholders(images []input.Image) market.ImageSet {
	return market.ImageSet{URLs: make([]string, len(images))}
}
