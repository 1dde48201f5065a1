package boltz

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Chain is one chain that swaps are offered on (spec 71 §2.1).
type Chain struct {
	// Key is the provider's name of the chain, such as arbitrum.
	Key string
	// ChainID is the EIP-155 number.
	ChainID int64
	// EtherSwap and ERC20Swap are the swap contracts.
	EtherSwap, ERC20Swap string
	// Tokens are in the provider's order: the first one is the bridge token.
	Tokens []Token
}

// Token is an ERC-20 token that the provider trades against BTC.
type Token struct {
	// Name is the provider's currency name, such as TBTC.
	Name string
	// Address is as the provider writes it; compare it without regard to case.
	Address string
}

// Supports reports whether a token of this address is among the chain's.
func (c Chain) Supports(tokenAddress string) bool {
	return slices.ContainsFunc(c.Tokens, func(t Token) bool { return strings.EqualFold(t.Address, tokenAddress) })
}

// Find returns the first chain with the chain id.
func Find(chains []Chain, chainID int64) (Chain, bool) {
	at := slices.IndexFunc(chains, func(c Chain) bool { return c.ChainID == chainID })
	if at < 0 {
		return Chain{}, false
	}
	return chains[at], true
}

var errNoContracts = errors.New("the answer is no list of chains")

// decodeChains reads the answer of GET /chain/contracts in document order. A chain
// or token of another shape is left out.
func decodeChains(body []byte) ([]Chain, error) {
	members, err := decodeMembers(body)
	if err != nil {
		return nil, errNoContracts
	}
	chains := []Chain{}
	for _, m := range members {
		if chain, ok := decodeChain(m.name, m.value); ok {
			chains = append(chains, chain)
		}
	}
	return chains, nil
}

func decodeChain(key string, value json.RawMessage) (Chain, bool) {
	var entry struct {
		Network *struct {
			ChainID json.RawMessage `json:"chainId"`
		} `json:"network"`
		SwapContracts *struct {
			EtherSwap json.RawMessage  `json:"EtherSwap"`
			ERC20Swap *json.RawMessage `json:"ERC20Swap"`
		} `json:"swapContracts"`
		Tokens json.RawMessage `json:"tokens"`
	}
	if json.Unmarshal(value, &entry) != nil || entry.Network == nil || entry.SwapContracts == nil {
		return Chain{}, false
	}
	chainID, hasID := decodeChainID(entry.Network.ChainID)
	etherSwap, hasEther := decodeAddress(entry.SwapContracts.EtherSwap)
	erc20Swap, hasERC20 := etherSwap, true
	if given := entry.SwapContracts.ERC20Swap; given != nil {
		erc20Swap, hasERC20 = decodeAddress(*given)
	}
	chain := Chain{Key: key, ChainID: chainID, EtherSwap: etherSwap, ERC20Swap: erc20Swap, Tokens: decodeTokens(entry.Tokens)}
	return chain, hasID && hasEther && hasERC20
}

// decodeChainID reads a whole number, also one written as 33.0.
func decodeChainID(value json.RawMessage) (int64, bool) {
	if id, err := strconv.ParseInt(string(value), 10, 64); err == nil {
		return id, id > 0
	}
	number, err := strconv.ParseFloat(string(value), 64)
	const exact = 1 << 53
	return int64(number), err == nil && number == math.Trunc(number) && number > 0 && number <= exact
}

// decodeTokens reads an object of name to address, or to an object with the address
// as contractAddress.
func decodeTokens(value json.RawMessage) []Token {
	members, err := decodeMembers(value)
	if err != nil {
		return nil
	}
	var tokens []Token
	for _, m := range members {
		address, ok := decodeAddress(m.value)
		if !ok {
			var entry struct {
				ContractAddress json.RawMessage `json:"contractAddress"`
			}
			if json.Unmarshal(m.value, &entry) != nil {
				continue
			}
			address, ok = decodeAddress(entry.ContractAddress)
		}
		if ok {
			tokens = append(tokens, Token{Name: m.name, Address: address})
		}
	}
	return tokens
}

var addressForm = regexp.MustCompile(`^0x[0-9a-fA-F]{40}$`)

// decodeAddress reads a text that is an EVM address.
func decodeAddress(value json.RawMessage) (string, bool) {
	var text string
	if json.Unmarshal(value, &text) != nil || !addressForm.MatchString(text) {
		return "", false
	}
	return text, true
}

// member is a name and a value of a JSON object.
type member struct {
	name  string
	value json.RawMessage
}

// decodeMembers reads a JSON object in document order, which a map would lose. Of a
// repeated name the last value counts, at the place of the first.
func decodeMembers(object []byte) ([]member, error) {
	decoder := json.NewDecoder(bytes.NewReader(object))
	if opening, err := decoder.Token(); err != nil || opening != json.Delim('{') {
		return nil, errors.New("no JSON object")
	}
	var members []member
	places := map[string]int{}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return nil, err
		}
		m := member{name: name.(string)} // an object's keys are strings, or Token fails
		if err := decoder.Decode(&m.value); err != nil {
			return nil, err
		}
		if place, repeated := places[m.name]; repeated {
			members[place] = m
			continue
		}
		places[m.name] = len(members)
		members = append(members, m)
	}
	if _, err := decoder.Token(); err != nil { // the closing brace
		return nil, err
	}
	return members, nil
}
