package environment

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hostr-daemon/internal/fault"
)

func noEnvironment(string) string { return "" }

func getenv(variables map[string]string) func(string) string {
	return func(name string) string { return variables[name] }
}

func writeFile(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "hostr.json")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLoadOrderOfStrength(t *testing.T) {
	t.Parallel()
	const evm = `{"chains":[{"id":"%s","chainId":1,"rpcUrl":"http://x.example","accountAbstraction":{"bundlerUrl":"https://%s.example?apikey={PIMLICO_API_KEY}","entryPointAddress":"` + address + `","accountFactoryAddress":"` + address + `"}}]}`
	inFile, inVariable := fmt.Sprintf(evm, "file", "file"), fmt.Sprintf(evm, "variable", "variable")
	file := writeFile(t, `{"hostrRelay":"wss://file.example","bootstrapRelays":["wss://boot.example"],"evmConfig":`+inFile+`}`)
	other := writeFile(t, `{"hostrRelay":"wss://other.example"}`)
	evmFile := writeFile(t, inVariable)
	type facts struct{ Relay, Bootstrap, Chain, Bundler string }
	for _, test := range []struct {
		name      string
		options   Options
		variables map[string]string
		want      facts
	}{
		{"nothing", Options{}, nil, facts{"wss://relay.staging.hostr.network", "wss://relay.damus.io", "arbitrum", "https://api.pimlico.io/v2/42161/rpc?apikey={PIMLICO_API_KEY}"}},
		{"file", Options{ConfigFile: file}, nil, facts{"wss://file.example", "wss://boot.example", "file", "https://file.example?apikey={PIMLICO_API_KEY}"}},
		{"variable names the file", Options{ConfigFile: " "}, map[string]string{"HOSTR_DAEMON_CONFIG": file}, facts{"wss://file.example", "wss://boot.example", "file", "https://file.example?apikey={PIMLICO_API_KEY}"}},
		{"option over variable", Options{ConfigFile: file}, map[string]string{"HOSTR_DAEMON_CONFIG": other}, facts{"wss://file.example", "wss://boot.example", "file", "https://file.example?apikey={PIMLICO_API_KEY}"}},
		{"relay over file", Options{ConfigFile: file, Relay: " wss://option.example "}, nil, facts{"wss://option.example", "wss://option.example", "file", "https://file.example?apikey={PIMLICO_API_KEY}"}},
		{"blank relay", Options{ConfigFile: file, Relay: " "}, nil, facts{"wss://file.example", "wss://boot.example", "file", "https://file.example?apikey={PIMLICO_API_KEY}"}},
		{"EVM variable over file", Options{ConfigFile: file}, map[string]string{"HOSTR_EVM_CONFIG": inVariable}, facts{"wss://file.example", "wss://boot.example", "variable", "https://variable.example?apikey={PIMLICO_API_KEY}"}},
		{"EVM variable names a file", Options{ConfigFile: file}, map[string]string{"HOSTR_EVM_CONFIG": evmFile}, facts{"wss://file.example", "wss://boot.example", "variable", "https://variable.example?apikey={PIMLICO_API_KEY}"}},
		{"key", Options{ConfigFile: file}, map[string]string{"HOSTR_PIMLICO_API_KEY": "a b&c"}, facts{"wss://file.example", "wss://boot.example", "file", "https://file.example?apikey=a+b%26c"}},
		{"bundler over all", Options{ConfigFile: file}, map[string]string{"HOSTR_EVM_CONFIG": inVariable, "HOSTR_BUNDLER_URL": "http://own.example/{PIMLICO_API_KEY}", "HOSTR_PIMLICO_API_KEY": "k"}, facts{"wss://file.example", "wss://boot.example", "variable", "http://own.example/k"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.options.Name, test.options.Getenv = "staging", getenv(test.variables)
			loaded, err := Load(test.options)
			if err != nil {
				t.Fatal(err)
			}
			chain := loaded.EVM.Chains[0]
			got := facts{loaded.HostrRelay, loaded.BootstrapRelays[0], chain.ID, chain.AccountAbstraction.BundlerURL.Reveal()}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if loaded.Name != "staging" || loaded.Blossom[0] != "https://blossom.staging.hostr.network" {
				t.Errorf("an override changed the name or Blossom: %+v", loaded)
			}
		})
	}
}

