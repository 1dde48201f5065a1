package seeds

import (
	"context"
	"fmt"

	"hostr-daemon/internal/derivation"
)

// origin is where a seed came from.
type origin string

const (
	fromStore  origin = "store"
	fromBackup origin = "backup"
	fromKey    origin = "key"
	fromRandom origin = "random"
)

// found is a seed that may be used: it is in the secret store.
type found struct {
	seed   derivation.Seed
	origin origin
	// compared is false when the backup still has to be compared with it.
	compared bool
}

// find looks in the secret store and in the backup, and makes a seed only where both
// are known to have none (spec 20 §12.1, "Go").
func (s *Service) find(ctx context.Context) (found, error) {
	seed, stored, err := s.local.Seed(ctx)
	if err != nil {
		return found{}, fmt.Errorf("reading the account seed from the secret store: %w", err)
	}
	if stored {
		return found{seed: seed, origin: fromStore}, nil
	}
	backups := s.backups()
	remote, err := backups.fetch(ctx, fetchTimeout)
	if err != nil {
		return found{}, err
	}
	switch {
	case remote.readable():
		return s.adopt(ctx, remote, fromBackup)
	case remote.exists() && (s.derived.IsZero() || !remote.lost):
		return found{}, unreadable(remote.problem)
	case !remote.complete:
		return found{}, unknown(remote.answer)
	case remote.exists():
		s.log.Warn().Str("eventId", remote.eventID).Err(remote.problem).Msg("seed.backup_unreadable")
		return s.keep(ctx, found{seed: s.derived, origin: fromKey, compared: true})
	case s.derived.IsZero():
		return s.draw(ctx, backups)
	default:
		return s.derive(ctx, backups)
	}
}

// derive backs up the seed of a private key held here. Whatever becomes of the
// backup, the seed can be derived again; but one that another device has published
// at the same moment wins, so that the account does not get two.
func (s *Service) derive(ctx context.Context, backups *backups) (found, error) {
	event, err := backups.write(ctx, s.derived)
	if err != nil {
		return found{}, unpublished(err)
	}
	if err := backups.publish(ctx, event); err != nil {
		_, storing := s.keep(ctx, found{seed: s.derived})
		if storing != nil {
			return found{}, storing
		}
		return found{}, unpublished(err)
	}
	shown, err := backups.readBack(ctx, s.derived)
	switch {
	case err != nil:
		return found{}, err
	case shown.readable() && !shown.seed.Equal(s.derived):
		return s.adopt(ctx, shown, fromBackup)
	case !shown.readable():
		s.log.Warn().Str("eventId", event.ID).Msg("seed.backup_not_shown")
	}
	return s.keep(ctx, found{seed: s.derived, origin: fromKey, compared: shown.readable()})
}

// draw makes a random seed. It counts only once the relay shows its backup, and the
// signer has read it: a seed that is nowhere else must not be used.
func (s *Service) draw(ctx context.Context, backups *backups) (found, error) {
	seed, err := derivation.NewSeed(s.random)
	if err != nil {
		return found{}, err
	}
	event, err := backups.write(ctx, seed)
	if err != nil {
		return found{}, unpublished(err)
	}
	// A person may have taken minutes to approve that. Publishing on the old answer
	// would replace the seed of a device that was first.
	remote, err := backups.fetch(ctx, fetchTimeout)
	switch {
	case err != nil:
		return found{}, err
	case remote.readable():
		return s.adopt(ctx, remote, fromBackup)
	case remote.exists():
		return found{}, unreadable(remote.problem)
	case !remote.complete:
		return found{}, unknown(remote.answer)
	}
	if err := backups.publish(ctx, event); err != nil {
		return found{}, unpublished(err)
	}
	shown, err := backups.readBack(ctx, derivation.Seed{})
	if err != nil {
		return found{}, err
	}
	if !shown.readable() {
		return found{}, unpublished(notShown(shown))
	}
	return s.adopt(ctx, shown, fromRandom)
}

// adopt keeps a seed that was read from its backup.
func (s *Service) adopt(ctx context.Context, remote finding, from origin) (found, error) {
	adopted, err := s.keep(ctx, found{seed: remote.seed, origin: from, compared: true})
	if err == nil {
		s.mark(ctx, remote)
	}
	return adopted, err
}

func (s *Service) keep(ctx context.Context, kept found) (found, error) {
	if err := s.local.SetSeed(ctx, kept.seed); err != nil {
		return found{}, fmt.Errorf("storing the account seed in the secret store: %w", err)
	}
	return kept, nil
}
