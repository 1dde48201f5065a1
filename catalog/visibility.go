package catalog

import (
	"encoding/json"
	"slices"
	"strings"
)

// Visibility is the result of the method visibleActions; the order of the keys
// is part of the protocol (spec 30 §4).
type Visibility struct {
	Version int `json:"version"`
	// Pubkey is the account as given, trimmed; null when none was.
	Pubkey   *string `json:"pubkey"`
	IsEscrow bool    `json:"isEscrow"`
	// EscrowPubkeys are the environment's, lower-cased, sorted, each once.
	EscrowPubkeys    []string `json:"escrowPubkeys"`
	VisibleActionIDs []string `json:"visibleActionIds"`
	// Actions are the specs of describe.
	Actions []json.RawMessage `json:"actions"`
}

// Visible tells which actions an account may see: those without a role, and for
// one of the escrow pubkeys the others too. A blank pubkey is nobody.
func (c *Catalog) Visible(pubkey string, escrowPubkeys []string) Visibility {
	pubkey = strings.TrimSpace(pubkey)
	visibility := Visibility{
		Version:          Version,
		EscrowPubkeys:    cleanPubkeys(escrowPubkeys),
		VisibleActionIDs: make([]string, 0, len(c.actions)),
		Actions:          make([]json.RawMessage, 0, len(c.actions)),
	}
	if pubkey != "" {
		visibility.Pubkey = &pubkey
		_, visibility.IsEscrow = slices.BinarySearch(visibility.EscrowPubkeys, strings.ToLower(pubkey))
	}
	specs := c.render().specs
	for i, action := range c.actions {
		if action.RequiredRole == "" || action.RequiredRole == RoleEscrow && visibility.IsEscrow {
			visibility.VisibleActionIDs = append(visibility.VisibleActionIDs, action.ID)
			visibility.Actions = append(visibility.Actions, specs[i])
		}
	}
	return visibility
}

func cleanPubkeys(pubkeys []string) []string {
	clean := make([]string, 0, len(pubkeys))
	for _, pubkey := range pubkeys {
		if pubkey = strings.ToLower(strings.TrimSpace(pubkey)); pubkey != "" {
			clean = append(clean, pubkey)
		}
	}
	slices.Sort(clean)
	return slices.Compact(clean)
}
