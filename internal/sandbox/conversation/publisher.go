package conversation

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/coder/websocket"
	"github.com/nbd-wtf/go-nostr"
	"github.com/nbd-wtf/go-nostr/nip42"

	"hostr-daemon/internal/sandbox"
)

// publish sends events to the relay as another program of a person would: over a
// connection of its own, on which the person has proved who it is (NIP-42).
func publish(ctx context.Context, url string, person sandbox.Person, events ...nostr.Event) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	connection, _, err := websocket.Dial(ctx, url, nil)
	if err != nil {
		return fmt.Errorf("the relay cannot be reached: %w", err)
	}
	defer func() { _ = connection.CloseNow() }()
	challenge, err := next(ctx, connection, "AUTH", "")
	if err != nil {
		return err
	}
	proof := nip42.CreateUnsignedAuthEvent(text(challenge[1]), person.PublicKey, url)
	if err := proof.Sign(person.PrivateKey); err != nil {
		return fmt.Errorf("proving who it is: %w", err)
	}
	if err := deliver(ctx, connection, "AUTH", proof); err != nil {
		return err
	}
	for _, event := range events {
		if err := deliver(ctx, connection, "EVENT", event); err != nil {
			return err
		}
	}
	return nil
}

// deliver sends an event and waits until the relay has taken it.
func deliver(ctx context.Context, connection *websocket.Conn, label string, event nostr.Event) error {
	frame, err := json.Marshal([]any{label, event})
	if err != nil {
		return fmt.Errorf("writing a frame: %w", err)
	}
	if err := connection.Write(ctx, websocket.MessageText, frame); err != nil {
		return fmt.Errorf("sending kind %d: %w", event.Kind, err)
	}
	answer, err := next(ctx, connection, "OK", event.ID)
	if err != nil {
		return err
	}
	if len(answer) < 4 || string(answer[2]) != "true" {
		return fmt.Errorf("the relay refuses kind %d: %s", event.Kind, answer)
	}
	return nil
}

// next reads until a frame with the label, and the id unless that is "".
func next(ctx context.Context, connection *websocket.Conn, label, id string) ([]json.RawMessage, error) {
	for {
		_, frame, err := connection.Read(ctx)
		if err != nil {
			return nil, fmt.Errorf("waiting for %s: %w", label, err)
		}
		var elements []json.RawMessage
		if json.Unmarshal(frame, &elements) != nil || len(elements) < 2 {
			continue
		}
		if text(elements[0]) == label && (id == "" || text(elements[1]) == id) {
			return elements, nil
		}
	}
}

func text(element json.RawMessage) (value string) {
	_ = json.Unmarshal(element, &value)
	return value
}
