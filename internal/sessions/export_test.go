package sessions

import (
	"context"
	"time"
)

// Ended is closed when the listener that was last started has ended.
func (p *PendingSignIn) Ended() <-chan struct{} { return p.invitation.current().done }

// Load is what opening a session does; the one under way may come after a sign-in.
func (s *Session) Load(ctx context.Context) error { return s.load(ctx) }

// ErrNoProfile is how a start-up ends that waits for a profile.
var ErrNoProfile = errNoProfile

// EndHydration ends the run under way with an error, and tells whether it may end.
func (s *Session) EndHydration(err error) bool {
	s.mu.Lock()
	run := s.hydrate
	s.mu.Unlock()
	return s.endHydration(run, err)
}

// GoBackground starts work as the registry's own.
func (r *Registry) GoBackground(what string, work func()) {
	r.goBackground(what, func(context.Context) { work() })
}

// SetAskTimeout narrows how long a new signer may take to tell its account.
func (r *Registry) SetAskTimeout(limit time.Duration) { r.askTimeout = limit }

// SetSendLimit widens how long the end of a session waits for messages.
func (r *Registry) SetSendLimit(limit time.Duration) { r.config.sendLimit = limit }

// Held tells how many keyed sessions and how many connections of sign-ins there are.
func (r *Registry) Held() (sessions, lines int) {
	r.mu.Lock()
	sessions = len(r.keyed)
	r.mu.Unlock()
	r.lines.mu.Lock()
	defer r.lines.mu.Unlock()
	return sessions, len(r.lines.open)
}
