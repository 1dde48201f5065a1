package relay

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/fault"
)

// noAuthKinds are taken without AUTH: the AUTH itself, and what signers and
// wallets are talked to with (spec 82 §8.3).
var noAuthKinds = []int{13194, 22242, 23194, 23195, 23196, 23197, 24133}

// PublishOptions are the less usual sides of a publish.
type PublishOptions struct {
	// Relays get the event instead of the default ones; hostr-only kinds go to the
	// Hostr relay all the same. Unusable URLs are dropped.
	Relays []string
	// Timeout is how long relays have to answer, 10 s when zero. AUTH has its own
	// limits.
	Timeout time.Duration
}

// Receipt is one relay's answer to an event (spec 82 §7.3).
type Receipt struct {
	RelayURL string `json:"relayUrl"`
	// OKReceived is false when the relay gave no OK: not reached, cut off or silent.
	OKReceived bool `json:"okReceived"`
	// BroadcastSuccessful is true when the relay took the event.
	BroadcastSuccessful bool `json:"broadcastSuccessful"`
	// Message is the relay's own text, or why there is none.
	Message string `json:"message"`
}

// PublishDetails are the details of a publish that no relay accepted.
type PublishDetails struct {
	EventID  string    `json:"eventId"`
	Kind     int       `json:"kind"`
	Receipts []Receipt `json:"relayResponses"`
}

// Publish sends a signed event and returns one receipt per relay, in the order of
// the targets. It fails when no relay accepted the event; the receipts are
// returned all the same, and the text of the error holds them. Before an event
// goes to the Hostr relay the client's account is authenticated there: when that
// fails for a key held here nothing is sent, with a remote signer the relay
// decides (spec 82 §8.3).
func (c *Client) Publish(ctx context.Context, event nostr.Event, options PublishOptions) ([]Receipt, error) {
	frame, err := eventFrame(&event)
	if err != nil {
		return nil, err
	}
	relays := c.publishRelays(event.Kind, options.Relays)
	if len(relays) == 0 {
		return nil, fault.New(fault.UnexpectedError,
			"Event %s of kind %d has no relay it may be published to.", event.ID, event.Kind)
	}
	unreachable, err := c.authenticateFirst(ctx, event.Kind, relays)
	if err != nil {
		return nil, err
	}
	timeout := options.Timeout
	if timeout <= 0 {
		timeout = defaultTimeout
	}
	receipts := make([]Receipt, len(relays))
	var sending sync.WaitGroup
	for i, url := range relays {
		if unreachable != nil && url == c.hostrRelay {
			receipts[i] = unreachableReceipt(url, unreachable)
			continue
		}
		sending.Go(func() { receipts[i] = c.publishTo(ctx, url, event.ID, frame, timeout) })
	}
	sending.Wait()
	if slices.ContainsFunc(receipts, func(r Receipt) bool { return r.BroadcastSuccessful }) {
		return receipts, nil
	}
	return receipts, c.publishFailure(ctx, event, receipts)
}

// publishRelays returns the targets; without a list those of spec 82 §7.4 that
// need no knowledge of anybody's relay lists.
func (c *Client) publishRelays(kind int, relays []string) []string {
	if len(relays) > 0 {
		return guard([]int{kind}, cleanList(relays, c.hostrRelay), c.hostrRelay)
	}
	if guarded := guard([]int{kind}, nil, c.hostrRelay); guarded != nil {
		return guarded
	}
	return c.defaultRelays()
}

// authenticateFirst does the AUTH before an event that touches the Hostr relay. A
// relay that cannot be reached does not keep the event from the others.
func (c *Client) authenticateFirst(ctx context.Context, kind int, relays []string) (unreachable, err error) {
	if c.account == nil || slices.Contains(noAuthKinds, kind) || !slices.Contains(relays, c.hostrRelay) {
		return nil, nil
	}
	connection, err := c.connection(c.hostrRelay)
	if err != nil {
		return nil, err
	}
	if c.account.IsRemote() && connection.authFailed() {
		return nil, nil
	}
	err = connection.authenticate(ctx)
	switch {
	case err == nil:
		return nil, nil
	case c.ctx.Err() != nil:
		return nil, ErrClosed
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.Is(err, errUnreachable):
		return err, nil
	case c.account.IsRemote():
		connection.log.Info().Str("reason", reasonOf(err)).Msg("AUTH before a publish failed; the relay decides")
		return nil, nil
	}
	return nil, fault.New(fault.UnexpectedError,
		"Nothing was published: authenticating at %s failed: %w", c.hostrRelay, err).Transient()
}

