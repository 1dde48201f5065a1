package relayproxy

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/coder/websocket"
	"github.com/nbd-wtf/go-nostr"
)

// maxClientFrame is the largest frame taken from a client, in bytes. The relay
// behind the proxy has its own, lower limit.
const maxClientFrame = 64 << 20

// errCut ends a connection because a fault says so.
var errCut = errors.New("cut by a fault")

// connection is one client and its connection to the relay behind the proxy.
type connection struct {
	relay       *Relay
	number      int
	client      *websocket.Conn
	upstream    *websocket.Conn
	noChallenge bool
	ctx         context.Context
	cut         context.CancelFunc
	gone        chan struct{}

	mu       sync.Mutex
	requests map[string]*request // by subscription id
	events   map[string]Faults   // by event id, until its OK
}

// request is a REQ under way with the faults it met.
type request struct {
	faults Faults
	sent   int // events so far
}

func newConnection(r *Relay, number int, client, upstream *websocket.Conn, noChallenge bool) *connection {
	client.SetReadLimit(maxClientFrame)
	upstream.SetReadLimit(-1)
	ctx, cut := context.WithCancel(context.Background())
	return &connection{
		relay: r, number: number, client: client, upstream: upstream, noChallenge: noChallenge,
		ctx: ctx, cut: cut, gone: make(chan struct{}),
		requests: make(map[string]*request), events: make(map[string]Faults),
	}
}

// run passes frames until one side is gone or the connection is cut.
func (c *connection) run() {
	var pumps sync.WaitGroup
	pumps.Go(func() { defer c.cut(); c.pumpToRelay() })
	pumps.Go(func() { defer c.cut(); c.pumpToClient() })
	<-c.ctx.Done()
	_ = c.client.CloseNow()
	_ = c.upstream.CloseNow()
	pumps.Wait()
}

func (c *connection) pumpToRelay() {
	for {
		kind, frame, err := c.client.Read(c.ctx)
		if err != nil {
			return
		}
		head := readHead(frame)
		c.relay.ledger.received(Frame{Connection: c.number, Label: head.label, Text: string(frame)})
		forward, err := c.fromClient(head, frame)
		if err != nil {
			return
		}
		if forward && c.upstream.Write(c.ctx, kind, frame) != nil {
			return
		}
	}
}

// fromClient applies the faults to a client's frame and reports whether the
// relay is to see it.
func (c *connection) fromClient(head head, frame []byte) (forward bool, err error) {
	switch head.label {
	case "REQ":
		return c.onREQ(head.second, frame)
	case "EVENT":
		return c.onEVENT(frame)
	case "CLOSE":
		c.mu.Lock()
		delete(c.requests, head.second)
		c.mu.Unlock()
	}
	return true, nil
}

func (c *connection) onREQ(subscription string, frame []byte) (forward bool, err error) {
	faults := c.relay.meet(onRequest)
	if faults.DropOnRequest {
		return false, errCut
	}
	for _, extra := range c.relay.strange.before(faults, subscription, frame) {
		if err := c.send(extra.kind, extra.text); err != nil {
			return false, err
		}
	}
	if faults.Closed != "" {
		return false, c.send(websocket.MessageText, closedFrame(faults, subscription))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests[subscription] = &request{faults: faults}
	return true, nil
}

func closedFrame(faults Faults, subscription string) []byte {
	if faults.ShortFrames {
		return frameOf("CLOSED", subscription)
	}
	return frameOf("CLOSED", subscription, faults.Closed)
}

func (c *connection) onEVENT(frame []byte) (forward bool, err error) {
	faults := c.relay.meet(onEvent)
	if !faults.concern(onEvent) {
		return true, nil
	}
	var event struct{ ID string }
	if json.Unmarshal(element(frame, 1), &event) != nil {
		return true, nil
	}
	if faults.RefuseEvents != "" {
		answer := frameOf("OK", event.ID, false, faults.RefuseEvents)
		if faults.ShortFrames {
			answer = frameOf("OK", event.ID, false)
		}
		return false, c.send(websocket.MessageText, answer)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events[event.ID] = faults
	return true, nil
}

func (c *connection) pumpToClient() {
	for {
		kind, frame, err := c.upstream.Read(c.ctx)
		if err != nil {
			return
		}
		frames, cut := c.fromRelay(readHead(frame), frame)
		for _, text := range frames {
			if c.send(kind, text) != nil {
				return
			}
		}
		if cut {
			return
		}
	}
}

// fromRelay applies the faults to a frame of the relay: what the client gets
// instead, and whether the connection is cut afterwards.
func (c *connection) fromRelay(head head, frame []byte) (frames [][]byte, cut bool) {
	switch head.label {
	case "EVENT":
		return c.onStoredEvent(head.second, frame)
	case "EOSE":
		if c.faultsOf(head.second).NoEOSE {
			return nil, false
		}
	case "CLOSED":
		if c.faultsOf(head.second).ShortFrames {
			return [][]byte{frameOf("CLOSED", head.second)}, false
		}
	case "OK":
		return c.onOK(head.second, frame)
	case "AUTH":
		if c.noChallenge {
			return nil, false
		}
	}
	return [][]byte{frame}, false
}

func (c *connection) faultsOf(subscription string) Faults {
	c.mu.Lock()
	defer c.mu.Unlock()
	if request := c.requests[subscription]; request != nil {
		return request.faults
	}
	return Faults{}
}

func (c *connection) onStoredEvent(subscription string, frame []byte) (frames [][]byte, cut bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	request := c.requests[subscription]
	if request == nil {
		return [][]byte{frame}, false
	}
	request.sent++
	if request.faults.Forged {
		var event nostr.Event
		if json.Unmarshal(element(frame, 2), &event) == nil {
			for _, forgery := range c.relay.strange.forgeries(event) {
				frames = append(frames, frameOf("EVENT", subscription, forgery))
			}
		}
	}
	for range request.faults.Duplicates + 1 {
		frames = append(frames, frame)
	}
	limit := request.faults.DropAfterEvents
	return frames, limit > 0 && request.sent >= limit
}

func (c *connection) onOK(id string, frame []byte) (frames [][]byte, cut bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	faults, found := c.events[id]
	delete(c.events, id)
	switch {
	case !found:
		return [][]byte{frame}, false
	case faults.DropBeforeOK:
		return nil, true
	case faults.NoOK:
		return nil, false
	case faults.ShortFrames:
		return [][]byte{frameOf("OK", id, element(frame, 2))}, false
	default:
		return [][]byte{frame}, false
	}
}

// send writes one frame to the client, after the delay that is set now.
func (c *connection) send(kind websocket.MessageType, frame []byte) error {
	if delay := c.relay.Faults().DelayMillis; delay > 0 {
		timer := time.NewTimer(time.Duration(delay) * time.Millisecond)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-c.ctx.Done():
			return c.ctx.Err()
		}
	}
	// Counted first: whoever has received a frame must find it counted.
	switch readHead(frame).label {
	case "EVENT":
		c.relay.ledger.count(func(counters *Counters) { counters.SentEvents++ })
	case "EOSE":
		c.relay.ledger.count(func(counters *Counters) { counters.SentEOSEs++ })
	}
	return c.client.Write(c.ctx, kind, frame)
}
