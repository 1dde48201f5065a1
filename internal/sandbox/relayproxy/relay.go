// Package relayproxy puts a WebSocket proxy with fault switches in front of a
// relay: clients talk to the proxy, which passes frames on in both directions
// and, when told to, misbehaves in one of the ways real relays do.
//
// It knows frames and sockets. It must never decide what a relay accepts or
// stores; that is the relay behind it. Everything here may be used concurrently.
package relayproxy

import (
	"context"
	"errors"
	"fmt"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
	"github.com/nbd-wtf/go-nostr"
	"github.com/rs/zerolog"
)

// Backend is the relay behind the proxy.
type Backend interface {
	// URL is where it listens (ws://…).
	URL() string
	// Insert stores events past the relay's rules.
	Insert(ctx context.Context, events []nostr.Event) error
	// Query returns stored events, newest first, whoever may read them.
	Query(ctx context.Context, filter nostr.Filter) ([]nostr.Event, error)
	Close() error
}

// Options say how to open a Relay.
type Options struct {
	// Port on loopback; 0 takes a free one.
	Port int
	// Start brings up the relay behind the proxy. serviceURL is the address
	// clients use, which NIP-42 events must name.
	Start func(serviceURL string) (Backend, error)
	// Foreign are events to choose from for Faults.Foreign.
	Foreign []nostr.Event
	Logger  zerolog.Logger
}

// Relay is a relay whose faults can be switched while it runs.
type Relay struct {
	address  string
	backend  Backend
	strange  *strangers
	info     http.Handler // NIP-11 and the like
	upstream *http.Client
	logger   zerolog.Logger
	ledger   *ledger
	gate     gate

	mu          sync.Mutex
	faults      Faults
	server      *http.Server  // nil while stopped
	stopped     chan struct{} // closed by Stop
	connections map[*connection]struct{}
	made        int
	running     sync.WaitGroup // handlers and the accept loop
}

// Open starts the relay behind the proxy and listens.
func Open(o Options) (*Relay, error) {
	listener, err := listen(o.Port)
	if err != nil {
		return nil, fmt.Errorf("the relay cannot listen: %w", err)
	}
	relay := &Relay{
		address:     listener.Addr().String(),
		upstream:    &http.Client{Transport: &http.Transport{}},
		logger:      o.Logger,
		ledger:      newLedger(),
		connections: make(map[*connection]struct{}),
	}
	if relay.strange, err = newStrangers(o.Foreign); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	if relay.backend, err = o.Start(relay.URL()); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	relay.info = relay.forwardHTTP()
	relay.serve(listener)
	return relay, nil
}

// URL returns the address for clients, such as ws://127.0.0.1:20000.
func (r *Relay) URL() string { return "ws://" + r.address }

// Break sets the faults and replaces those set before.
func (r *Relay) Break(faults Faults) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.faults = faults
	r.gate.set(faults.HalfOpen)
}

// Heal ends all faults. It does not bring a stopped relay back.
func (r *Relay) Heal() { r.Break(Faults{}) }

// Faults returns what is set now.
func (r *Relay) Faults() Faults {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.faults
}

// Drop cuts all open connections, without a closing handshake, and waits until
// they are gone.
func (r *Relay) Drop() {
	r.mu.Lock()
	open := make([]*connection, 0, len(r.connections))
	for connection := range r.connections {
		open = append(open, connection)
	}
	r.mu.Unlock()
	for _, connection := range open {
		connection.cut()
		<-connection.gone
	}
}

// Stop cuts all connections and stops listening, as a relay that goes down.
// What it has stored stays. Stopping a stopped relay does nothing.
func (r *Relay) Stop() {
	r.mu.Lock()
	server, stopped := r.server, r.stopped
	r.server = nil
	r.mu.Unlock()
	if server == nil {
		return
	}
	close(stopped)
	_ = server.Close()
	r.Drop()
	r.running.Wait()
}

// Resume brings a stopped relay back on the same address.
func (r *Relay) Resume() error {
	r.mu.Lock()
	running := r.server != nil
	r.mu.Unlock()
	if running {
		return nil
	}
	listener, err := net.Listen("tcp", r.address)
	if err != nil {
		return fmt.Errorf("the relay cannot come back: %w", err)
	}
	r.serve(listener)
	return nil
}

// Stopped reports whether the relay is down by Stop.
func (r *Relay) Stopped() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.server == nil
}

// Counters returns what has come in and gone out so far.
func (r *Relay) Counters() Counters {
	counters, _ := r.ledger.snapshot()
	return counters
}

// WaitFor returns as soon as reached says yes to the counters, or with an error
// when ctx ends first.
func (r *Relay) WaitFor(ctx context.Context, reached func(Counters) bool) (Counters, error) {
	return r.ledger.wait(ctx, reached)
}

// Frames returns what clients have sent, oldest first, as far as it is kept
// (the last 3072 frames at least).
func (r *Relay) Frames() []Frame { return r.ledger.copyFrames() }

