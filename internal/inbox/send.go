package inbox

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/giftwrap"
	"hostr-daemon/internal/market"
	"hostr-daemon/internal/relay"
)

// publishLimit bounds the publication of a message's copies, an AUTH included. It runs
// to its end also when nobody waits for it any more (spec 10 §4.3).
const publishLimit = time.Minute

// Sent is a message that every recipient's copy was accepted of.
type Sent struct {
	Rumor market.Rumor
	// Receipts are the relay's answers, one copy after the other: the recipients
	// sorted, then the account's own.
	Receipts []relay.Receipt
}

// ownWrap is the account's own copy of a message it sends.
type ownWrap struct {
	id    string
	rumor market.Rumor
	state sendState
	// delivered is true once the relay has shown it.
	delivered bool
}

type sendState int

const (
	sending sendState = iota
	// sent means that all copies were accepted.
	sent
	// unsent means that one was not: there is no echo, but what the relay shows of it
	// is a message like any other.
	unsent
)

// shown notes that the relay has shown the wrap, and reports whether the message is to
// be applied now.
func (o *ownWrap) shown() bool {
	first := !o.delivered
	o.delivered = true
	return first && o.state == unsent
}

// message is what Send makes before anything leaves.
type message struct {
	rumor  market.Rumor
	copies []messageCopy
}

// messageCopy is the wrap for one recipient.
type messageCopy struct {
	recipient string
	wrap      *nostr.Event
	receipts  []relay.Receipt
	err       error
}

// Send sends a message to its recipients and, as every client does, to the account
// itself. It has succeeded when each copy was accepted by the relay; then the message
// is among the threads before Send returns. Nothing is sent before all copies are
// encrypted and signed.
//
// When ctx ends while copies are being published that goes on, and the error says that
// delivery is unknown, or is the cause of ctx when it was cancelled. Sending again
// makes another message.
func (s *Service) Send(ctx context.Context, draft market.MessageDraft) (Sent, error) {
	if s.relays.HostrRelay() == "" {
		return Sent{}, fault.New(fault.RelayRequired, "The message was not sent: this environment has no Hostr relay, which carries all messages.")
	}
	prepared, err := s.prepare(ctx, draft)
	if err != nil {
		return Sent{}, unsentError{err}
	}
	type outcome struct {
		sent Sent
		err  error
	}
	done := make(chan outcome, 1)
	started := s.background("publishing a message", func(context.Context) {
		result := outcome{err: deliveryUnknown(draft.Kind, "something went wrong inside hostr-daemon")}
		defer func() { done <- result }()
		result.sent, result.err = s.publish(prepared)
	})
	if !started {
		return Sent{}, unsentError{errClosed()}
	}
	select {
	case result := <-done:
		return result.sent, result.err
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return Sent{}, deliveryUnknown(draft.Kind, "the time ran out while the relay was to answer")
		}
		return Sent{}, context.Cause(ctx)
	}
}

// prepare makes the copies of a message, all at the same time.
func (s *Service) prepare(ctx context.Context, draft market.MessageDraft) (*message, error) {
	event := draft.Event(s.me, s.nextTimestamp(draft))
	if read, err := market.DecodeEmbeddedEvent(market.EncodeEmbeddedEvent(event)); err != nil || read.GetID() != event.ID {
		return nil, fault.New(fault.UnexpectedError, "The message was not sent: it holds text that is not UTF-8, which nobody could read.")
	}
	rumor, err := market.ReadRumor(event)
	if err != nil {
		return nil, fault.New(fault.UnexpectedError, "The message of kind %d was not sent: %w.", draft.Kind, err)
	}
	if err := giftwrap.CheckSize(event); err != nil {
		return nil, fault.New(fault.UnexpectedError, "The message was not sent: %w. Shorten it.", err)
	}
	prepared := &message{rumor: rumor}
	for _, recipient := range append(recipientsOf(draft, s.me), s.me) {
		prepared.copies = append(prepared.copies, messageCopy{recipient: recipient})
	}
	var wrapping sync.WaitGroup
	for i := range prepared.copies {
		made := &prepared.copies[i]
		wrapping.Go(func() {
			made.err = errors.New("something went wrong inside hostr-daemon")
			s.contain("wrapping a message", func() {
				made.wrap, made.err = giftwrap.Wrap(ctx, s.account, event, made.recipient, s.timestamp(), s.random)
			})
		})
	}
	wrapping.Wait()
	for _, made := range prepared.copies {
		if made.err != nil {
			return nil, notSent(ctx, made.err)
		}
	}
	return prepared, nil
}

// nextTimestamp is the time of a message that comes after all others of its thread, also
// for clients that read it again later: within one second they show any order.
func (s *Service) nextTimestamp(draft market.MessageDraft) nostr.Timestamp {
	anchor := market.NewThread(s.me, draft.Recipients, draft.Conversation).Anchor
	now := s.timestamp()
	s.mu.Lock()
	defer s.mu.Unlock()
	times := []nostr.Timestamp{s.newest[anchor]}
	if thread := s.threads.ByAnchor(anchor); thread != nil {
		for _, rumor := range thread.Events() {
			times = append(times, rumor.Event.CreatedAt)
		}
	}
	at := market.FollowingCreatedAt(now, times...)
	maps.DeleteFunc(s.newest, func(_ string, at nostr.Timestamp) bool { return at < now })
	s.newest[anchor] = at
	return at
}

