package definition_test

import (
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"hostr-daemon/catalog/definition"
)

func TestRead(t *testing.T) {
	t.Parallel()
	set, err := definition.Read(os.DirFS(".."))
	if err != nil {
		t.Fatal(err)
	}
	if count := len(set.Actions()); count != 43 {
		t.Errorf("%d actions were read, not 43", count)
	}
	if len(set.Specifications.Numeric) != 6 || len(set.Specifications.Boolean) != 83 {
		t.Errorf("there are %d and %d specification keys", len(set.Specifications.Numeric), len(set.Specifications.Boolean))
	}
	if _, found := set.Interface("HostrAmountInput"); !found {
		t.Error("there is no HostrAmountInput")
	}
	if declared, found := set.Interface("Nothing"); found || declared.TypeOf("value") != "" {
		t.Error("an interface was found that is not there")
	}
}

func TestReadRefuses(t *testing.T) {
	t.Parallel()
	whole := func() fstest.MapFS {
		return fstest.MapFS{
			"families.json":       {Data: []byte(`[{"file":"one","title":"One","summary":"First."}]`)},
			"guidance.json":       {Data: []byte(`{}`)},
			"specifications.json": {Data: []byte(`{}`)},
			"interfaces.json":     {Data: []byte(`[]`)},
			"actions/one.json":    {Data: []byte(`[{"id":"hostr.one"}]`)},
		}
	}
	if _, err := definition.Read(whole()); err != nil {
		t.Fatalf("the untouched files: %v", err)
	}
	for name, content := range map[string]string{
		"families.json":    `[{"file":"one","titel":"One"}]`,
		"guidance.json":    `{"commons":"x"}`,
		"interfaces.json":  `{`,
		"actions/one.json": `[{"id":"hostr.one","read_only":true}]`,
	} {
		files := whole()
		files[name] = &fstest.MapFile{Data: []byte(content)}
		if _, err := definition.Read(files); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s with %s gave %v", name, content, err)
		}
		delete(files, name)
		if _, err := definition.Read(files); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("without %s: %v", name, err)
		}
	}
}

func TestParseSchema(t *testing.T) {
	t.Parallel()
	schema, err := definition.ParseSchema([]byte(`{
		"type": "object", "additionalProperties": false, "required": ["b"],
		"properties": {
			"b": {"type": "integer", "minimum": 0, "maximum": 5, "default": 3, "description": "B."},
			"a": {"type": "array", "minItems": 1, "items": {"type": "string", "enum": ["x", "y"]}},
			"description": {"type": "string", "format": "date-time", "minLength": 1},
			"map": {"type": "object", "additionalProperties": {"type": "boolean"}}
		}
	}`))
	if err != nil {
		t.Fatal(err)
	}
	want := &definition.Schema{
		Type: "object", Closed: true, Required: []string{"b"},
		Properties: []definition.Property{
			{Name: "b", Schema: &definition.Schema{Type: "integer", Minimum: "0", Maximum: "5", Default: "3", Description: "B."}},
			{Name: "a", Schema: &definition.Schema{
				Type: "array", MinItems: "1", Items: &definition.Schema{Type: "string", Enum: []string{"x", "y"}},
			}},
			{Name: "description", Schema: &definition.Schema{Type: "string", Format: "date-time"}},
			{Name: "map", Schema: &definition.Schema{Type: "object", Additional: &definition.Schema{Type: "boolean"}}},
		},
	}
	if diff := cmp.Diff(want, schema); diff != "" {
		t.Error(diff)
	}
	for _, text := range []string{`[]`, `"x"`, `{"typ":"object"}`, `{"properties":{"a":{"pattern":"x"}}}`, `{"items":{"$ref":"#"}}`} {
		if _, err := definition.ParseSchema([]byte(text)); err == nil {
			t.Errorf("%s was taken for a schema the catalog knows", text)
		}
	}
}

func TestRulesComeInTheOrderOfTheSchema(t *testing.T) {
	t.Parallel()
	action := definition.Action{
		ID:          "hostr.one",
		InputSchema: []byte(`{"properties":{"b":{},"alias":{},"a":{}}}`),
		Parse:       []byte(`{"a":{"kind":"int","clamp":[1,2]},"b":{"kind":"string","aliases":["alias"]}}`),
	}
	rules, err := action.Rules()
	if err != nil {
		t.Fatal(err)
	}
	want := []definition.NamedRule{
		{Name: "b", Rule: definition.Rule{Kind: "string", Aliases: []string{"alias"}}},
		{Name: "a", Rule: definition.Rule{Kind: "int", Clamp: &definition.Bounds{1, 2}}},
	}
	if diff := cmp.Diff(want, rules); diff != "" {
		t.Error(diff)
	}
	for _, parse := range []string{`{"c":{"kind":"int"}}`, `{"a":{"kin":"int"}}`, `{"a":{"clamp":[1,"2"]}}`} {
		action.Parse = []byte(parse)
		if _, err := action.Rules(); err == nil {
			t.Errorf("the rules %s were accepted", parse)
		}
	}
}

func TestTypeScript(t *testing.T) {
	t.Parallel()
	set := &definition.Set{Interfaces: []definition.Interface{
		{Name: "HostrOuterInput", Properties: []definition.InterfaceProperty{
			{Name: "list", Type: "HostrInnerInput[]"},
			{Name: "one", Optional: true, Type: "HostrInnerInput"},
		}},
		{Name: "HostrInnerInput", Properties: []definition.InterfaceProperty{
			{Name: "self", Optional: true, Type: "Record<string, HostrInnerInput>"},
		}},
		{Name: "HostrBrokenInput", Properties: []definition.InterfaceProperty{{Name: "x", Type: "HostrMissingInput"}}},
	}}
	schema, err := definition.ParseSchema([]byte(`{"properties":{
		"list":{"type":"array","description":"Some.","items":{"type":"object","properties":{"self":{"description":"Ends */ here."}}}},
		"one":{"type":"object"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	got, err := set.TypeScript(definition.Input{Name: "HostrOuterInput", Schema: schema})
	if err != nil {
		t.Fatal(err)
	}
	const want = `export interface HostrInnerInput {
  /** Ends *\/ here. */
  self?: Record<string, HostrInnerInput>;
}

export interface HostrOuterInput {
  /** Some. */
  list: HostrInnerInput[];
  one?: HostrInnerInput;
}
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if _, err := set.TypeScript(definition.Input{Name: "HostrBrokenInput"}); err == nil {
		t.Error("a reference to an interface that is not there was accepted")
	}
}
