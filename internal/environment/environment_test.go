package environment

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestResolveNames(t *testing.T) {
	t.Parallel()
	const development, staging, production = "development", "staging", "production"
	for name, want := range map[string][3]string{
		"development":      {development, "Hostr (Development)", "https://ai.hostr.development"},
		"dev":              {development, "Hostr (Development)", "https://ai.hostr.development"},
		"local":            {development, "Hostr (Development)", "https://ai.hostr.development"},
		"  DEV\n":          {development, "Hostr (Development)", "https://ai.hostr.development"},
		"test":             {"test", "Hostr (Development)", "https://ai.hostr.development"},
		"staging":          {staging, "Hostr (Staging)", "https://ai.staging.hostr.network"},
		"production":       {production, "Hostr", "https://hostr.network"},
		"prod":             {production, "Hostr", "https://hostr.network"},
		"\tProDuction\r\n": {production, "Hostr", "https://hostr.network"},
	} {
		got, err := Resolve(name)
		if err != nil {
			t.Errorf("Resolve(%q): %v", name, err)
			continue
		}
		if diff := cmp.Diff(want, [3]string{got.Name, got.AppName, got.AppURL}); diff != "" {
			t.Errorf("Resolve(%q) (-want +got):\n%s", name, diff)
		}
	}
}

func TestResolveUnknownNameListsTheNames(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", " ", "prodd", "développement", strings.Repeat("x", 5000)} {
		_, err := Resolve(name)
		var unknown *UnknownNameError
		if !errors.As(err, &unknown) {
			t.Fatalf("Resolve(%.20q) = %v, want an UnknownNameError", name, err)
		}
		if len(err.Error()) > 300 {
			t.Errorf("the message repeats %d bytes", len(err.Error()))
		}
		for _, known := range []string{"development (dev, local)", "test", "staging", "production (prod)"} {
			if !strings.Contains(err.Error(), known) {
				t.Errorf("%q does not name %s", err, known)
			}
		}
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	if diff := cmp.Diff([]string{"development", "test", "staging", "production"}, Names()); diff != "" {
		t.Error(diff)
	}
}

// specEnvironment is how testdata/environments-spec.json writes an environment.
type specEnvironment struct {
	HostrRelay             string   `json:"hostrRelay"`
	BootstrapRelays        []string `json:"bootstrapRelays"`
	BootstrapBlossom       []string `json:"bootstrapBlossom"`
	BootstrapEscrowPubkeys []string `json:"bootstrapEscrowPubkeys"`
	EVMConfig              struct {
		Boltz  struct{ APIURL, WSURL string }
		Chains []struct {
			ID, BlockExplorerURL, NativeDenomination, BoltzCurrency, EscrowContractAddress string
			ChainID                                                                        int64
			RPCURLs                                                                        []string
			AccountAbstraction                                                             *struct {
				BundlerURL, EntryPointAddress, AccountFactoryAddress, PaymasterAddress string
			}
			Tokens map[string]struct {
				Address, Denomination                    string
				BalanceStorageSlot, AllowanceStorageSlot uint64
			}
		}
	} `json:"evmConfig"`
}

func TestFactsAreThoseOfTheSpec(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/environments-spec.json")
	if err != nil {
		t.Fatal(err)
	}
	var spec struct{ Environments map[string]specEnvironment }
	if err := json.Unmarshal(data, &spec); err != nil {
		t.Fatal(err)
	}
	if len(spec.Environments) != len(Names()) {
		t.Fatalf("the spec has %d environments", len(spec.Environments))
	}
	for name, want := range spec.Environments {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := Resolve(name)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, asSpec(got)); diff != "" {
				t.Errorf("(-spec +got):\n%s", diff)
			}
			if got.GeocoderURL != "https://nominatim.openstreetmap.org/search" {
				t.Errorf("geocoder %q", got.GeocoderURL)
			}
		})
	}
}

