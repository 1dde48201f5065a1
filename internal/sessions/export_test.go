package sessions

import "context"

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
