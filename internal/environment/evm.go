package environment

import (
	"net/url"
	"strings"

	"hostr-daemon/internal/fault"
)

// EVMConfig holds the chains and the swap provider (spec 73 §1). The zero value
// means no chains and no swaps.
type EVMConfig struct {
	// Boltz is the swap provider; nil means no swaps anywhere.
	Boltz *Boltz
	// Chains are in order of preference; the first is an escrow operator's default.
	Chains []Chain
}

// Boltz is the swap provider.
type Boltz struct {
	// APIURL is the base of the HTTP API, without a slash at the end.
	APIURL Endpoint
	// WSURL is the WebSocket of swap updates.
	WSURL Endpoint
}

// Chain is one EVM chain.
type Chain struct {
	// ID is a label.
	ID string
	// ChainID is the number of EIP-155, by which chains are looked up.
	ChainID int64
	// RPCURLs are tried in order; there is at least one.
	RPCURLs []Endpoint
	// BlockExplorerURL may be empty.
	BlockExplorerURL string
	// NativeDenomination is the denomination of the chain's own coin, BTC unless given.
	NativeDenomination string
	// BoltzCurrency is the provider's name of the chain's own coin; may be empty.
	BoltzCurrency string
	// EscrowContractAddress may be empty: no escrow on this chain.
	EscrowContractAddress string
	// AccountAbstraction is nil where accounts send plain transactions.
	AccountAbstraction *AccountAbstraction
	// Tokens are the known ERC-20 tokens.
	Tokens []Token
}

// AccountAbstraction is the ERC-4337 set-up of a chain.
type AccountAbstraction struct {
	// BundlerURL may still hold the placeholder of a missing key: use Bundler.
	BundlerURL Endpoint
	// EntryPointAddress and AccountFactoryAddress are contract addresses.
	EntryPointAddress, AccountFactoryAddress string
	// PaymasterAddress is an address or the name of a hosted paymaster; empty means
	// that operations are not sponsored.
	PaymasterAddress string
}

// Token is an ERC-20 token. Its decimals are read from the chain.
type Token struct {
	// Symbol is shown to people.
	Symbol string
	// Address is compared without regard to case.
	Address string
	// Denomination is what one token is worth one of, for example BTC.
	Denomination string
	// BalanceStorageSlot and AllowanceStorageSlot are the Solidity slots of the two
	// mappings, for state overrides in gas estimates.
	BalanceStorageSlot, AllowanceStorageSlot uint64
}

// Endpoint is a URL that may carry a key in its path or query. Printing or encoding
// it shows scheme and host only; Reveal returns all of it.
type Endpoint string

// Reveal returns the whole URL, for the client that connects to it.
func (e Endpoint) Reveal() string { return string(e) }

// String returns scheme and host.
func (e Endpoint) String() string { return schemeAndHost(string(e)) }

// GoString returns scheme and host.
func (e Endpoint) GoString() string { return e.String() }

// MarshalText returns scheme and host.
func (e Endpoint) MarshalText() ([]byte, error) { return []byte(e.String()), nil }

const (
	pimlicoKeyVariable = "HOSTR_PIMLICO_API_KEY"
	bundlerURLVariable = "HOSTR_BUNDLER_URL"
	pimlicoKeyHolder   = "{PIMLICO_API_KEY}"
)

// Bundler returns the URL of the ERC-4337 bundler, or an error that names the
// setting it still lacks (spec 11 §3.4).
func (a AccountAbstraction) Bundler() (string, error) {
	whole := a.BundlerURL.Reveal()
	if strings.Contains(whole, pimlicoKeyHolder) {
		return "", fault.New(fault.UnexpectedError,
			"Sponsored transactions through %s need an API key: set %s, or %s to a whole bundler URL, and start hostr-daemon again.",
			a.BundlerURL, pimlicoKeyVariable, bundlerURLVariable)
	}
	return whole, nil
}

// withBundlerURL replaces the bundler of the one chain that has one. Which chain a
// URL belongs to cannot be told from the URL, so more than one is an error.
func (c EVMConfig) withBundlerURL(bundler string) (EVMConfig, error) {
	if problem := checkURL(bundler, "https", "http"); problem != "" {
		return c, fault.New(fault.UnexpectedError, "%s is unusable: %s.", bundlerURLVariable, problem).At(bundlerURLVariable)
	}
	var bundled []string
	for _, chain := range c.Chains {
		if chain.AccountAbstraction != nil {
			bundled = append(bundled, chain.ID)
		}
	}
	if len(bundled) > 1 {
		return c, fault.New(fault.UnexpectedError,
			"%s can stand for one chain only, but %s have an accountAbstraction each: unset it and set evmConfig.chains[].accountAbstraction.bundlerUrl in the override file.",
			bundlerURLVariable, strings.Join(bundled, " and ")).At(bundlerURLVariable)
	}
	return c.mapBundlers(func(Endpoint) Endpoint { return Endpoint(bundler) }), nil
}

func (c EVMConfig) withPimlicoKey(key string) EVMConfig {
	return c.mapBundlers(func(bundler Endpoint) Endpoint {
		return Endpoint(strings.ReplaceAll(bundler.Reveal(), pimlicoKeyHolder, url.QueryEscape(key)))
	})
}

func (c EVMConfig) mapBundlers(change func(Endpoint) Endpoint) EVMConfig {
	chains := make([]Chain, len(c.Chains))
	for i, chain := range c.Chains {
		if chain.AccountAbstraction != nil {
			changed := *chain.AccountAbstraction
			changed.BundlerURL = change(changed.BundlerURL)
			chain.AccountAbstraction = &changed
		}
		chains[i] = chain
	}
	c.Chains = chains
	return c
}
