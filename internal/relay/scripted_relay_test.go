package relay

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/nbd-wtf/go-nostr"
)

// scriptedRelay is a relay on loopback that records every frame and behaves as its
// script says; without one it behaves well. khatru cannot stand in for it: it has
// data races of its own.
type scriptedRelay struct {
	url    string
	server *httptest.Server
	script script

	mu       sync.Mutex
	changed  chan struct{} // closed at each new frame or connection, then replaced
	frames   []receivedFrame
	stored   []nostr.Event
	sessions []*relaySession
	down     bool
	handlers sync.WaitGroup
}

// script replaces parts of the behaviour. A hook returns false for the normal one.
type script struct {
	// challenge is sent on each connect when not empty.
	challenge string
	onConnect func(*relaySession)
	onREQ     func(*relaySession, *nostr.ReqEnvelope) bool
	onEVENT   func(*relaySession, nostr.Event) bool
	onAUTH    func(*relaySession, nostr.Event) bool
	// onPing keeps the pong back when it returns true.
	onPing func(*relaySession) bool
	// private kinds are left out of answers until AUTH, as the Hostr relay does.
	private []int
}

// receivedFrame is one frame of a client.
type receivedFrame struct {
	connection int // counted from 1
	label      string
	id         string // of the subscription or the event
	filters    nostr.Filters
	event      nostr.Event
}

// relaySession is one connection at the relay.
type relaySession struct {
	relay         *scriptedRelay
	number        int
	conn          *websocket.Conn
	authenticated string                   // guarded by the relay's lock
	open          map[string]nostr.Filters // guarded by the relay's lock
	mostOpen      int                      // guarded by the relay's lock
}

func startRelay(t testing.TB, script script) *scriptedRelay {
	t.Helper()
	r := &scriptedRelay{script: script, changed: make(chan struct{})}
	r.server = httptest.NewUnstartedServer(r)
	r.server.Config.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetReadBuffer(64 << 10) // So that a client soon feels it when nobody reads.
		}
		return ctx
	}
	r.server.Start()
	r.url = "ws" + strings.TrimPrefix(r.server.URL, "http")
	t.Cleanup(func() {
		r.refuse(true)
		r.dropAll()
		r.server.Close()
		r.handlers.Wait()
	})
	return r
}

// ServeHTTP runs one connection.
func (r *scriptedRelay) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	down := r.down
	if !down {
		r.handlers.Add(1)
		defer r.handlers.Done()
	}
	r.mu.Unlock()
	if down {
		http.Error(w, "down", http.StatusServiceUnavailable)
		return
	}
	var s *relaySession
	conn, err := websocket.Accept(w, req, &websocket.AcceptOptions{OnPingReceived: func(context.Context, []byte) bool {
		s.record(receivedFrame{label: "PING"})
		return r.script.onPing == nil || !r.script.onPing(s)
	}})
	if err != nil {
		return
	}
	defer func() { _ = conn.CloseNow() }()
	conn.SetReadLimit(16 << 20)
	s = r.connected(conn)
	if r.script.onConnect != nil {
		r.script.onConnect(s)
	}
	if r.script.challenge != "" {
		s.sendf(`["AUTH",%q]`, r.script.challenge)
	}
	parser := nostr.NewMessageParser()
	for {
		_, data, err := conn.Read(context.Background())
		if err != nil {
			r.disconnected(s)
			return
		}
		if envelope, err := parser.ParseMessage(string(data)); err == nil {
			s.handle(envelope)
		}
	}
}

func (r *scriptedRelay) connected(conn *websocket.Conn) *relaySession {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &relaySession{relay: r, number: len(r.sessions) + 1, conn: conn, open: map[string]nostr.Filters{}}
	r.sessions = append(r.sessions, s)
	r.broadcast()
	if r.down { // It went down during the handshake.
		_ = conn.CloseNow()
	}
	return s
}

func (r *scriptedRelay) disconnected(s *relaySession) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s.open = map[string]nostr.Filters{}
	s.conn = nil
	r.broadcast()
}

func (r *scriptedRelay) broadcast() {
	close(r.changed)
	r.changed = make(chan struct{})
}

func (s *relaySession) handle(envelope nostr.Envelope) {
	switch e := envelope.(type) {
	case *nostr.ReqEnvelope:
		s.record(receivedFrame{label: "REQ", id: e.SubscriptionID, filters: e.Filters})
		if s.relay.script.onREQ == nil || !s.relay.script.onREQ(s, e) {
			s.answer(e)
		}
	case *nostr.EventEnvelope:
		s.record(receivedFrame{label: "EVENT", id: e.ID, event: e.Event})
		if s.relay.script.onEVENT == nil || !s.relay.script.onEVENT(s, e.Event) {
			s.relay.publish(e.Event)
			s.sendf(`["OK",%q,true,""]`, e.ID)
		}
	case *nostr.AuthEnvelope:
		s.record(receivedFrame{label: "AUTH", id: e.Event.ID, event: e.Event})
		if s.relay.script.onAUTH == nil || !s.relay.script.onAUTH(s, e.Event) {
			s.accept(e.Event)
		}
	case *nostr.CloseEnvelope:
		s.record(receivedFrame{label: "CLOSE", id: string(*e)})
		s.relay.mu.Lock()
		delete(s.open, string(*e))
		s.relay.mu.Unlock()
	}
}

