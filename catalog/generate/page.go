package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"hostr-daemon/catalog/definition"
)

// page writes docs/actions.md, the catalog for people.
func (s *source) page() []byte {
	var page strings.Builder
	page.WriteString("<!-- " + generatedMark + " -->\n\n" + pageIntroduction)
	for _, family := range s.set.Families {
		s.writeFamilyTable(&page, family)
	}
	page.WriteString(pageReading)
	for _, family := range s.set.Families {
		fmt.Fprintf(&page, "\n## %s\n\n%s\n", family.Title, family.Summary)
		for _, action := range s.family(family) {
			s.writeAction(&page, action)
		}
	}
	s.writeSharedObjects(&page)
	return []byte(page.String())
}

const pageIntroduction = `# The actions of hostr-daemon

Everything the daemon can do for an account is one of these actions. A program calls them over the line protocol:

` + "```json" + `
{"id":1,"method":"callAction","params":{"action":"hostr.listings.search","input":{"location":"Lisbon","guests":2}}}
` + "```" + `

A person calls them in a terminal:

` + "```sh" + `
hostr-daemon call hostr.listings.search location=Lisbon guests=2
` + "```" + `

The MCP bridge offers each of them as a tool, named like the action with underscores for dots.

**Who may call.** *Anybody* needs no sign-in. *Account* needs the pubkey of a signed-in account. *Session* needs no sign-in either, but a ` + "`pubkey`" + `: any text that names who asks, such as the id of an MCP session; in a terminal it may be left out. *Escrow* needs an account that the environment lists as an escrow.

**What it does.** *Reads* changes nothing. *Preview* writes, but only shows what it would do until ` + "`dryRun`" + ` is false. *Acts* writes at once. *To come* is not implemented yet: it checks input and account, and answers ` + "`not_implemented`" + `.

## At a glance

`

const pageReading = `
## How inputs are read

Properties that a table marks as required must be there; the others may be left out. ` + "`null`" + ` counts as left out, and unknown properties are passed over.

- **Text** is trimmed, and blank text counts as left out. Numbers and booleans are taken as their text.
- **Numbers** may come as text and lose their fraction. A number outside the limits of the table is moved to the nearest limit without a word, except where the table says *must*. A limit that says *from* is checked by the MCP bridge.
- **Booleans** may also be ` + "`yes`, `no`, `1`, `0`, `\"true\"` or `\"false\"`" + `. Any other word is refused, so a misspelt ` + "`dryRun`" + ` never goes live.
- **Lists of texts** may be one text with commas.
- **Dates** are written ` + "`2026-05-04T00:00:00Z`" + `. ` + "`2026-05-04`" + ` and other ISO 8601 forms are understood; without a zone they are UTC. Days that do not exist are refused.
- **Anchors** are ` + "`kind:pubkey:identifier`, `naddr1…` or `nostr:naddr1…`" + `.
- **Public keys** are 64 hex digits or ` + "`npub1…`" + `.

An input that cannot be read is answered with all that is wrong with it. The error is about the first problem in the order of the table; when there are more, ` + "`details.problems`" + ` lists them all:

` + "```json" + `
{
  "code": "invalid_input",
  "message": "start must be a date such as 2026-05-04T00:00:00Z",
  "path": "start",
  "hint": "2026-05-04T00:00:00Z",
  "retryable": false,
  "details": {
    "reason": "format",
    "problems": [
      {
        "code": "invalid_input",
        "message": "start must be a date such as 2026-05-04T00:00:00Z",
        "path": "start",
        "hint": "2026-05-04T00:00:00Z",
        "reason": "format"
      },
      { "code": "invalid_input", "message": "end is required", "path": "end", "hint": "2026-05-04T00:00:00Z", "reason": "missing" }
    ]
  }
}
` + "```" + `

` + "`reason` is one of `missing`, `type`, `range`, `format` and `enum`." + `
`

func (s *source) writeFamilyTable(page *strings.Builder, family definition.Family) {
	fmt.Fprintf(page, "**[%s](#%s).** %s\n\n", family.Title, anchorOf(family.Title), family.Summary)
	page.WriteString("| Action | What it is for | Who | Does |\n| --- | --- | --- | --- |\n")
	for _, action := range s.family(family) {
		fmt.Fprintf(page, "| [`%s`](#%s) | %s | %s | %s |\n",
			action.ID, anchorOf(action.ID), action.Title, action.caller(), action.effect())
	}
	page.WriteString("\n")
}

