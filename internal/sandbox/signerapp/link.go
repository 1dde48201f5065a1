package signerapp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/coder/websocket"
	"github.com/nbd-wtf/go-nostr"
)

const (
	subscriptionID = "requests"
	readLimit      = 1 << 20
	writeLimit     = 10 * time.Second
	// redialFirst and redialLongest pace attempts to connect.
	redialFirst, redialLongest = 50 * time.Millisecond, time.Second
)

var errNotConnected = errors.New("the signer app is not connected to the relay")

// link keeps the app listening on one relay.
type link struct {
	app    *App
	url    string
	ctx    context.Context
	cancel context.CancelFunc
	done   chan struct{}

	mu        sync.Mutex
	conn      *websocket.Conn
	listening chan struct{} // closed while the relay has sent EOSE
	isOpen    bool
	answers   map[string]chan error // of the relay to events, by id
}

func newLink(a *App, url string) *link {
	l := &link{app: a, url: url, done: make(chan struct{}), listening: make(chan struct{}), answers: map[string]chan error{}}
	l.ctx, l.cancel = context.WithCancel(a.ctx)
	return l
}

// run connects, listens and connects again until the link is stopped.
func (l *link) run() {
	defer close(l.done)
	for pause := redialFirst; ; pause = min(2*pause, redialLongest) {
		if l.serve() {
			pause = redialFirst
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-l.ctx.Done():
			timer.Stop()
			return
		}
	}
}

func (l *link) stop() {
	l.cancel()
	<-l.done
}

// serve runs one connection to its end and reports whether there was one.
func (l *link) serve() bool {
	dialled, cancel := context.WithTimeout(l.ctx, writeLimit)
	conn, _, err := websocket.Dial(dialled, l.url, nil)
	cancel()
	if err != nil {
		return false
	}
	defer func() { _ = conn.CloseNow() }()
	conn.SetReadLimit(readLimit)
	l.mu.Lock()
	l.conn = conn
	l.mu.Unlock()
	defer l.disconnected()
	filter := nostr.Filter{Kinds: []int{nostr.KindNostrConnect}, Tags: nostr.TagMap{"p": {l.app.transport.public}}}
	if l.write(l.ctx, "REQ", subscriptionID, filter) != nil {
		return true
	}
	for {
		_, frame, err := conn.Read(l.ctx)
		if err != nil {
			return true
		}
		l.receive(frame)
	}
}

func (l *link) disconnected() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conn = nil
	if l.isOpen {
		l.isOpen, l.listening = false, make(chan struct{})
	}
	for id, answer := range l.answers {
		answer <- errNotConnected
		delete(l.answers, id)
	}
}

func (l *link) receive(frame []byte) {
	var elements []json.RawMessage
	if json.Unmarshal(frame, &elements) != nil || len(elements) < 2 {
		return
	}
	var label, id string
	_ = json.Unmarshal(elements[0], &label)
	_ = json.Unmarshal(elements[1], &id)
	switch {
	case label == "EOSE" && id == subscriptionID:
		l.mu.Lock()
		defer l.mu.Unlock()
		if !l.isOpen {
			l.isOpen = true
			close(l.listening)
		}
	case label == "EVENT" && id == subscriptionID && len(elements) == 3:
		var event nostr.Event
		if json.Unmarshal(elements[2], &event) == nil {
			l.app.receive(event)
		}
	case label == "OK" && len(elements) >= 3:
		l.answered(id, elements)
	}
}

func (l *link) answered(id string, elements []json.RawMessage) {
	var reason string
	if len(elements) > 3 {
		_ = json.Unmarshal(elements[3], &reason)
	}
	var err error
	if string(elements[2]) != "true" {
		err = fmt.Errorf("the relay refused the answer: %s", reason)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if answer := l.answers[id]; answer != nil {
		answer <- err
		delete(l.answers, id)
	}
}

// publish sends an event and waits for the relay's OK.
func (l *link) publish(ctx context.Context, event nostr.Event) error {
	answer := make(chan error, 1)
	l.mu.Lock()
	l.answers[event.ID] = answer
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.answers, event.ID)
	}()
	if err := l.write(ctx, "EVENT", event); err != nil {
		return err
	}
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-l.ctx.Done():
		return errNotConnected
	}
}

func (l *link) write(ctx context.Context, elements ...any) error {
	frame, err := json.Marshal(elements)
	if err != nil {
		return fmt.Errorf("writing a frame: %w", err)
	}
	l.mu.Lock()
	conn := l.conn
	l.mu.Unlock()
	if conn == nil {
		return errNotConnected
	}
	// A context that ends during a write closes the connection.
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeLimit)
	defer cancel()
	return conn.Write(limited, websocket.MessageText, frame)
}

// awaitListening returns when the relay has taken the subscription.
func (l *link) awaitListening(ctx context.Context) error {
	l.mu.Lock()
	listening := l.listening
	l.mu.Unlock()
	select {
	case <-listening:
		return nil
	case <-l.ctx.Done():
		return errNotConnected
	case <-ctx.Done():
		return fmt.Errorf("waiting for the relay: %w", ctx.Err())
	}
}
