package listings

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/input"
	"hostr-daemon/internal/market"
	"hostr-daemon/internal/money"
)

// EditRequest says what to change about a listing of the account.
type EditRequest struct {
	Anchor input.GivenAnchor
	Patch  input.ListingPatch
	// DryRun asks for a preview: images are uploaded, nothing is published.
	DryRun bool
}

// Edit publishes a new version of a listing to the Hostr relay, or previews it (spec
// 40 §6). It starts from the newest version the relay has.
//
// Errors are not_found, not_author, those of market.Listing.CheckEdit, all before
// anything is uploaded, then those of Create; their paths begin where the patch stood.
// A look-up that was cut off without the listing is a retryable unexpected_error.
func (e *Editor) Edit(ctx context.Context, request EditRequest) (Written, error) {
	if !request.DryRun {
		end, err := e.turns.Take(ctx, request.Anchor.Identifier)
		if err != nil {
			return Written{}, err
		}
		defer end()
	}
	current, err := e.current(ctx, request.Anchor)
	if err != nil {
		return Written{}, err
	}
	event, planned, err := e.draft(ctx, current, request)
	switch {
	case err != nil:
		return Written{}, inPatch(request.Patch, err)
	case request.DryRun:
		return preview(readable(event), planned)
	}
	return e.publish(ctx, readable(event))
}

// draft returns the listing with the patch applied, all images uploaded.
func (e *Editor) draft(ctx context.Context, current market.Listing, request EditRequest) (*nostr.Event, []market.PlannedUpload, error) {
	patch, err := patchOf(request.Patch)
	if err != nil {
		return nil, nil, err
	}
	if err := current.CheckEdit(patch); err != nil {
		return nil, nil, err
	}
	if err := e.seedReady(ctx, request.DryRun); err != nil {
		return nil, nil, err
	}
	planned, err := e.materialize(ctx, request.Patch, &patch)
	if err != nil {
		return nil, nil, err
	}
	event, err := current.Edit(patch)
	return event, planned, err
}

// inPatch says where in the input a failure stands that is about a field of the patch.
func inPatch(patch input.ListingPatch, err error) error {
	var coded *fault.Error
	if patch.Path == "" || !errors.As(err, &coded) || coded.Path == "" {
		return err
	}
	return coded.At(patch.Path + "." + coded.Path)
}

// current returns the version to start from.
func (e *Editor) current(ctx context.Context, anchor input.GivenAnchor) (market.Listing, error) {
	found, err := e.config.Service.Find(ctx, anchor.Anchor)
	switch {
	case err != nil:
		return market.Listing{}, err
	case found.Listing == nil && found.Warning != nil:
		return market.Listing{}, fault.New(fault.UnexpectedError,
			"The listing %.200s was not changed, because it could not be looked up. %s", anchor.Given, found.Warning.Message).
			WithDetails(found.Warning.Details).Transient()
	case found.Listing == nil:
		return market.Listing{}, fault.New(fault.NotFound,
			"There is no listing %.200s on the Hostr relay: hostr.listings.list with mine=true names yours.", anchor.Given).
			WithDetails(anchorDetails{Anchor: anchor.Given})
	case found.Listing.Event.PubKey != e.config.Author.PublicKey():
		return market.Listing{}, fault.New(fault.NotAuthor,
			"The listing %.200s belongs to another account; only its author can edit it.", anchor.Given)
	}
	e.remember(*found.Listing)
	return *found.Listing, nil
}

// anchorDetails name the listing a failure or warning is about.
type anchorDetails struct {
	// Anchor is as it was given.
	Anchor string `json:"anchor"`
}

// materialize puts new images and the cells of a new address into the patch.
func (e *Editor) materialize(ctx context.Context, given input.ListingPatch, patch *market.ListingPatch) ([]market.PlannedUpload, error) {
	planned := []market.PlannedUpload{}
	if given.Images != nil {
		images, uploads, err := e.config.Images.Materialize(ctx, given.Images)
		if err != nil {
			return nil, err
		}
		patch.Images, planned = &images, uploads
	}
	if given.Address == nil {
		return planned, nil
	}
	cells, err := e.cells(ctx, Site{
		Address: *given.Address, Cells: given.H3Tags,
		FinestResolution: given.H3FinestResolution, MostCells: given.H3MaxTags,
	})
	patch.Cells = &cells
	return planned, err
}

// patchOf translates a patch, with placeholders for what has to be uploaded or looked
// up.
func patchOf(given input.ListingPatch) (market.ListingPatch, error) {
	patch := market.ListingPatch{
		Title:            given.Title,
		Description:      given.Description,
		Quantity:         wide(given.Quantity),
		Active:           given.Active,
		Negotiable:       given.Negotiable,
		AutoAccept:       given.AutoAccept,
		SecurityDeposit:  changeOf(given.SecurityDeposit),
		MinPaymentAmount: changeOf(given.MinPaymentAmount),
		MaxDisputePeriod: changeOf(input.Change[*int64]{Given: given.MaxDisputePeriod.Given, Value: wide(given.MaxDisputePeriod.Value)}),
		Counters:         Counters(given.Guests, given.Beds, given.Bedrooms, given.Bathrooms),
	}
	if given.Type != "" {
		kind := market.ListingType(given.Type)
		patch.Type = &kind
	}
	if given.MinDuration != "" {
		patch.MinDuration = &given.MinDuration
	}
	if given.Prices != nil {
		patch.Prices = &given.Prices
	}
	if given.CancellationPolicy.Given {
		patch.CancellationPolicy = &given.CancellationPolicy.Value
	}
	if given.Images != nil {
		placeholders := imagePlaceholders(given.Images)
		patch.Images = &placeholders
	}
	if given.Specifications == nil {
		return patch, nil
	}
	specifications, err := SpecificationsOf(*given.Specifications)
	patch.Specifications = &specifications
	return patch, err
}

// SpecificationsOf reads the properties an input names, in its order.
func SpecificationsOf(given input.Object) (market.Specifications, error) {
	var specifications market.Specifications
	text, err := json.Marshal(given)
	if err == nil {
		err = specifications.UnmarshalJSON(text)
	}
	if err != nil {
		return market.Specifications{}, fmt.Errorf("reading the specifications: %w", err)
	}
	return specifications, nil
}

// Counters are the counts given beside the properties, in the order in which they are
// laid over them (spec 40 §1.6); nil is none.
func Counters(guests, beds, bedrooms, bathrooms *int) []market.Counter {
	var counters []market.Counter
	for _, counter := range []struct {
		name  string
		count *int
	}{{"max_guests", guests}, {"beds", beds}, {"bedrooms", bedrooms}, {"bathrooms", bathrooms}} {
		if counter.count != nil {
			counters = append(counters, market.Counter{Name: counter.name, Count: int64(*counter.count)})
		}
	}
	return counters
}

// changeOf translates a change; one to nil clears.
func changeOf[T money.Amount | int64](given input.Change[*T]) market.Change[T] {
	switch {
	case !given.Given:
		return market.Change[T]{}
	case given.Value == nil:
		return market.Clear[T]()
	default:
		return market.Set(*given.Value)
	}
}

func wide(n *int) *int64 {
	if n == nil {
		return nil
	}
	widened := int64(*n)
	return &widened
}
