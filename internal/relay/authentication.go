package relay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nbd-wtf/go-nostr"
	"github.com/nbd-wtf/go-nostr/nip42"
)

// Account signs NIP-42 AUTH events for the one identity of a client.
type Account interface {
	// PublicKey returns the account's key as 64 lower-case hex digits.
	PublicKey() string
	// SignEvent sets id, pubkey and sig. It returns when the context ends.
	SignEvent(ctx context.Context, event *nostr.Event) error
	// IsRemote is true when another device signs: an AUTH that fails then does not
	// keep an event from being published.
	IsRemote() bool
}

const (
	challengeLimit = 5 * time.Second
	signLimit      = 30 * time.Second
	authOKLimit    = 30 * time.Second
	// openLimit is how long the REQs of a fresh socket wait for its AUTH, which may
	// begin with the wait for a challenge. A remote signer that takes longer does not
	// hold up reading: live REQs are sent again when its AUTH is accepted.
	openLimit = challengeLimit + time.Second
	// maxChallenge bounds what we sign on a relay's behalf, in bytes.
	maxChallenge = 4 << 10
)

var (
	errNoAccount   = errors.New("nobody is signed in who could answer the relay's AUTH")
	errNoChallenge = errors.New("the relay wants an AUTH but has sent no challenge")
	errOpenTime    = fmt.Errorf("no AUTH within %v", openLimit)
	errSignTime    = fmt.Errorf("the signer did not answer within %v", signLimit)
	errAuthTime    = fmt.Errorf("the relay did not answer the AUTH within %v", authOKLimit)
)

// authentication is the NIP-42 state of one socket (spec 82 §8.2), guarded by the
// connection's lock.
type authentication struct {
	challenge  string
	challenged chan struct{} // closed by the first challenge
	// unasked is set when no challenge came in time: the relay wants no AUTH.
	unasked bool
	// accepted is the challenge under which the relay accepted our AUTH.
	accepted string
	// generation counts accepted AUTHs.
	generation int
	failed     bool
	// late is set once an AUTH was begun by a challenge that came after its time.
	late bool
	// running is the AUTH under way, which all callers share; first is the one the
	// socket began with.
	running, first *authRun
}

type authRun struct {
	done chan struct{}
	err  error
}

// open waits for the AUTH the socket began with before it lets out the REQs that
// do not come before it.
func (s *socket) open(first *authRun) {
	ctx, cancel := limit(s.ctx, s.connection.client.clock, openLimit, errOpenTime)
	defer cancel()
	if err := s.await(ctx, first); err != nil && s.ctx.Err() == nil {
		s.connection.log.Warn().Str("reason", reasonOf(err)).Msg("relay AUTH failed; reading without it")
	}
	c := s.connection
	c.mu.Lock()
	defer c.mu.Unlock()
	s.ready = true
	if c.socket != s {
		return
	}
	for _, w := range c.inOrder() {
		if w.state == wireUnsent {
			c.send(w)
		}
	}
}

// authenticate makes sure that the relay knows the account, connecting if need be;
// every further socket begins with AUTH. Where this call brings the socket about,
// that AUTH is its answer.
func (c *connection) authenticate(ctx context.Context) error {
	if c.client.account == nil {
		return errNoAccount
	}
	c.mu.Lock()
	c.authenticates = true
	before := c.socket
	c.mu.Unlock()
	s, err := c.open(ctx)
	if err != nil {
		return fmt.Errorf("%w: %w", errUnreachable, err)
	}
	if first := s.authentication.first; s != before && first != nil {
		return s.await(ctx, first)
	}
	return s.authenticate(ctx)
}

// authenticate makes sure that the relay knows the account on this socket, and
// returns nil also when the relay sends no challenge. Concurrent callers share one
// AUTH.
func (s *socket) authenticate(ctx context.Context) error {
	c := s.connection
	if c.client.account == nil {
		return errNoAccount
	}
	c.mu.Lock()
	a := &s.authentication
	if a.challenge != "" && a.accepted == a.challenge || a.challenge == "" && a.unasked {
		c.mu.Unlock()
		return nil
	}
	run := s.startAuthentication()
	c.mu.Unlock()
	return s.await(ctx, run)
}

// authenticateAgain does AUTH on behalf of a request that the relay refused with
// auth-required; the request had been sent when generation AUTHs were accepted. One
// accepted since then serves as well.
func (s *socket) authenticateAgain(ctx context.Context, generation int) error {
	c := s.connection
	if c.client.account == nil {
		return errNoAccount
	}
	c.mu.Lock()
	a := &s.authentication
	switch {
	case a.generation > generation:
		c.mu.Unlock()
		return nil
	case a.challenge == "" && a.running == nil:
		c.mu.Unlock()
		return errNoChallenge
	}
	a.accepted = ""
	run := s.startAuthentication()
	c.mu.Unlock()
	return s.await(ctx, run)
}

func (s *socket) await(ctx context.Context, run *authRun) error {
	if run == nil {
		return errConnectionLost
	}
	select {
	case <-run.done:
		return run.err
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-s.ctx.Done():
		return errConnectionLost
	}
}

