package main

import (
	"bytes"
	"encoding/json"
	"strings"

	"hostr-daemon/catalog/definition"
)

// zodExpression writes a schema as the zod expression that the bridge checks tool
// calls with (spec 30 §6).
func zodExpression(schema *definition.Schema) string {
	expression := zodBase(schema)
	if schema.Description != "" {
		expression += ".describe(" + jsonText(schema.Description) + ")"
	}
	if schema.Default != "" {
		expression += ".default(" + schema.Default + ")"
	}
	return expression
}

func zodBase(schema *definition.Schema) string {
	switch schema.Type {
	case "object":
		return zodObject(schema)
	case "string":
		if schema.Format == "date-time" {
			return "z.string().datetime()"
		}
		return "z.string()"
	case "integer":
		return "z.number().int()" + zodBounds(schema)
	case "number":
		return "z.number()" + zodBounds(schema)
	case "boolean":
		return "z.boolean()"
	case "array":
		return zodArray(schema)
	default:
		return "z.unknown()"
	}
}

func zodObject(schema *definition.Schema) string {
	if len(schema.Properties) == 0 && !schema.Closed {
		return "z.record(z.string(), z.unknown())"
	}
	entries := make([]string, 0, len(schema.Properties))
	for _, property := range schema.Properties {
		entry := "  " + jsonText(property.Name) + ": " + zodExpression(property.Schema)
		if !schema.IsRequired(property.Name) {
			entry += ".optional()"
		}
		entries = append(entries, entry)
	}
	object := "z.object({\n" + strings.Join(entries, ",\n") + "\n})"
	if schema.Closed {
		object += ".strict()"
	}
	return object
}

func zodArray(schema *definition.Schema) string {
	items := "z.unknown()"
	if schema.Items != nil {
		items = zodExpression(schema.Items)
	}
	array := "z.array(" + items + ")"
	if schema.MinItems != "" {
		array += ".min(" + schema.MinItems + ")"
	}
	return array
}

func zodBounds(schema *definition.Schema) string {
	bounds := ""
	if schema.Minimum != "" {
		bounds += ".min(" + schema.Minimum + ")"
	}
	if schema.Maximum != "" {
		bounds += ".max(" + schema.Maximum + ")"
	}
	return bounds
}

// jsonText writes text as JSON, which TypeScript reads as well.
func jsonText(text string) string {
	var written bytes.Buffer
	encoder := json.NewEncoder(&written)
	encoder.SetEscapeHTML(false)
	// Text always encodes.
	_ = encoder.Encode(text)
	return strings.TrimSuffix(written.String(), "\n")
}
