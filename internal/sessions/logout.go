package sessions

import (
	"context"
	"encoding/json"
	"fmt"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/redact"
	"hostr-daemon/internal/store"
)

// UnfinishedSwaps tells which operations of an account have not ended.
type UnfinishedSwaps interface {
	UnfinishedOperations(ctx context.Context, pubkey string, namespaces ...string) ([]store.Operation, error)
}

// unfinishedSwap is one of them as it is shown: its namespace, and its stored state
// without the preimage, which opens the payment to whoever knows it.
type unfinishedSwap struct {
	Namespace string                     `json:"namespace"`
	State     map[string]json.RawMessage `json:"state"`
}

// pendingSwapsDetails are the details of pending_swaps (spec 10 §3.5).
type pendingSwapsDetails struct {
	Pubkey           string           `json:"pubkey"`
	PendingSwapCount int              `json:"pendingSwapCount"`
	PendingSwaps     []unfinishedSwap `json:"pendingSwaps"`
}

// Logout signs the session of a key out (spec 20 §7). It refuses while a swap of the
// account is unfinished. A session nobody is signed in to logs out successfully, and
// one whose stored sign-in cannot be read loses that: to remove it is what was asked.
func (r *Registry) Logout(ctx context.Context, key string) error {
	session, err := r.Session(ctx, key)
	if err != nil {
		return err
	}
	if err := session.logout(ctx); err != nil {
		return err
	}
	r.forget(r.connects, key, nil)
	return nil
}

func (s *Session) logout(ctx context.Context) error {
	s.change.Lock()
	defer s.change.Unlock()
	account, unreadable := s.signedIn()
	if account == nil && unreadable == nil {
		return s.records.SignOut(ctx)
	}
	pubkey := s.key // whose an unreadable sign-in is nothing else tells
	if account != nil {
		pubkey = account.pubkey
	}
	if err := s.refuseWhileMoneyMoves(ctx, pubkey); err != nil {
		return err
	}
	// The sign-in goes last, so that what fails before can be tried again.
	if err := s.records.DeleteMessageCacheKey(ctx, pubkey); err != nil {
		return fmt.Errorf("removing the key of the message cache: %w", err)
	}
	if err := s.records.SignOut(ctx); err != nil {
		return err
	}
	s.registry.notices.forget(pubkey)
	if err := s.become(nil); err != nil {
		return err
	}
	// The inbox may have begun meanwhile, and made a key: it makes none from now on.
	if err := s.records.DeleteMessageCacheKey(ctx, pubkey); err != nil {
		return fmt.Errorf("removing the key of the message cache: %w", err)
	}
	s.forgetMessages(ctx, pubkey)
	return nil
}

// forgetMessages removes what nobody can read any more without the key that is gone.
func (s *Session) forgetMessages(ctx context.Context, pubkey string) {
	config := s.registry.config
	if config.MessageCache == nil {
		return
	}
	if err := config.MessageCache(pubkey).Forget(ctx); err != nil {
		config.Logger.Warn().Str("event", "session.messages_kept").Str("message", redact.Error(err)).Send()
	}
}

func (s *Session) refuseWhileMoneyMoves(ctx context.Context, pubkey string) error {
	unfinished, err := s.registry.config.Swaps.UnfinishedOperations(ctx, pubkey, "swap_in", "swap_out")
	if err != nil {
		return fmt.Errorf("looking for unfinished payments before signing out: %w", err)
	}
	if len(unfinished) == 0 {
		return nil
	}
	shown := make([]unfinishedSwap, len(unfinished))
	for i, operation := range unfinished {
		shown[i].Namespace = operation.Namespace
		if err := json.Unmarshal(operation.Data, &shown[i].State); err != nil {
			return fmt.Errorf("the stored state of swap %s: %w", operation.ID, err)
		}
		delete(shown[i].State, "preimageHex")
	}
	return fault.New(fault.PendingSwaps, "The account has %d unfinished payments, whose keys signing out would take away.", len(unfinished)).
		WithHint("Wait until they are done, look at them with hostr_swaps_list, or finish them with hostr_swaps_recoverAll; then sign out.").
		WithDetails(pendingSwapsDetails{Pubkey: pubkey, PendingSwapCount: len(unfinished), PendingSwaps: shown}).
		Transient()
}
