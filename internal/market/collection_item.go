package market

// CollectionMode tells the trades of a guest from those of a host.
type CollectionMode string

// The modes of lists.
const (
	// Trips are the trades at somebody else's listings, Bookings those at one's own.
	Trips    CollectionMode = "trips"
	Bookings CollectionMode = "bookings"
)

// TradeItem is a trade of an account as lists hold it.
type TradeItem struct {
	Group OrderGroup
	// Valid is the outcome of verifying the group; cancelled groups are valid too.
	Valid        bool
	Participants GroupParticipants
}

// CollectionItem is a trade as results of actions show it (spec 51 §2.9, spec 60
// §10.9).
type CollectionItem struct {
	// Found is always true: the cards of the bridge look for it.
	Found   bool             `json:"found"`
	Mode    CollectionMode   `json:"mode"`
	TradeID string           `json:"tradeId"`
	Valid   bool             `json:"valid"`
	Group   OrderGroupResult `json:"group"`
	// Listing is the one inside the proof of the orders.
	Listing      *ListingSummary        `json:"listing,omitempty"`
	Participants CollectionParticipants `json:"participants"`
}

// CollectionParticipants are the people of a trade, with their profiles.
type CollectionParticipants struct {
	GroupParticipantsResult
	Profiles RoleProfiles `json:"profiles"`
}

// RoleProfiles are the profiles of the roles; unknown roles are absent.
type RoleProfiles struct {
	Seller *ProfileSummary `json:"seller,omitempty"`
	Buyer  *ProfileSummary `json:"buyer,omitempty"`
	Escrow *ProfileSummary `json:"escrow,omitempty"`
}

// Result returns the form that results of actions show. Profile tells what is shown of
// a pubkey.
func (i TradeItem) Result(mode CollectionMode, profile func(pubkey string) ProfileSummary) CollectionItem {
	participants := i.Participants.Result()
	item := CollectionItem{
		Found:        true,
		Mode:         mode,
		TradeID:      i.Group.TradeID(),
		Valid:        i.Valid,
		Group:        i.Group.Result(),
		Participants: CollectionParticipants{GroupParticipantsResult: participants, Profiles: profilesOf(participants.Roles, profile)},
	}
	if listing, ok := i.Group.EmbeddedListing(); ok {
		summary := listing.Summary()
		item.Listing = &summary
	}
	return item
}

// Pubkeys returns the pubkeys whose profiles Result asks for.
func (i TradeItem) Pubkeys() []string {
	var pubkeys []string
	for _, role := range []Role{RoleSeller, RoleBuyer, RoleEscrow} {
		if pubkey := i.Participants.Pubkey(role); pubkey != "" {
			pubkeys = append(pubkeys, pubkey)
		}
	}
	return pubkeys
}

func profilesOf(roles GroupRolesResult, profile func(pubkey string) ProfileSummary) RoleProfiles {
	summary := func(pubkey string) *ProfileSummary {
		if pubkey == "" {
			return nil
		}
		shown := profile(pubkey)
		return &shown
	}
	return RoleProfiles{Seller: summary(roles.Seller), Buyer: summary(roles.Buyer), Escrow: summary(roles.Escrow)}
}