func (s *relaySession) record(f receivedFrame) {
	r := s.relay
	r.mu.Lock()
	defer r.mu.Unlock()
	f.connection = s.number
	r.frames = append(r.frames, f)
	r.broadcast()
}

// accept takes an AUTH.
func (s *relaySession) accept(event nostr.Event) {
	s.relay.mu.Lock()
	s.authenticated = event.PubKey
	s.relay.mu.Unlock()
	s.sendf(`["OK",%q,true,""]`, event.ID)
}

// answer sends the stored events, newest first, and EOSE, and keeps the REQ open.
func (s *relaySession) answer(e *nostr.ReqEnvelope) {
	s.sendStored(e)
	s.sendf(`["EOSE",%q]`, e.SubscriptionID)
}

func (s *relaySession) sendStored(e *nostr.ReqEnvelope) {
	r := s.relay
	r.mu.Lock()
	s.open[e.SubscriptionID] = e.Filters
	s.mostOpen = max(s.mostOpen, len(s.open))
	var found []nostr.Event
	for _, event := range r.stored {
		if e.Filters.Match(&event) && s.maySee(event) {
			found = append(found, event)
		}
	}
	r.mu.Unlock()
	slices.SortStableFunc(found, func(a, b nostr.Event) int { return int(b.CreatedAt - a.CreatedAt) })
	if limit := e.Filters[0].Limit; limit > 0 && limit < len(found) {
		found = found[:limit]
	}
	for _, event := range found {
		s.sendEvent(e.SubscriptionID, event)
	}
}

func (s *relaySession) maySee(event nostr.Event) bool {
	return s.authenticated != "" || !slices.Contains(s.relay.script.private, event.Kind)
}

// publish stores an event and sends it to every open REQ that matches.
func (r *scriptedRelay) publish(event nostr.Event) {
	r.mu.Lock()
	if !nostr.IsEphemeralKind(event.Kind) {
		r.stored = append(r.stored, event)
	}
	type target struct {
		session *relaySession
		id      string
	}
	var targets []target
	for _, s := range r.sessions {
		for id, filters := range s.open {
			if filters.Match(&event) && s.maySee(event) {
				targets = append(targets, target{s, id})
			}
		}
	}
	r.mu.Unlock()
	for _, to := range targets {
		to.session.sendEvent(to.id, event)
	}
}

func (s *relaySession) sendEvent(id string, event nostr.Event) {
	frame, err := nostr.EventEnvelope{SubscriptionID: &id, Event: event}.MarshalJSON()
	if err == nil {
		s.send(string(frame))
	}
}

func (s *relaySession) sendf(format string, args ...any) { s.send(fmt.Sprintf(format, args...)) }

func (s *relaySession) send(frame string) {
	s.relay.mu.Lock()
	conn := s.conn
	s.relay.mu.Unlock()
	if conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_ = conn.Write(ctx, websocket.MessageText, []byte(frame))
}

// drop cuts the connection without a closing handshake.
func (s *relaySession) drop() {
	s.relay.mu.Lock()
	conn := s.conn
	s.relay.mu.Unlock()
	if conn != nil {
		_ = conn.CloseNow()
	}
}

// closePolitely sends a close frame and waits for the client's in the background.
func (s *relaySession) closePolitely(code websocket.StatusCode, reason string) {
	s.relay.mu.Lock()
	conn := s.conn
	s.relay.mu.Unlock()
	s.relay.handlers.Go(func() { _ = conn.Close(code, reason) })
}

func (r *scriptedRelay) dropAll() {
	r.mu.Lock()
	sessions := slices.Clone(r.sessions)
	r.mu.Unlock()
	for _, s := range sessions {
		s.drop()
	}
}

// refuse makes the relay turn new connections away, or take them again.
func (r *scriptedRelay) refuse(down bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.down = down
}

// await returns once the condition, which is called with the lock held, is true.
func (r *scriptedRelay) await(t testing.TB, what string, condition func() bool) {
	t.Helper()
	deadline := time.After(patience)
	for {
		r.mu.Lock()
		met, changed := condition(), r.changed
		r.mu.Unlock()
		if met {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			t.Fatalf("the relay did not see %s; it saw %v", what, r.labels())
		}
	}
}

// awaitFrames waits for the given number of frames with a label and returns them.
func (r *scriptedRelay) awaitFrames(t testing.TB, label string, count int) []receivedFrame {
	t.Helper()
	r.await(t, fmt.Sprintf("%d frames of type %s", count, label), func() bool { return len(r.framesLocked(label)) >= count })
	return r.framesOf(label)
}

func (r *scriptedRelay) framesOf(label string) []receivedFrame {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.framesLocked(label)
}

func (r *scriptedRelay) framesLocked(label string) (found []receivedFrame) {
	for _, f := range r.frames {
		if f.label == label {
			found = append(found, f)
		}
	}
	return found
}

// labels lists the frames in order, each as connection:LABEL.
func (r *scriptedRelay) labels() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	labels := make([]string, len(r.frames))
	for i, f := range r.frames {
		labels[i] = fmt.Sprintf("%d:%s", f.connection, f.label)
	}
	return labels
}

func (r *scriptedRelay) connections() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.sessions)
}

func (r *scriptedRelay) session(number int) *relaySession {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sessions[number-1]
}

func (r *scriptedRelay) store(events ...nostr.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stored = append(r.stored, events...)
}
