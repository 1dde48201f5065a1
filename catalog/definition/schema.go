package definition

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/tidwall/gjson"
)

// Schema is the part of JSON Schema that the catalog uses, with the order of its
// properties kept.
type Schema struct {
	Type        string
	Description string
	Format      string
	Enum        []string
	// Minimum, Maximum, MinItems and Default are JSON text, empty when not given.
	Minimum  string
	Maximum  string
	MinItems string
	Default  string
	// Properties is nil when the schema names none, and empty for an object that
	// takes no properties.
	Properties []Property
	Required   []string
	Items      *Schema
	// Closed is set by additionalProperties false; Additional by a schema there.
	Closed     bool
	Additional *Schema
}

// Property is one named property of an object.
type Property struct {
	Name string
	*Schema
}

// ParseSchema reads a JSON Schema.
func ParseSchema(raw json.RawMessage) (*Schema, error) {
	node := gjson.ParseBytes(raw)
	if !node.IsObject() {
		return nil, fmt.Errorf("a JSON Schema must be an object, not %.40s", raw)
	}
	return parseSchema(node)
}

// Property returns the property of that name.
func (s *Schema) Property(name string) (*Schema, bool) {
	for _, property := range s.Properties {
		if property.Name == name {
			return property.Schema, true
		}
	}
	return nil, false
}

// IsRequired reports whether the object must have the property.
func (s *Schema) IsRequired(name string) bool { return slices.Contains(s.Required, name) }

func parseSchema(node gjson.Result) (*Schema, error) {
	schema := &Schema{}
	var failure error
	node.ForEach(func(key, value gjson.Result) bool {
		failure = schema.set(key.Str, value)
		return failure == nil
	})
	return schema, failure
}

func (s *Schema) set(key string, value gjson.Result) (err error) {
	switch key {
	case "type":
		s.Type = value.Str
	case "description":
		s.Description = value.Str
	case "format":
		s.Format = value.Str
	case "enum":
		s.Enum = texts(value)
	case "minimum":
		s.Minimum = value.Raw
	case "maximum":
		s.Maximum = value.Raw
	case "minItems":
		s.MinItems = value.Raw
	case "minLength":
		// Does not survive the conversion to zod; the parse rule has it.
	case "default":
		s.Default = value.Raw
	case "properties":
		s.Properties, err = parseProperties(value)
	case "required":
		s.Required = texts(value)
	case "items":
		s.Items, err = parseSchema(value)
	case "additionalProperties":
		if value.IsObject() {
			s.Additional, err = parseSchema(value)
		}
		s.Closed = value.Type == gjson.False
	default:
		err = fmt.Errorf("JSON Schema keyword %q is not one the catalog knows", key)
	}
	return err
}

func parseProperties(node gjson.Result) ([]Property, error) {
	properties := []Property{}
	var failure error
	node.ForEach(func(key, value gjson.Result) bool {
		var schema *Schema
		schema, failure = parseSchema(value)
		properties = append(properties, Property{Name: key.Str, Schema: schema})
		return failure == nil
	})
	return properties, failure
}

func texts(node gjson.Result) []string {
	var list []string
	node.ForEach(func(_, value gjson.Result) bool {
		list = append(list, value.Str)
		return true
	})
	return list
}
