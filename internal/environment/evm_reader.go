package environment

import (
	"fmt"
	"strings"
)

func (r *reader) evm(v value, path string) EVMConfig {
	var read EVMConfig
	r.object(v, path, []field{
		{name: "boltz", nullable: true, read: func(v value, path string) { read.Boltz = r.boltz(v, path) }},
		{name: "chains", nullable: true, read: func(v value, path string) {
			r.list(v, path, func(v value, path string) { read.Chains = append(read.Chains, r.chain(v, path)) })
			r.distinctChains(read.Chains, path)
		}},
	})
	return read
}

func (r *reader) boltz(v value, path string) *Boltz {
	read := &Boltz{}
	r.object(v, path, []field{
		{name: "apiUrl", required: true, read: func(v value, path string) {
			read.APIURL = Endpoint(strings.TrimRight(r.checked(v, path, checkAPIBase), "/"))
		}},
		{name: "wsUrl", nullable: true, read: func(v value, path string) {
			read.WSURL = Endpoint(r.checked(v, path, checkWebSocketURL))
		}},
	})
	if read.WSURL == "" {
		read.WSURL = Endpoint(strings.Replace(read.APIURL.Reveal(), "http", "ws", 1) + "/ws")
	}
	return read
}

func (r *reader) chain(v value, path string) Chain {
	read := Chain{NativeDenomination: "BTC"}
	optional := func(name string, into *string, check func(string) string) field {
		return field{name: name, nullable: true, read: func(v value, path string) { *into = r.checked(v, path, check) }}
	}
	r.object(v, path, []field{
		{name: "id", required: true, read: func(v value, path string) { read.ID = r.text(v, path) }},
		{name: "chainId", required: true, read: func(v value, path string) { read.ChainID = r.integer(v, path, 1) }},
		{name: "rpcUrls", nullable: true, read: func(v value, path string) { read.RPCURLs = r.rpcURLs(v, path) }},
		{name: "rpcUrl", nullable: true, read: func(v value, path string) {
			if single := r.rpcURLs(v, path); read.RPCURLs == nil {
				read.RPCURLs = single
			}
		}},
		optional("blockExplorerUrl", &read.BlockExplorerURL, checkHTTPURL),
		optional("nativeDenomination", &read.NativeDenomination, anything),
		optional("boltzCurrency", &read.BoltzCurrency, anything),
		optional("escrowContractAddress", &read.EscrowContractAddress, checkAddress),
		{name: "accountAbstraction", nullable: true, read: func(v value, path string) {
			read.AccountAbstraction = r.accountAbstraction(v, path)
		}},
		{name: "tokens", nullable: true, read: func(v value, path string) { read.Tokens = r.tokens(v, path) }},
	})
	if v.kind == kindObject && !hasMember(v, "rpcUrls") && !hasMember(v, "rpcUrl") {
		r.fail(join(path, "rpcUrls"), reasonMissing, "a chain needs at least one RPC URL")
	}
	return read
}

func anything(string) string { return "" }

func hasMember(v value, name string) bool {
	for _, m := range v.members {
		if m.name == name && m.value.kind != kindNull {
			return true
		}
	}
	return false
}

// rpcURLs reads a list of URLs, or one text with commas between them; empty ones and
// duplicates are dropped (spec 73 §1).
func (r *reader) rpcURLs(v value, path string) []Endpoint {
	var read []Endpoint
	seen := map[string]bool{}
	add := func(rpcURL, path string) {
		rpcURL = strings.TrimSpace(rpcURL)
		if rpcURL == "" || seen[rpcURL] {
			return
		}
		seen[rpcURL] = true
		if problem := checkHTTPURL(rpcURL); problem != "" {
			r.fail(path, reasonFormat, "%s", problem)
		}
		read = append(read, Endpoint(rpcURL))
	}
	if v.kind == kindText {
		for part := range strings.SplitSeq(v.text, ",") {
			add(part, path)
		}
	} else {
		r.list(v, path, func(v value, path string) {
			if r.is(v, kindText, path) {
				add(v.text, path)
			}
		})
	}
	if len(read) == 0 && (v.kind == kindText || v.kind == kindList) {
		r.fail(path, reasonMissing, "a chain needs at least one RPC URL")
	}
	return read
}

func (r *reader) accountAbstraction(v value, path string) *AccountAbstraction {
	read := &AccountAbstraction{}
	r.object(v, path, []field{
		{name: "bundlerUrl", required: true, read: func(v value, path string) {
			read.BundlerURL = Endpoint(r.checked(v, path, checkHTTPURL))
		}},
		{name: "entryPointAddress", required: true, read: func(v value, path string) {
			read.EntryPointAddress = r.checked(v, path, checkAddress)
		}},
		{name: "accountFactoryAddress", required: true, read: func(v value, path string) {
			read.AccountFactoryAddress = r.checked(v, path, checkAddress)
		}},
		{name: "paymasterAddress", nullable: true, read: func(v value, path string) {
			read.PaymasterAddress = r.checked(v, path, checkPaymaster)
		}},
	})
	return read
}

func (r *reader) tokens(v value, path string) []Token {
	var read []Token
	if !r.is(v, kindObject, path) {
		return nil
	}
	symbols, addresses := map[string]bool{}, map[string]bool{}
	for _, m := range v.members {
		at := join(path, m.name)
		token := r.token(m, at)
		address := strings.ToLower(token.Address)
		switch {
		case strings.TrimSpace(m.name) == "":
			r.fail(at, reasonMissing, "a token needs a symbol")
		case symbols[m.name]:
			r.fail(at, reasonFormat, "the key is there twice")
		case address != "" && addresses[address]:
			r.fail(join(at, "address"), reasonFormat, "another token of this chain has the same address")
		}
		symbols[m.name], addresses[address] = true, true
		read = append(read, token)
	}
	return read
}

func (r *reader) token(m member, path string) Token {
	read := Token{Symbol: m.name, AllowanceStorageSlot: 1}
	slot := func(name string, into *uint64) field {
		return field{name: name, nullable: true, read: func(v value, path string) { *into = uint64(r.integer(v, path, 0)) }}
	}
	r.object(m.value, path, []field{
		{name: "address", required: true, read: func(v value, path string) { read.Address = r.checked(v, path, checkAddress) }},
		{name: "denomination", required: true, read: func(v value, path string) { read.Denomination = r.text(v, path) }},
		slot("balanceStorageSlot", &read.BalanceStorageSlot),
		slot("allowanceStorageSlot", &read.AllowanceStorageSlot),
	})
	return read
}

// distinctChains reports chains that cannot be told apart by id or chain id.
func (r *reader) distinctChains(chains []Chain, path string) {
	ids, numbers := map[string]int{}, map[int64]int{}
	for i, chain := range chains {
		at := fmt.Sprintf("%s[%d]", path, i)
		if first, taken := ids[chain.ID]; taken && chain.ID != "" {
			r.fail(join(at, "id"), reasonFormat, "chains[%d] has the same id", first)
		} else {
			ids[chain.ID] = i
		}
		if first, taken := numbers[chain.ChainID]; taken && chain.ChainID != 0 {
			r.fail(join(at, "chainId"), reasonFormat, "chains[%d] has the same chainId", first)
		} else {
			numbers[chain.ChainID] = i
		}
	}
}