func (s *source) writeAction(page *strings.Builder, action action) {
	fmt.Fprintf(page, "\n### %s\n\n**%s** · %s · %s\n\n%s\n", action.ID, action.Title, action.caller(), action.effect(), action.Description)
	if action.Guidance != "" {
		fmt.Fprintf(page, "\n%s\n", action.Guidance)
	}
	if len(action.schema.Properties) == 0 {
		page.WriteString("\nIt takes no input.\n")
	} else {
		page.WriteString("\n" + tableHead)
		s.writeRows(page, "", action.schema, action.InputTypeName, action.rules)
	}
	var example bytes.Buffer
	// The example was read as JSON by the checks.
	_ = json.Indent(&example, action.Example, "", "  ")
	fmt.Fprintf(page, "\n```json\n%s\n```\n", example.String())
}

const tableHead = "| Name | Type | Limits | What it means |\n| --- | --- | --- | --- |\n"

// writeRows writes a row for each property of an object, and for those of
// objects inside it that have no name of their own.
func (s *source) writeRows(page *strings.Builder, path string, schema *definition.Schema, interfaceName string, rules []definition.NamedRule) {
	declared, _ := s.set.Interface(interfaceName)
	for _, property := range schema.Properties {
		rule := ruleOf(rules, property.Name)
		kind, shared := s.kindOf(property.Schema, declared.TypeOf(property.Name), rule)
		fmt.Fprintf(page, "| `%s%s` | %s | %s | %s |\n", path, property.Name, kind,
			limitsOf(schema, property, rule), meaningOf(property, rule))
		if inner := property.Items; !shared && inner != nil && inner.Type == "object" {
			s.writeRows(page, path+property.Name+"[].", inner, "", nil)
		}
	}
}

// kindOf names the type of a property, and reports whether it is one of the
// shared objects.
func (s *source) kindOf(schema *definition.Schema, declared string, rule definition.Rule) (kind string, shared bool) {
	for _, object := range sharedObjects {
		if strings.HasPrefix(strings.TrimPrefix(declared, "Record<string, "), object.name) {
			link := fmt.Sprintf("[%s](#%s)", strings.ToLower(object.title), anchorOf(object.title))
			switch {
			case schema.Type == "array":
				return "list of " + link, true
			case schema.Additional != nil:
				return "object of " + link, true
			}
			return link, true
		}
	}
	switch {
	case rule.Kind == "patch":
		return "object", false
	case rule.Format == "anchor" && schema.Type == "array":
		return "list of anchors", false
	case rule.Format == "pubkey" && schema.Type == "array":
		return "list of public keys", false
	case rule.Format == "anchor":
		return "anchor", false
	case rule.Format == "pubkey":
		return "public key", false
	case schema.Format == "date-time":
		return "date", false
	case schema.Type == "array" && schema.Items.Type == "string":
		return "list of texts", false
	}
	return map[string]string{
		"string": "text", "integer": "whole number", "number": "number", "boolean": "boolean", "array": "list of objects", "object": "object",
	}[schema.Type], false
}

func limitsOf(parent *definition.Schema, property definition.Property, rule definition.Rule) string {
	var limits []string
	if parent.IsRequired(property.Name) || rule.Required && len(rule.Aliases) == 0 {
		limits = append(limits, "**required**")
	}
	if rule.Required && len(rule.Aliases) > 0 && !parent.IsRequired(property.Name) {
		limits = append(limits, fmt.Sprintf("**required**, or `%s`", rule.Aliases[0]))
	}
	if rule.RequiredUnless != "" {
		limits = append(limits, fmt.Sprintf("**required** without `%s`", rule.RequiredUnless))
	}
	if standard := string(rule.Default); standard != "" && standard != "[]" && standard != "{}" && rule.Kind != "patch" {
		limits = append(limits, "default "+strings.Trim(standard, `"`))
	}
	if bounds := boundsOf(property.Schema, rule); bounds != "" {
		limits = append(limits, bounds)
	}
	if rule.Range != nil {
		limits = append(limits, fmt.Sprintf("must be %d to %d", rule.Range[0], rule.Range[1]))
	}
	return strings.Join(limits, "; ")
}