func TestLoadProblems(t *testing.T) {
	t.Parallel()
	const canary = "canary5ecret"
	twoBundlers := `{"chains":[` + bundled("a", 1) + `,` + bundled("b", 2) + `]}`
	for _, test := range []struct {
		name, path, message string
		options             Options
		variables           map[string]string
	}{
		{"relay", "--relay", "--relay", Options{Relay: "https://" + canary + ".example"}, nil},
		{"file", "evmConfig.chains[0].chainId", "override file", Options{ConfigFile: writeFile(t, `{"evmConfig":{"chains":[{"id":"a","chainId":true,"rpcUrl":"http://x.example"}]}}`)}, nil},
		{"EVM variable", "chains[0].id", "HOSTR_EVM_CONFIG", Options{}, map[string]string{"HOSTR_EVM_CONFIG": `{"chains":[{"chainId":1,"rpcUrl":"http://x.example/` + canary + `"}]}`}},
		{"EVM variable of another type", "", "HOSTR_EVM_CONFIG", Options{}, map[string]string{"HOSTR_EVM_CONFIG": `["` + canary + `"]`}},
		{"EVM variable with a URL", "HOSTR_EVM_CONFIG", "holds a URL", Options{}, map[string]string{"HOSTR_EVM_CONFIG": "https://x.example?key=" + canary}},
		{"EVM variable with an absent file", "", `"absent.json"`, Options{}, map[string]string{"HOSTR_EVM_CONFIG": "absent.json"}},
		{"bundler", "HOSTR_BUNDLER_URL", "HOSTR_BUNDLER_URL", Options{}, map[string]string{"HOSTR_BUNDLER_URL": "wss://x.example/" + canary}},
		{"bundler of two chains", "HOSTR_BUNDLER_URL", "one chain only", Options{}, map[string]string{"HOSTR_EVM_CONFIG": twoBundlers, "HOSTR_BUNDLER_URL": "https://x.example?" + canary}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.options.Name, test.options.Getenv = "prod", getenv(test.variables)
			_, err := Load(test.options)
			coded := fault.From(err)
			if coded == nil || coded.Code != fault.UnexpectedError || coded.Path != test.path || !strings.Contains(coded.Message, test.message) {
				t.Fatalf("%+v, want path %q and %q", coded, test.path, test.message)
			}
			if details, _ := json.Marshal(coded.Details); strings.Contains(err.Error()+string(details), canary) {
				t.Errorf("the error repeats the value: %v %s", err, details)
			}
		})
	}
}

func bundled(id string, chainID int) string {
	return fmt.Sprintf(`{"id":%q,"chainId":%d,"rpcUrl":"http://x.example","accountAbstraction":{"bundlerUrl":"http://b.example","entryPointAddress":%q,"accountFactoryAddress":%[3]q}}`, id, chainID, address)
}

func TestLoadReadsTheFileAnew(t *testing.T) {
	t.Parallel()
	path := writeFile(t, `{"hostrRelay":1}`)
	options := Options{Name: "dev", ConfigFile: path, Getenv: noEnvironment}
	if _, err := Load(options); err == nil {
		t.Fatal("no error")
	}
	if err := os.WriteFile(path, []byte(`{"hostrRelay":"ws://mended.example"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if loaded, err := Load(options); err != nil || loaded.HostrRelay != "ws://mended.example" {
		t.Errorf("%v %v", loaded.HostrRelay, err)
	}
}

func TestBundlerNamesTheMissingKey(t *testing.T) {
	t.Parallel()
	production, _ := Resolve("production")
	_, err := production.EVM.Chains[0].AccountAbstraction.Bundler()
	if err == nil || !strings.Contains(err.Error(), "HOSTR_PIMLICO_API_KEY") || strings.Contains(err.Error(), "apikey") {
		t.Errorf("%v", err)
	}
	keyed, err := Load(Options{Name: "production", Getenv: getenv(map[string]string{"HOSTR_PIMLICO_API_KEY": "k"})})
	if err != nil {
		t.Fatal(err)
	}
	if bundler, err := keyed.EVM.Chains[0].AccountAbstraction.Bundler(); err != nil || bundler != "https://api.pimlico.io/v2/42161/rpc?apikey=k" {
		t.Errorf("%q %v", bundler, err)
	}
}

func TestEndpointsPrintWithoutTheirKeys(t *testing.T) {
	t.Parallel()
	endpoint := Endpoint("https://node.example:8545/v3/canary?key=canary")
	encoded, _ := json.Marshal(map[string]any{"chain": Chain{RPCURLs: []Endpoint{endpoint}}})
	for _, shown := range []string{fmt.Sprint(endpoint), fmt.Sprintf("%v %+v %#v %q %s", Chain{RPCURLs: []Endpoint{endpoint}}, &endpoint, endpoint, endpoint, endpoint), string(encoded)} {
		if strings.Contains(shown, "canary") || !strings.Contains(shown, "https://node.example:8545") && !strings.Contains(shown, "0x") {
			t.Errorf("%s", shown)
		}
	}
	if !strings.HasSuffix(endpoint.Reveal(), "?key=canary") {
		t.Error("Reveal cuts the URL")
	}
}

func BenchmarkLoad(b *testing.B) {
	for b.Loop() {
		if _, err := Load(Options{Name: "production", Getenv: noEnvironment}); err != nil {
			b.Fatal(err)
		}
	}
}
