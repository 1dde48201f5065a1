package trades

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/market"
	"hostr-daemon/internal/relay"
)

// Resolution is who takes part in a trade, as people and not as trade keys.
type Resolution struct {
	TradeID string
	Group   market.OrderGroup
	// Seller, Buyer and Escrow are identities.
	Seller, Buyer, Escrow string
	// Participants are these three and nobody else, sorted; the account is one. Further
	// keys that an order names are its author's word: they would be let into the
	// conversation (spec 60 §5.3 has them in).
	Participants []string
}

// ResolutionProblem says why the people of a trade are not known.
type ResolutionProblem string

// The problems.
const (
	ProblemUnknownTrade   ResolutionProblem = "unknown_trade"
	ProblemMissingRoles   ResolutionProblem = "missing_roles"
	ProblemNotParticipant ResolutionProblem = "not_participant"
	// ProblemUndecided means that the relay or the signer could not be asked.
	ProblemUndecided ResolutionProblem = "undecided"
)

// ResolutionError is a trade whose people are not known. It is an
// escrow_thread_resolution_failed for people.
type ResolutionError struct {
	TradeID string
	// ActivePubkey is the account.
	ActivePubkey string
	Problem      ResolutionProblem
	// Missing are the roles that nobody is known for.
	Missing []market.Role
	// Cause may be nil.
	Cause error

	once  sync.Once
	coded *fault.Error
}

// ResolutionDetails are the details of the failure (spec 60 §9.2).
type ResolutionDetails struct {
	TradeID      string `json:"tradeId"`
	ActivePubkey string `json:"activePubkey"`
}

// Error says what is not known.
func (e *ResolutionError) Error() string {
	text := ""
	switch e.Problem {
	case ProblemUnknownTrade:
		text = fmt.Sprintf("There is no public order of trade %.80s in which this account takes part.", e.TradeID)
	case ProblemMissingRoles:
		var roles []string
		for _, role := range e.Missing {
			roles = append(roles, string(role))
		}
		text = fmt.Sprintf("Not everybody of trade %.80s is known; missing: %s.", e.TradeID, strings.Join(roles, ", "))
	case ProblemNotParticipant:
		text = fmt.Sprintf("This account takes no part in trade %.80s.", e.TradeID)
	default:
		text = fmt.Sprintf("It could not be found out who takes part in trade %.80s.", e.TradeID)
	}
	if e.Cause != nil {
		text += " " + fault.From(e.Cause).Message
	}
	return text
}

// Unwrap returns the failure as it is coded, always the same, which leads to the cause.
func (e *ResolutionError) Unwrap() error {
	e.once.Do(func() {
		e.coded = &fault.Error{
			Code: fault.EscrowThreadResolutionFailed, Message: e.Error(), Cause: e.Cause,
			Retryable: e.Problem == ProblemUndecided || e.Cause != nil && fault.From(e.Cause).Retryable,
			Details:   ResolutionDetails{TradeID: e.TradeID, ActivePubkey: e.ActivePubkey},
		}
	})
	return e.coded
}

// ResolveTrade finds seller, buyer and escrow of a public trade that the account takes
// part in (spec 60 §9.4, steps 1 to 5). It waits for what is known of the trade to be
// verified, up to the limit. A failure is a *ResolutionError, or the cause of ctx.
func (s *Service) ResolveTrade(ctx context.Context, tradeID string, limit time.Duration) (Resolution, error) {
	tradeID = strings.TrimSpace(tradeID)
	failure := &ResolutionError{TradeID: tradeID, ActivePubkey: s.me, Problem: ProblemUnknownTrade}
	if tradeID == "" {
		return Resolution{}, failure
	}
	if _, err := s.awaitSettled(ctx, limit); err != nil {
		return Resolution{}, err
	}
	if err := s.learnKeysWithin(ctx, limit); err != nil {
		if ctx.Err() != nil {
			return Resolution{}, context.Cause(ctx)
		}
		failure.Cause = err // A host needs no trade key.
	}
	group, ok := s.listedGroup(tradeID)
	if !ok {
		var err error
		if group, ok, err = s.askedGroup(ctx, tradeID); err != nil {
			if ctx.Err() != nil {
				return Resolution{}, context.Cause(ctx)
			}
			failure.Problem, failure.Cause = ProblemUndecided, err
			return Resolution{}, failure
		}
	}
	if !ok {
		return Resolution{}, failure
	}
	participants, err := s.resolveAll(ctx, group)
	if ctx.Err() != nil {
		return Resolution{}, context.Cause(ctx)
	}
	if err != nil {
		failure.Cause = err
	}
	return s.resolution(group, participants, failure)
}

