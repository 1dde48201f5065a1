package inbox

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/giftwrap"
	"hostr-daemon/internal/market"
	"hostr-daemon/internal/relay"
	"hostr-daemon/internal/signer"
)

const (
	// defaultHistoryLimit is how long stored wraps may take to come (spec 60 §6.2).
	defaultHistoryLimit = 10 * time.Second
	// fetchFirst and fetchLongest pace the attempts at a relay that does not serve.
	fetchFirst, fetchLongest = time.Second, time.Minute
)

// fetch applies what the cache knows, and then what the relay has and gets.
func (s *Service) fetch(ctx context.Context) {
	known := s.cache.load(ctx)
	s.apply(known)
	if s.relays.HostrRelay() == "" {
		s.unwrapper.endHistory()
		s.goLive()
		return
	}
	for failures := 0; ctx.Err() == nil; failures++ {
		began := time.Now()
		err := errors.New("something went wrong inside hostr-daemon")
		s.contain("fetching messages", func() { err = s.listen(ctx, known) })
		if ctx.Err() != nil {
			return
		}
		s.tellUnauthorized(err)
		s.log.Info().Str("event", "inbox.interrupted").Err(err).Send()
		if time.Since(began) > fetchLongest {
			failures = 0
		}
		s.wait(ctx, doubled(fetchFirst, fetchLongest, failures))
	}
}

// apply takes over what the cache knows.
func (s *Service) apply(known recalled) {
	s.mu.Lock()
	for _, wrap := range known.wraps {
		if id, ok := parseWrapID(wrap); ok {
			s.wraps[id] = struct{}{}
		}
	}
	s.mu.Unlock()
	for _, rumor := range known.rumors {
		s.accept(rumor)
	}
}