// startAuthentication joins the AUTH under way or begins one; nil when the socket
// has ended. The lock is held.
func (s *socket) startAuthentication() *authRun {
	if s.authentication.running != nil {
		return s.authentication.running
	}
	if s.connection.socket != s {
		return nil
	}
	run := &authRun{done: make(chan struct{}), err: errors.New("the AUTH broke off")}
	s.authentication.running = run
	s.tasks.Go(func() {
		defer s.finishAuthentication(run)
		run.err = s.performAuthentication()
	})
	return run
}

func (s *socket) finishAuthentication(run *authRun) {
	if problem := recover(); problem != nil {
		s.connection.log.Error().Str("panic", fmt.Sprintf("%T", problem)).Msg("an AUTH panicked")
	}
	c := s.connection
	c.mu.Lock()
	s.authentication.running = nil
	s.authentication.failed = run.err != nil
	c.mu.Unlock()
	close(run.done)
}

func (s *socket) performAuthentication() error {
	challenge, err := s.awaitChallenge()
	if err != nil || challenge == "" {
		return err
	}
	event, err := s.signAuthentication(challenge)
	if err != nil {
		return err
	}
	frame, err := nostr.AuthEnvelope{Event: *event}.MarshalJSON()
	if err != nil {
		return fmt.Errorf("writing the AUTH event: %w", err)
	}
	ctx, cancel := limit(s.ctx, s.connection.client.clock, authOKLimit, errAuthTime)
	defer cancel()
	answer, err := s.publish(ctx, event.ID, frame)
	if err != nil {
		return err
	}
	if !answer.accepted {
		return fmt.Errorf("the relay refused the AUTH: %s", answer.text)
	}
	s.authenticated(challenge)
	return nil
}

// awaitChallenge returns the relay's challenge, or "" when none came within five
// seconds of connecting: then the relay wants no AUTH. That is waited for once per
// socket, and not at all where the last socket had shown it.
func (s *socket) awaitChallenge() (string, error) {
	c := s.connection
	c.mu.Lock()
	challenge, challengeless := s.authentication.challenge, c.challengeless
	c.mu.Unlock()
	if challenge != "" {
		return challenge, nil
	}
	if left := challengeLimit - c.client.clock.Now().Sub(s.opened); left > 0 && !challengeless {
		fired, stop := timer(c.client.clock, left)
		defer stop()
		select {
		case <-s.authentication.challenged:
		case <-fired:
		case <-s.ctx.Done():
			return "", errConnectionLost
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.authentication.challenge == "" {
		s.authentication.unasked, c.challengeless = true, true
	}
	return s.authentication.challenge, nil
}

// signAuthentication has the account sign; queries on this relay wait longer by
// the time it takes.
func (s *socket) signAuthentication(challenge string) (*nostr.Event, error) {
	c := s.connection
	account, clock := c.client.account, c.client.clock
	event := nip42.CreateUnsignedAuthEvent(challenge, account.PublicKey(), c.url)
	event.CreatedAt = nostr.Timestamp(clock.Now().Unix())
	c.mu.Lock()
	c.signing.start(clock.Now())
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.signing.stop(clock.Now())
	}()
	ctx, cancel := limit(s.ctx, clock, signLimit, errSignTime)
	defer cancel()
	if err := account.SignEvent(ctx, &event); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, fmt.Errorf("signing the AUTH: %w", err)
	}
	if _, ok := checkForm(&event); !ok || event.PubKey != account.PublicKey() || event.Kind != nostr.KindClientAuthentication {
		return nil, errors.New("the signer returned another event than the AUTH it was asked to sign")
	}
	return &event, nil
}

// authenticated records an accepted AUTH and sends again the live REQs that had
// been answered without it: the relay may have left out what only the account may
// see (spec 82 §8.5).
func (s *socket) authenticated(challenge string) {
	c := s.connection
	c.mu.Lock()
	defer c.mu.Unlock()
	a := &s.authentication
	a.accepted = challenge
	a.generation++
	if c.socket != s {
		return
	}
	c.authenticates = true
	c.log.Debug().Msg("relay accepted AUTH")
	for _, w := range c.inOrder() {
		unseen := w.state == wireOpen && w.generation == 0 && !w.beforeAuth
		if w.live && (unseen || w.state == wireDormant) {
			c.send(w)
		}
	}
}

// onChallenge stores a challenge. It starts an AUTH only when the client wants an
// identity here and had stopped waiting for one to be asked.
func (s *socket) onChallenge(challenge string) {
	if challenge == "" || len(challenge) > maxChallenge {
		return
	}
	c := s.connection
	c.mu.Lock()
	defer c.mu.Unlock()
	a := &s.authentication
	first := a.challenge == ""
	if a.challenge != challenge {
		a.challenge, a.accepted = challenge, ""
	}
	c.challengeless = false
	if first {
		close(a.challenged)
	}
	if a.unasked && c.authenticates && !a.late {
		a.late = true
		s.startAuthentication()
	}
}

// authFailed reports whether the last AUTH on the present socket failed: a remote
// signer is not asked again before every event.
func (c *connection) authFailed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.socket != nil && c.socket.authentication.failed
}

// generation returns how many AUTHs the relay has accepted on the socket.
func (c *connection) generation(s *socket) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return s.authentication.generation
}
