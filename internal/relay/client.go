package relay

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/rs/zerolog"
)

// ErrClosed is returned by every call on a client that is closed, also by those
// under way.
var ErrClosed = errors.New("the relay client is closed")

// Client is one session's access to relays: one connection per relay, opened when
// first needed, and one NIP-42 identity. It is safe for concurrent use.
type Client struct {
	hostrRelay string
	bootstrap  []string
	account    Account
	verifier   *Verifier
	log        zerolog.Logger
	clock      Clock
	jitter     func() float64
	dialer     *dialer
	lastID     atomic.Uint64
	// answerBytes bounds what a query holds, heldEvents and heldBytes what waits for a
	// subscription's consumer.
	answerBytes, heldEvents, heldBytes int

	ctx    context.Context
	cancel context.CancelFunc
	tasks  sync.WaitGroup

	mu          sync.Mutex
	closed      bool
	connections map[string]*connection
	running     map[string]*queryRun
}

// Config is what a Client needs.
type Config struct {
	// HostrRelay is the relay of the environment; empty when it has none.
	HostrRelay string
	// Bootstrap lists the environment's relays (spec 11 §2). Without a HostrRelay
	// they are what is published to and authenticated at by default.
	Bootstrap []string
	// TLS is the process-wide rule of spec 11 §4; nil for ordinary verification.
	TLS *tls.Config
	// Account answers NIP-42; nil while nobody is signed in.
	Account Account
	// Verifier is shared by all clients of the process and outlives them.
	Verifier *Verifier
	Logger   zerolog.Logger
	// Clock is the machine's when nil.
	Clock Clock
	// Jitter returns numbers in [0,1) that spread reconnects; random when nil.
	Jitter func() float64
}

// NewClient checks the configuration; it connects to nothing yet.
func NewClient(config Config) (*Client, error) {
	hostrRelay, ok := CleanURL(config.HostrRelay)
	if !ok && config.HostrRelay != "" {
		return nil, fmt.Errorf("the Hostr relay %q is no relay URL; it has the form wss://relay.example.org", config.HostrRelay)
	}
	if config.Verifier == nil {
		return nil, errors.New("a relay client needs a verifier")
	}
	if account := config.Account; account != nil && !isLowerHex(account.PublicKey(), 64) {
		return nil, errors.New("the account's public key is not 64 lower-case hex digits")
	}
	c := &Client{
		hostrRelay: hostrRelay,
		bootstrap:  cleanList(slices.Concat([]string{hostrRelay}, config.Bootstrap), hostrRelay),
		account:    config.Account, verifier: config.Verifier, log: config.Logger,
		clock: config.Clock, jitter: config.Jitter, dialer: newDialer(config.TLS),
		connections: map[string]*connection{}, running: map[string]*queryRun{},
		answerBytes: maxAnswer, heldEvents: maxHeldEvents, heldBytes: maxHeldBytes,
	}
	if c.clock == nil {
		c.clock = SystemClock{}
	}
	if c.jitter == nil {
		c.jitter = rand.Float64
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c, nil
}

// Close ends every connection, query and subscription at once, without waiting for
// any relay, and returns when all goroutines of the client are gone.
func (c *Client) Close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.cancel()
	c.tasks.Wait()
	c.dialer.close()
}

// HostrRelay returns the cleaned URL of the Hostr relay, or "".
func (c *Client) HostrRelay() string { return c.hostrRelay }

// BootstrapRelays returns the Hostr relay followed by the environment's relays,
// cleaned and each once.
func (c *Client) BootstrapRelays() []string { return slices.Clone(c.bootstrap) }

// Connect makes sure that there is a connection to the relay. It makes at most one
// attempt, which may have to wait two seconds after a failed one.
func (c *Client) Connect(ctx context.Context, relay string) error {
	urls := cleanList([]string{relay}, c.hostrRelay)
	if len(urls) == 0 {
		return fmt.Errorf("%q is no relay URL that may be used", relay)
	}
	connection, err := c.connection(urls[0])
	if err != nil {
		return err
	}
	if _, err := connection.open(ctx); err != nil {
		return fmt.Errorf("%s could not be reached: %w", urls[0], err)
	}
	return nil
}

// Authenticate does NIP-42 AUTH as the client's account at the Hostr relay, or at
// the bootstrap relays when there is none (spec 82 §8.3). It does nothing where
// that was done, and succeeds at a relay that sends no challenge. From then on
// every new connection to these relays begins with AUTH.
func (c *Client) Authenticate(ctx context.Context) error {
	var failures []error
	relays := c.defaultRelays()
	for _, url := range relays {
		connection, err := c.connection(url)
		if err == nil {
			err = connection.authenticate(ctx)
		}
		if err != nil {
			failures = append(failures, fmt.Errorf("authenticating at %s: %w", url, err))
		}
	}
	if len(failures) < len(relays) {
		return nil
	}
	return errors.Join(failures...)
}

// defaultRelays are used where no relays are named.
func (c *Client) defaultRelays() []string {
	if c.hostrRelay != "" {
		return []string{c.hostrRelay}
	}
	return c.bootstrap
}

// readRelays returns the relays that are asked for events of the kinds.
func (c *Client) readRelays(kinds []int, relays []string) []string {
	if len(relays) > 0 {
		return guard(kinds, cleanList(relays, c.hostrRelay), c.hostrRelay)
	}
	if c.hostrRelay == "" {
		return nil
	}
	return []string{c.hostrRelay}
}

// connection returns the connection to a clean URL, made on first use.
func (c *Client) connection(url string) (*connection, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, ErrClosed
	}
	held, ok := c.connections[url]
	if !ok {
		held = newConnection(c, url)
		c.connections[url] = held
		c.tasks.Go(held.run)
	}
	return held, nil
}