func asSpec(e Environment) specEnvironment {
	written, err := json.Marshal(map[string]any{
		"hostrRelay": e.HostrRelay, "bootstrapRelays": e.BootstrapRelays,
		"bootstrapBlossom": e.Blossom, "bootstrapEscrowPubkeys": e.EscrowPubkeys,
		"evmConfig": map[string]any{
			"boltz":  map[string]any{"apiUrl": e.EVM.Boltz.APIURL.Reveal(), "wsUrl": e.EVM.Boltz.WSURL.Reveal()},
			"chains": chainsAsSpec(e.EVM.Chains),
		},
	})
	if err != nil {
		panic(err)
	}
	var spec specEnvironment
	if err := json.Unmarshal(written, &spec); err != nil {
		panic(err)
	}
	return spec
}

func chainsAsSpec(chains []Chain) []map[string]any {
	var written []map[string]any
	for _, c := range chains {
		tokens := map[string]Token{}
		for _, token := range c.Tokens {
			tokens[token.Symbol] = token
		}
		var rpcURLs []string
		for _, rpcURL := range c.RPCURLs {
			rpcURLs = append(rpcURLs, rpcURL.Reveal())
		}
		chain := map[string]any{
			"id": c.ID, "chainId": c.ChainID, "rpcUrls": rpcURLs, "blockExplorerUrl": c.BlockExplorerURL,
			"nativeDenomination": c.NativeDenomination, "boltzCurrency": c.BoltzCurrency,
			"escrowContractAddress": c.EscrowContractAddress, "tokens": tokens,
		}
		if a := c.AccountAbstraction; a != nil {
			chain["accountAbstraction"] = map[string]string{
				"bundlerUrl": a.BundlerURL.Reveal(), "entryPointAddress": a.EntryPointAddress,
				"accountFactoryAddress": a.AccountFactoryAddress, "paymasterAddress": a.PaymasterAddress,
			}
		}
		written = append(written, chain)
	}
	return written
}

func TestEnvironmentsAreIndependentValues(t *testing.T) {
	t.Parallel()
	first, _ := Resolve("production")
	first.BootstrapRelays[0] = "wss://changed.example"
	first.EVM.Chains[0].RPCURLs[0] = "https://changed.example"
	second, _ := Resolve("production")
	if second.BootstrapRelays[0] != "wss://relay.damus.io" || second.EVM.Chains[0].RPCURLs[0].Reveal() != "https://arbitrum.gateway.tenderly.co" {
		t.Error("a change of one environment shows in another")
	}
}

func TestBootstrapListAndBlockedRelay(t *testing.T) {
	t.Parallel()
	const blocked = "wss://relay.hostr.development"
	for _, test := range []struct {
		name  string
		relay string
		boot  []string
		want  []string
	}{
		{"Hostr relay first", "wss://h.example", []string{"wss://a.example", "wss://b.example"}, []string{"wss://h.example", "wss://a.example", "wss://b.example"}},
		{"duplicates in any spelling", "wss://h.example", []string{"wss://H.example:443/", "wss://a.example", " wss://a.example/ "}, []string{"wss://h.example", "wss://a.example"}},
		{"another port or path is another relay", "wss://h.example", []string{"wss://h.example:444", "ws://h.example", "wss://h.example/x"}, []string{"wss://h.example", "wss://h.example:444", "ws://h.example", "wss://h.example/x"}},
		{"blanks", "", []string{" ", "wss://a.example"}, []string{"wss://a.example"}},
		{"blocked", "wss://h.example", []string{blocked, "WSS://Relay.Hostr.Development:443/", "wss://a.example"}, []string{"wss://h.example", "wss://a.example"}},
		{"blocked unless it is the Hostr relay", blocked + "/", []string{blocked, "wss://a.example"}, []string{blocked + "/", "wss://a.example"}},
		{"nothing", "", nil, []string{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			e := Environment{HostrRelay: test.relay, BootstrapRelays: test.boot}
			if diff := cmp.Diff(test.want, e.BootstrapList()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	production, _ := Resolve("production")
	development, _ := Resolve("development")
	for url, want := range map[string][2]bool{
		blocked: {false, true}, "wss://RELAY.hostr.development/": {false, true}, " wss://relay.hostr.development:443": {false, true},
		"wss://relay.hostr.development/other": {true, true}, "ws://relay.hostr.development:7777": {true, true},
		"wss://relay.damus.io": {true, true}, "": {true, true}, "::": {true, true},
	} {
		if got := [2]bool{production.Allowed(url), development.Allowed(url)}; got != want {
			t.Errorf("Allowed(%q) in production, development = %v, want %v", url, got, want)
		}
	}
}
