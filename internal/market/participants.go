package market

import "slices"

// GroupParticipants are the people of a group, as far as their keys are known
// (spec 50 §14). All lists are sorted.
type GroupParticipants struct {
	// Raw are the pubkeys as the orders name them, Resolved the same with trade
	// keys replaced by the people behind them.
	Raw, Resolved []string
	// RawGroupID and ResolvedGroupID are the group ids over them; the latter is also
	// the id of the thread of all of them.
	RawGroupID, ResolvedGroupID string

	group      OrderGroup
	identities map[string]string
}

// OpenIdentity returns who stands behind the participant of a proof in the order:
// the identity of Order.OpenProof. False when the proof is not for us or does not
// hold.
type OpenIdentity func(order Order, proof ParticipantProof) (identity string, opened bool)

// Participants resolves the participants of the group. Every proof that could
// count is opened until one holds for its participant.
//
// Only the order that a key has signed can tell who is behind it. Proofs in orders
// by others are not opened: whoever signs an authorization names a key without its
// consent.
func (g OrderGroup) Participants(open OpenIdentity) GroupParticipants {
	participants := GroupParticipants{group: g, identities: map[string]string{}, Raw: g.ParticipantPubkeys()}
	for _, order := range g.orders {
		author := order.Event.PubKey
		for _, proof := range order.Proofs {
			if proof.Participant != author || author == g.SellerPubkey() || participants.identities[author] != "" {
				continue
			}
			if identity, opened := open(order, proof); opened {
				participants.identities[author] = identity
			}
		}
	}
	for _, pubkey := range participants.Raw {
		participants.Resolved = append(participants.Resolved, participants.identity(pubkey))
	}
	participants.Resolved = sortedUnique(participants.Resolved)
	participants.RawGroupID = ThreadAnchor(participants.Raw, g.TradeID())
	participants.ResolvedGroupID = ThreadAnchor(participants.Resolved, g.TradeID())
	return participants
}

// HasResolved reports whether the resolved pubkeys differ from the raw ones.
func (p GroupParticipants) HasResolved() bool { return !slices.Equal(p.Raw, p.Resolved) }

// RawPubkey returns who plays a role as the orders name them; "" when unknown.
func (p GroupParticipants) RawPubkey(role Role) string {
	pubkey := ""
	switch role {
	case RoleSeller:
		pubkey = p.group.SellerPubkey()
	case RoleBuyer:
		pubkey = p.group.BuyerPubkey()
	case RoleEscrow:
		pubkey = p.group.EscrowPubkey()
	}
	for _, order := range slices.Backward(p.group.orders) {
		if pubkey == "" {
			pubkey = order.ParticipantOf(role)
		}
	}
	return pubkey
}

// Pubkey returns who plays a role: the person, else the key as the orders name
// it; "" when unknown.
func (p GroupParticipants) Pubkey(role Role) string { return p.identity(p.RawPubkey(role)) }

// ProvenPubkey is Pubkey, but "" for a key that comes with proofs of which none
// could be opened.
func (p GroupParticipants) ProvenPubkey(role Role) string {
	raw := p.RawPubkey(role)
	if p.identities[raw] == "" && p.hasProofOf(raw) {
		return ""
	}
	return p.identity(raw)
}

// WithoutEscrow returns the resolved pubkeys of buyer and seller.
func (p GroupParticipants) WithoutEscrow() []string {
	raw, resolved := p.RawPubkey(RoleEscrow), p.Pubkey(RoleEscrow)
	return slices.DeleteFunc(slices.Clone(p.Resolved), func(pubkey string) bool {
		return pubkey == raw || pubkey == resolved
	})
}

// People returns Resolved once it is proved who is behind the buyer's trade key, else
// nil: then somebody among them may be a key that nobody reads.
func (p GroupParticipants) People() []string {
	if p.identities[p.RawPubkey(RoleBuyer)] == "" {
		return nil
	}
	return p.Resolved
}

// ThreadID returns the id of the thread between buyer and seller.
func (p GroupParticipants) ThreadID() string {
	return ThreadAnchor(p.WithoutEscrow(), p.group.TradeID())
}

func (p GroupParticipants) identity(pubkey string) string {
	if identity := p.identities[pubkey]; identity != "" {
		return identity
	}
	return pubkey
}

func (p GroupParticipants) hasProofOf(pubkey string) bool {
	return slices.ContainsFunc(p.group.orders, func(order Order) bool {
		return slices.ContainsFunc(order.Proofs, func(proof ParticipantProof) bool { return proof.Participant == pubkey })
	})
}

// GroupParticipantsResult are participants as results of actions show them (spec
// 51 §2.9), without the profiles, which come after these keys.
type GroupParticipantsResult struct {
	RawGroupID              string           `json:"rawGroupId"`
	ResolvedGroupID         string           `json:"resolvedGroupId"`
	RawParticipantSet       []string         `json:"rawParticipantSet"`
	ResolvedParticipantSet  []string         `json:"resolvedParticipantSet"`
	HasResolvedParticipants bool             `json:"hasResolvedParticipants"`
	Roles                   GroupRolesResult `json:"roles"`
}

// GroupRolesResult are the pubkeys of the roles; unknown ones are absent.
type GroupRolesResult struct {
	Seller string `json:"seller"`
	Buyer  string `json:"buyer,omitempty"`
	Escrow string `json:"escrow,omitempty"`
}

// Result returns the form that results of actions show.
func (p GroupParticipants) Result() GroupParticipantsResult {
	return GroupParticipantsResult{
		RawGroupID:              p.RawGroupID,
		ResolvedGroupID:         p.ResolvedGroupID,
		RawParticipantSet:       p.Raw,
		ResolvedParticipantSet:  p.Resolved,
		HasResolvedParticipants: p.HasResolved(),
		Roles: GroupRolesResult{
			Seller: p.Pubkey(RoleSeller),
			Buyer:  p.Pubkey(RoleBuyer),
			Escrow: p.Pubkey(RoleEscrow),
		},
	}
}
