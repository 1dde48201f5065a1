package threads

import (
	"context"
	"strings"
	"time"

	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/giftwrap"
	"hostr-daemon/internal/market"
)

// Sent is a text message that everybody's copy was accepted of, and its thread, which
// holds it.
type Sent struct {
	Message *nostr.Event
	Thread  *market.Thread
}

// CheckText refuses text that other clients would read as an order or another event of
// Hostr instead of showing it (spec 60 §4.2): only the actions for that make such
// messages.
func CheckText(text string) error {
	draft := textDraft(&market.Thread{}, text)
	if rumor, err := market.ReadRumor(draft.Event("", 0)); err == nil && rumor.Class == market.ClassText {
		return nil
	}
	return fault.New(fault.InvalidInput, "content is a Nostr event, which is no text to be read.").At("content").
		WithHint("Write text; offers, cancellations and payments have actions of their own.")
}

// CheckSize refuses text that is too long for a message in the thread.
func (s *Service) CheckSize(thread *market.Thread, text string) error {
	err := giftwrap.CheckSize(textDraft(thread, text).Event(s.me, nostr.Now()))
	if err == nil {
		return nil
	}
	return fault.New(fault.InvalidInput, "content is too long: %w.", err).At("content").WithHint("Shorten it, or send it in parts.")
}

// Send sends a text to everybody else in the thread within the limit, not for a preview.
// An error says what became of the message: when the time is over while it is being
// published, delivery is unknown (Q7).
func (s *Service) Send(ctx context.Context, thread *market.Thread, text string, limit time.Duration) (Sent, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	rumor, err := s.send(ctx, textDraft(thread, text))
	if err != nil {
		return Sent{}, err
	}
	sent := Sent{Message: rumor.Event, Thread: thread}
	if current := s.byAnchor(thread.Anchor); current != nil {
		sent.Thread = current
	}
	return sent, nil
}

func textDraft(thread *market.Thread, text string) market.MessageDraft {
	return market.MessageDraft{
		Kind: market.KindTextMessage, Content: strings.TrimSpace(text), Conversation: thread.Tag, Recipients: thread.Recipients(),
	}
}
