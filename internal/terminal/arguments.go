package terminal

import (
	"encoding/json"
	"fmt"
	"strings"

	"hostr-daemon/catalog"
	"hostr-daemon/catalog/definition"
)

// Input builds an action's input from command-line arguments: one JSON object, or
// key=value pairs. Where the action takes text the value is taken as it stands
// (query=2026); elsewhere a value that reads as JSON is taken as such (limit=5,
// features=["pool"]), any other as text (features=pool,kitchen).
func Input(action catalog.Action, arguments []string) (json.RawMessage, error) {
	if len(arguments) == 1 && strings.HasPrefix(strings.TrimSpace(arguments[0]), "{") {
		if !json.Valid([]byte(arguments[0])) {
			return nil, fmt.Errorf("the input is no valid JSON object: %s", shortened(arguments[0]))
		}
		return json.RawMessage(arguments[0]), nil
	}
	schema, err := definition.ParseSchema(action.InputSchema)
	if err != nil {
		return nil, fmt.Errorf("the schema of %s: %w", action.ID, err)
	}
	pairs := make(map[string]json.RawMessage, len(arguments))
	for _, argument := range arguments {
		key, value, found := strings.Cut(argument, "=")
		if key = strings.TrimSpace(key); !found || key == "" {
			return nil, fmt.Errorf("%s is no input: write key=value, or the whole input as one JSON object", shortened(argument))
		}
		if _, twice := pairs[key]; twice {
			return nil, fmt.Errorf("%s is given twice; a list is written %s=one,two", shortened(key), shortened(key))
		}
		property, known := schema.Property(key)
		if known && property.Type == "string" || !json.Valid([]byte(value)) {
			pairs[key] = quoted(value)
		} else {
			pairs[key] = json.RawMessage(value)
		}
	}
	return json.Marshal(pairs)
}

func quoted(text string) json.RawMessage {
	quoted, err := json.Marshal(text)
	if err != nil {
		panic(err) // a string always encodes
	}
	return quoted
}

// shortened makes an argument fit for a message.
func shortened(text string) string {
	const longest = 60
	text = oneLine(text)
	if runes := []rune(text); len(runes) > longest {
		return string(runes[:longest]) + "…"
	}
	return text
}
