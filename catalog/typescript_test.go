package catalog_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hostr-daemon/catalog"
)

// requireNPM is set to 1 where the tests below must not be skipped, as in CI.
const requireNPM = "HOSTR_REQUIRE_NPM"

// registryUnreachable is what npm says when it cannot ask its registry.
var registryUnreachable = regexp.MustCompile(`ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|ENOTCACHED|ERR_SOCKET_TIMEOUT`)

// zodInput is one input given to the zod schema of an action, and what must come
// out. An empty parsed means that zod must refuse it.
type zodInput struct {
	Action string          `json:"action"`
	Input  json.RawMessage `json:"input"`
	parsed string
}

var zodInputs = []zodInput{
	{"hostr.session.connect", raw(`{}`), `{"wait":false,"timeoutSeconds":180,"regenerate":false}`},
	{"hostr.session.connect", raw(`{"wait":true,"timeoutSeconds":600}`), `{"wait":true,"timeoutSeconds":600,"regenerate":false}`},
	{"hostr.session.connect", raw(`{"timeoutSeconds":601}`), ``},
	{"hostr.session.connect", raw(`{"timeoutSeconds":0}`), ``},
	{"hostr.session.connect", raw(`{"timeoutSeconds":1.5}`), ``},
	{"hostr.session.connect", raw(`{"unknown":1}`), ``},
	{"hostr.orders.pay", raw(`{"tradeId":"x"}`), `{"tradeId":"x","dryRun":true,"timeoutSeconds":12}`},
	{"hostr.orders.pay", raw(`{}`), ``},
	{"hostr.profile.show", raw(`{}`), `{}`},
	{"hostr.profile.show", raw(`{"any":1}`), ``},
	{"hostr.listings.search", raw(`{"rentOrBuy":"neither"}`), `{"rentOrBuy":"neither","limit":10}`},
	{"hostr.listings.create", raw(`{"title":"T","description":"D","address":"A","images":[],"prices":[]}`), ``},
	{
		"hostr.listings.availability",
		raw(`{"start":"2026-05-04T00:00:00Z","end":"2026-05-08T12:30Z"}`),
		`{"start":"2026-05-04T00:00:00Z","end":"2026-05-08T12:30Z"}`,
	},
	{"hostr.listings.availability", raw(`{"start":"2026-05-04","end":"2026-05-08T00:00:00Z"}`), ``},
	{"hostr.listings.availability", raw(`{"start":"2026-02-30T00:00:00Z","end":"2026-03-08T00:00:00Z"}`), ``},
	{
		"hostr.listings.edit",
		raw(`{"anchor":"a","patch":{"any":["thing"]}}`),
		`{"anchor":"a","patch":{"any":["thing"]},"dryRun":true}`,
	},
	{
		"hostr.escrow.service.edit",
		raw(`{"fee":{"ppm":1,"assetOverrides":{"native":{"ppm":2}}}}`),
		`{"fee":{"ppm":1,"assetOverrides":{"native":{"ppm":2}}},"dryRun":true}`,
	},
	{"hostr.escrow.service.edit", raw(`{"fee":{"ppm":-1}}`), ``},
	{"hostr.escrow.trades.arbitrate", raw(`{"tradeId":"t","paymentForward":1.1,"bondForward":0}`), ``},
}

// evaluated is what evaluate.js prints of the compiled module.
type evaluated struct {
	Catalog []struct {
		ID              string          `json:"id"`
		ToolName        string          `json:"toolName"`
		Title           string          `json:"title"`
		Description     string          `json:"description"`
		InputTypeName   string          `json:"inputTypeName"`
		InputJSONSchema json.RawMessage `json:"inputJsonSchema"`
		Zod             string          `json:"zod"`
		ReadOnly        bool            `json:"readOnly"`
		RequiredRole    string          `json:"requiredRole"`
	} `json:"catalog"`
	Keys          [][]string `json:"keys"`
	ByToolName    []string   `json:"byToolName"`
	ByID          []string   `json:"byId"`
	Documentation string     `json:"documentation"`
	Outcomes      []struct {
		Action  string          `json:"action"`
		Parsed  json.RawMessage `json:"parsed"`
		Refused []string        `json:"refused"`
	} `json:"outcomes"`
}

// The module must compile with the compiler and the zod that the bridge uses, be
// read by node, and tell the same as the catalog (spec 30 §6, §13.4).
func TestTypeScriptModule(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("compiling TypeScript takes some seconds")
	}
	loaded := load(t)
	inputs := slices.Clone(zodInputs)
	for _, action := range loaded.Actions() {
		inputs = append(inputs, zodInput{Action: action.ID, Input: action.Example, parsed: "any"})
	}
	module := compile(t, inputs)

	if len(module.Outcomes) != len(inputs) {
		t.Fatalf("%d inputs were evaluated, not %d", len(module.Outcomes), len(inputs))
	}
	for i, outcome := range module.Outcomes {
		checkOutcome(t, inputs[i], outcome.Parsed, outcome.Refused)
	}
	checkModuleCatalog(t, loaded, module)
}

