package catalog_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"hostr-daemon/catalog"
)

// specified is one action of testdata/actions.json, the catalog's specification.
type specified struct {
	ID            string          `json:"id"`
	MCPToolName   string          `json:"mcpToolName"`
	InputTypeName string          `json:"inputTypeName"`
	ReadOnly      bool            `json:"readOnly"`
	RequiredRole  string          `json:"requiredRole"`
	Public        bool            `json:"public"`
	HasDryRun     bool            `json:"hasDryRun"`
	HasDates      bool            `json:"hasDates"`
	InputSchema   json.RawMessage `json:"inputSchema"`
	Parse         json.RawMessage `json:"parse"`
}

func TestCatalogMatchesSpecification(t *testing.T) {
	t.Parallel()
	actions := load(t).Actions()
	wanted := specification(t)
	if len(actions) != 43 || len(wanted) != 43 {
		t.Fatalf("there are %d actions and %d specified, not 43", len(actions), len(wanted))
	}
	for i, want := range wanted {
		got := actions[i]
		if got.ID != want.ID || got.ToolName != want.MCPToolName || got.InputTypeName != want.InputTypeName ||
			got.ReadOnly != want.ReadOnly || got.RequiredRole != want.RequiredRole || got.Public != want.Public ||
			got.HasDryRun != want.HasDryRun || got.HasDates != want.HasDates {
			t.Errorf("action %d is %+v, not %+v", i, got, want)
		}
		if diff := cmp.Diff(structure(want.InputSchema), structure(got.InputSchema)); diff != "" {
			t.Errorf("the schema of %s has another structure: %s", want.ID, diff)
		}
		if got.ToolName != strings.ReplaceAll(got.ID, ".", "_") {
			t.Errorf("the tool name of %s is %s", got.ID, got.ToolName)
		}
	}
}

// The parse rules are the specified ones. Only checks were added where a rule had
// none.
func TestParseRulesMatchSpecification(t *testing.T) {
	t.Parallel()
	added := []string{"format", "lenient", "code", "values", "lowercase"}
	rules := parseRules(t)
	for _, want := range specification(t) {
		got := rules[want.ID]
		if diff := cmp.Diff(keysOf(gjson.ParseBytes(want.Parse)), keysOf(got)); diff != "" {
			t.Errorf("%s reads other properties: %s", want.ID, diff)
		}
		gjson.ParseBytes(want.Parse).ForEach(func(name, rule gjson.Result) bool {
			here := memberOf(got, name.Str)
			rule.ForEach(func(key, value gjson.Result) bool {
				if held := memberOf(here, key.Str); held.String() != value.String() && compactText(held.Raw) != compactText(value.Raw) {
					t.Errorf("%s, %s: %s is %s, not %s", want.ID, name.Str, key.Str, held.Raw, value.Raw)
				}
				return true
			})
			here.ForEach(func(key, _ gjson.Result) bool {
				if !memberOf(rule, key.Str).Exists() && !slices.Contains(added, key.Str) {
					t.Errorf("%s, %s: %s is not in the specification", want.ID, name.Str, key.Str)
				}
				return true
			})
			return true
		})
	}
}

func TestSharedFilesMatchSpecification(t *testing.T) {
	t.Parallel()
	whole := gjson.ParseBytes(readFile(t, "testdata/actions.json"))
	for file, key := range map[string]string{"specifications.json": "specificationKeys", "interfaces.json": "tsInterfaces"} {
		if got, want := compact(t, readFile(t, file)), compactText(whole.Get(key).Raw); got != want {
			t.Errorf("%s differs from %s of the specification: %s", file, key, cmp.Diff(want, got))
		}
	}
}

func TestRolesAndPreviews(t *testing.T) {
	t.Parallel()
	var public, escrow, dryRun, actsAtOnce []string
	for _, action := range load(t).Actions() {
		if action.Public {
			public = append(public, action.ID)
		}
		if action.RequiredRole == catalog.RoleEscrow {
			escrow = append(escrow, action.ID)
		}
		if action.HasDryRun {
			dryRun = append(dryRun, action.ID)
		}
		if !action.ReadOnly && !action.HasDryRun {
			actsAtOnce = append(actsAtOnce, action.ID)
		}
	}
	if diff := cmp.Diff([]string{"hostr.session.status", "hostr.listings.search", "hostr.profile.lookup"}, public); diff != "" {
		t.Errorf("public actions: %s", diff)
	}
	if diff := cmp.Diff([]string{"hostr.session.connect", "hostr.orders.bookAndPay"}, actsAtOnce); diff != "" {
		t.Errorf("actions without preview: %s", diff)
	}
	if len(escrow) != 14 || len(dryRun) != 19 {
		t.Errorf("there are %d escrow actions and %d with a preview, not 14 and 19", len(escrow), len(dryRun))
	}
}

func TestLookup(t *testing.T) {
	t.Parallel()
	loaded := load(t)
	for place, id := range loaded.IDs() {
		if action, found := loaded.Lookup(id); !found || action.ID != id || loaded.Actions()[place].ID != id {
			t.Errorf("looking up %s gave %s, %v", id, action.ID, found)
		}
	}
	for _, id := range []string{"", "hostr", "HOSTR.UPDATES", " hostr.updates", "hostr_updates"} {
		if action, found := loaded.Lookup(id); found || action.ID != "" {
			t.Errorf("looking up %q found %s", id, action.ID)
		}
	}
}

