package definition

import (
	"fmt"
	"regexp"
	"strings"
)

// Input is an input type with its schema.
type Input struct {
	// Name is that of a TypeScript interface.
	Name   string
	Schema *Schema
}

// TypeScript returns the source of the inputs' interfaces, each after those it
// refers to, blocks parted by a blank line and a newline at the end (spec 30 §3).
// The descriptions of the schemas become doc comments.
func (s *Set) TypeScript(inputs ...Input) (string, error) {
	writer := typescriptWriter{set: s, written: map[string]bool{}}
	for _, input := range inputs {
		if err := writer.write(input.Name, input.Schema); err != nil {
			return "", err
		}
	}
	return strings.Join(writer.blocks, "\n"), nil
}

// interfaceName finds the interfaces that a TypeScript type refers to.
var interfaceName = regexp.MustCompile(`\bHostr\w+Input\b`)

type typescriptWriter struct {
	set     *Set
	blocks  []string
	written map[string]bool
}

// write appends an interface behind those it needs. The schema may be nil where
// there is none to take doc comments from.
func (w *typescriptWriter) write(name string, schema *Schema) error {
	if w.written[name] {
		return nil
	}
	w.written[name] = true
	declared, found := w.set.Interface(name)
	if !found {
		return fmt.Errorf("there is no TypeScript interface %s", name)
	}
	var block strings.Builder
	fmt.Fprintf(&block, "export interface %s {\n", name)
	for _, property := range declared.Properties {
		described := schema.property(property.Name)
		for _, needed := range interfaceName.FindAllString(property.Type, -1) {
			if err := w.write(needed, described.element()); err != nil {
				return err
			}
		}
		writeProperty(&block, property, described)
	}
	block.WriteString("}\n")
	w.blocks = append(w.blocks, block.String())
	return nil
}

func writeProperty(block *strings.Builder, property InterfaceProperty, described *Schema) {
	if described != nil && described.Description != "" {
		fmt.Fprintf(block, "  /** %s */\n", strings.ReplaceAll(described.Description, "*/", "*\\/"))
	}
	mark := ""
	if property.Optional {
		mark = "?"
	}
	fmt.Fprintf(block, "  %s%s: %s;\n", property.Name, mark, property.Type)
}

// property returns the schema of a property, nil where there is none.
func (s *Schema) property(name string) *Schema {
	if s == nil {
		return nil
	}
	found, _ := s.Property(name)
	return found
}

// element returns the schema of what an interface name in a property's type
// stands for: the items of a list, the values of a record, or the object itself.
func (s *Schema) element() *Schema {
	switch {
	case s == nil:
		return nil
	case s.Items != nil:
		return s.Items
	case s.Properties == nil && s.Additional != nil:
		return s.Additional
	default:
		return s
	}
}