// recipientsOf returns the recipients sorted, each once, without the author.
func recipientsOf(draft market.MessageDraft, author string) []string {
	others := slices.DeleteFunc(slices.Clone(draft.Recipients), func(pubkey string) bool {
		return pubkey == "" || pubkey == author
	})
	slices.Sort(others)
	return slices.Compact(others)
}

// publish sends all copies at the same time, and applies the message when each was
// accepted.
func (s *Service) publish(prepared *message) (Sent, error) {
	ctx, cancel := context.WithTimeout(s.ctx, publishLimit)
	defer cancel()
	own := s.expect(prepared)
	var publishing sync.WaitGroup
	for i := range prepared.copies {
		made := &prepared.copies[i]
		publishing.Go(func() {
			made.err = errors.New("something went wrong inside hostr-daemon")
			s.contain("publishing a copy of a message", func() {
				made.receipts, made.err = s.relays.Publish(ctx, *made.wrap, relay.PublishOptions{Relays: s.targets()})
			})
		})
	}
	publishing.Wait()
	if err := prepared.failure(); err != nil {
		s.conclude(own, unsent)
		return Sent{}, err
	}
	s.conclude(own, sent)
	result := Sent{Rumor: prepared.rumor}
	for _, made := range prepared.copies {
		result.Receipts = append(result.Receipts, made.receipts...)
	}
	return result, nil
}

// expect notes the account's own copy, so that it is known when the relay shows it.
func (s *Service) expect(prepared *message) *ownWrap {
	wrap := prepared.copies[len(prepared.copies)-1].wrap
	own := &ownWrap{id: wrap.ID, rumor: prepared.rumor}
	if id, ok := parseWrapID(wrap.ID); ok {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.own[id] = own
	}
	return own
}

// conclude ends a send.
func (s *Service) conclude(own *ownWrap, state sendState) {
	s.mu.Lock()
	own.state = state
	echo := state == sent || own.delivered
	if id, ok := parseWrapID(own.id); ok && own.delivered {
		delete(s.own, id)
	}
	s.mu.Unlock()
	if echo {
		s.echo(own)
	}
}

// echo applies a message of our own without asking the signer (spec 60 §3.5).
func (s *Service) echo(own *ownWrap) {
	s.cache.rumor(own.id, own.rumor.Event)
	s.accept(own.rumor)
}

// unsentError is the error of a message of which it is certain that no copy has left.
type unsentError struct{ error }

// Unwrap returns the error itself.
func (e unsentError) Unwrap() error { return e.error }

// NothingLeft tells those who do not know this package.
func (unsentError) NothingLeft() bool { return true }

// failure says which copies were not accepted; nil when all were.
func (m *message) failure() error {
	var problems []string
	accepted, unknown, refused := 0, false, true
	var cause error
	for _, made := range m.copies {
		if made.err == nil {
			accepted++
			continue
		}
		cause = made.err
		unknown = unknown || slices.ContainsFunc(made.receipts, func(r relay.Receipt) bool { return !r.OKReceived })
		refused = refused && len(made.receipts) > 0
		problems = append(problems, fmt.Sprintf("to %s, gift wrap %s: %s", made.recipient, made.wrap.ID, fault.From(made.err).Message))
	}
	if len(problems) == 0 {
		return nil
	}
	text := fmt.Sprintf("The message of kind %d was not accepted for everybody: %d of %d copies were. Not accepted: %s",
		m.rumor.Event.Kind, accepted, len(m.copies), strings.Join(problems, "; "))
	failed := &fault.Error{Code: fault.UnexpectedError, Message: text, Cause: cause}
	switch {
	case unknown:
		return failed.WithHint("Delivery is unknown: look into the conversation before you send it again, that makes a second message.")
	case accepted > 0:
		return failed.WithHint("Copies that were accepted stay delivered; sending it again makes a second message.")
	case refused:
		return unsentError{failed.Transient()}
	default:
		return failed.Transient()
	}
}

// notSent is the error of a message that could not be encrypted or signed. Trying again
// helps as far as the signer's error says that it does.
func notSent(ctx context.Context, cause error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return context.Cause(ctx)
	}
	why := strings.TrimRight(fault.From(cause).Message, ".")
	return &fault.Error{
		Code: fault.UnexpectedError, Message: "The message was not sent: " + why + ".", Retryable: fault.From(cause).Retryable, Cause: cause,
	}
}

// deliveryUnknown is the error of a message that may have arrived (spec 60 §6.4).
func deliveryUnknown(kind int, why string) error {
	return fault.New(fault.UnexpectedError,
		"Whether the message of kind %d was delivered is unknown: %s. It may have been delivered, or still be.", kind, why).
		WithHint("Look into the conversation before you send it again: that makes a second message.")
}