func TestDescribe(t *testing.T) {
	t.Parallel()
	loaded := load(t)
	described := loaded.Describe()
	if compact(t, described) != string(described) {
		t.Error("describe is not compact")
	}
	whole := gjson.ParseBytes(described)
	if diff := cmp.Diff([]string{"version", "actions"}, keysOf(whole)); diff != "" {
		t.Errorf("keys of describe: %s", diff)
	}
	if version := whole.Get("version").Raw; version != "1" {
		t.Errorf("version is %s", version)
	}
	specs := whole.Get("actions").Array()
	for i, action := range loaded.Actions() {
		checkSpec(t, specs[i], action)
	}
}

func checkSpec(t *testing.T, spec gjson.Result, action catalog.Action) {
	t.Helper()
	keys := []string{"id", "toolName", "title", "description", "inputTypeName", "inputSchema", "typescriptInput", "readOnly"}
	if action.RequiredRole != "" {
		keys = append(keys, "requiredRole")
	}
	if diff := cmp.Diff(keys, keysOf(spec)); diff != "" {
		t.Errorf("keys of %s: %s", action.ID, diff)
	}
	if spec.Get("id").Str != action.ID || spec.Get("toolName").Str != action.ToolName ||
		spec.Get("description").Str != action.Description || spec.Get("readOnly").Bool() != action.ReadOnly ||
		spec.Get("requiredRole").Str != action.RequiredRole {
		t.Errorf("describe tells of %s: %s", action.ID, spec.Raw)
	}
	if got, want := spec.Get("inputSchema").Raw, compact(t, action.InputSchema); got != want {
		t.Errorf("the schema of %s: %s", action.ID, cmp.Diff(want, got))
	}
	typescript := spec.Get("typescriptInput").Str
	if !strings.HasSuffix(typescript, "}\n") || !strings.Contains(typescript, "export interface "+action.InputTypeName+" {\n") {
		t.Errorf("typescriptInput of %s: %s", action.ID, typescript)
	}
}

func TestTypeScriptInputHoldsWhatItRefersTo(t *testing.T) {
	t.Parallel()
	edit, _ := load(t).Lookup("hostr.listings.edit")
	var order []string
	for line := range strings.Lines(edit.TypeScriptInput) {
		if name, isHead := strings.CutPrefix(line, "export interface "); isHead {
			order = append(order, strings.TrimSuffix(name, " {\n"))
		}
	}
	want := []string{
		"HostrListingImageInput", "HostrAmountInput", "HostrListingPriceInput",
		"HostrListingSpecificationsInput", "HostrListingsCreateInput", "HostrListingsEditInput",
	}
	if diff := cmp.Diff(want, order); diff != "" {
		t.Errorf("interfaces: %s", diff)
	}
	connect, _ := load(t).Lookup("hostr.session.connect")
	const head = "export interface HostrSessionConnectInput {\n" +
		"  /** False returns a login link and QR. True waits for the signer to approve the login already shown. */\n" +
		"  wait?: boolean;\n"
	if !strings.HasPrefix(connect.TypeScriptInput, head) {
		t.Errorf("typescriptInput of session.connect:\n%s", connect.TypeScriptInput)
	}
}

// structure writes a JSON Schema in its order without descriptions.
func structure(schema json.RawMessage) string { return withoutTexts(gjson.ParseBytes(schema), true) }

// withoutTexts knows whether a node is a schema, where a description is a text
// about it, or a map of properties, where it is a property.
func withoutTexts(node gjson.Result, isSchema bool) string {
	if !node.IsObject() {
		return compactText(node.Raw)
	}
	var members []string
	node.ForEach(func(key, value gjson.Result) bool {
		if !isSchema || key.Str != "description" {
			members = append(members, key.Raw+":"+withoutTexts(value, !isSchema || key.Str != "properties"))
		}
		return true
	})
	return "{" + strings.Join(members, ",") + "}"
}

func specification(t *testing.T) []specified {
	t.Helper()
	var whole struct {
		Actions []specified `json:"actions"`
	}
	if err := json.Unmarshal(readFile(t, "testdata/actions.json"), &whole); err != nil {
		t.Fatal(err)
	}
	return whole.Actions
}

// parseRules returns the parse rules of each action as written in its file.
func parseRules(t *testing.T) map[string]gjson.Result {
	t.Helper()
	files, err := filepath.Glob("actions/*.json")
	if err != nil {
		t.Fatal(err)
	}
	rules := map[string]gjson.Result{}
	for _, file := range files {
		for _, action := range gjson.ParseBytes(readFile(t, file)).Array() {
			rules[action.Get("id").Str] = action.Get("parse")
		}
	}
	return rules
}

func memberOf(object gjson.Result, name string) gjson.Result {
	var found gjson.Result
	object.ForEach(func(key, value gjson.Result) bool {
		if key.Str == name {
			found = value
		}
		return found.Raw == ""
	})
	return found
}

func keysOf(object gjson.Result) []string {
	var keys []string
	object.ForEach(func(key, _ gjson.Result) bool {
		keys = append(keys, key.Str)
		return true
	})
	return keys
}

func load(t *testing.T) *catalog.Catalog {
	t.Helper()
	loaded, err := catalog.Load()
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func compact(t *testing.T, value json.RawMessage) string {
	t.Helper()
	var written bytes.Buffer
	if err := json.Compact(&written, value); err != nil {
		t.Fatal(err)
	}
	return written.String()
}

func compactText(value string) string {
	var written bytes.Buffer
	if err := json.Compact(&written, []byte(value)); err != nil {
		return value
	}
	return written.String()
}

func raw(text string) json.RawMessage { return json.RawMessage(text) }
