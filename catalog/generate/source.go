package main

import (
	"strings"

	"hostr-daemon/catalog/definition"
)

// source is the catalog with its schemas and parse rules read.
type source struct {
	set       *definition.Set
	playbooks string
	actions   []action
	// inputs are the distinct input types in the order of their first use.
	inputs []inputType
}

type action struct {
	definition.Action
	schema *definition.Schema
	rules  []definition.NamedRule
}

// inputType is an input shared by one or more actions.
type inputType struct {
	name    string
	schema  *definition.Schema
	rules   []definition.NamedRule
	actions []action
}

func newSource(set *definition.Set, playbooks string) (*source, error) {
	s := &source{set: set, playbooks: playbooks}
	places := map[string]int{}
	for _, defined := range set.Actions() {
		read, err := readAction(defined)
		if err != nil {
			return nil, err
		}
		s.actions = append(s.actions, read)
		place, known := places[read.InputTypeName]
		if !known {
			place = len(s.inputs)
			places[read.InputTypeName] = place
			s.inputs = append(s.inputs, inputType{name: read.InputTypeName, schema: read.schema, rules: read.rules})
		}
		s.inputs[place].actions = append(s.inputs[place].actions, read)
	}
	return s, nil
}

func readAction(defined definition.Action) (action, error) {
	schema, err := definition.ParseSchema(defined.InputSchema)
	if err != nil {
		return action{}, err
	}
	rules, err := defined.Rules()
	return action{Action: defined, schema: schema, rules: rules}, err
}

// family returns the actions of a family.
func (s *source) family(family definition.Family) []action {
	var members []action
	for _, member := range s.actions {
		for _, defined := range family.Actions {
			if defined.ID == member.ID {
				members = append(members, member)
			}
		}
	}
	return members
}

// shortText is the first sentence of a description that lists more than a person
// wants to read in passing.
func shortText(description string) string {
	const long = 400
	if first, _, found := strings.Cut(description, ". "); found && len(description) > long {
		return first + "."
	}
	return description
}
