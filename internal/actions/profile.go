package actions

import (
	"context"
	"fmt"

	"github.com/nbd-wtf/go-nostr/nip19"

	"hostr-daemon/internal/market"
	"hostr-daemon/internal/runtime"
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

func profileLookup(ctx context.Context, session *runtime.Session, input ProfileLookupInput) (answer[ProfileLookupResult], error) {
	npub, err := nip19.EncodePublicKey(input.NPub)
	if err != nil {
		return answer[ProfileLookupResult]{}, fmt.Errorf("writing pubkey %s as npub: %w", input.NPub, err)
	}
	found, err := session.Profiles.Lookup(ctx, input.NPub)
	if err != nil {
		return answer[ProfileLookupResult]{}, err
	}
	result := ProfileLookupResult{Pubkey: input.NPub, NPub: npub}
	if found.Profile != nil {
		event, metadata := found.Profile.EventJSON(), found.Profile.Metadata()
		result.Exists, result.Event, result.Metadata = true, &event, &metadata
	}
	return answer[ProfileLookupResult]{data: result, warnings: warnings(found.Warning)}, nil
}
