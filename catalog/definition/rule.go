package definition

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/tidwall/gjson"
)

// Rule tells how the daemon reads one property (spec 30 §8).
type Rule struct {
	// Kind is one of the kinds of spec 30 §8.
	Kind     string `json:"kind"`
	Required bool   `json:"required"`
	// RequiredUnless names the property that lifts the requirement; when that one
	// is given, this one is not read.
	RequiredUnless string          `json:"requiredUnless"`
	Default        json.RawMessage `json:"default"`
	// Clamp moves a number into the bounds, Range refuses one outside.
	Clamp     *Bounds  `json:"clamp"`
	Range     *Bounds  `json:"range"`
	Values    []string `json:"values"`
	Aliases   []string `json:"aliases"`
	Lowercase bool     `json:"lowercase"`
	// Format adds a check of the text: anchor, pubkey, tradeId, duration, or
	// cancellationPolicy for the objects of a list (spec 30 §9, §11).
	Format string `json:"format"`
	// Lenient leaves the check of Format to the action.
	Lenient bool `json:"lenient"`
	// Code is the error code of a value that does not pass; invalid_input if empty.
	Code string `json:"code"`
}

// Bounds are the lowest and the highest number allowed.
type Bounds [2]int

// NamedRule is the rule of one property.
type NamedRule struct {
	Name string
	Rule
}

// Rules reads the parse rules of an action in the order of its schema, so that
// problems come out in that order (spec 30 §11). A property without a rule is an
// alias of another one.
func (a Action) Rules() ([]NamedRule, error) {
	schema, err := ParseSchema(a.InputSchema)
	if err != nil {
		return nil, fmt.Errorf("action %s: %w", a.ID, err)
	}
	byName := map[string]Rule{}
	if err := a.decodeRules(byName); err != nil {
		return nil, err
	}
	var rules []NamedRule
	for _, property := range schema.Properties {
		if rule, found := byName[property.Name]; found {
			rules = append(rules, NamedRule{Name: property.Name, Rule: rule})
			delete(byName, property.Name)
		}
	}
	for name := range byName {
		return nil, fmt.Errorf("action %s has a parse rule for %q, which its schema does not name", a.ID, name)
	}
	return rules, nil
}

func (a Action) decodeRules(byName map[string]Rule) error {
	var failure error
	gjson.ParseBytes(a.Parse).ForEach(func(key, value gjson.Result) bool {
		decoder := json.NewDecoder(bytes.NewReader([]byte(value.Raw)))
		decoder.DisallowUnknownFields()
		var rule Rule
		if err := decoder.Decode(&rule); err != nil {
			failure = fmt.Errorf("action %s, parse rule of %q: %w", a.ID, key.Str, err)
			return false
		}
		byName[key.Str] = rule
		return true
	})
	return failure
}