// listen serves one subscription until it ends. It is opened after AUTH: without, the
// relay would answer it with nothing (spec 60 §3.3).
func (s *Service) listen(ctx context.Context, known recalled) error {
	if err := s.relays.Authenticate(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	asked := s.now()
	since := known.since(asked)
	filter := nostr.Filter{Kinds: []int{market.KindGiftWrap}, Tags: nostr.TagMap{"p": {s.me}}, Since: since}
	subscription, err := s.relays.Subscribe(ctx, filter, relay.SubscribeOptions{})
	if err != nil {
		return err
	}
	defer subscription.Close()
	reached := marks{completed: asked, full: asked}
	if since != nil {
		reached.full = known.marks.full
	}
	f := fetching{service: s, subscription: subscription, reached: reached, lost: make(chan struct{}, 1)}
	s.background("keeping the relay's AUTH", func(context.Context) { f.keepAuthenticated(ctx) })
	return f.run(ctx)
}

// fetching is one subscription.
type fetching struct {
	service      *Service
	subscription *relay.Subscription
	// reached are the marks that a complete history deserves.
	reached marks
	lost    chan struct{} // gets a signal when the AUTH may be gone
	// broken is true when the connection was lost, or paused, during the history.
	broken bool
}

// run takes events as they come: what they cost is done elsewhere.
func (f *fetching) run(ctx context.Context) error {
	s := f.service
	boundary := time.NewTimer(s.historyLimit)
	defer boundary.Stop()
	stored := f.subscription.Stored()
	for {
		events := f.subscription.Events()
		if s.unwrapper.isFull() {
			events = nil
		}
		select {
		case wrap, open := <-events:
			if !open {
				return errors.New("the subscription has ended")
			}
			s.receive(wrap)
		case <-stored:
			stored = nil
			if f.subscription.Complete() { // Else a refusal follows, and another attempt.
				f.endHistory(!f.broken)
			}
		case <-boundary.C:
			f.endHistory(false)
		case <-f.subscription.Restored():
			f.broken = true
			signal(f.lost)
		case refusal := <-f.subscription.Refusals():
			if refusal.Final {
				return fmt.Errorf("%s does not serve messages: %s", refusal.RelayURL, refusal.Reason)
			}
			signal(f.lost)
		case <-s.unwrapper.room:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// endHistory goes live as soon as all wraps so far are opened; the first call counts.
func (f *fetching) endHistory(complete bool) {
	s := f.service
	if !s.unwrapper.endHistory() {
		return
	}
	s.background("waiting for the history", func(ctx context.Context) {
		select {
		case <-s.unwrapper.historyDone:
		case <-ctx.Done():
			return
		}
		s.goLive()
		if complete && s.unwrapper.isSettled() {
			s.cache.complete(f.reached)
		}
	})
}

// keepAuthenticated does the AUTH again that failed after a lost connection: until it
// succeeds the relay shows nothing, and once it does the client asks again by itself.
func (f *fetching) keepAuthenticated(ctx context.Context) {
	s := f.service
	for {
		select {
		case <-f.lost:
		case <-ctx.Done():
			return
		}
		for failures := 0; ; failures++ {
			err := s.relays.Authenticate(ctx)
			if err == nil || ctx.Err() != nil {
				break
			}
			s.tellUnauthorized(err)
			s.log.Info().Str("event", "inbox.unauthenticated").Err(err).Send()
			s.wait(ctx, doubled(fetchFirst, fetchLongest, failures))
		}
	}
}

// receive takes a wrap from the relay, each once.
func (s *Service) receive(wrap *nostr.Event) {
	id, ok := parseWrapID(wrap.ID)
	if !ok {
		return
	}
	s.mu.Lock()
	_, had := s.wraps[id]
	s.wraps[id] = struct{}{}
	own := s.own[id]
	echo := own != nil && own.shown()
	if own != nil && own.state != sending {
		delete(s.own, id)
	}
	s.mu.Unlock()
	switch {
	case echo:
		s.echo(own)
	case !had && own == nil:
		s.unwrapper.add(wrap)
	}
}

// open has the signer open one wrap.
func (s *Service) open(ctx context.Context, wrap *nostr.Event) (result verdict) {
	result = opened // A wrap that makes us panic is not tried again.
	s.contain("opening a message", func() { result = s.unwrap(ctx, wrap) })
	return result
}

func (s *Service) unwrap(ctx context.Context, wrap *nostr.Event) verdict {
	_, event, err := giftwrap.Unwrap(ctx, s.account, wrap)
	if err != nil {
		return s.failed(ctx, wrap, err)
	}
	rumor, err := market.ReadRumor(event)
	if err != nil {
		s.drop(wrap, "its message cannot be used")
		return opened
	}
	s.cache.rumor(wrap.ID, rumor.Event)
	s.accept(rumor)
	return opened
}

// failed tells what a failure says: only a definite one is remembered (spec 60 §4.3).
func (s *Service) failed(ctx context.Context, wrap *nostr.Event, err error) verdict {
	switch {
	case ctx.Err() != nil:
		return unanswered
	case errors.Is(err, giftwrap.ErrRejected):
		s.drop(wrap, "nobody can decrypt it")
		return opened
	case errors.Is(err, signer.ErrNoSigner), errors.Is(err, signer.ErrClosed), s.tellUnauthorized(err):
		return absent
	}
	s.log.Info().Str("event", "inbox.unopened").Str("wrapId", wrap.ID).Err(err).Send()
	var rejected *signer.Rejected
	var wrong *signer.WrongAnswer
	if errors.As(err, &rejected) || errors.As(err, &wrong) {
		return refused
	}
	return unanswered
}

// tellUnauthorized reports whether the signer no longer knows this connection, and
// tells the session.
func (s *Service) tellUnauthorized(err error) bool {
	var rejected *signer.Rejected
	if !errors.As(err, &rejected) || !rejected.NotAuthorized() {
		return false
	}
	if s.notAuthorized != nil {
		s.contain("telling of a signer that does not know us", func() { s.notAuthorized(err) })
	}
	return true
}

// drop remembers a wrap that is of no use to anybody.
func (s *Service) drop(wrap *nostr.Event, reason string) {
	s.log.Info().Str("event", "inbox.dropped").Str("wrapId", wrap.ID).Str("reason", reason).Send()
	s.cache.undecryptable(wrap.ID)
}

func parseWrapID(digits string) (id wrapID, ok bool) {
	n, err := hex.Decode(id[:], []byte(digits[:min(len(digits), 2*len(id))]))
	return id, err == nil && n == len(id)
}
