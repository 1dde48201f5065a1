package definition

import "strings"

// RoleEscrow is the role of accounts that the environment lists as escrows.
const RoleEscrow = "escrow"

// The texts that start with one of these the bridge drops before it shows a tool
// to an agent, so the prefixes are an interface (spec 30 §5).
const (
	PrefixCommon     = "MCP driving notes:"
	PrefixEscrowRole = "Escrow role notes:"
	PrefixReadOnly   = "Read-only behavior:"
	PrefixWrite      = "Write behavior:"
	PrefixDryRun     = "Preview rule:"
	PrefixDates      = "Order date rule:"
)

// Describe composes the text that callers see of an action: its own words around
// the shared guidance that applies, one paragraph each (spec 30 §5).
func (s *Set) Describe(action Action) string {
	paragraphs := []string{action.Description, s.Guidance.Common}
	if action.RequiredRole == RoleEscrow {
		paragraphs = append(paragraphs, s.Guidance.EscrowRole)
	}
	if action.ReadOnly {
		paragraphs = append(paragraphs, s.Guidance.ReadOnly)
	} else {
		paragraphs = append(paragraphs, s.Guidance.Write)
	}
	if action.HasDryRun {
		paragraphs = append(paragraphs, s.Guidance.DryRun)
	}
	if action.HasDates {
		paragraphs = append(paragraphs, s.Guidance.Dates)
	}
	if strings.TrimSpace(action.Guidance) != "" {
		paragraphs = append(paragraphs, action.Guidance)
	}
	return strings.Join(paragraphs, "\n\n")
}
