package terminal

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
	"text/tabwriter"

	"hostr-daemon/catalog"
	"hostr-daemon/catalog/definition"
)

// Actions prints what can be called, a line each.
func Actions(out io.Writer, actions []catalog.Action) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "ACTION\tWHO\tWHAT IT DOES")
	for _, action := range actions {
		title := action.Title
		if action.Pending {
			title += " *"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\n", action.ID, caller(action), title)
	}
	fmt.Fprintln(table, "\n* not implemented yet\nOne of them in full: hostr-daemon describe ACTION")
	return table.Flush()
}

// Action prints one action in full.
func Action(out io.Writer, action catalog.Action) error {
	page := &strings.Builder{}
	fmt.Fprintf(page, "%s: %s\n\n%s\n", action.ID, action.Title, wrap(action.Summary, ""))
	if action.Guidance != "" {
		fmt.Fprintf(page, "\n%s\n", wrap(action.Guidance, ""))
	}
	if action.Pending {
		fmt.Fprintf(page, "\n%s\n", wrap("It is not implemented yet: it checks input and account, and answers not_implemented.", ""))
	}
	who := caller(action)
	if action.AnyName {
		who += "; over stdin with a pubkey, which may be any text that names who asks"
	}
	fmt.Fprintf(page, "\n%s\n", wrap("Who may call it: "+who, ""))
	if action.HasDryRun {
		fmt.Fprintf(page, "It only previews unless dryRun=false is given.\n")
	}
	schema, err := definition.ParseSchema(action.InputSchema)
	if err != nil {
		return fmt.Errorf("the schema of %s: %w", action.ID, err)
	}
	if len(schema.Properties) > 0 {
		page.WriteString("\nInput:\n")
		properties(page, schema, "")
	}
	fmt.Fprintf(page, "\nExample:\n  %s\n", example(action))
	return Print(out, page.String())
}

// caller is who may call the action.
func caller(action catalog.Action) string {
	switch {
	case action.Public, action.AnyName:
		return "anyone"
	case action.RequiredRole != "":
		return action.RequiredRole
	default:
		return "signed in"
	}
}

// properties prints those of an object and, indented by their path, of the objects
// within it.
func properties(page *strings.Builder, object *definition.Schema, path string) {
	for _, property := range object.Properties {
		name := path + property.Name
		fmt.Fprintf(page, "  %s (%s)\n", name, strings.Join(facts(property.Schema, object.IsRequired(property.Name)), ", "))
		if property.Description != "" {
			fmt.Fprintf(page, "%s\n", wrap(property.Description, "      "))
		}
		properties(page, property.Schema, name+".")
		if property.Items != nil {
			properties(page, property.Items, name+"[].")
		}
		if property.Additional != nil {
			properties(page, property.Additional, name+".*.")
		}
	}
}

// facts are what a value must be like, in few words.
func facts(schema *definition.Schema, required bool) []string {
	facts := []string{schema.Type}
	if schema.Items != nil {
		facts[0] += " of " + cmp.Or(schema.Items.Type, "value") + "s"
	}
	if schema.Format != "" {
		facts = append(facts, schema.Format)
	}
	if len(schema.Enum) > 0 {
		facts = append(facts, strings.Join(schema.Enum, " or "))
	}
	switch {
	case schema.Minimum != "" && schema.Maximum != "":
		facts = append(facts, schema.Minimum+" to "+schema.Maximum)
	case schema.Minimum != "":
		facts = append(facts, "at least "+schema.Minimum)
	}
	switch {
	case required:
		facts = append(facts, "required")
	case schema.Default != "":
		facts = append(facts, "default "+schema.Default)
	}
	return facts
}

// example is a command line to copy.
func example(action catalog.Action) string {
	line := "hostr-daemon call " + action.ID
	if !action.Public && !action.AnyName {
		line += " --as PUBKEY"
	}
	var input bytes.Buffer
	if json.Compact(&input, action.Example) != nil || input.String() == "{}" {
		return line // there is nothing to give
	}
	return line + " " + shellWord(input.String())
}

// plainWord is what a shell takes as it stands.
var plainWord = regexp.MustCompile(`^[\w./:@%+=,-]+$`)

// shellWord makes a text one word of a POSIX shell.
func shellWord(text string) string {
	if plainWord.MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
