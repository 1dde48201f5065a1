package evm

import (
	"context"
	"fmt"

	"hostr-daemon/internal/fault"
)

// Chains holds a client for each chain of an environment. It is safe for concurrent
// use.
type Chains struct{ clients map[int64]*Client }

// NewChains makes a client of each configuration; it connects to nothing yet.
func NewChains(configs []Config) (*Chains, error) {
	chains := &Chains{clients: make(map[int64]*Client, len(configs))}
	for _, config := range configs {
		client, err := chains.open(config)
		if err != nil {
			chains.Close()
			return nil, err
		}
		chains.clients[config.ChainID] = client
	}
	return chains, nil
}

// Client returns the client of a chain.
func (c *Chains) Client(chainID int64) (*Client, bool) {
	client, ok := c.clients[chainID]
	return client, ok
}

// Code is Client.Code on a chain; one that is not configured is an error.
func (c *Chains) Code(ctx context.Context, chainID int64, address string) ([]byte, error) {
	client, ok := c.clients[chainID]
	if !ok {
		return nil, fault.New(fault.UnexpectedError, "chain %d is not configured", chainID)
	}
	return client.Code(ctx, address)
}

// Close closes every client.
func (c *Chains) Close() {
	for _, client := range c.clients {
		client.Close()
	}
}

func (c *Chains) open(config Config) (*Client, error) {
	if _, known := c.clients[config.ChainID]; known {
		return nil, fmt.Errorf("chain %d is configured twice", config.ChainID)
	}
	return New(config)
}
