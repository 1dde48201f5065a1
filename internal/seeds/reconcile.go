package seeds

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"hostr-daemon/internal/derivation"
)

// comparePause is how long a comparison that came to nothing is not tried again.
const comparePause = 10 * time.Minute

// compareSoon compares the local seed with its backup in the background, unless that
// was done or has just been tried.
func (s *Service) compareSoon(ctx context.Context, seed derivation.Seed) {
	now := s.clock.Now()
	s.mu.Lock()
	due := !s.compared && !now.Before(s.compareAt)
	if due {
		s.compareAt = now.Add(comparePause)
	}
	s.mu.Unlock()
	if !due {
		return
	}
	s.reconciles.Start(ctx, s.public, func(ctx context.Context) (struct{}, error) {
		if s.reconcile(ctx, seed) {
			s.mu.Lock()
			s.compared = true
			s.mu.Unlock()
		}
		return struct{}{}, nil
	})
}

// reconcile compares the local seed with its backup, and backs it up where there is
// none (spec 20 §12.1 step 1). A different one is left alone, and so is the local
// one. It reports whether there is nothing left to do; a signer that has refused is
// not asked again.
func (s *Service) reconcile(ctx context.Context, seed derivation.Seed) (done bool) {
	backups := s.backups()
	backups.marked = s.marks(ctx, seed)
	remote, err := backups.fetch(ctx, reconcileTimeout)
	log := s.log.With().Str("eventId", remote.eventID).Logger()
	switch {
	case err != nil:
		return false
	case remote.seed.Equal(seed):
		s.mark(ctx, remote)
		return true
	case remote.readable():
		log.Error().Msg("seed.differs")
		return true
	case remote.exists():
		log.Warn().Err(remote.problem).Msg("seed.backup_unreadable")
		return remote.lost
	case !remote.complete:
		log.Info().Str("reason", remote.answer.Warning().Message).Msg("seed.backup_unknown")
		return false
	}
	event, err := backups.write(ctx, seed)
	if err != nil {
		log.Warn().Err(err).Msg("seed.backup_failed")
		return true
	}
	if err := backups.publish(ctx, event); err != nil {
		log.Warn().Err(err).Msg("seed.backup_failed")
		return false
	}
	log.Info().Str("eventId", event.ID).Msg("seed.backed_up")
	return true
}

// marks returns what knows the event that this seed was compared with before: what a
// remote signer has decrypted once it need not decrypt again.
func (s *Service) marks(ctx context.Context, seed derivation.Seed) func(eventID string) (derivation.Seed, bool) {
	if s.memory == nil || !s.account.IsRemote() {
		return nil
	}
	mark, err := s.memory.Mark(ctx)
	if err != nil {
		s.log.Warn().Err(err).Msg("seed.mark_unreadable")
		return nil
	}
	return func(eventID string) (derivation.Seed, bool) {
		return seed, hmac.Equal([]byte(mark), []byte(markOf(eventID, seed)))
	}
}

// mark remembers that a backup holds the seed it was found with.
func (s *Service) mark(ctx context.Context, remote finding) {
	if s.memory == nil || !s.account.IsRemote() {
		return
	}
	if err := s.memory.SetMark(ctx, markOf(remote.eventID, remote.seed)); err != nil {
		s.log.Warn().Err(err).Msg("seed.mark_not_stored")
	}
}

// markOf ties an event to a seed without giving anything of the seed away.
func markOf(eventID string, seed derivation.Seed) string {
	mac := hmac.New(sha256.New, []byte(seed.Hex()))
	_, _ = mac.Write([]byte("hostr account seed backup " + eventID)) // never fails
	return hex.EncodeToString(mac.Sum(nil))
}
