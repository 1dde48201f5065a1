package evm

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"hostr-daemon/internal/fault"
)

// activityLimit bounds the check of one account on all chains.
const activityLimit = 15 * time.Second

// Activity says what of one chain belongs to an account, so that it can be told
// whether the account was ever used there (spec 73 §8).
type Activity struct {
	ChainID int64
	// EntryPoint and Factory are the contracts of ERC-4337 version 0.7, "" where
	// accounts send plain transactions.
	EntryPoint, Factory string
	// Tokens are the addresses of ERC-20 contracts; any case, and repeated ones count
	// once.
	Tokens []string
}

// Used reports whether the account of an address, 0x and 40 hex digits, has been used
// on any of the chains: it or its smart account has sent something, holds something or
// is a contract. All chains have to answer, within fifteen seconds, before it is
// called unused.
func (c *Chains) Used(ctx context.Context, address string, chains []Activity) (bool, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, activityLimit, errActivityLimit)
	defer cancel()
	checking, ctx := errgroup.WithContext(ctx)
	for _, chain := range chains {
		client, ok := c.clients[chain.ChainID]
		if !ok {
			return false, fault.New(fault.UnexpectedError, "chain %d is not configured", chain.ChainID)
		}
		checking.Go(func() error {
			used, err := client.used(ctx, address, chain)
			if used {
				return errUsed // Whatever the other chains say.
			}
			return err
		})
	}
	err := checking.Wait()
	if errors.Is(err, errUsed) {
		return true, nil
	}
	if errors.Is(err, errActivityLimit) {
		err = fault.New(fault.UnexpectedError, "The chains did not all tell within %s whether an account is unused: %w.",
			activityLimit, err).Transient()
	}
	return false, err
}

var (
	errUsed          = errors.New("the account has been used")
	errActivityLimit = errors.New("a chain did not answer in time")
)

func (c *Client) used(ctx context.Context, address string, chain Activity) (bool, error) {
	if !addressForm.MatchString(address) {
		return false, fault.New(fault.UnexpectedError, "%.80q is no EVM address: 0x and 40 hex digits", address)
	}
	addresses := []string{strings.ToLower(address)}
	var requests []rpcRequest
	if chain.EntryPoint != "" && chain.Factory != "" {
		smart, err := c.SmartAccount(ctx, address, chain.EntryPoint, chain.Factory)
		if err != nil {
			return false, err
		}
		if smart != addresses[0] {
			addresses = append(addresses, smart)
		}
		// getNonce(address,uint192) with the key 0
		requests = append(requests, callRequest(chain.EntryPoint, "35567e1a"+addressWord(smart)+strings.Repeat("0", 64)))
	}
	tokens := lowered(chain.Tokens)
	for _, owner := range addresses {
		requests = append(requests,
			rpcRequest{"eth_getTransactionCount", []any{owner, "latest"}},
			rpcRequest{"eth_getBalance", []any{owner, "latest"}},
			rpcRequest{"eth_getCode", []any{owner, "latest"}},
		)
		for _, token := range tokens {
			// balanceOf(address)
			requests = append(requests, callRequest(token, "70a08231"+addressWord(owner)))
		}
	}
	results, err := c.batch(ctx, requests)
	if err != nil {
		return false, err
	}
	for i, result := range results {
		positive, err := isPositive(result)
		if err != nil {
			return false, &Failure{ChainID: c.chainID, Method: requests[i].method, Cause: err}
		}
		if positive {
			return true, nil
		}
	}
	return false, nil
}