// learnKeysWithin is learnKeys with a limit of its own.
func (s *Service) learnKeysWithin(ctx context.Context, limit time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errNoSeed)
	defer cancel()
	return s.learnKeys(ctx)
}

var errNoSeed = fault.New(fault.UnexpectedError, "The account seed, which tells the trade keys, is not there yet: approve the request of hostr-daemon in the signer.").Transient()

// resolution requires all roles, and us among the people.
func (s *Service) resolution(group market.OrderGroup, participants market.GroupParticipants, failure *ResolutionError) (Resolution, error) {
	resolved := Resolution{
		TradeID: failure.TradeID, Group: group,
		Seller: s.person(group, participants, market.RoleSeller),
		Buyer:  s.person(group, participants, market.RoleBuyer),
		Escrow: s.person(group, participants, market.RoleEscrow),
	}
	resolved.Participants = []string{resolved.Seller, resolved.Buyer, resolved.Escrow}
	slices.Sort(resolved.Participants)
	resolved.Participants = slices.Compact(resolved.Participants)
	for _, role := range []struct {
		pubkey string
		role   market.Role
	}{{resolved.Seller, market.RoleSeller}, {resolved.Buyer, market.RoleBuyer}, {resolved.Escrow, market.RoleEscrow}} {
		if role.pubkey == "" {
			failure.Missing = append(failure.Missing, role.role)
		}
	}
	if len(failure.Missing) > 0 {
		failure.Problem = ProblemMissingRoles
		return Resolution{}, failure
	}
	if !slices.Contains(resolved.Participants, s.me) {
		failure.Problem = ProblemNotParticipant
		return Resolution{}, failure
	}
	return resolved, nil
}

// person returns who plays a role, "" when that is not known. Behind our trade key that
// is the account, whatever proofs there are.
func (s *Service) person(group market.OrderGroup, participants market.GroupParticipants, role market.Role) string {
	if s.Controls(participants.RawPubkey(role), group.TradeID()) {
		return s.me
	}
	pubkey := participants.ProvenPubkey(role)
	if !nostr.IsValidPublicKey(pubkey) {
		return ""
	}
	return pubkey
}

// listedGroup returns the group that lists show of a trade, as it is now.
func (s *Service) listedGroup(tradeID string) (market.OrderGroup, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, ok := s.trades[tradeID]
	if !ok {
		return market.OrderGroup{}, false
	}
	group := s.choose(t)
	if group == nil || !s.lists(t, group.verified.group, group.verified.group.SellerPubkey() == s.me) {
		return market.OrderGroup{}, false
	}
	return group.group, true
}

// askedGroup asks the relay for a trade, and chooses among the groups that we take part
// in: an outsider's order must not bring him into the conversation (spec 60, Q14).
func (s *Service) askedGroup(ctx context.Context, tradeID string) (market.OrderGroup, bool, error) {
	answer, err := s.relays.Query(ctx, ordersFilter(tradeID), relay.QueryOptions{})
	if err != nil {
		return market.OrderGroup{}, false, err
	}
	var orders []market.Order
	for _, event := range answer.Events {
		if order, err := market.DecodeOrder(event); err == nil && order.TradeID == tradeID {
			orders = append(orders, order)
		}
	}
	var anchors []market.Anchor
	groups := slices.DeleteFunc(market.GroupOrders(orders), func(group market.OrderGroup) bool {
		controls := func(pubkey string) bool { return s.ring.controls(pubkey, tradeID) }
		return !slices.ContainsFunc(group.ParticipantPubkeys(), controls)
	})
	if len(groups) > maxGroups {
		groups = groups[:maxGroups]
	}
	for _, group := range groups {
		anchors = append(anchors, group.Listing())
	}
	s.listings.load(ctx, anchors)
	var verified []market.VerifiedGroup
	for _, group := range groups {
		listing, _ := s.listings.get(group.Listing())
		verified = append(verified, market.VerifiedGroup{Group: group, Verification: group.VerifyWithoutChain(listing, false)})
	}
	s.mu.Lock()
	trusted := s.trusted(s.known(tradeID), orders)
	s.mu.Unlock()
	chosen, ok := market.ChooseGroup(verified, trusted)
	if !ok && !answer.Complete {
		return market.OrderGroup{}, false, answer.Warning()
	}
	return chosen.Group, ok, nil
}
