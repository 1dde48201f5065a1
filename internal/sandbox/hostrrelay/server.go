// Package hostrrelay is the relay of the sandbox: khatru with the rules of the
// deployed Hostr relay (spec 82 §8.5) over an event store in memory.
//
// It runs in this process (Open), or in one of its own (Spawn): the race
// detector reports khatru itself, so tests under -race keep it outside. Both
// are driven in the same way. It knows no faults; relayproxy stands in front.
package hostrrelay

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/fiatjaf/eventstore"
	"github.com/fiatjaf/khatru"
	"github.com/nbd-wtf/go-nostr"
	"github.com/rs/zerolog"
)

// KhatruGoroutine names the one goroutine that every khatru relay leaves behind
// for the life of the process. Tests that check for leaks ignore it with
// goleak.IgnoreAnyFunction.
const KhatruGoroutine = "github.com/fiatjaf/khatru.(*expirationManager).start"

// closeTimeout bounds the wait for connections to end.
const closeTimeout = 2 * time.Second

// Server is a relay in this process, on a free loopback port.
type Server struct {
	url         string
	store       *Store
	http        *http.Server
	connections connections
	served      chan struct{}
}

// Open starts a relay. serviceURL is the address its users know (ws://…): an
// AUTH event must name it.
func Open(serviceURL string, logger zerolog.Logger) (*Server, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("no loopback port for the relay: %w", err)
	}
	server := &Server{
		url:    "ws://" + listener.Addr().String(),
		store:  NewStore(),
		served: make(chan struct{}),
	}
	quiet := log.New(logger.With().Str("part", "khatru").Logger(), "", 0)
	server.http = &http.Server{
		Handler:           server.relay(serviceURL, quiet),
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          quiet,
	}
	go func() {
		defer close(server.served)
		_ = server.http.Serve(listener)
	}()
	return server, nil
}

// URL returns where the relay itself listens.
func (s *Server) URL() string { return s.url }

// Insert puts events into the store past every rule.
func (s *Server) Insert(_ context.Context, events []nostr.Event) error {
	s.store.Insert(events)
	return nil
}

// Query returns the stored events that match, direct messages included, newest
// first.
func (s *Server) Query(_ context.Context, filter nostr.Filter) ([]nostr.Event, error) {
	found := s.store.Query(filter, nil)
	events := make([]nostr.Event, len(found))
	for i, event := range found {
		events[i] = *event
	}
	return events, nil
}

// Close stops listening and waits for the connections to end; their other side
// must hang up.
func (s *Server) Close() error {
	err := s.http.Close()
	<-s.served
	if waited := s.connections.wait(closeTimeout); waited != nil {
		err = errors.Join(err, waited)
	}
	return err
}

// relay returns khatru with the policy and the store in its hooks.
func (s *Server) relay(serviceURL string, logger *log.Logger) *khatru.Relay {
	policy := NewPolicy(time.Now)
	relay := khatru.NewRelay()
	relay.Log = logger
	relay.ServiceURL = serviceURL
	relay.Info.Name = "Hostr sandbox relay"
	relay.Info.Description = "A relay on this machine, for trying and testing."

	relay.OnConnect = append(relay.OnConnect, func(ctx context.Context) {
		s.connections.opened()
		khatru.RequestAuth(ctx)
	})
	relay.OnDisconnect = append(relay.OnDisconnect, func(context.Context) { s.connections.halfClosed() })
	relay.RejectEvent = append(relay.RejectEvent, func(ctx context.Context, event *nostr.Event) (bool, string) {
		if reason := policy.Refusal(event, khatru.GetAuthed(ctx)); reason != "" {
			return true, reason
		}
		if s.store.Deleted(event) {
			return true, ErrDeleted.Error()
		}
		return false, ""
	})
	save := func(_ context.Context, event *nostr.Event) error {
		if err := s.store.Save(event); errors.Is(err, ErrDuplicate) {
			return eventstore.ErrDupEvent
		} else {
			return err
		}
	}
	relay.StoreEvent = append(relay.StoreEvent, save)
	relay.ReplaceEvent = append(relay.ReplaceEvent, save)
	// An ephemeral event nobody listens for is accepted, as the deployed relay does.
	relay.OnEphemeralEvent = append(relay.OnEphemeralEvent, func(context.Context, *nostr.Event) {})
	relay.QueryEvents = append(relay.QueryEvents, func(ctx context.Context, filter nostr.Filter) (chan *nostr.Event, error) {
		if khatru.IsInternalCall(ctx) {
			// khatru deletes before it asks whether the deletion is allowed; the
			// store deletes once it has been.
			return stream(nil), nil
		}
		authed := khatru.GetAuthed(ctx)
		return stream(s.store.Query(filter, func(event *nostr.Event) bool {
			return policy.Visible(event, authed)
		})), nil
	})
	relay.PreventBroadcast = append(relay.PreventBroadcast, func(reader *khatru.WebSocket, event *nostr.Event) bool {
		// khatru walks its listeners without its lock: one that is just being added or
		// removed may be seen empty.
		return reader == nil || !policy.Visible(event, reader.AuthedPublicKey)
	})
	return relay
}

// stream returns a closed channel that holds the events.
func stream(events []*nostr.Event) chan *nostr.Event {
	channel := make(chan *nostr.Event, len(events))
	for _, event := range events {
		channel <- event
	}
	close(channel)
	return channel
}

// connections counts the two goroutines khatru runs for each connection.
type connections struct {
	mu      sync.Mutex
	running int
	idle    chan struct{} // made by wait, closed at zero
}

func (c *connections) opened() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running += 2
}

// halfClosed is called once by each of the two.
func (c *connections) halfClosed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running--
	if c.running == 0 && c.idle != nil {
		close(c.idle)
		c.idle = nil
	}
}

func (c *connections) wait(limit time.Duration) error {
	c.mu.Lock()
	if c.running == 0 {
		c.mu.Unlock()
		return nil
	}
	idle := make(chan struct{})
	c.idle = idle
	c.mu.Unlock()
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	select {
	case <-idle:
		return nil
	case <-deadline.C:
		return fmt.Errorf("the relay still has connections %s after it was closed", limit)
	}
}
