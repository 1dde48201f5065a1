package market_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/market"
)

func TestTransitionChains(t *testing.T) {
	t.Parallel()
	for _, vector := range readTradeVectors(t).TransitionChains {
		t.Run(vector.Name, func(t *testing.T) {
			t.Parallel()
			var input []market.OrderTransition
			for _, in := range vector.Input {
				input = append(input, market.OrderTransition{
					Event: &nostr.Event{ID: in.ID}, Previous: in.Prev, Type: in.Type, From: in.From, To: in.To,
				})
			}
			chain := market.ResolveTransitions(input, market.RoleBuyer)
			ordered := []string{}
			for _, transition := range chain.Ordered {
				ordered = append(ordered, transition.Event.ID)
			}
			if diff := cmp.Diff(vector.Ordered, ordered); diff != "" {
				t.Error(diff)
			}
			checkVerdict(t, chain, vector.chainVerdict)
			checkVerdict(t, market.ResolveTransitions(input, market.RoleEscrow), vector.AsEscrow)
		})
	}
}

func checkVerdict(t *testing.T, chain market.TransitionChain, want chainVerdict) {
	t.Helper()
	got := chainVerdict{Valid: chain.Failure == nil}
	if chain.Failure != nil {
		got.FailedIndex = &chain.Failure.Index
		if !strings.HasPrefix(chain.Failure.Error(), "transition ") {
			t.Error(chain.Failure)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%v: %s", chain.Failure, diff)
	}
}

func TestChainOfAnAuthor(t *testing.T) {
	t.Parallel()
	public := readTradeVectors(t).PublicTrade
	var transitions []market.OrderTransition
	for _, raw := range [][]byte{public.BuyerCancelTransition, public.CommitTransition} {
		transition, err := market.DecodeOrderTransition(eventOf(t, raw))
		if err != nil {
			t.Fatal(err)
		}
		transitions = append(transitions, transition)
	}
	chain := market.ResolveTransitions(transitions, market.RoleBuyer)
	if chain.Failure != nil || chain.LastID() != transitions[0].Event.ID {
		t.Errorf("%v, last %s", chain.Failure, chain.LastID())
	}
	if last := market.ResolveTransitions(nil, market.RoleBuyer).LastID(); last != "" {
		t.Errorf("the last of none is %q", last)
	}
}

// Every change is in the table, and no other pair of stages is allowed.
func TestTransitionRules(t *testing.T) {
	t.Parallel()
	allowed := map[[2]market.Stage]market.TransitionType{}
	for _, rule := range market.TransitionRules() {
		allowed[[2]market.Stage{rule.From, rule.To}] = rule.Type
	}
	stages := []market.Stage{market.StageNegotiate, market.StageCommit, market.StageCancel}
	types := []market.TransitionType{market.TransitionCounterOffer, market.TransitionCommit, market.TransitionCancel, market.TransitionConfirm}
	for _, from := range stages {
		for _, to := range stages {
			for _, kind := range types {
				step := market.OrderTransition{Event: &nostr.Event{ID: "x"}, Type: kind, From: from, To: to}
				valid := market.ResolveTransitions([]market.OrderTransition{step}, market.RoleSeller).Failure == nil
				if valid != (allowed[[2]market.Stage{from, to}] == kind) {
					t.Errorf("%s from %s to %s: %v", kind, from, to, valid)
				}
			}
		}
	}
}

func TestDecodeOrderTransition(t *testing.T) {
	t.Parallel()
	content := `{"transitionType":"cancel","fromStage":"commit","toStage":"cancel"`
	event := &nostr.Event{Kind: market.KindOrderTransition, Content: content + `,"reason":"r","updatedFields":["start"]}`, Tags: nostr.Tags{{"t", "trade"}, {"e", "order"}, {"prev", ""}}}
	got, err := market.DecodeOrderTransition(event)
	want := market.OrderTransition{
		Event: event, TradeID: "trade", OrderID: "order", Type: market.TransitionCancel,
		From: market.StageCommit, To: market.StageCancel, Reason: "r", UpdatedFields: []string{"start"},
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v: %s", err, diff)
	}
	if diff := cmp.Diff(`{"transitionType":"cancel","fromStage":"commit","toStage":"cancel","commitTermsHash":"","reason":"r","updatedFields":["start"]}`, got.Draft(author, 1).Content); diff != "" {
		t.Error(diff)
	}
	event.Content = content + `,"reason":7,"commitTermsHash":[],"updatedFields":{}}`
	if _, err := market.DecodeOrderTransition(event); err != nil {
		t.Errorf("with odd values beside the stages: %v", err)
	}
	for _, bad := range []string{
		``, `{}`, `{"transitionType":"Cancel","fromStage":"commit","toStage":"cancel"}`, `{"transitionType":"cancel","fromStage":"x","toStage":"cancel"}`,
		`{"transitionType":"cancel","fromStage":"commit","toStage":null}`, `{"transitionType":"cancel","fromStage":"commit","toStage":["cancel"]}`,
	} {
		event.Content = bad
		if _, err := market.DecodeOrderTransition(event); !errors.Is(err, market.ErrNotTransition) {
			t.Errorf("%s: %v", bad, err)
		}
	}
	if draft := (market.OrderTransition{OrderID: "o", ListingAnchor: "l"}).Draft(author, 1); len(draft.Tags) != 2 {
		t.Errorf("without a trade id: %v", draft.Tags)
	}
}

func FuzzOrderTransition(f *testing.F) {
	f.Add(eventOf(f, readTradeVectors(f).Transition).Content)
	f.Add(`{"transitionType":"confirm","fromStage":"commit","toStage":"commit","reason":"\u0000","updatedFields":["a",null]}`)
	f.Fuzz(func(t *testing.T, content string) {
		transition, err := market.DecodeOrderTransition(&nostr.Event{Kind: market.KindOrderTransition, Content: content})
		if err != nil {
			if !errors.Is(err, market.ErrNotTransition) {
				t.Fatal(err)
			}
			return
		}
		drafted := transition.Draft(author, 1)
		again, err := market.DecodeOrderTransition(drafted)
		if err != nil || again.Draft(author, 1).Content != drafted.Content {
			t.Fatalf("%q becomes %q: %v", content, drafted.Content, err)
		}
	})
}