// SmartAccount returns the address, in lower case, of the ERC-4337 account that the
// factory makes for an owner with salt 0, whether it exists yet or not (spec 73 §5.1).
func (c *Client) SmartAccount(ctx context.Context, owner, entryPoint, factory string) (string, error) {
	for _, address := range []string{owner, entryPoint, factory} {
		if !addressForm.MatchString(address) {
			return "", fault.New(fault.UnexpectedError, "%.80q is no EVM address: 0x and 40 hex digits", address)
		}
	}
	salt := strings.Repeat("0", 64)
	// createAccount(address,uint256)
	initCode := strings.ToLower(factory[2:]) + "5fbfb9cf" + addressWord(owner) + salt
	// getSenderAddress(bytes): the place of the bytes, how many there are, they themselves
	data := fmt.Sprintf("9b249f69%064x%064x%s", 32, len(initCode)/2, initCode+strings.Repeat("0", 2*padding(len(initCode)/2)))
	_, err := c.contractCall(ctx, entryPoint, data)
	if address, ok := revertedAddress(err); ok {
		return address, nil
	}
	var refused *RPCError
	if err != nil && !errors.As(err, &refused) {
		return "", err
	}
	// The node hides what contracts say when they revert.
	// getAddress(address,uint256)
	result, err := c.contractCall(ctx, factory, "8cb84e18"+addressWord(owner)+salt)
	if err != nil {
		return "", err
	}
	word, err := parseBytes(result)
	address, ok := wordAddress(word)
	if err != nil || !ok {
		return "", &Failure{ChainID: c.chainID, Method: "eth_call", Cause: fmt.Errorf("the account factory %s names no account", factory)}
	}
	return address, nil
}

// contractCall reads from a contract.
func (c *Client) contractCall(ctx context.Context, contract, data string) (json.RawMessage, error) {
	request := callRequest(contract, data)
	return c.call(ctx, request.method, request.params...)
}

func callRequest(contract, data string) rpcRequest {
	call := struct {
		To   string `json:"to"`
		Data string `json:"data"`
	}{strings.ToLower(contract), "0x" + data}
	return rpcRequest{"eth_call", []any{call, "latest"}}
}

// revertedAddress returns the address in SenderAddressResult(address). Nodes give the
// data of a revert as text, or as an object that holds the text.
func revertedAddress(err error) (string, bool) {
	var refused *RPCError
	if !errors.As(err, &refused) {
		return "", false
	}
	raw := refused.Data
	var inside struct {
		Data json.RawMessage `json:"data"`
	}
	if json.Unmarshal(raw, &inside) == nil && inside.Data != nil {
		raw = inside.Data
	}
	data, err := parseBytes(raw)
	if err != nil || len(data) < 4 || hex.EncodeToString(data[:4]) != "6ca7b806" {
		return "", false
	}
	return wordAddress(data[4:])
}

// wordAddress returns the address in a word of 32 bytes; none is the zero address.
func wordAddress(word []byte) (string, bool) {
	if len(word) != 32 {
		return "", false
	}
	digits := hex.EncodeToString(word)
	if strings.Trim(digits[:24], "0") != "" || strings.Trim(digits, "0") == "" {
		return "", false
	}
	return "0x" + digits[24:], true
}

func addressWord(address string) string {
	return strings.Repeat("0", 24) + strings.ToLower(address[2:])
}

// padding is how many bytes are missing to whole words.
func padding(size int) int { return (32 - size%32) % 32 }

// isPositive reports whether a number, a word or code is anything but nothing. "0x" is
// what a contract answers that does not exist.
func isPositive(result json.RawMessage) (bool, error) {
	text, ok := parseString(result)
	digits, prefixed := strings.CutPrefix(text, "0x")
	if !ok || !prefixed || strings.Trim(digits, "0123456789abcdefABCDEF") != "" {
		return false, errors.New("the result is no hex text")
	}
	return strings.Trim(digits, "0") != "", nil
}

// lowered returns the usable addresses in lower case, each once.
func lowered(addresses []string) []string {
	var kept []string
	known := map[string]bool{}
	for _, address := range addresses {
		if address = strings.ToLower(address); addressForm.MatchString(address) && !known[address] {
			known[address] = true
			kept = append(kept, address)
		}
	}
	return kept
}
