package environment

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hostr-daemon/internal/fault"
)

const (
	pubkey  = "AB00000000000000000000000000000000000000000000000000000000000001"
	address = "0x0000000071727De22E5E9d8BAf0edAc6f37da032"
)

func TestOverridesReplaceFactsAsAWhole(t *testing.T) {
	t.Parallel()
	read, err := ParseOverrides("override file", []byte("\ufeff"+`{
		"hostrRelay": " ws://127.0.0.1:7777 ",
		"bootstrapRelays": [],
		"bootstrapBlossom": ["http://localhost:3000", "http://localhost:3000"],
		"bootstrapEscrowPubkeys": ["`+pubkey+`", "`+strings.ToLower(pubkey)+`"],
		"geocoderUrl": "http://127.0.0.1:8080/search",
		"evmConfig": {}
	}`))
	if err != nil {
		t.Fatal(err)
	}
	before, _ := Resolve("production")
	got := before.Apply(read)
	want := before
	want.HostrRelay = "ws://127.0.0.1:7777"
	want.BootstrapRelays = []string{}
	want.Blossom = []string{"http://localhost:3000"}
	want.EscrowPubkeys = []string{strings.ToLower(pubkey)}
	want.GeocoderURL = "http://127.0.0.1:8080/search"
	want.EVM = EVMConfig{}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestMissingKeysKeepFacts(t *testing.T) {
	t.Parallel()
	read, err := ParseOverrides("override file", []byte(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	before, _ := Resolve("staging")
	if diff := cmp.Diff(before, before.Apply(read)); diff != "" {
		t.Error(diff)
	}
}

func TestEVMConfigShapes(t *testing.T) {
	t.Parallel()
	got, err := ParseEVMConfig("variable", []byte(`{
		"boltz": {"apiUrl": "http://localhost:9001/http/v2/"},
		"chains": [
			{"id": "a", "chainId": 1, "rpcUrls": "http://x.example/ , ,http://y.example,http://x.example/", "blockExplorerUrl": null, "tokens": null},
			{"id": "b", "chainId": 33, "rpcUrl": "http://z.example", "nativeDenomination": "ETH", "boltzCurrency": "ARB",
			 "escrowContractAddress": "`+strings.ToLower(address)+`",
			 "accountAbstraction": {"bundlerUrl": "https://b.example?apikey={PIMLICO_API_KEY}", "entryPointAddress": "`+address+`", "accountFactoryAddress": "`+address+`", "paymasterAddress": "pimlico"},
			 "tokens": {"USDT": {"address": "`+address+`", "denomination": "USD", "balanceStorageSlot": 51}, "tBTC": {"address": "0x0000000000000000000000000000000000000002", "denomination": "BTC"}}},
			{"id": "c", "chainId": 5, "rpcUrls": ["http://a.example", ""], "rpcUrl": "http://ignored.example",
			 "accountAbstraction": {"bundlerUrl": "http://b.example", "entryPointAddress": "`+address+`", "accountFactoryAddress": "`+address+`"}}
		]}`))
	if err != nil {
		t.Fatal(err)
	}
	want := EVMConfig{
		Boltz: &Boltz{APIURL: "http://localhost:9001/http/v2", WSURL: "ws://localhost:9001/http/v2/ws"},
		Chains: []Chain{
			{ID: "a", ChainID: 1, RPCURLs: []Endpoint{"http://x.example/", "http://y.example"}, NativeDenomination: "BTC"},
			{ID: "b", ChainID: 33, RPCURLs: []Endpoint{"http://z.example"}, NativeDenomination: "ETH", BoltzCurrency: "ARB",
				EscrowContractAddress: strings.ToLower(address),
				AccountAbstraction:    &AccountAbstraction{BundlerURL: "https://b.example?apikey={PIMLICO_API_KEY}", EntryPointAddress: address, AccountFactoryAddress: address, PaymasterAddress: "pimlico"},
				Tokens: []Token{
					{Symbol: "USDT", Address: address, Denomination: "USD", BalanceStorageSlot: 51, AllowanceStorageSlot: 1},
					{Symbol: "tBTC", Address: "0x0000000000000000000000000000000000000002", Denomination: "BTC", AllowanceStorageSlot: 1},
				}},
			{ID: "c", ChainID: 5, RPCURLs: []Endpoint{"http://a.example"}, NativeDenomination: "BTC",
				AccountAbstraction: &AccountAbstraction{BundlerURL: "http://b.example", EntryPointAddress: address, AccountFactoryAddress: address}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestProblemsHaveTheirPath writes each problem as "path reason".
func TestProblemsHaveTheirPath(t *testing.T) {
	t.Parallel()
	chain := func(rest string) string { return `{"evmConfig":{"chains":[{"id":"a","chainId":1,` + rest + `}]}}` }
	rpc := `"rpcUrls":["http://x.example"],`
	for _, test := range []struct{ json, want string }{
		{`[]`, " type"},
		{`null`, " type"},
		{`"text"`, " type"},
		{`{"hostrrelay":"wss://a.example"}`, "hostrrelay enum"},
		{`{"a.b c":1}`, `["a.b c"] enum`},
		{`{"":1}`, `[""] enum`},
		{`{"hostrRelay":null}`, "hostrRelay type"},
		{`{"hostrRelay":5}`, "hostrRelay type"},
		{`{"hostrRelay":" "}`, "hostrRelay missing"},
		{`{"hostrRelay":"wss://a.example","hostrRelay":"wss://b.example"}`, "hostrRelay format"},
		{`{"hostrRelay":"https://a.example"}`, "hostrRelay format"},
		{`{"hostrRelay":"a.example"}`, "hostrRelay format"},
		{`{"hostrRelay":"wss://"}`, "hostrRelay format"},
		{`{"hostrRelay":"wss:///x"}`, "hostrRelay format"},
		{`{"hostrRelay":"wss://u:p@a.example"}`, "hostrRelay format"},
		{`{"hostrRelay":"wss://[::1]:7777"}`, "hostrRelay format"},
		{`{"hostrRelay":"wss://a_b.example"}`, "hostrRelay format"},
		{`{"hostrRelay":"wss://-a.example"}`, "hostrRelay format"},
		{`{"hostrRelay":"wss://a.example?q=1"}`, "hostrRelay format"},
		{`{"hostrRelay":"wss://a.example:70000"}`, "hostrRelay format"},
		{`{"hostrRelay":"wss://a.example:0"}`, "hostrRelay format"},
		{`{"hostrRelay":"wss://a.example/x y"}`, "hostrRelay format"},
		{`{"bootstrapRelays":"wss://a.example"}`, "bootstrapRelays type"},
		{`{"bootstrapRelays":["wss://a.example",1,"","http://b.example"]}`, "bootstrapRelays[1] type, bootstrapRelays[2] missing, bootstrapRelays[3] format"},
		{`{"bootstrapBlossom":["wss://a.example"]}`, "bootstrapBlossom[0] format"},
		{`{"bootstrapBlossom":{}}`, "bootstrapBlossom type"},
		{`{"bootstrapEscrowPubkeys":["npub1xyz"]}`, "bootstrapEscrowPubkeys[0] format"},
		{`{"bootstrapEscrowPubkeys":["` + pubkey[1:] + `","` + pubkey + `0"]}`, "bootstrapEscrowPubkeys[0] format, bootstrapEscrowPubkeys[1] format"},
		{`{"geocoderUrl":"ftp://a.example"}`, "geocoderUrl format"},
		{`{"evmConfig":null}`, "evmConfig type"},
		{`{"evmConfig":{"boltz":{}}}`, "evmConfig.boltz.apiUrl missing"},
		{`{"evmConfig":{"boltz":{"apiUrl":"https://b.example/v2?key=1"}}}`, "evmConfig.boltz.apiUrl format"},
		{`{"evmConfig":{"boltz":{"apiUrl":"https://b.example/v2","wsUrl":"https://b.example"}}}`, "evmConfig.boltz.wsUrl format"},
		{`{"evmConfig":{"chains":{}}}`, "evmConfig.chains type"},
		{`{"evmConfig":{"chains":[{}]}}`, "evmConfig.chains[0].id missing, evmConfig.chains[0].chainId missing, evmConfig.chains[0].rpcUrls missing"},
		{`{"evmConfig":{"chains":[{"id":"a","chainId":"1","rpcUrls":[]}]}}`, "evmConfig.chains[0].chainId type, evmConfig.chains[0].rpcUrls missing"},
		{`{"evmConfig":{"chains":[{"id":"a","chainId":1.5,"rpcUrls":" , "}]}}`, "evmConfig.chains[0].chainId type, evmConfig.chains[0].rpcUrls missing"},
		{`{"evmConfig":{"chains":[{"id":"a","chainId":1e3,"rpcUrls":["ws://x.example"]}]}}`, "evmConfig.chains[0].chainId type, evmConfig.chains[0].rpcUrls[0] format"},
		{`{"evmConfig":{"chains":[{"id":"a","chainId":0,"rpcUrls":[7]}]}}`, "evmConfig.chains[0].chainId range, evmConfig.chains[0].rpcUrls[0] type, evmConfig.chains[0].rpcUrls missing"},
		{`{"evmConfig":{"chains":[{"id":"a","chainId":99999999999999999999,"rpcUrl":7}]}}`, "evmConfig.chains[0].chainId type, evmConfig.chains[0].rpcUrl type"},
		{`{"evmConfig":{"chains":[{"id":"a","chainId":1,"rpcUrl":"http://x.example"},{"id":"a","chainId":1,"rpcUrl":"http://x.example"}]}}`, "evmConfig.chains[1].id format, evmConfig.chains[1].chainId format"},
		{chain(rpc + `"escrowContractAddress":"0x12"`), "evmConfig.chains[0].escrowContractAddress format"},
		{chain(rpc + `"escrowContractAddress":"0x0000000071727De22E5E9d8BAf0edAc6f37dA032"`), "evmConfig.chains[0].escrowContractAddress format"},
		{chain(rpc + `"accountAbstraction":{"bundlerUrl":"x","entryPointAddress":"y","paymasterAddress":"No Such"}`),
			"evmConfig.chains[0].accountAbstraction.bundlerUrl format, evmConfig.chains[0].accountAbstraction.entryPointAddress format, evmConfig.chains[0].accountAbstraction.paymasterAddress format, evmConfig.chains[0].accountAbstraction.accountFactoryAddress missing"},
		{chain(rpc + `"tokens":[]`), "evmConfig.chains[0].tokens type"},
		{chain(rpc + `"tokens":{"A":{"address":"` + address + `","denomination":"BTC"},"B":{"address":"` + strings.ToLower(address) + `","denomination":"BTC"}}`), "evmConfig.chains[0].tokens.B.address format"},
		{chain(rpc + `"tokens":{"A":{"address":"` + address + `"},"A":{"denomination":" ","balanceStorageSlot":-1,"allowanceStorageSlot":"1","x":{}}}`),
			"evmConfig.chains[0].tokens.A.denomination missing, evmConfig.chains[0].tokens.A.denomination missing, evmConfig.chains[0].tokens.A.balanceStorageSlot range, evmConfig.chains[0].tokens.A.allowanceStorageSlot type, evmConfig.chains[0].tokens.A.x enum, evmConfig.chains[0].tokens.A.address missing, evmConfig.chains[0].tokens.A format"},
	} {
		t.Run(test.json, func(t *testing.T) {
			t.Parallel()
			_, err := ParseOverrides(`override file "o.json"`, []byte(test.json))
			coded := fault.From(err)
			if coded == nil {
				t.Fatal("no error")
			}
			problems, ok := coded.Details.(Problems)
			if !ok {
				t.Fatalf("details are %T", coded.Details)
			}
			var got []string
			for _, p := range problems.Problems {
				got = append(got, p.Path+" "+p.Reason)
			}
			if diff := cmp.Diff(test.want, strings.Join(got, ", ")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if coded.Path != problems.Problems[0].Path || coded.Code != fault.UnexpectedError || coded.Retryable || problems.Total != len(got) {
				t.Errorf("error %+v", coded)
			}
			if !strings.Contains(coded.Message, `"o.json"`) || !strings.Contains(coded.Message, coded.Path) {
				t.Errorf("message %q", coded.Message)
			}
		})
	}
}

func TestManyProblemsStayBounded(t *testing.T) {
	t.Parallel()
	var many strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&many, `,"%s%d":1`, strings.Repeat("k", 90), i)
	}
	_, err := ParseOverrides("override file", []byte("{"+many.String()[1:]+"}"))
	coded := fault.From(err)
	details, _ := json.Marshal(coded.Details)
	if len(details) > 20_000 || coded.Details.(Problems).Total != 10_000 {
		t.Errorf("details of %d bytes, total %d", len(details), coded.Details.(Problems).Total)
	}
}

func TestBrokenJSONIsLocated(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                              "is empty",
		" \n":                           "is empty",
		"{":                             "line 1, column",
		"{\n  \"hostrRelay\": 'x'\n}":   "line 2, column 17",
		"{}\n{}":                        "line 2, column 1",
		"{\"bootstrapRelays\": [1,]}":   "line 1, column 24",
		"hostrRelay = \"wss://secret\"": "line 1, column 1",
	} {
		_, err := ParseOverrides(`override file "o.json"`, []byte(text))
		if !fault.Is(err, fault.UnexpectedError) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), `"o.json"`) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestMessagesRepeatNoSecrets(t *testing.T) {
	t.Parallel()
	const canary = "canary5ecret"
	for _, text := range []string{
		`{"hostrRelay":"https://h.example/` + canary + `?k=` + canary + `"}`,
		`{"hostrRelay":"wss://` + canary + `:` + canary + `@h.example"}`,
		`{"geocoderUrl":"%zz://` + canary + `"}`,
		`{"bootstrapEscrowPubkeys":["nsec1` + canary + `"]}`,
		`{"evmConfig":{"boltz":{"apiUrl":"https://b.example?key=` + canary + `","wsUrl":"x?` + canary + `"},"chains":[{"id":"a","chainId":1,"rpcUrls":"ws://x/` + canary + `","accountAbstraction":{"bundlerUrl":"` + canary + `","entryPointAddress":"` + canary + `","paymasterAddress":"` + canary + `"}}]}}`,
		`{"hostrRelay": "` + canary,
	} {
		_, err := ParseOverrides("override file", []byte(text))
		details, _ := json.Marshal(fault.From(err).Details)
		if err == nil || strings.Contains(err.Error()+string(details), canary) {
			t.Errorf("%v %s", err, details)
		}
	}
}

func TestOverrideFilesThatCannotBeRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	large := filepath.Join(dir, "large.json")
	if err := os.WriteFile(large, []byte("{"+strings.Repeat(" ", maxFileBytes)+"}"), 0o600); err != nil {
		t.Fatal(err)
	}
	loop := filepath.Join(dir, "loop.json")
	if err := os.Symlink(loop, loop); err != nil {
		t.Fatal(err)
	}
	pipe := filepath.Join(dir, "pipe.json")
	makePipe(t, pipe)
	for path, want := range map[string]string{
		filepath.Join(dir, "absent.json"):  "does not exist",
		dir:                                "not a regular file",
		pipe:                               "not a regular file",
		large:                              "larger than 1 MiB",
		loop:                               "cannot be read",
		filepath.Join(large, "below.json"): "cannot be read",
	} {
		loaded, err := Load(Options{Name: "dev", ConfigFile: path, Getenv: noEnvironment})
		if !fault.Is(err, fault.UnexpectedError) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
		if hint := fault.From(err).Hint; strings.Contains(hint, "Mend") != (want != "does not exist") {
			t.Errorf("%s: a file that is not there cannot be mended, any other can: %q", path, hint)
		}
		var unknown *UnknownNameError
		if loaded.Name != "development" || errors.As(err, &unknown) {
			t.Errorf("an override problem must not look like an unknown name: %+v", err)
		}
	}
}

func FuzzOverrides(f *testing.F) {
	for _, seed := range []string{
		`{}`, `[]`, `nul`, "\ufeff{}", `{"hostrRelay":"wss://a.example","bootstrapRelays":["ws://b"],"bootstrapBlossom":["https://c"],"geocoderUrl":"http://d/e?f"}`,
		`{"bootstrapEscrowPubkeys":["` + pubkey + `"]}`, `{"evmConfig":{}}`, `{"a":{"b":[[[[]]]]}}`,
		`{"evmConfig":{"boltz":{"apiUrl":"https://x/v2"},"chains":[{"id":"a","chainId":1,"rpcUrls":"http://x,http://y","tokens":{"T":{"address":"` + address + `","denomination":"BTC"}},"accountAbstraction":{"bundlerUrl":"http://b?{PIMLICO_API_KEY}","entryPointAddress":"` + address + `","accountFactoryAddress":"` + address + `"}}]}}`,
	} {
		f.Add([]byte(seed))
	}
	whole, err := os.ReadFile("facts/staging.json")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Fuzz(func(t *testing.T, data []byte) {
		read, err := ParseOverrides(`override file "o.json"`, data)
		if err != nil {
			coded := fault.From(err)
			if coded.Code != fault.UnexpectedError || !strings.Contains(coded.Message, `"o.json"`) {
				t.Fatalf("error without code or file: %v", err)
			}
			if details, ok := coded.Details.(Problems); ok && len(details.Problems) == 0 {
				t.Fatal("an error without a problem")
			}
			return
		}
		base, _ := Resolve("production")
		checkUsable(t, base.Apply(read))
	})
}

// checkUsable asserts what the rest of the daemon relies on without checking again.
func checkUsable(t *testing.T, e Environment) {
	for _, relay := range append([]string{e.HostrRelay}, e.BootstrapRelays...) {
		if problem := checkRelayURL(relay); problem != "" {
			t.Errorf("relay %q: %s", relay, problem)
		}
	}
	if e.TLSConfig() == nil || len(e.BootstrapList()) == 0 && e.Allowed(e.HostrRelay) {
		t.Error("no TLS configuration or no relay")
	}
	for _, chain := range e.EVM.Chains {
		if chain.ID == "" || chain.ChainID < 1 || len(chain.RPCURLs) == 0 || chain.NativeDenomination == "" {
			t.Errorf("unusable chain %+v", chain)
		}
	}
	if e.EVM.Boltz != nil && (e.EVM.Boltz.APIURL == "" || checkWebSocketURL(e.EVM.Boltz.WSURL.Reveal()) != "") {
		t.Errorf("unusable swap provider %+v", e.EVM.Boltz)
	}
}
