package catalog

import (
	"encoding/json"
	"fmt"
	"strings"

	"hostr-daemon/catalog/definition"
)

// RoleEscrow is the only role an action may ask for (spec 30 §2).
const RoleEscrow = definition.RoleEscrow

// Action is what the catalog tells about one action.
type Action struct {
	ID string
	// ToolName is the id with underscores for dots, as the bridge names its tool.
	ToolName string
	Title    string
	// Description is the composed text of spec 30 §5. Summary and Guidance are the
	// action's own parts of it; Guidance may be empty.
	Description string
	Summary     string
	Guidance    string
	// InputTypeName is shared by actions with the same schema.
	InputTypeName string
	// InputSchema is a JSON Schema.
	InputSchema json.RawMessage
	// InputAliases are further names under which properties are read.
	InputAliases []string
	// TypeScriptInput is the source of the input's interfaces, newline at the end.
	TypeScriptInput string
	// Example is an input that a person could send.
	Example  json.RawMessage
	ReadOnly bool
	// RequiredRole is RoleEscrow or empty.
	RequiredRole string
	// Public actions may be called without a pubkey.
	Public bool
	// AnyName actions need a pubkey but no account: any text names who asks.
	AnyName bool
	// Pending actions are not implemented yet.
	Pending bool
	// HasDryRun tells of a dryRun property, HasDates of start or end.
	HasDryRun bool
	HasDates  bool
}

// spec is an action as describe shows it; the order of the keys is part of the
// protocol (spec 30 §3).
type spec struct {
	ID              string          `json:"id"`
	ToolName        string          `json:"toolName"`
	Title           string          `json:"title"`
	Description     string          `json:"description"`
	InputTypeName   string          `json:"inputTypeName"`
	InputSchema     json.RawMessage `json:"inputSchema"`
	TypeScriptInput string          `json:"typescriptInput"`
	ReadOnly        bool            `json:"readOnly"`
	RequiredRole    string          `json:"requiredRole,omitempty"`
}

func newAction(set *definition.Set, defined definition.Action) (Action, error) {
	schema, err := definition.ParseSchema(defined.InputSchema)
	if err != nil {
		return Action{}, fmt.Errorf("action %s: %w", defined.ID, err)
	}
	typescript, err := set.TypeScript(definition.Input{Name: defined.InputTypeName, Schema: schema})
	if err != nil {
		return Action{}, fmt.Errorf("action %s: %w", defined.ID, err)
	}
	rules, err := defined.Rules()
	if err != nil {
		return Action{}, err
	}
	var aliases []string
	for _, rule := range rules {
		aliases = append(aliases, rule.Aliases...)
	}
	return Action{
		ID:              defined.ID,
		ToolName:        strings.ReplaceAll(defined.ID, ".", "_"),
		Title:           defined.Title,
		Description:     set.Describe(defined),
		Summary:         defined.Description,
		Guidance:        defined.Guidance,
		InputTypeName:   defined.InputTypeName,
		InputSchema:     defined.InputSchema,
		InputAliases:    aliases,
		TypeScriptInput: typescript,
		Example:         defined.Example,
		ReadOnly:        defined.ReadOnly,
		RequiredRole:    defined.RequiredRole,
		Public:          defined.Public,
		AnyName:         defined.AnyName,
		Pending:         defined.Pending,
		HasDryRun:       defined.HasDryRun,
		HasDates:        defined.HasDates,
	}, nil
}

func (a Action) spec() spec {
	return spec{
		ID:              a.ID,
		ToolName:        a.ToolName,
		Title:           a.Title,
		Description:     a.Description,
		InputTypeName:   a.InputTypeName,
		InputSchema:     a.InputSchema,
		TypeScriptInput: a.TypeScriptInput,
		ReadOnly:        a.ReadOnly,
		RequiredRole:    a.RequiredRole,
	}
}
