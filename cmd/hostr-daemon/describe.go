package main

import (
	"encoding/json"
	"fmt"
	"os"

	"hostr-daemon/catalog"
	"hostr-daemon/internal/terminal"
)

type describeCommand struct {
	Action string `arg:"" optional:"" help:"Show this action in full."`
	JSON   bool   `name:"json" help:"Print it as JSON, as programs get it."`
}

// Run prints the catalog; it needs no state and no network.
func (d *describeCommand) Run() error {
	loaded, err := catalog.Load()
	if err != nil {
		return err
	}
	if d.Action == "" {
		if d.JSON {
			return terminal.JSON(os.Stdout, loaded.Describe())
		}
		return terminal.Actions(os.Stdout, loaded.Actions())
	}
	action, known := loaded.Lookup(d.Action)
	if !known {
		return unknownAction(loaded, d.Action)
	}
	if d.JSON {
		return printSpec(loaded, action.ID)
	}
	return terminal.Action(os.Stdout, action)
}

// printSpec prints one action as it stands in the whole catalog.
func printSpec(loaded *catalog.Catalog, id string) error {
	var described struct {
		Actions []json.RawMessage `json:"actions"`
	}
	if err := json.Unmarshal(loaded.Describe(), &described); err != nil {
		return fmt.Errorf("reading the catalog: %w", err)
	}
	for place, known := range loaded.IDs() {
		if known == id {
			return terminal.JSON(os.Stdout, described.Actions[place])
		}
	}
	return unknownAction(loaded, id)
}
