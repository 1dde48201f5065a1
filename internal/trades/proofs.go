package trades

import (
	"context"
	"errors"
	"sync"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/errgroup"

	"hostr-daemon/internal/market"
	"hostr-daemon/internal/nip44guard"
	"hostr-daemon/internal/signer"
)

const (
	// proofsPerOrder is how many proofs that are addressed to us are opened of one order:
	// honest ones have one for each participant.
	proofsPerOrder = 3
	// keptProofs bounds the outcomes that are remembered, some 300 bytes each.
	keptProofs = 20_000
	// proofsAtOnce is how many proofs a remote signer is asked for side by side.
	proofsAtOnce = 4
	// maxRefusals is how often the signer may say no to a proof before Resume.
	maxRefusals = 2
)

// proofID names a proof; an event never changes.
type proofID struct {
	orderID, recipient, role, hash string
}

// proofOutcome is what is known of a proof.
type proofOutcome struct {
	// final is true when another attempt would end the same.
	final bool
	// identity is "" when the proof does not hold.
	identity string
	// refusals counts how often the signer said no.
	refusals int
}

// proofMemory spares the signer what it was asked before.
type proofMemory struct {
	mu       sync.Mutex
	outcomes *lru.Cache[proofID, proofOutcome]
}

func newProofMemory() *proofMemory {
	outcomes, err := lru.New[proofID, proofOutcome](keptProofs)
	if err != nil {
		panic(err) // Only for a size below one.
	}
	return &proofMemory{outcomes: outcomes}
}

func (m *proofMemory) get(id proofID) proofOutcome {
	m.mu.Lock()
	defer m.mu.Unlock()
	outcome, _ := m.outcomes.Get(id)
	return outcome
}

// note remembers how an attempt ended.
func (m *proofMemory) note(id proofID, identity string, failure error) proofOutcome {
	m.mu.Lock()
	defer m.mu.Unlock()
	outcome, _ := m.outcomes.Get(id)
	var rejected *signer.Rejected
	switch {
	case failure == nil:
		outcome = proofOutcome{final: true, identity: identity}
	case errors.As(failure, &rejected):
		outcome.refusals++
	}
	m.outcomes.Add(id, outcome)
	return outcome
}

// forgetFailures has refused proofs asked for again.
func (m *proofMemory) forgetFailures() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range m.outcomes.Keys() {
		if outcome, ok := m.outcomes.Peek(id); ok && !outcome.final {
			m.outcomes.Remove(id)
		}
	}
}

// proofJob is a proof that takes the remote signer to open it.
type proofJob struct {
	group *tradeGroup
	order market.Order
	proof market.ParticipantProof
	// awaited is true when lists wait for it.
	awaited bool
}

func (j proofJob) id() proofID {
	return proofID{j.order.Event.ID, j.proof.Recipient, string(j.proof.Role), j.proof.PayloadHash}
}

// resolution is who takes part in a group, and what it would take to know better.
type resolution struct {
	participants market.GroupParticipants
	// unasked are proofs that only the remote signer can open.
	unasked []proofJob
	// needsKeys is true when the seed could tell more.
	needsKeys bool
}

// resolve finds out who takes part in a group without asking anybody.
func (s *Service) resolve(ctx context.Context, group market.OrderGroup) resolution {
	var found resolution
	tried := map[string]int{}
	keysKnown := s.ring.known()
	found.participants = group.Participants(func(order market.Order, proof market.ParticipantProof) (string, bool) {
		job := proofJob{order: order, proof: proof}
		ours := s.Controls(proof.Recipient, order.TradeID)
		if !ours && !keysKnown {
			found.needsKeys = true
		}
		if !ours || tried[order.Event.ID] == proofsPerOrder {
			return "", false
		}
		tried[order.Event.ID]++
		outcome := s.proofs.get(job.id())
		switch {
		case outcome.final:
		case proof.Recipient == s.me && s.account.IsRemote():
			if outcome.refusals < maxRefusals {
				found.unasked = append(found.unasked, job)
			}
		default:
			outcome, _ = s.openProof(ctx, job)
		}
		return outcome.identity, outcome.identity != ""
	})
	return found
}

