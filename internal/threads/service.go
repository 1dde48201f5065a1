// Package threads is what an account does with its conversations: it finds the one
// that is meant and whoever gets a message, knows the people's names, writes, and tells
// what is new (spec 60 §9, §10).
//
// It knows threads, roles and names. It must never know how messages travel or how the
// result of an action looks, never send to a trade key, and never put anybody into a
// conversation that others hold.
package threads

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/market"
	"hostr-daemon/internal/relay"
)

// Inbox is the account's private messages.
type Inbox interface {
	// Await starts them and returns once the history is there, or after the limit; an
	// error only when ctx ends or the inbox is closed.
	Await(ctx context.Context, limit time.Duration) error
	// Read shows the threads for a short time; read must not call the inbox.
	Read(read func(*market.Threads))
}

// Trades is the account's public orders.
type Trades interface {
	// Start begins to follow them; further calls do nothing.
	Start()
	// Trips and Bookings return the account's trades at listings of others and at its own,
	// once all is verified or the limit is over.
	Trips(ctx context.Context, limit time.Duration) ([]market.TradeItem, error)
	Bookings(ctx context.Context, limit time.Duration) ([]market.TradeItem, error)
	// Resolve returns the people of a trade with an escrow that the account takes part in
	// (spec 60 §9.4, steps 1 to 5). It waits up to the limit for what is known to be
	// verified, and asks the relay for a trade that is not. A trade whose people are not
	// known is an escrow_thread_resolution_failed.
	Resolve(ctx context.Context, tradeID string, limit time.Duration) (TradePeople, error)
	// Decrypt returns the decryption of proofs in the orders of a trade.
	Decrypt(ctx context.Context, tradeID string) market.Decrypt
}

// TradePeople are the people of a trade with an escrow; none is a trade key.
type TradePeople struct {
	Seller, Buyer, Escrow string
	// Participants are all of them, and whoever else the orders name.
	Participants []string
}

// Relays is what the service needs of a session's relay client.
type Relays interface {
	Query(ctx context.Context, filter nostr.Filter, options relay.QueryOptions) (relay.Answer, error)
}

// Config is what a service is made of.
type Config struct {
	// Me is the account's pubkey, 64 lower-case hex digits.
	Me     string
	Inbox  Inbox
	Trades Trades
	Relays Relays
	// Send sends a message and returns it once every recipient's copy was accepted; by
	// then the inbox has it.
	Send func(ctx context.Context, draft market.MessageDraft) (market.Rumor, error)
	// Profile looks a person up; nil when no relay has a profile.
	Profile func(ctx context.Context, pubkey string) (*market.Profile, error)
}

// Service works on the conversations of one account's session. It is safe for
// concurrent use, and has nothing to close.
type Service struct {
	me     string
	inbox  Inbox
	trades Trades
	relays Relays
	send   func(ctx context.Context, draft market.MessageDraft) (market.Rumor, error)
	people directory
}

// New returns the service of an account.
func New(config Config) *Service {
	return &Service{
		me: config.Me, inbox: config.Inbox, trades: config.Trades, relays: config.Relays, send: config.Send,
		people: directory{config.Profile},
	}
}

// Await has messages and orders followed, also for an account without a profile (Q6),
// and waits until the history of the messages is there. When the limit is over first,
// what there is has to do, which is no error. Errors are the cause of ctx, and that of
// a closed session.
func (s *Service) Await(ctx context.Context, limit time.Duration) error {
	s.trades.Start()
	return s.inbox.Await(ctx, limit)
}

// Query says which thread is meant. "" and nil say nothing.
type Query struct {
	// Anchor is the id of a thread.
	Anchor string
	// TradeID and Conversation are what it is labelled with; the trade id counts first.
	TradeID, Conversation string
	// Pubkeys are others who take part, 64 lower-case hex digits each.
	Pubkeys []string
}

func (q Query) tag() string {
	if q.TradeID != "" {
		return q.TradeID
	}
	return q.Conversation
}

// Find returns the thread that is meant (spec 60 §9.3), nil when there is none. It may
// hold others than those asked for (Q13). What strangers write under the id of a trade
// counts only where its parties have no thread; the limit bounds the wait for the orders
// that tell who they are. Errors are the cause of ctx, and that of a closed session.
func (s *Service) Find(ctx context.Context, query Query, limit time.Duration) (*market.Thread, error) {
	if known := s.byAnchor(query.Anchor); known != nil {
		return known, nil
	}
	parties, err := s.parties(ctx, query.tag(), limit)
	if err != nil {
		return nil, err
	}
	return s.resolve(query, parties), nil
}

func (s *Service) resolve(query Query, parties []string) (found *market.Thread) {
	s.inbox.Read(func(threads *market.Threads) {
		found = threads.Resolve(query.Anchor, query.tag(), query.Pubkeys, parties)
	})
	return found
}

// parties returns who takes part in the trade that a tag names, by its public orders; nil
// where they do not tell, or nothing hangs on it.
func (s *Service) parties(ctx context.Context, tag string, limit time.Duration) ([]string, error) {
	tagged := s.tagged(tag)
	if len(tagged) == 0 || len(tagged) == 1 && s.tradeThread(tag, nil).Ours {
		return nil, nil
	}
	people, listed, err := s.listed(ctx, tag, limit)
	if err != nil || !listed {
		return nil, err
	}
	parties := people.People()
	if !slices.Contains(parties, s.me) {
		return nil, nil
	}
	return parties, nil
}

func (s *Service) tradeThread(tradeID string, parties []string) (found market.TradeThread) {
	s.inbox.Read(func(threads *market.Threads) { found = threads.TradeThread(tradeID, parties) })
	return found
}

// People returns the profile summaries of all who take part in the threads, the account
// included. Whoever cannot be looked up has none (spec 60 §10.1). The error is the cause
// of ctx.
func (s *Service) People(ctx context.Context, threads ...*market.Thread) (People, error) {
	pubkeys := []string{s.me}
	for _, thread := range threads {
		pubkeys = append(pubkeys, thread.Counterparties...)
	}
	return s.people.lookUp(ctx, pubkeys)
}

// exactly returns the thread of the account and these others under a tag: the one there
// is, or one without messages that nobody else gets to see (Q17).
func (s *Service) exactly(others []string, tag string) *market.Thread {
	empty := market.NewThread(s.me, others, tag)
	if known := s.byAnchor(empty.Anchor); known != nil {
		return known
	}
	return empty
}

func (s *Service) byAnchor(anchor string) *market.Thread {
	var thread *market.Thread
	s.inbox.Read(func(threads *market.Threads) { thread = threads.ByAnchor(anchor) })
	return thread
}

// contained turns a panic into an error, since no caller's recover covers the
// goroutine. Its text may hold what was worked on, so it is not repeated.
func contained(work func() error) func() error {
	return func() (err error) {
		defer func() {
			if problem := recover(); problem != nil {
				err = fmt.Errorf("reading the account's conversations failed unexpectedly (%T)", problem)
			}
		}()
		return work()
	}
}