func checkOutcome(t *testing.T, input zodInput, parsed json.RawMessage, refused []string) {
	t.Helper()
	switch {
	case input.parsed == "" && len(refused) == 0:
		t.Errorf("%s: zod let %s pass", input.Action, input.Input)
	case input.parsed != "" && len(refused) > 0:
		t.Errorf("%s: zod refused %s: %v", input.Action, input.Input, refused)
	case input.parsed != "" && input.parsed != "any" && string(parsed) != input.parsed:
		t.Errorf("%s: zod made %s of %s, not %s", input.Action, parsed, input.Input, input.parsed)
	}
}

func checkModuleCatalog(t *testing.T, loaded *catalog.Catalog, module evaluated) {
	t.Helper()
	if len(module.Catalog) != 43 || module.Documentation == "" {
		t.Fatalf("the module has %d actions and %d bytes of documentation", len(module.Catalog), len(module.Documentation))
	}
	var toolNames []string
	for i, action := range loaded.Actions() {
		toolNames = append(toolNames, action.ToolName)
		entry := module.Catalog[i]
		if entry.ID != action.ID || entry.ToolName != action.ToolName || entry.Title != action.Title ||
			entry.Description != action.Description || entry.InputTypeName != action.InputTypeName ||
			entry.ReadOnly != action.ReadOnly || entry.RequiredRole != action.RequiredRole || entry.Zod != "function" {
			t.Errorf("the module's entry of %s differs from the catalog: %+v", action.ID, entry)
		}
		if got, want := compact(t, entry.InputJSONSchema), compact(t, action.InputSchema); got != want {
			t.Errorf("the module's JSON Schema of %s differs: %s", action.ID, cmp.Diff(want, got))
		}
		wantKeys := []string{"id", "toolName", "title", "description", "inputTypeName", "inputJsonSchema", "inputSchema", "readOnly"}
		if action.RequiredRole != "" {
			wantKeys = append(wantKeys, "requiredRole")
		}
		if diff := cmp.Diff(wantKeys, module.Keys[i]); diff != "" {
			t.Errorf("the keys of %s: %s", action.ID, diff)
		}
	}
	if diff := cmp.Diff(loaded.IDs(), module.ByID); diff != "" {
		t.Errorf("hostrActionById: %s", diff)
	}
	if diff := cmp.Diff(toolNames, module.ByToolName); diff != "" {
		t.Errorf("hostrActionByToolName: %s", diff)
	}
}

// compile installs the compiler and zod in a folder of its own, compiles the
// module there and evaluates it.
func compile(t *testing.T, inputs []zodInput) evaluated {
	t.Helper()
	folder := t.TempDir()
	if err := os.CopyFS(folder, os.DirFS(filepath.Join("testdata", "typescript"))); err != nil {
		t.Fatal(err)
	}
	module, err := os.ReadFile("hostr-actions.ts")
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := json.Marshal(inputs)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"hostr-actions.ts": module, "inputs.json": encoded} {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	install(t, folder)
	if printed, err := inFolder(t, folder, "node", "node_modules/typescript/bin/tsc", "--project", "."); err != nil {
		t.Fatalf("the module does not compile: %v\n%s", err, printed)
	}
	printed, err := inFolder(t, folder, "node", "evaluate.js")
	if err != nil {
		t.Fatalf("the module cannot be evaluated: %v\n%s", err, printed)
	}
	var read evaluated
	if err := json.Unmarshal(printed, &read); err != nil {
		t.Fatalf("%v in %s", err, printed)
	}
	return read
}

// install brings the pinned packages in, and skips the test where there is no npm
// or no registry.
func install(t *testing.T, folder string) {
	t.Helper()
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			skip(t, "compiling the TypeScript module needs "+program+", which is not installed")
		}
	}
	printed, err := inFolder(t, folder, "npm", "ci", "--prefer-offline", "--ignore-scripts", "--no-audit", "--no-fund")
	switch {
	case err == nil:
	case registryUnreachable.Match(printed):
		skip(t, "compiling the TypeScript module needs the npm registry, which cannot be reached")
	default:
		t.Fatalf("npm ci: %v\n%s", err, printed)
	}
}

func skip(t *testing.T, reason string) {
	t.Helper()
	if os.Getenv(requireNPM) == "1" {
		t.Fatal(reason)
	}
	t.Skip(reason)
}

func inFolder(t *testing.T, folder, program string, arguments ...string) ([]byte, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, program, arguments...)
	command.Dir = folder
	if program == "node" && arguments[0] == "evaluate.js" {
		return command.Output()
	}
	return command.CombinedOutput()
}