// resolveAll is resolve, but asks the remote signer as well. The error is a failure of
// the signer's, beside what could be found out.
func (s *Service) resolveAll(ctx context.Context, group market.OrderGroup) (market.GroupParticipants, error) {
	found := s.resolve(ctx, group)
	if len(found.unasked) == 0 {
		return found.participants, nil
	}
	var asking errgroup.Group
	asking.SetLimit(proofsAtOnce)
	for _, job := range found.unasked {
		asking.Go(func() (err error) {
			s.contain("opening a proof", func() { _, err = s.openProof(ctx, job) })
			return err
		})
	}
	err := asking.Wait()
	return s.resolve(ctx, group).participants, err
}

// openProof makes one attempt and remembers its outcome. Its error is one of asking:
// it says nothing of the proof.
func (s *Service) openProof(ctx context.Context, job proofJob) (proofOutcome, error) {
	if outcome := s.proofs.get(job.id()); outcome.final {
		return outcome, nil
	}
	decrypt := s.Decrypt(ctx, job.order.TradeID)
	var asking error
	opened, err := job.order.OpenProof(job.proof, func(recipient, sender, payload string) (string, error) {
		if !nip44guard.IsPayload(payload) { // Nobody can decrypt it: spare the signer.
			return "", nip44guard.ErrUndecryptable
		}
		plaintext, err := decrypt(recipient, sender, payload)
		if err != nil && !errors.Is(err, nip44guard.ErrUndecryptable) {
			asking = err
		}
		return plaintext, err
	})
	identity := ""
	if err == nil {
		identity = opened.Identity
	} else {
		// Its text may hold what was decrypted.
		s.log.Debug().Str("event", "trades.proof_ignored").Str("order", job.order.Event.ID).Bool("asked", asking == nil).Send()
	}
	return s.proofs.note(job.id(), identity, asking), asking
}

// open has the remote signer open proofs, a few at a time. While the signer fails the
// rest waits until the groups are verified again: asking a phone that is off for each
// proof of a long list would take hours.
func (s *Service) open(ctx context.Context) {
	for {
		jobs := s.takeProofs()
		if len(jobs) == 0 {
			select {
			case <-s.openProofs:
				continue
			case <-ctx.Done():
				return
			}
		}
		failed := make([]bool, len(jobs))
		var asking errgroup.Group
		for i, job := range jobs {
			asking.Go(func() error {
				failed[i] = true // Unless it comes out otherwise; a panic does not.
				s.contain("opening a proof", func() {
					_, err := s.openProof(ctx, job)
					failed[i] = err != nil
				})
				return nil
			})
		}
		_ = asking.Wait()
		s.finishProofs(jobs, failed)
	}
}

func (s *Service) takeProofs() []proofJob {
	s.mu.Lock()
	defer s.mu.Unlock()
	count := min(len(s.proofQueue), proofsAtOnce)
	jobs := s.proofQueue[:count:count]
	s.proofQueue = s.proofQueue[count:]
	return jobs
}

func (s *Service) finishProofs(jobs []proofJob, failed []bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	broken := false
	for i, job := range jobs {
		if failed[i] {
			broken = true
			s.giveUp(job)
			continue
		}
		s.enqueue(job.group)
		s.finishProof(job)
	}
	if broken {
		for _, job := range s.proofQueue {
			s.giveUp(job)
		}
		s.proofQueue = nil
	}
	s.notify()
}

// giveUp leaves a proof to the next verification of its group. The lock is held.
func (s *Service) giveUp(job proofJob) {
	job.group.unopened, job.group.signerFailed = true, true
	s.finishProof(job)
}

func (s *Service) finishProof(job proofJob) {
	if job.awaited {
		s.unopened--
	}
}
