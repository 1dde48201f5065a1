package sandbox_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/nbd-wtf/go-nostr"
)

// patience bounds every wait of these tests.
const patience = time.Minute

// client is a plain Nostr client: it sends and reads frames and nothing else.
type client struct {
	conn *websocket.Conn
}

func dial(t testing.TB, url string) *client {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, _, err := websocket.Dial(ctx, url, nil)
	if err != nil {
		t.Fatalf("dial %s: %v", url, err)
	}
	conn.SetReadLimit(64 << 20)
	t.Cleanup(func() { _ = conn.CloseNow() })
	return &client{conn}
}

func (c *client) send(ctx context.Context, t testing.TB, elements ...any) {
	t.Helper()
	text, err := json.Marshal(elements)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.conn.Write(ctx, websocket.MessageText, text); err != nil {
		t.Fatalf("send: %v", err)
	}
}

// read returns the elements of the next frame.
func (c *client) read(ctx context.Context, t testing.TB) []json.RawMessage {
	t.Helper()
	_, text, err := c.conn.Read(ctx)
	if err != nil {
		t.Fatalf("read: %v", err)
	}
	var elements []json.RawMessage
	if err := json.Unmarshal(text, &elements); err != nil {
		t.Fatalf("frame %.200q: %v", text, err)
	}
	return elements
}

// next reads until a frame with the label comes, and returns it.
func (c *client) next(ctx context.Context, t testing.TB, label string) []json.RawMessage {
	t.Helper()
	for {
		if frame := c.read(ctx, t); word(frame, 0) == label {
			return frame
		}
	}
}

// query sends a REQ and returns the events up to EOSE.
func (c *client) query(ctx context.Context, t testing.TB, id string, filter nostr.Filter) []nostr.Event {
	t.Helper()
	c.send(ctx, t, "REQ", id, filter)
	var events []nostr.Event
	for {
		frame := c.read(ctx, t)
		switch word(frame, 0) {
		case "EVENT":
			var event nostr.Event
			if err := json.Unmarshal(frame[2], &event); err != nil {
				t.Fatal(err)
			}
			events = append(events, event)
		case "EOSE":
			c.send(ctx, t, "CLOSE", id)
			return events
		case "CLOSED":
			t.Fatalf("closed: %s", frame)
		}
	}
}

// word returns element i of a frame as text, or "".
func word(frame []json.RawMessage, i int) string {
	var text string
	if i < len(frame) {
		_ = json.Unmarshal(frame[i], &text)
	}
	return text
}
