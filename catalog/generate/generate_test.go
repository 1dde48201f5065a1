package main

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hostr-daemon/catalog/definition"
)

var update = flag.Bool("update", false, "write testdata/zod.txt anew")

// What is in the tree must be what the catalog gives.
func TestNothingHasDrifted(t *testing.T) {
	t.Parallel()
	outputs, err := generate("..")
	if err != nil {
		t.Fatal(err)
	}
	if len(outputs) != 3 {
		t.Errorf("%d files were generated, not 3", len(outputs))
	}
	for _, output := range outputs {
		inTree, err := os.ReadFile(filepath.Join("..", output.path))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(inTree), string(output.content)); diff != "" {
			t.Errorf("%s is not what the catalog gives, run go generate ./...: %s", output.path, diff)
		}
	}
}

func TestZodExpressions(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, schema, want string }{
		{"free object", `{"type":"object"}`, `z.record(z.string(), z.unknown())`},
		{"map of schemas", `{"type":"object","additionalProperties":{"type":"string"}}`, `z.record(z.string(), z.unknown())`},
		{"empty closed object", `{"type":"object","additionalProperties":false,"properties":{}}`, "z.object({\n\n}).strict()"},
		{"closed without properties", `{"type":"object","additionalProperties":false}`, "z.object({\n\n}).strict()"},
		{
			"open object", `{"type":"object","required":["a"],"properties":{"a":{"type":"string"},"b":{"type":"boolean"}}}`,
			"z.object({\n  \"a\": z.string(),\n  \"b\": z.boolean().optional()\n})",
		},
		{
			"nested object is not indented further",
			`{"type":"object","additionalProperties":false,"required":["a"],"properties":{"a":{"type":"object","required":["b"],"properties":{"b":{"type":"string"}}}}}`,
			"z.object({\n  \"a\": z.object({\n  \"b\": z.string()\n})\n}).strict()",
		},
		{"text", `{"type":"string","enum":["a"],"minLength":1}`, `z.string()`},
		{"date", `{"type":"string","format":"date-time"}`, `z.string().datetime()`},
		{"other format", `{"type":"string","format":"uri"}`, `z.string()`},
		{"integer", `{"type":"integer"}`, `z.number().int()`},
		{"integer with bounds", `{"type":"integer","maximum":9,"minimum":0}`, `z.number().int().min(0).max(9)`},
		{"number", `{"type":"number","minimum":0,"maximum":1}`, `z.number().min(0).max(1)`},
		{"number with one bound", `{"type":"number","maximum":1.5}`, `z.number().max(1.5)`},
		{"boolean", `{"type":"boolean"}`, `z.boolean()`},
		{"list", `{"type":"array","items":{"type":"string"}}`, `z.array(z.string())`},
		{"list with a least length", `{"type":"array","minItems":1,"items":{"type":"integer"}}`, `z.array(z.number().int()).min(1)`},
		{"list of anything", `{"type":"array"}`, `z.array(z.unknown())`},
		{"unknown type", `{"type":"null"}`, `z.unknown()`},
		{"no type", `{}`, `z.unknown()`},
		{"description", `{"type":"string","description":"Say \"hi\" & <go>"}`, `z.string().describe("Say \"hi\" & <go>")`},
		{"default false", `{"type":"boolean","default":false}`, `z.boolean().default(false)`},
		{"default text", `{"type":"string","default":"all"}`, `z.string().default("all")`},
		{
			"order of the parts",
			`{"type":"object","properties":{"n":{"default":3,"description":"N.","maximum":5,"minimum":1,"type":"integer"}}}`,
			"z.object({\n  \"n\": z.number().int().min(1).max(5).describe(\"N.\").default(3).optional()\n})",
		},
		{
			"required with default",
			`{"type":"object","required":["n"],"properties":{"n":{"type":"boolean","default":true}}}`,
			"z.object({\n  \"n\": z.boolean().default(true)\n})",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			schema, err := definition.ParseSchema([]byte(test.schema))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, zodExpression(schema)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The zod text of every input, without its descriptions, is kept: the bridge
// checks tool calls with it (spec 30 §13.4).
func TestZodOfTheCatalog(t *testing.T) {
	t.Parallel()
	describe := regexp.MustCompile(`\.describe\("(?:[^"\\]|\\.)*"\)`)
	var whole strings.Builder
	inputs := readSource(t, "..").inputs
	for _, input := range inputs {
		whole.WriteString(input.name + " " + describe.ReplaceAllString(zodExpression(input.schema), "") + "\n\n")
	}
	if len(inputs) != 40 || strings.Contains(whole.String(), "describe") {
		t.Errorf("%d inputs, or a description was left", len(inputs))
	}
	const golden = "testdata/zod.txt"
	if *update {
		if err := os.WriteFile(golden, []byte(whole.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), whole.String()); diff != "" {
		t.Error(diff)
	}
}

// The Markdown in the module has the parts of spec 30 §7.1 in their order.
func TestDocumentation(t *testing.T) {
	t.Parallel()
	playbooks, err := os.ReadFile("../playbooks.md")
	if err != nil {
		t.Fatal(err)
	}
	read := readSource(t, "..")
	read.playbooks = string(playbooks)
	documentation, err := read.documentation()
	if err != nil {
		t.Fatal(err)
	}
	rest := documentation
	for _, heading := range playbookHeadings {
		_, after, found := strings.Cut(rest, heading+"\n")
		if !found {
			t.Fatalf("%q is missing or out of order", heading)
		}
		rest = after
	}
	for _, action := range read.actions {
		parts := []string{
			"\n## `" + action.MCPToolName + "`\n\n" + action.Description, "\n\nAction id: `" + action.ID + "`\n\n```ts\n",
			"export interface " + action.InputTypeName + " {", "}\n```\n\nJSON schema:\n\n```json\n{\n  \"type\": \"object\",\n", "\n}\n```\n",
		}
		for _, part := range parts {
			_, after, found := strings.Cut(rest, part)
			if !found {
				t.Fatalf("%s: %q is missing or out of order", action.ID, part)
			}
			rest = after
		}
	}
	if rest != "" {
		t.Errorf("behind the last action stands %.100q", rest)
	}
}

// What an agent must learn from the playbooks (spec 30 §7.1).
func TestPlaybooksCover(t *testing.T) {
	t.Parallel()
	playbooks, err := os.ReadFile("../playbooks.md")
	if err != nil {
		t.Fatal(err)
	}
	for heading, phrases := range map[string][]string{
		"# Hostr MCP action inputs":       {"auth_required", "profile_required", "one-off key", "escrow contract", "dryRun", "hostr_swaps_watch", "hostr_session_switch"},
		"## Order date semantics":         {"YYYY-MM-DDT00:00:00Z", "time zone"},
		"### New listing workflow":        {"hostr_profile_edit", "hostr_listings_create", "preview", "same `dTag`"},
		"### Edit listing workflow":       {"hostr_listings_edit", "preview", "`dryRun: false`"},
		"### Search and reserve workflow": {"hostr_listings_search", "hostr_listings_availability", "hostr_orders_bookAndPay", "invoice", "hostr_swaps_watch", "hostr_trips_list", "only when the user asks"},
		"### Negotiation workflow":        {"hostr_updates", "`tradeId` and `amount`", "hostr_orders_negotiateAccept", "hostr_orders_cancel"},
		"### Payment workflow":            {"hostr_orders_bookAndPay", "hostr_orders_pay", "hostr_orders_commit", "hostr_swaps_recoverAll", "repair"},
		"### Messaging workflow":          {"hostr_updates", "recipients", "hostr_thread_message", "preview", "`dryRun: false`"},
		"### Review workflow":             {"hostr_trips_list", "hostr_orders_review", "preview", "committed order"},
		"### Swaps workflow":              {"hostr_swaps_list", "hostr_swaps_watch", "hostr_swaps_recoverAll"},
	} {
		_, section, _ := strings.Cut(string(playbooks), heading+"\n")
		section, _, _ = strings.Cut(section, "\n#")
		for _, phrase := range phrases {
			if !strings.Contains(section, phrase) {
				t.Errorf("%q does not say %q", heading, phrase)
			}
		}
	}
}

// Every link inside the page for people leads to one heading.
func TestPageLinks(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/actions.md")
	if err != nil {
		t.Fatal(err)
	}
	headings := map[string]int{}
	for line := range strings.Lines(string(page)) {
		if heading, found := strings.CutPrefix(strings.TrimLeft(line, "#"), " "); found && strings.HasPrefix(line, "#") {
			headings[anchorOf(strings.TrimSpace(heading))]++
		}
	}
	links := regexp.MustCompile(`\]\(#([^)]*)\)`).FindAllStringSubmatch(string(page), -1)
	for _, link := range links {
		if headings[link[1]] != 1 {
			t.Errorf("#%s leads to %d headings", link[1], headings[link[1]])
		}
	}
	if len(links) < actionCount {
		t.Errorf("the page has %d links", len(links))
	}
}

func TestGoNames(t *testing.T) {
	t.Parallel()
	for property, want := range map[string]string{
		"limit": "Limit", "tradeId": "TradeID", "escrowServiceId": "EscrowServiceID", "dTag": "DTag", "npub": "NPub",
		"nip05": "NIP05", "lud16": "LUD16", "h3MaxTags": "H3MaxTags", "rentOrBuy": "RentOrBuy", "identifier": "Identifier",
	} {
		if got := goName(property); got != want {
			t.Errorf("%s is named %s, not %s", property, got, want)
		}
	}
}

// Each way to break the catalog is told.
func TestCheckTellsWhatIsBroken(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, file, old, new, want string }{
		{"schemas of one type differ", "actions/stays.json", `"maximum": 300`, `"maximum": 301`, "hostr.bookings.list has another schema"},
		{"parse rules of one type differ", "actions/stays.json", `"clamp": [0, 300]`, `"clamp": [0, 299]`, "hostr.bookings.list has other parse rules"},
		{"tool name", "actions/conversations.json", `"hostr_updates"`, `"hostr_news"`, "mcpToolName must be the id"},
		{"banned word", "actions/conversations.json", `hostr.thread.message`, `hostr.thread.reply`, `names do not contain "reply"`},
		{"dryRun flag", "actions/swaps.json", `"hasDryRun": true`, `"hasDryRun": false`, "hasDryRun must tell"},
		{"dates flag", "actions/swaps.json", `"hasDates": false`, `"hasDates": true`, "hasDates must tell"},
		{"preview of a reading action", "actions/swaps.json", `"readOnly": false`, `"readOnly": true`, "a read-only action has no dryRun"},
		{"writing without preview", "actions/swaps.json", `"readOnly": true`, `"readOnly": false`, "a writing action needs a dryRun"},
		{"role", "actions/escrow-trades.json", `"requiredRole": "escrow"`, `"requiredRole": "host"`, "the only role is escrow"},
		{"role count", "actions/escrow-trades.json", `"requiredRole": "escrow"`, `"requiredRole": null`, "escrow actions, not 14"},
		{"own text with shared prefix", "actions/swaps.json", `"description": "Report where`, `"description": "Preview rule: where`, "no own text starts like a shared one"},
		{"example", "actions/swaps.json", `"example": { "background"`, `"example": { "foreground"`, "the example has"},
		{"kind", "actions/swaps.json", `"kind": "enum"`, `"kind": "choice"`, `there is no reading of kind "choice"`},
		{"code", "actions/listings.json", `"code": "invalid_duration"`, `"code": "bad_duration"`, "knows no constant"},
		{"interface", "interfaces.json", `"name": "orderWaitSeconds"`, `"name": "orderWait"`, "disagree on orderWait"},
		{"specification", "specifications.json", `"bbq"`, `"barbecue"`, "does not name barbecue"},
		{"guidance", "guidance.json", `"Order date rule:`, `"Order dates:`, `starts with "Order date rule:"`},
		{"playbooks", "playbooks.md", "### Swaps workflow", "### Swaps", "must have exactly the headings"},
		{"family left out", "families.json", `"file": "swaps"`, `"file": "stays"`, "is defined twice"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			for _, name := range []string{"actions", "families.json", "guidance.json", "specifications.json", "interfaces.json", "playbooks.md"} {
				copyInto(t, folder, name)
			}
			replaceOnce(t, filepath.Join(folder, test.file), test.old, test.new)
			if _, err := generate(folder); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the error is %v, not one that says %q", err, test.want)
			}
		})
	}
}

func readSource(t *testing.T, folder string) *source {
	t.Helper()
	set, err := definition.Read(os.DirFS(folder))
	if err != nil {
		t.Fatal(err)
	}
	read, err := newSource(set, "")
	if err != nil {
		t.Fatal(err)
	}
	return read
}

func copyInto(t *testing.T, folder, name string) {
	t.Helper()
	from := filepath.Join("..", name)
	info, err := os.Stat(from)
	if err != nil {
		t.Fatal(err)
	}
	if info.IsDir() {
		if err := os.CopyFS(filepath.Join(folder, name), os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
		return
	}
	content, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func replaceOnce(t *testing.T, file, before, after string) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(content), before, after, 1)
	if changed == string(content) {
		t.Fatalf("%s does not hold %s", file, before)
	}
	if err := os.WriteFile(file, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
}
