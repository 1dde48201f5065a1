// Package evm reads EVM chains over JSON-RPC (spec 73 §3): one client per chain,
// each with one or more nodes to ask.
//
// It knows HTTP, JSON-RPC and which node answered, and checks that every node is of
// the chain it is asked about. It must never know what a contract means or whose an
// address is, and never show a node's URL, which may carry a key: hosts only.
package evm

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/rs/zerolog"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/flight"
)

const (
	// attemptTimeout bounds one request to one node, from the dial to the last byte.
	attemptTimeout = 30 * time.Second
	// minAttempts is how often a call is tried; with more nodes, once each.
	minAttempts = 2
	// retryPause is waited before the second attempt, twice that before the third, …
	retryPause = 250 * time.Millisecond
	// maxAnswerBytes bounds one answer.
	maxAnswerBytes = 16 << 20
	// rememberedContracts bounds the contracts whose code is kept; each has 24 KiB at
	// most.
	rememberedContracts = 64
)

// ErrClosed is in the error of every call on a client that is closed.
var ErrClosed = errors.New("the client of the chain is closed")

// Client reads one chain. It is safe for concurrent use.
type Client struct {
	chainID   int64
	nodes     []*node
	http      *http.Client
	transport *http.Transport
	log       zerolog.Logger
	limits    limits
	pause     func(ctx context.Context, d time.Duration) error
	lastID    atomic.Uint64

	codes *lru.Cache[string, []byte]
	reads flight.Group[[]byte]

	lifetime context.Context
	end      context.CancelFunc

	mu      sync.Mutex
	current int // the node that is asked first
}

// Config is what a client is made of.
type Config struct {
	// ChainID is the EIP-155 number that every node must report.
	ChainID int64
	// URLs are the nodes' HTTP endpoints in order of preference, at least one. They are
	// kept out of errors and logs.
	URLs []string
	// Transport is the client's alone from then on: it closes idle connections. nil
	// means one with the standard settings.
	Transport *http.Transport
	// Logger takes one debug line for each request.
	Logger zerolog.Logger
}

// limits are bounds that tests narrow.
type limits struct {
	attempt time.Duration
	answer  int64
}

// New checks the configuration; it connects to nothing yet.
func New(config Config) (*Client, error) {
	if config.ChainID <= 0 {
		return nil, fmt.Errorf("%d is no chain id", config.ChainID)
	}
	if len(config.URLs) == 0 {
		return nil, fmt.Errorf("chain %d has no RPC URL", config.ChainID)
	}
	codes, err := lru.New[string, []byte](rememberedContracts)
	if err != nil {
		return nil, fmt.Errorf("memory of contract code: %w", err)
	}
	c := &Client{
		chainID: config.ChainID, log: config.Logger, codes: codes,
		transport: config.Transport,
		limits:    limits{attempt: attemptTimeout, answer: maxAnswerBytes},
		pause:     pause,
	}
	for _, text := range config.URLs {
		node, err := parseNode(text)
		if err != nil {
			return nil, fmt.Errorf("chain %d: %w", config.ChainID, err)
		}
		c.nodes = append(c.nodes, node)
	}
	if c.transport == nil {
		c.transport = &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true}
	}
	c.http = &http.Client{Transport: c.transport, CheckRedirect: keepRedirects}
	c.lifetime, c.end = context.WithCancel(context.Background())
	return c, nil
}

// Close ends all calls and returns when none runs any more of its own.
func (c *Client) Close() {
	c.end()
	c.reads.Close()
	c.transport.CloseIdleConnections()
}

// ChainID returns the EIP-155 number of the chain.
func (c *Client) ChainID() int64 { return c.chainID }

// Check asks a node for its chain id, and the next one if that fails. A node that
// was checked before is asked again.
func (c *Client) Check(ctx context.Context) error {
	_, err := c.call(ctx, methodChainID)
	return err
}

// Code returns the runtime code of a contract at the latest block, empty where there
// is none; the address is 0x and 40 hex digits. Code is remembered, its absence is
// not, and equal reads in flight are one. The result must not be changed.
func (c *Client) Code(ctx context.Context, address string) ([]byte, error) {
	if !addressForm.MatchString(address) {
		return nil, fault.New(fault.UnexpectedError, "%.80q is no EVM address: 0x and 40 hex digits", address)
	}
	address = strings.ToLower(address)
	if code, ok := c.codes.Get(address); ok {
		return code, nil
	}
	code, err := c.reads.Do(ctx, address, func(ctx context.Context) ([]byte, error) {
		return c.readCode(ctx, address)
	})
	if errors.Is(err, flight.ErrClosed) {
		return nil, c.closed("eth_getCode")
	}
	return code, err
}

var addressForm = regexp.MustCompile(`^0x[0-9a-fA-F]{40}$`)

func (c *Client) readCode(ctx context.Context, address string) ([]byte, error) {
	const method = "eth_getCode"
	result, err := c.call(ctx, method, address, "latest")
	if err != nil {
		return nil, err
	}
	code, err := parseBytes(result)
	if err != nil {
		return nil, &Failure{ChainID: c.chainID, Method: method, Cause: err}
	}
	if len(code) > 0 {
		c.codes.Add(address, code)
	}
	return code, nil
}

// parseBytes reads the DATA of Ethereum's JSON-RPC: a string of 0x and whole bytes.
func parseBytes(result []byte) ([]byte, error) {
	text, ok := parseString(result)
	digits, prefixed := strings.CutPrefix(text, "0x")
	if !ok || !prefixed {
		return nil, errors.New("the result is no hex text")
	}
	data, err := hex.DecodeString(digits)
	if err != nil {
		return nil, errors.New("the result is no hex text of whole bytes")
	}
	return data, nil
}