// Insert stores events past the relay's rules; live subscriptions do not see them.
func (r *Relay) Insert(ctx context.Context, events ...nostr.Event) error {
	return r.backend.Insert(ctx, events)
}

// Query returns stored events, newest first, whoever may read them.
func (r *Relay) Query(ctx context.Context, filter nostr.Filter) ([]nostr.Event, error) {
	return r.backend.Query(ctx, filter)
}

// Close stops the relay for good.
func (r *Relay) Close() error {
	r.Stop()
	r.upstream.CloseIdleConnections()
	return r.backend.Close()
}

// meet returns the faults for one occasion and counts it off against Times.
func (r *Relay) meet(what occasion) Faults {
	r.mu.Lock()
	defer r.mu.Unlock()
	faults := r.faults
	if !faults.concern(what) {
		return Faults{}
	}
	if faults.Times > 0 {
		r.faults.Times--
		if r.faults.Times == 0 {
			r.faults = Faults{}
			r.gate.set(false)
		}
	}
	return faults
}

func (r *Relay) serve(listener net.Listener) {
	server := &http.Server{
		Handler:           http.HandlerFunc(r.handle),
		ReadHeaderTimeout: time.Minute,
		ErrorLog:          log.New(r.logger, "", 0),
	}
	stopped := make(chan struct{})
	r.mu.Lock()
	r.server, r.stopped = server, stopped
	r.running.Add(1)
	r.mu.Unlock()
	go func() {
		defer r.running.Done()
		_ = server.Serve(&gatedListener{Listener: listener, gate: &r.gate, stopped: stopped, admit: r.admit})
	}()
}

func (r *Relay) admit() bool {
	if r.meet(onAccept).RefuseConnections {
		r.ledger.count(func(c *Counters) { c.Refused++ })
		return false
	}
	return true
}

func (r *Relay) handle(w http.ResponseWriter, request *http.Request) {
	if !r.enter() {
		return
	}
	defer r.running.Done()
	if !strings.EqualFold(request.Header.Get("Upgrade"), "websocket") {
		r.info.ServeHTTP(w, request)
		return
	}
	faults := r.meet(onHandshake)
	if faults.HandshakeStatus != 0 {
		r.ledger.count(func(c *Counters) { c.Refused++ })
		http.Error(w, "the sandbox was told to refuse this connection", faults.HandshakeStatus)
		return
	}
	client, err := websocket.Accept(w, request, &websocket.AcceptOptions{InsecureSkipVerify: true})
	if err != nil {
		r.logger.Debug().Err(err).Msg("relay handshake failed")
		return
	}
	defer client.CloseNow()
	dialing, cancel := context.WithTimeout(request.Context(), 10*time.Second)
	defer cancel()
	upstream, _, err := websocket.Dial(dialing, r.backend.URL(), &websocket.DialOptions{HTTPClient: r.upstream})
	if err != nil {
		r.logger.Error().Err(err).Msg("the relay behind the proxy is gone")
		return
	}
	defer upstream.CloseNow()
	if connection := r.register(client, upstream, faults.NoChallenge); connection != nil {
		connection.run()
		r.forget(connection)
	}
}

// enter counts a handler as running, unless the relay is being stopped.
func (r *Relay) enter() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.server == nil {
		return false
	}
	r.running.Add(1)
	return true
}

// register adds a new connection; nil when the relay is being stopped.
func (r *Relay) register(client, upstream *websocket.Conn, noChallenge bool) *connection {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.server == nil {
		return nil
	}
	r.made++
	connection := newConnection(r, r.made, client, upstream, noChallenge)
	r.connections[connection] = struct{}{}
	r.ledger.count(func(c *Counters) { c.Connections++; c.Open++ })
	return connection
}

func (r *Relay) forget(connection *connection) {
	r.mu.Lock()
	delete(r.connections, connection)
	r.mu.Unlock()
	r.ledger.count(func(c *Counters) { c.Open-- })
	close(connection.gone)
}

func (r *Relay) forwardHTTP() http.Handler {
	target := &url.URL{Scheme: "http", Host: strings.TrimPrefix(r.backend.URL(), "ws://")}
	return &httputil.ReverseProxy{
		Rewrite:   func(request *httputil.ProxyRequest) { request.SetURL(target) },
		Transport: r.upstream.Transport,
		ErrorLog:  log.New(r.logger, "", 0),
	}
}

// Ports for relays that may be stopped and come back: outside the ranges from
// which systems give out free ports, so that nobody is given the port meanwhile.
const (
	firstPort = 20000
	lastPort  = 31999
)

func listen(port int) (net.Listener, error) {
	if port != 0 {
		return net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	}
	for range 100 {
		port = firstPort + rand.IntN(lastPort-firstPort+1)
		listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			return listener, nil
		}
	}
	return net.Listen("tcp", "127.0.0.1:0")
}
