package market

//go:generate go run hostr-daemon/scripts/orderstates

import (
	"fmt"
	"slices"
)

// TransitionRule allows a change of an order from one stage to another.
type TransitionRule struct {
	From, To Stage
	Type     TransitionType
	// NotEscrow tells that an escrow may not do it: once it has committed, the
	// money is settled by its contract.
	NotEscrow bool
}

// transitionRules are all changes there are (spec 50 §7.1); docs/order-states.md
// is drawn from them.
var transitionRules = []TransitionRule{
	{From: StageNegotiate, To: StageNegotiate, Type: TransitionCounterOffer},
	{From: StageNegotiate, To: StageCommit, Type: TransitionCommit},
	{From: StageNegotiate, To: StageCancel, Type: TransitionCancel},
	{From: StageCommit, To: StageCommit, Type: TransitionConfirm},
	{From: StageCommit, To: StageCancel, Type: TransitionCancel, NotEscrow: true},
}

// TransitionRules returns every change that an order may make.
func TransitionRules() []TransitionRule { return slices.Clone(transitionRules) }

// TransitionChain is the log of one author in the order of its links.
type TransitionChain struct {
	// Ordered is as far as the chain could be put in order: the input unchanged
	// when ids or links are wrong, the part that hangs together when some does not.
	Ordered []OrderTransition
	// Failure is nil when the chain is valid.
	Failure *ChainFailure
}

// ChainFailure is the first thing wrong with a chain.
type ChainFailure struct {
	// Index counts from 0, in the input for ids and links, in Ordered for stages.
	Index   int
	Problem string
}

// Error names the place and the problem.
func (f *ChainFailure) Error() string { return fmt.Sprintf("transition %d %s", f.Index, f.Problem) }

// LastID returns the id of the last transition, which the next one follows; ""
// for an empty chain.
func (c TransitionChain) LastID() string {
	if len(c.Ordered) == 0 {
		return ""
	}
	return c.Ordered[len(c.Ordered)-1].Event.ID
}

// ResolveTransitions puts the transitions that one author made in one trade into
// the order of their links, whatever their times, and checks them (spec 50 §7.1).
// The role is the author's; an escrow has one rule more.
func ResolveTransitions(transitions []OrderTransition, role Role) TransitionChain {
	if len(transitions) == 0 {
		return TransitionChain{}
	}
	genesis, failure := findGenesis(transitions)
	if failure != nil {
		return TransitionChain{Ordered: slices.Clone(transitions), Failure: failure}
	}
	children, failure := findChildren(transitions)
	if failure != nil {
		return TransitionChain{Ordered: slices.Clone(transitions), Failure: failure}
	}
	ordered, failure := walkChain(transitions, genesis, children)
	if failure == nil {
		failure = checkStages(ordered, role)
	}
	return TransitionChain{Ordered: ordered, Failure: failure}
}

// findGenesis returns the index of the one transition without previous.
func findGenesis(transitions []OrderTransition) (int, *ChainFailure) {
	ids := map[string]bool{}
	for i, transition := range transitions {
		switch id := transition.Event.ID; {
		case id == "":
			return 0, &ChainFailure{i, "has no id"}
		case ids[id]:
			return 0, &ChainFailure{i, "appears twice: " + id}
		default:
			ids[id] = true
		}
	}
	var starts []int
	for i, transition := range transitions {
		switch {
		case transition.Previous == "":
			starts = append(starts, i)
		case !ids[transition.Previous]:
			return 0, &ChainFailure{i, fmt.Sprintf("follows %.80q, which is missing", transition.Previous)}
		}
	}
	switch len(starts) {
	case 0:
		return 0, &ChainFailure{0, "follows another like all others, so that none is the first"}
	case 1:
		return starts[0], nil
	}
	return 0, &ChainFailure{starts[1], "is a second first one"}
}

// findChildren returns the index of the transition after each id.
func findChildren(transitions []OrderTransition) (map[string]int, *ChainFailure) {
	children := map[string]int{}
	for i, transition := range transitions {
		if transition.Previous == "" {
			continue
		}
		if _, forked := children[transition.Previous]; forked {
			return nil, &ChainFailure{i, "is the second to follow " + transition.Previous}
		}
		children[transition.Previous] = i
	}
	return children, nil
}

// walkChain follows the links from the first transition. Everybody follows at
// most one and is followed by at most one, so a circle can only lie beside the
// chain, among those that are never reached.
func walkChain(transitions []OrderTransition, genesis int, children map[string]int) ([]OrderTransition, *ChainFailure) {
	ordered := make([]OrderTransition, 0, len(transitions))
	visited := make([]bool, len(transitions))
	for at, ok := genesis, true; ok; {
		ordered = append(ordered, transitions[at])
		visited[at] = true
		at, ok = children[transitions[at].Event.ID]
	}
	if missed := slices.Index(visited, false); missed >= 0 {
		return ordered, &ChainFailure{missed, "is not connected to the first one"}
	}
	return ordered, nil
}

func checkStages(ordered []OrderTransition, role Role) *ChainFailure {
	for i, transition := range ordered {
		if problem := transition.checkEdge(); problem != "" {
			return &ChainFailure{i, problem}
		}
		if i > 0 && transition.From != ordered[i-1].To {
			return &ChainFailure{i, fmt.Sprintf("starts from %s, the one before it ended in %s", transition.From, ordered[i-1].To)}
		}
	}
	if role != RoleEscrow {
		return nil
	}
	for i, transition := range ordered {
		if rule := transition.rule(); rule != nil && rule.NotEscrow {
			return &ChainFailure{i, fmt.Sprintf("goes from %s to %s, which an escrow may not", transition.From, transition.To)}
		}
	}
	return nil
}

func (t OrderTransition) checkEdge() string {
	switch rule := t.rule(); {
	case rule == nil:
		return fmt.Sprintf("goes from %s to %s, which no order may", t.From, t.To)
	case rule.Type != t.Type:
		return fmt.Sprintf("goes from %s to %s as %s instead of %s", t.From, t.To, t.Type, rule.Type)
	}
	return ""
}

// rule returns the rule of the transition's stages; nil when there is none.
func (t OrderTransition) rule() *TransitionRule {
	for i, rule := range transitionRules {
		if rule.From == t.From && rule.To == t.To {
			return &transitionRules[i]
		}
	}
	return nil
}