func boundsOf(schema *definition.Schema, rule definition.Rule) string {
	switch {
	case rule.Range != nil:
		return ""
	case rule.Clamp != nil:
		return fmt.Sprintf("%d to %d", rule.Clamp[0], rule.Clamp[1])
	case schema.Minimum != "" && schema.Maximum != "":
		return "must be " + schema.Minimum + " to " + schema.Maximum
	case schema.Minimum != "":
		return "from " + schema.Minimum
	case schema.MinItems != "":
		return "at least " + schema.MinItems
	}
	return ""
}

func meaningOf(property definition.Property, rule definition.Rule) string {
	meaning := shortText(property.Description)
	for _, alias := range rule.Aliases {
		meaning += fmt.Sprintf(" Also read from `%s`.", alias)
	}
	return strings.ReplaceAll(meaning, "|", "\\|")
}

// sharedObjects are the interfaces that several inputs refer to.
var sharedObjects = []struct{ name, title string }{
	{"HostrAmountInput", "Amount"},
	{"HostrListingPriceInput", "Price"},
	{"HostrListingImageInput", "Image"},
	{"HostrListingSpecificationsInput", "Specifications"},
	{"HostrEscrowFeeInput", "Fee"},
}

func (s *source) writeSharedObjects(page *strings.Builder) {
	page.WriteString("\n## Objects inside inputs\n")
	for _, object := range sharedObjects {
		fmt.Fprintf(page, "\n### %s\n\n", object.title)
		if object.title == "Specifications" {
			s.writeSpecifications(page)
			continue
		}
		page.WriteString(tableHead)
		s.writeRows(page, "", s.schemaOf(object.name), object.name, nil)
	}
}

func (s *source) writeSpecifications(page *strings.Builder) {
	page.WriteString("Amenities and sizes of a listing. Wi-Fi is `wireless_internet`.\n\n")
	fmt.Fprintf(page, "Whole numbers above 0: `%s`.\n\n", strings.Join(s.set.Specifications.Numeric, "`, `"))
	fmt.Fprintf(page, "True when present: `%s`.\n", strings.Join(s.set.Specifications.Boolean, "`, `"))
}

// schemaOf finds the schema of a shared object where an input uses it first.
func (s *source) schemaOf(interfaceName string) *definition.Schema {
	for _, input := range s.inputs {
		if found := s.findSchema(interfaceName, input.name, input.schema); found != nil {
			return found
		}
	}
	return &definition.Schema{}
}

func (s *source) findSchema(wanted, name string, schema *definition.Schema) *definition.Schema {
	declared, _ := s.set.Interface(name)
	for _, property := range schema.Properties {
		inner := property.Schema
		if inner.Items != nil {
			inner = inner.Items
		}
		refers := strings.TrimSuffix(declared.TypeOf(property.Name), "[]")
		if refers == wanted {
			return inner
		}
		if _, found := s.set.Interface(refers); found && refers != name {
			if deeper := s.findSchema(wanted, refers, inner); deeper != nil {
				return deeper
			}
		}
	}
	return nil
}

func ruleOf(rules []definition.NamedRule, name string) definition.Rule {
	for _, rule := range rules {
		if rule.Name == name {
			return rule.Rule
		}
	}
	return definition.Rule{}
}

// caller tells who may call the action.
func (a action) caller() string {
	switch {
	case a.RequiredRole == definition.RoleEscrow:
		return "Escrow"
	case a.Public:
		return "Anybody"
	case a.AnyName:
		return "Session"
	default:
		return "Account"
	}
}

// effect tells what a call does.
func (a action) effect() string {
	switch {
	case a.Pending:
		return "*To come*"
	case a.ReadOnly:
		return "Reads"
	case a.HasDryRun:
		return "Preview"
	default:
		return "Acts"
	}
}

// anchorOf is the fragment that a heading gets in rendered Markdown.
func anchorOf(heading string) string {
	return strings.ToLower(strings.NewReplacer(".", "", " ", "-").Replace(heading))
}
