package threads

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/market"
)

// Addressee says for whom a message is (spec 60 §10.3).
type Addressee struct {
	// Query may name recipients; they get the message, and nobody else does.
	Query
	// Role is host, seller, guest, buyer or escrow, in any case; "" for none.
	Role string
	// Limit bounds the wait for what the trade's orders tell of a role.
	Limit time.Duration
}

// Addressed is a thread and who gets what is written in it.
type Addressed struct {
	// Thread has exactly the account and the recipients as participants. It may be one
	// without messages, which exists nowhere before something is sent.
	Thread *market.Thread
	// Recipients are sorted, or as the caller gave them, without the account.
	Recipients []string
}

// Address finds who gets a message and in which thread (spec 60 §10.3, Q13 and Q15).
// Nobody is ever added to a thread: others have one of their own. Errors are
// recipient_required, trade_id_required, escrow_thread_resolution_failed and the cause
// of ctx.
func (s *Service) Address(ctx context.Context, to Addressee) (Addressed, error) {
	role := strings.ToLower(strings.TrimSpace(to.Role))
	if role == string(market.RoleEscrow) {
		return s.addressEscrow(ctx, to.TradeID, to.Limit)
	}
	tag, chosen := to.tag(), s.byAnchor(to.Anchor)
	if tag == "" && chosen != nil {
		tag = chosen.Tag
	}
	switch {
	case len(to.Pubkeys) > 0:
		if err := checkPubkeys(to.Pubkeys); err != nil {
			return Addressed{}, err
		}
		pubkeys, err := s.persons(ctx, to.Pubkeys, to.Limit)
		if err != nil {
			return Addressed{}, err
		}
		return s.addressed(pubkeys, tag)
	case role != "":
		known := s.tagged(tag)
		if chosen != nil && len(requestsOf([]*market.Thread{chosen}, tag)) > 0 {
			known = []*market.Thread{chosen}
		}
		pubkey, err := s.rolePubkey(ctx, roleWords[role], known, tag, to.Limit)
		if err != nil {
			return Addressed{}, err
		}
		return s.addressed([]string{pubkey}, tag)
	case chosen != nil:
		return s.everybody(chosen)
	default:
		return s.addressTagged(ctx, tag, to.Limit)
	}
}

// addressTagged is everybody else in the thread of a tag. What is said about a trade is
// for its parties: a thread that strangers have made under its id gets nothing.
func (s *Service) addressTagged(ctx context.Context, tag string, limit time.Duration) (Addressed, error) {
	parties, err := s.parties(ctx, tag, limit)
	if err != nil {
		return Addressed{}, err
	}
	found := s.resolve(Query{Conversation: tag}, parties)
	isParty := func(pubkey string) bool { return slices.Contains(parties, pubkey) }
	switch trade := s.tradeThread(tag, parties); {
	case found == nil:
		return Addressed{}, recipientRequired()
	case trade.Disputed:
		return Addressed{}, fault.New(fault.RecipientRequired, "Several people write about this trade, and it is not known which of them takes part in it.").
			WithHint("Give threadAnchor or recipientPubkeys; hostr.updates shows the conversations.")
	case len(parties) > 0 && !trade.Ours && !slices.ContainsFunc(found.Recipients(), isParty):
		return Addressed{}, fault.New(fault.RecipientRequired, "Only people who take no part in this trade have written about it.").
			WithHint("Give recipientRole to write to host or guest, or threadAnchor or recipientPubkeys to answer the others.")
	}
	return s.everybody(found)
}

// everybody is all others in a thread to whom something can be sent: where that are not
// all of them, in a thread of their own.
func (s *Service) everybody(thread *market.Thread) (Addressed, error) {
	recipients := thread.Recipients()
	switch len(recipients) {
	case 0:
		return Addressed{}, recipientRequired()
	case len(thread.Counterparties):
		return Addressed{Thread: thread, Recipients: recipients}, nil
	default:
		return s.addressed(recipients, thread.Tag)
	}
}

// checkPubkeys refuses what looks like a public key and is none (BIP-340): nothing can be
// encrypted for it.
func checkPubkeys(pubkeys []string) error {
	for i, pubkey := range pubkeys {
		if pubkey != "" && !nostr.IsValidPublicKey(pubkey) {
			return fault.New(fault.InvalidInput, "%.64s is not a public key: no private key belongs to it.", pubkey).
				At(fmt.Sprintf("recipientPubkeys[%d]", i)).WithHint("Check it for mistakes.")
		}
	}
	return nil
}

// addressed is the thread with exactly these others. "" is nobody.
func (s *Service) addressed(pubkeys []string, tag string) (Addressed, error) {
	var recipients []string
	for _, pubkey := range pubkeys {
		if pubkey != "" && pubkey != s.me && !slices.Contains(recipients, pubkey) {
			recipients = append(recipients, pubkey)
		}
	}
	if len(recipients) == 0 {
		return Addressed{}, recipientRequired()
	}
	return Addressed{Thread: s.exactly(recipients, tag), Recipients: recipients}, nil
}

func (s *Service) addressEscrow(ctx context.Context, tradeID string, limit time.Duration) (Addressed, error) {
	if tradeID == "" {
		return Addressed{}, fault.New(fault.TradeIDRequired,
			"Writing to an escrow needs the tradeId of an order: buyer, seller and escrow share one conversation about each trade.").At("tradeId")
	}
	shared, err := s.EscrowThread(ctx, tradeID, limit)
	if err != nil {
		return Addressed{}, err
	}
	return Addressed{Thread: shared.Thread, Recipients: shared.Thread.Recipients()}, nil
}

// tagged returns the threads of a tag in order of creation; none for "".
func (s *Service) tagged(tag string) []*market.Thread {
	if tag == "" {
		return nil
	}
	var tagged []*market.Thread
	s.inbox.Read(func(threads *market.Threads) {
		for _, thread := range threads.All() {
			if thread.Tag == tag {
				tagged = append(tagged, thread)
			}
		}
	})
	return tagged
}

func recipientRequired() error {
	return fault.New(fault.RecipientRequired, "Nobody was found to get the message.").
		WithHint("Give threadAnchor or tradeId of a conversation with others, recipientPubkeys, or a recipientRole that the trade's orders name: host or guest.")
}
