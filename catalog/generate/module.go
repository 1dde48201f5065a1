package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"hostr-daemon/catalog/definition"
)

// typescriptModule writes hostr-actions.ts, the module that the bridge imports
// (spec 30 §6).
func (s *source) typescriptModule() ([]byte, error) {
	inputs := make([]definition.Input, 0, len(s.inputs))
	for _, input := range s.inputs {
		inputs = append(inputs, definition.Input{Name: input.name, Schema: input.schema})
	}
	interfaces, err := s.set.TypeScript(inputs...)
	if err != nil {
		return nil, err
	}
	documentation, err := s.documentation()
	if err != nil {
		return nil, err
	}
	var module bytes.Buffer
	module.WriteString("// " + generatedMark + "\n")
	module.WriteString("// The inputs and the catalog of the Hostr actions, for the MCP bridge.\n\n")
	module.WriteString("import { z } from \"zod\";\n\n" + interfaces + "\n")
	for _, input := range s.inputs {
		fmt.Fprintf(&module, "export const %sSchema = %s;\n\n", input.name, zodExpression(input.schema))
	}
	fmt.Fprintf(&module, "export const hostrActionDocumentation = %s;\n\n", jsonText(documentation))
	if err := s.writeCatalog(&module); err != nil {
		return nil, err
	}
	module.WriteString(lookups)
	return module.Bytes(), nil
}

const lookups = `
type HostrAction = (typeof hostrActionCatalog)[number];

export type HostrActionId = HostrAction["id"];

export const hostrActionByToolName = new Map<string, HostrAction>(
  hostrActionCatalog.map((action) => [action.toolName, action]),
);

export const hostrActionById = new Map<string, HostrAction>(
  hostrActionCatalog.map((action) => [action.id, action]),
);
`

func (s *source) writeCatalog(module *bytes.Buffer) error {
	module.WriteString("export const hostrActionCatalog = [\n")
	for _, action := range s.actions {
		var schema bytes.Buffer
		if err := json.Compact(&schema, action.InputSchema); err != nil {
			return fmt.Errorf("writing the schema of %s: %w", action.ID, err)
		}
		module.WriteString("  {\n")
		for _, property := range []struct{ name, value string }{
			{"id", jsonText(action.ID)},
			{"toolName", jsonText(action.MCPToolName)},
			{"title", jsonText(action.Title)},
			{"description", jsonText(s.set.Describe(action.Action))},
			{"inputTypeName", jsonText(action.InputTypeName)},
			{"inputJsonSchema", schema.String()},
			{"inputSchema", action.InputTypeName + "Schema"},
			{"readOnly", fmt.Sprint(action.ReadOnly)},
		} {
			fmt.Fprintf(module, "    %s: %s,\n", property.name, property.value)
		}
		if action.RequiredRole != "" {
			fmt.Fprintf(module, "    requiredRole: %s,\n", jsonText(action.RequiredRole))
		}
		module.WriteString("  },\n")
	}
	module.WriteString("] as const;\n")
	return nil
}

// documentation writes the Markdown that the module carries (spec 30 §7.1).
func (s *source) documentation() (string, error) {
	var page strings.Builder
	page.WriteString(strings.TrimSpace(s.playbooks) + "\n")
	for _, action := range s.actions {
		typescript, err := s.set.TypeScript(definition.Input{Name: action.InputTypeName, Schema: action.schema})
		if err != nil {
			return "", err
		}
		var schema bytes.Buffer
		if err := json.Indent(&schema, action.InputSchema, "", "  "); err != nil {
			return "", fmt.Errorf("writing the schema of %s: %w", action.ID, err)
		}
		fmt.Fprintf(&page, "\n## `%s`\n\n%s\n\nAction id: `%s`\n\n", action.MCPToolName, s.set.Describe(action.Action), action.ID)
		fmt.Fprintf(&page, "```ts\n%s```\n\nJSON schema:\n\n```json\n%s\n```\n", typescript, schema.String())
	}
	return page.String(), nil
}
