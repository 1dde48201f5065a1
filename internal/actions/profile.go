package actions

import (
	"context"
	"fmt"

	"github.com/nbd-wtf/go-nostr/nip19"

	"hostr-daemon/internal/market"
	"hostr-daemon/internal/profiles"
	"hostr-daemon/internal/relay"
	"hostr-daemon/internal/sessions"
)

// ProfileLookupResult is the result of hostr.profile.lookup (spec 20 §10.4).
type ProfileLookupResult struct {
	// Pubkey is 64 lower-case hex digits; NPub is the same key in NIP-19 form.
	Pubkey string `json:"pubkey"`
	NPub   string `json:"npub"`
	// Exists is false when no relay has a profile, or none could be asked.
	Exists bool `json:"exists"`
	// Event is the signed kind-0 event as found; Metadata shows its fields flat.
	Event    *market.EventJSON `json:"event,omitempty"`
	Metadata *market.Metadata  `json:"metadata,omitempty"`
}

func profileLookup(ctx context.Context, caller caller, input ProfileLookupInput) (answer[ProfileLookupResult], error) {
	return lookUp(ctx, caller, input.NPub)
}

// profileShow is profileLookup for the account itself; the bridge asks right after a
// sign-in, so it waits for nothing but the look-up.
func profileShow(ctx context.Context, caller caller, account *sessions.Account, _ EmptyInput) (answer[ProfileLookupResult], error) {
	return lookUp(ctx, caller, account.Pubkey())
}

func lookUp(ctx context.Context, caller caller, pubkey string) (answer[ProfileLookupResult], error) {
	npub, err := nip19.EncodePublicKey(pubkey)
	if err != nil {
		return answer[ProfileLookupResult]{}, fmt.Errorf("writing pubkey %s as npub: %w", pubkey, err)
	}
	found, err := caller.services.Profiles.Lookup(ctx, pubkey)
	if err != nil {
		return answer[ProfileLookupResult]{}, err
	}
	result := ProfileLookupResult{Pubkey: pubkey, NPub: npub}
	if found.Profile != nil {
		event, metadata := found.Profile.EventJSON(), found.Profile.Metadata()
		result.Exists, result.Event, result.Metadata = true, &event, &metadata
	}
	return answer[ProfileLookupResult]{data: result, warnings: warnings(found.Warning)}, nil
}

// ProfileEditResult is the result of hostr.profile.edit (spec 20 §10.5).
type ProfileEditResult struct {
	DryRun bool   `json:"dryRun"`
	Pubkey string `json:"pubkey"`
	// Event is unsigned in a preview.
	Event    market.EventJSON `json:"event"`
	Metadata market.Metadata  `json:"metadata"`
	// RelayResponses are there once it was published.
	RelayResponses []relay.Receipt `json:"relayResponses,omitempty"`
}

func profileEdit(ctx context.Context, caller caller, account *sessions.Account, input ProfileEditInput) (answer[ProfileEditResult], error) {
	edited, err := caller.services.Editor.Edit(ctx, profiles.EditRequest{
		Name:    input.Name,
		About:   input.About,
		Picture: input.Image,
		LUD16:   input.LUD16,
		NIP05:   input.NIP05,
		DryRun:  input.DryRun,
	}, account.Signer())
	if err != nil {
		return answer[ProfileEditResult]{}, err
	}
	if !input.DryRun {
		caller.session.ProfilePublished()
	}
	return answer[ProfileEditResult]{data: ProfileEditResult{
		DryRun:         input.DryRun,
		Pubkey:         account.Pubkey(),
		Event:          edited.Profile.EventJSON(),
		Metadata:       edited.Profile.Metadata(),
		RelayResponses: edited.Receipts,
	}, warnings: warnings(edited.Warning)}, nil
}
