package actions

import (
	"context"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/listings"
	"hostr-daemon/internal/market"
	"hostr-daemon/internal/relay"
	"hostr-daemon/internal/sessions"
)

// ListingCreateResult is the result of hostr.listings.create (spec 40 §5.3). Which
// keys are there depends on DryRun.
type ListingCreateResult struct {
	DryRun bool   `json:"dryRun"`
	DTag   string `json:"dTag"`
	// NextInput, AssistantInstructions and PlannedUploads belong to a preview.
	NextInput             *ListingCreateNext     `json:"nextInput,omitempty"`
	AssistantInstructions []string               `json:"assistantInstructions,omitempty"`
	PlannedUploads        []market.PlannedUpload `json:"plannedUploads,omitempty"`
	// Event is unsigned in a preview.
	Event   market.EventJSON      `json:"event"`
	Listing market.ListingSummary `json:"listing"`
	// RelayResponses are there once it was published.
	RelayResponses []relay.Receipt `json:"relayResponses,omitempty"`
}

// ListingCreateNext is what to add to the input to publish a preview.
type ListingCreateNext struct {
	DryRun bool   `json:"dryRun"`
	DTag   string `json:"dTag"`
}

// ListingEditResult is the result of hostr.listings.edit (spec 40 §6.3).
type ListingEditResult struct {
	DryRun bool `json:"dryRun"`
	// PlannedUploads are there in a preview, empty when the images stay.
	PlannedUploads []market.PlannedUpload `json:"plannedUploads,omitzero"`
	// Event is unsigned in a preview.
	Event   market.EventJSON      `json:"event"`
	Listing market.ListingSummary `json:"listing"`
	// RelayResponses are there once it was published.
	RelayResponses []relay.Receipt `json:"relayResponses,omitempty"`
}

func listingsCreate(ctx context.Context, caller caller, account *sessions.Account, input ListingsCreateInput) (answer[ListingCreateResult], error) {
	editor, err := listingEditor(ctx, caller, account)
	if err != nil {
		return answer[ListingCreateResult]{}, err
	}
	fields, err := listingFields(input)
	if err != nil {
		return answer[ListingCreateResult]{}, err
	}
	written, err := editor.Create(ctx, listings.CreateRequest{
		Fields: fields,
		Images: input.Images,
		Site: listings.Site{
			Address: input.Address, Cells: input.H3Tags,
			FinestResolution: input.H3FinestResolution, MostCells: input.H3MaxTags,
		},
		DTag:   input.DTag,
		DryRun: input.DryRun,
	})
	if err != nil {
		return answer[ListingCreateResult]{}, err
	}
	result := ListingCreateResult{
		DryRun:         input.DryRun,
		DTag:           *written.Listing.DTag,
		PlannedUploads: written.Planned,
		Event:          market.NewEventJSON(written.Listing.Event),
		Listing:        written.Listing.Summary(),
		RelayResponses: written.Receipts,
	}
	if input.DryRun {
		result.NextInput = &ListingCreateNext{DryRun: false, DTag: result.DTag}
		result.AssistantInstructions = []string{
			"Show the preview; once the user approves it, call hostr_listings_create again with the same input, dryRun=false and exactly dTag=" +
				result.DTag + ": another dTag, or none, would make a second listing.",
		}
	}
	return answer[ListingCreateResult]{data: result}, nil
}

// listingFields fills in what the input leaves open (spec 40 §5.1).
func listingFields(input ListingsCreateInput) (market.ListingFields, error) {
	specifications, err := listings.SpecificationsOf(input.Specifications)
	if err != nil {
		return market.ListingFields{}, err
	}
	fields := market.NewListingFields()
	fields.Title, fields.Description = input.Title, input.Description
	if input.Type != "" {
		fields.Type = market.ListingType(input.Type)
	}
	fields.Active = valueOr(input.Active, fields.Active)
	fields.Negotiable = valueOr(input.Negotiable, fields.Negotiable)
	fields.AutoAccept = valueOr(input.AutoAccept, fields.AutoAccept)
	fields.MinDuration, fields.CheckIn, fields.CheckOut = input.MinDuration, input.CheckIn, input.CheckOut
	if input.Quantity != nil {
		fields.Quantity = int64(*input.Quantity)
	}
	fields.Prices = input.Prices
	fields.SecurityDeposit, fields.MinPaymentAmount = input.SecurityDeposit, input.MinPaymentAmount
	if input.MaxDisputePeriod != nil {
		seconds := int64(*input.MaxDisputePeriod)
		fields.MaxDisputePeriod = &seconds
	}
	fields.CancellationPolicy = input.CancellationPolicy
	fields.Specifications = specifications.With(listings.Counters(input.Guests, input.Beds, input.Bedrooms, input.Bathrooms)...)
	return fields, nil
}

func valueOr[T any](given *T, standard T) T {
	if given == nil {
		return standard
	}
	return *given
}

func listingsEdit(ctx context.Context, caller caller, account *sessions.Account, input ListingsEditInput) (answer[ListingEditResult], error) {
	editor, err := listingEditor(ctx, caller, account)
	if err != nil {
		return answer[ListingEditResult]{}, err
	}
	written, err := editor.Edit(ctx, listings.EditRequest{Anchor: input.Anchor, Patch: input.Patch, DryRun: input.DryRun})
	if err != nil {
		return answer[ListingEditResult]{}, err
	}
	return answer[ListingEditResult]{data: ListingEditResult{
		DryRun:         input.DryRun,
		PlannedUploads: written.Planned,
		Event:          market.NewEventJSON(written.Listing.Event),
		Listing:        written.Listing.Summary(),
		RelayResponses: written.Receipts,
	}}, nil
}

// listingEditor returns the editor of the account. Somebody may have signed in or out
// since the call began.
func listingEditor(ctx context.Context, caller caller, account *sessions.Account) (*listings.Editor, error) {
	services, err := caller.session.Services(ctx)
	if err != nil {
		return nil, err
	}
	if services.ListingEditor == nil || caller.session.Account() != account {
		return nil, fault.New(fault.AuthRequired, "The account signed out while the call began: sign in with hostr.session.connect and call again.").Transient()
	}
	return services.ListingEditor, nil
}
