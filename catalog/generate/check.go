package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"hostr-daemon/catalog/definition"
)

// The size of the catalog (spec 30 §2).
const (
	actionCount = 43
	escrowCount = 14
	dryRunCount = 19
)

// check tells every rule of spec 30 that the catalog breaks.
func (s *source) check() error {
	var broken []error
	for _, action := range s.actions {
		broken = append(broken, prefixed(action.ID, action.check()...)...)
	}
	for _, input := range s.inputs {
		broken = append(broken, prefixed(input.name, s.checkInput(input)...)...)
	}
	broken = append(broken, s.checkCounts()...)
	broken = append(broken, s.checkGuidance()...)
	broken = append(broken, s.checkSpecifications()...)
	broken = append(broken, s.checkPlaybooks()...)
	return errors.Join(broken...)
}

// check tells what is wrong with one action.
func (a action) check() (broken []error) {
	expect := func(holds bool, format string, args ...any) {
		if !holds {
			broken = append(broken, fmt.Errorf(format, args...))
		}
	}
	_, hasDryRun := a.schema.Property("dryRun")
	_, hasStart := a.schema.Property("start")
	_, hasEnd := a.schema.Property("end")
	expect(a.MCPToolName == strings.ReplaceAll(a.ID, ".", "_"), "mcpToolName must be the id with underscores for dots")
	expect(a.HasDryRun == hasDryRun, "hasDryRun must tell whether there is a property dryRun")
	expect(a.HasDates == (hasStart || hasEnd), "hasDates must tell whether there is a property start or end")
	expect(!a.ReadOnly || !hasDryRun, "a read-only action has no dryRun")
	expect(a.ReadOnly || hasDryRun || slices.Contains([]string{"hostr.session.connect", "hostr.orders.bookAndPay"}, a.ID),
		"a writing action needs a dryRun")
	expect(a.RequiredRole == "" || a.RequiredRole == definition.RoleEscrow, "the only role is escrow")
	expect(a.schema.Type == "object" && a.schema.Closed, "the schema must be an object without additional properties")
	for _, word := range []string{"counter", "reply", "service.update", "service_update"} {
		expect(!strings.Contains(a.ID, word) && !strings.Contains(a.MCPToolName, word), "names do not contain %q", word)
	}
	for _, text := range []string{a.Title, a.Description} {
		expect(strings.TrimSpace(text) != "", "title and description are needed")
	}
	for _, text := range []string{a.Description, a.Guidance} {
		expect(!strings.Contains(text, "\n\n"), "a text is a single paragraph")
		expect(!hasSharedPrefix(text), "no own text starts like a shared one")
	}
	return append(broken, a.checkExample()...)
}

// checkExample tells of example properties that the schema does not name.
func (a action) checkExample() (broken []error) {
	if !json.Valid(a.Example) || !gjson.ParseBytes(a.Example).IsObject() {
		return []error{errors.New("the example must be an object")}
	}
	gjson.ParseBytes(a.Example).ForEach(func(key, _ gjson.Result) bool {
		if _, found := a.schema.Property(key.Str); !found {
			broken = append(broken, fmt.Errorf("the example has %q, which the schema does not name", key.Str))
		}
		return true
	})
	return broken
}

// checkInput tells of actions that share the input type's name and not its form,
// and of a TypeScript interface unlike the schema.
func (s *source) checkInput(input inputType) (broken []error) {
	for _, other := range input.actions[1:] {
		if !reflect.DeepEqual(input.schema, other.schema) {
			broken = append(broken, fmt.Errorf("%s has another schema than %s", other.ID, input.actions[0].ID))
		}
		if !reflect.DeepEqual(input.rules, other.rules) {
			broken = append(broken, fmt.Errorf("%s has other parse rules than %s", other.ID, input.actions[0].ID))
		}
	}
	for _, rule := range input.rules {
		if _, err := fieldOf(rule); err != nil {
			broken = append(broken, err)
		}
	}
	declared, found := s.set.Interface(input.name)
	if !found {
		return append(broken, errors.New("there is no TypeScript interface of that name"))
	}
	return append(broken, checkInterface(declared, input.schema)...)
}

func checkInterface(declared definition.Interface, schema *definition.Schema) (broken []error) {
	if len(declared.Properties) != len(schema.Properties) {
		broken = append(broken, fmt.Errorf("the TypeScript interface has %d properties, the schema %d",
			len(declared.Properties), len(schema.Properties)))
	}
	for _, property := range declared.Properties {
		if _, found := schema.Property(property.Name); !found || property.Optional == schema.IsRequired(property.Name) {
			broken = append(broken, fmt.Errorf("the TypeScript interface and the schema disagree on %s", property.Name))
		}
	}
	return broken
}

