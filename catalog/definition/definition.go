// Package definition reads the files of the action catalog as people edit them:
// actions by family, shared guidance, TypeScript interfaces, specification keys.
//
// It knows the form of those files and of a JSON Schema. It knows nothing of how
// an action runs, and nothing of what is made from the files: the catalog package
// and its generator do that.
package definition

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
)

// Set is all that the files define (spec 30 §1).
type Set struct {
	// Families hold the actions; read in order they give the catalog order.
	Families []Family
	Guidance Guidance
	// Specifications are the amenity keys of a listing.
	Specifications Specifications
	Interfaces     []Interface
}

// Family is a group of actions that share one file.
type Family struct {
	// File is the name in actions/ without its ending.
	File string `json:"file"`
	// Title and Summary head the family in the documentation.
	Title   string   `json:"title"`
	Summary string   `json:"summary"`
	Actions []Action `json:"-"`
}

// Action is one action as written in its family's file (spec 30 §1).
type Action struct {
	ID            string `json:"id"`
	MCPToolName   string `json:"mcpToolName"`
	Title         string `json:"title"`
	Description   string `json:"description"`
	Guidance      string `json:"guidance"`
	InputTypeName string `json:"inputTypeName"`
	ReadOnly      bool   `json:"readOnly"`
	RequiredRole  string `json:"requiredRole"`
	Public        bool   `json:"public"`
	// AnyName actions need a pubkey but no account: any text names who asks (spec 20 §6.1).
	AnyName bool `json:"anyName"`
	// Pending actions check input and account; their work is still to come.
	Pending     bool            `json:"pending"`
	HasDryRun   bool            `json:"hasDryRun"`
	HasDates    bool            `json:"hasDates"`
	InputSchema json.RawMessage `json:"inputSchema"`
	// Parse maps properties to rules; Rules reads it.
	Parse json.RawMessage `json:"parse"`
	// Example is an input that a person could send.
	Example json.RawMessage `json:"example"`
	Note    string          `json:"note"`
}

// Guidance holds the texts that many actions share (spec 30 §5).
type Guidance struct {
	Common     string `json:"common"`
	EscrowRole string `json:"escrowRole"`
	ReadOnly   string `json:"readOnly"`
	Write      string `json:"write"`
	DryRun     string `json:"dryRun"`
	Dates      string `json:"dates"`
}

// Specifications are the amenity keys of a listing in canonical order.
type Specifications struct {
	Numeric []string `json:"numeric"`
	Boolean []string `json:"boolean"`
}

// Interface is one TypeScript input interface.
type Interface struct {
	Name       string              `json:"name"`
	Properties []InterfaceProperty `json:"properties"`
}

// InterfaceProperty is one member of an interface; Type is TypeScript source.
type InterfaceProperty struct {
	Name     string `json:"name"`
	Optional bool   `json:"optional"`
	Type     string `json:"type"`
}

// Read reads the files below the catalog's root. An unknown key in any of them
// is an error, so that a misspelt one is not passed over.
func Read(root fs.FS) (*Set, error) {
	set := &Set{}
	files := []struct {
		name   string
		target any
	}{
		{"families.json", &set.Families},
		{"guidance.json", &set.Guidance},
		{"specifications.json", &set.Specifications},
		{"interfaces.json", &set.Interfaces},
	}
	for _, file := range files {
		if err := readFile(root, file.name, file.target); err != nil {
			return nil, err
		}
	}
	for i := range set.Families {
		family := &set.Families[i]
		if err := readFile(root, "actions/"+family.File+".json", &family.Actions); err != nil {
			return nil, err
		}
	}
	return set, nil
}

// Actions returns all actions in catalog order.
func (s *Set) Actions() []Action {
	var actions []Action
	for _, family := range s.Families {
		actions = append(actions, family.Actions...)
	}
	return actions
}

// Interface returns the interface of that name.
func (s *Set) Interface(name string) (Interface, bool) {
	for _, candidate := range s.Interfaces {
		if candidate.Name == name {
			return candidate, true
		}
	}
	return Interface{}, false
}

// TypeOf returns the TypeScript type of a property, empty where there is none.
func (i Interface) TypeOf(property string) string {
	for _, candidate := range i.Properties {
		if candidate.Name == property {
			return candidate.Type
		}
	}
	return ""
}

func readFile(root fs.FS, name string, target any) error {
	content, err := fs.ReadFile(root, name)
	if err != nil {
		return fmt.Errorf("reading the action catalog: %w", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(target); err != nil {
		return fmt.Errorf("reading the action catalog, file %s: %w", name, err)
	}
	return nil
}