func unreachableReceipt(url string, err error) Receipt {
	return Receipt{RelayURL: url, Message: reasonOf(err)}
}

// publishTo sends the event to one relay and waits for its OK. An answer that
// wants AUTH gets one AUTH and one more try; the time that takes is not counted.
func (c *Client) publishTo(ctx context.Context, url, id string, frame []byte, timeout time.Duration) Receipt {
	connection, err := c.connection(url)
	if err != nil {
		return unreachableReceipt(url, err)
	}
	started := c.clock.Now()
	limited, cancel := limit(ctx, c.clock, timeout, errNotConnected)
	s, err := connection.open(limited)
	cancel()
	if err != nil {
		return unreachableReceipt(url, fmt.Errorf("%w: %w", errUnreachable, err))
	}
	left := timeout - c.clock.Now().Sub(started)
	for first := true; ; first = false {
		generation := connection.generation(s)
		started := c.clock.Now()
		limited, cancel := limit(ctx, c.clock, left, errNoOK)
		answer, err := s.publish(limited, id, frame)
		cancel()
		left -= c.clock.Now().Sub(started)
		if err != nil {
			return Receipt{RelayURL: url, Message: noAnswerText(err)}
		}
		again := first && !answer.accepted && wantsAuthentication(answer.text)
		if !again || s.authenticateAgain(ctx, generation) != nil {
			return Receipt{url, true, answer.accepted, answer.text}
		}
	}
}

var errNoOK = errors.New("no OK in time")

// noAnswerText is empty where only the time ran out (spec 82 §7.3).
func noAnswerText(err error) string {
	if errors.Is(err, errNoOK) {
		return ""
	}
	return reasonOf(err)
}

// publishFailure says what every relay answered.
func (c *Client) publishFailure(ctx context.Context, event nostr.Event, receipts []Receipt) error {
	if c.ctx.Err() != nil {
		return ErrClosed
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	answers := make([]string, len(receipts))
	refused := false
	for i, r := range receipts {
		refused = refused || r.OKReceived
		answers[i] = fmt.Sprintf("%s (ok=%t, success=%t): %s", r.RelayURL, r.OKReceived, r.BroadcastSuccessful,
			orElse(r.Message, "no answer"))
	}
	failure := fault.New(fault.UnexpectedError, "No relay accepted event %s of kind %d. %s",
		event.ID, event.Kind, strings.Join(answers, "; ")).
		WithDetails(PublishDetails{event.ID, event.Kind, receipts})
	if refused {
		return failure
	}
	return failure.Transient()
}

func orElse(text, fallback string) string {
	if text == "" {
		return fallback
	}
	return text
}

// eventFrame checks what would be sent: relays would refuse it with less to say.
func eventFrame(event *nostr.Event) ([]byte, error) {
	if !isUTF8(event) {
		return nil, fault.New(fault.UnexpectedError,
			"The event of kind %d holds bytes that are not UTF-8, so that relays would compute another id.", event.Kind)
	}
	if _, ok := checkForm(event); !ok {
		return nil, fault.New(fault.UnexpectedError,
			"The event of kind %d is not signed, or was changed after it was signed.", event.Kind)
	}
	frame, err := nostr.EventEnvelope{Event: *event}.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("writing event %s: %w", event.ID, err)
	}
	return frame, nil
}

func isUTF8(event *nostr.Event) bool {
	for _, tag := range event.Tags {
		for _, value := range tag {
			if !utf8.ValidString(value) {
				return false
			}
		}
	}
	return utf8.ValidString(event.Content)
}