func (s *source) checkCounts() (broken []error) {
	counts := []struct {
		what   string
		wanted int
		counts func(action) bool
	}{
		{"actions", actionCount, func(action) bool { return true }},
		{"escrow actions", escrowCount, func(a action) bool { return a.RequiredRole != "" }},
		{"actions with a dryRun", dryRunCount, func(a action) bool { return a.HasDryRun }},
	}
	for _, count := range counts {
		found := 0
		for _, action := range s.actions {
			if count.counts(action) {
				found++
			}
		}
		if found != count.wanted {
			broken = append(broken, fmt.Errorf("there are %d %s, not %d", found, count.what, count.wanted))
		}
	}
	seen := map[string]bool{}
	for _, action := range s.actions {
		if seen[action.ID] {
			broken = append(broken, fmt.Errorf("%s is defined twice", action.ID))
		}
		seen[action.ID] = true
	}
	return broken
}

func (s *source) checkGuidance() (broken []error) {
	for text, prefix := range map[string]string{
		s.set.Guidance.Common:     definition.PrefixCommon,
		s.set.Guidance.EscrowRole: definition.PrefixEscrowRole,
		s.set.Guidance.ReadOnly:   definition.PrefixReadOnly,
		s.set.Guidance.Write:      definition.PrefixWrite,
		s.set.Guidance.DryRun:     definition.PrefixDryRun,
		s.set.Guidance.Dates:      definition.PrefixDates,
	} {
		if !strings.HasPrefix(text, prefix) || strings.Contains(text, "\n") {
			broken = append(broken, fmt.Errorf("shared guidance must be one paragraph that starts with %q", prefix))
		}
	}
	return broken
}

// checkSpecifications compares the three places that name the amenity keys.
func (s *source) checkSpecifications() (broken []error) {
	keys := slices.Concat(s.set.Specifications.Numeric, s.set.Specifications.Boolean)
	declared, _ := s.set.Interface("HostrListingSpecificationsInput")
	var names []string
	for _, property := range declared.Properties {
		names = append(names, property.Name)
	}
	if !slices.Equal(keys, names) {
		broken = append(broken, errors.New("HostrListingSpecificationsInput must have the specification keys in their order"))
	}
	for _, input := range s.inputs {
		described, found := input.schema.Property("specifications")
		if !found {
			continue
		}
		for _, key := range keys {
			if !slices.Contains(strings.FieldsFunc(described.Description, isNoKey), key) {
				broken = append(broken, fmt.Errorf("%s: the description of specifications does not name %s", input.name, key))
			}
		}
	}
	return broken
}

// isNoKey tells of the signs between specification keys.
func isNoKey(sign rune) bool { return sign == ' ' || sign == ',' || sign == '.' || sign == ':' }

// playbookHeadings are those of spec 30 §7.1 in their order.
var playbookHeadings = []string{
	"# Hostr MCP action inputs",
	"## Order date semantics",
	"## Workflow playbooks",
	"### New listing workflow",
	"### Edit listing workflow",
	"### Search and reserve workflow",
	"### Negotiation workflow",
	"### Payment workflow",
	"### Messaging workflow",
	"### Review workflow",
	"### Swaps workflow",
}

func (s *source) checkPlaybooks() []error {
	var headings []string
	for line := range strings.Lines(s.playbooks) {
		if strings.HasPrefix(line, "#") {
			headings = append(headings, strings.TrimSpace(line))
		}
	}
	if !slices.Equal(headings, playbookHeadings) {
		return []error{fmt.Errorf("playbooks.md must have exactly the headings %q, not %q", playbookHeadings, headings)}
	}
	return nil
}

func hasSharedPrefix(text string) bool {
	for _, prefix := range []string{
		definition.PrefixCommon, definition.PrefixEscrowRole, definition.PrefixReadOnly,
		definition.PrefixWrite, definition.PrefixDryRun, definition.PrefixDates,
	} {
		if strings.HasPrefix(text, prefix) {
			return true
		}
	}
	return false
}

func prefixed(subject string, errs ...error) []error {
	for i, err := range errs {
		errs[i] = fmt.Errorf("%s: %w", subject, err)
	}
	return errs
}
