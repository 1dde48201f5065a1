package threads_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/inbox"
	"hostr-daemon/internal/market"
	"hostr-daemon/internal/relay"
	"hostr-daemon/internal/threads"
)

// paper is an inbox of messages that were written by hand.
type paper struct{ threads *market.Threads }

func (p paper) Await(context.Context, time.Duration) error { return nil }
func (p paper) Read(read func(*market.Threads))            { read(p.threads) }

// ledger is what is public about trades.
type ledger struct{ trips []market.TradeItem }

func (l ledger) Start() {}

func (l ledger) Trips(context.Context, time.Duration) ([]market.TradeItem, error) {
	return l.trips, nil
}

func (l ledger) Bookings(context.Context, time.Duration) ([]market.TradeItem, error) { return nil, nil }

func (l ledger) Resolve(context.Context, string, time.Duration) (threads.TradePeople, error) {
	return threads.TradePeople{}, fault.New(fault.EscrowThreadResolutionFailed, "unknown")
}

func (l ledger) Decrypt(context.Context, string) market.Decrypt {
	return func(string, string, string) (string, error) { return "", errors.New("not for us") }
}

var (
	me, host, guest, other, tradeKey = pubkeyOf("a"), pubkeyOf("b"), pubkeyOf("c"), pubkeyOf("d"), pubkeyOf("e")
	aTrade, otherTrade               = pubkeyOf("1"), pubkeyOf("2")
)

// written is a message by hand.
type written struct {
	from  string
	to    []string
	tag   string
	order *nostr.Event // nil for a text
}

func orderBy(author, listingOwner, tradeID string) *nostr.Event {
	return &nostr.Event{PubKey: author, Kind: market.KindOrder, Content: `{"stage":"negotiate"}`,
		Tags: nostr.Tags{{"a", "30402:" + listingOwner + ":cabin"}, {"d", tradeID}}}
}

func threadsOf(t testing.TB, messages ...written) paper {
	t.Helper()
	all := market.NewThreads(me, func(string, string) bool { return false })
	for i, message := range messages {
		draft := market.MessageDraft{Kind: market.KindTextMessage, Content: "Hello.", Conversation: message.tag, Recipients: message.to}
		if message.order != nil {
			draft = market.NewOrderMessage(message.order, message.tag, message.to)
		}
		rumor, err := market.ReadRumor(draft.Event(message.from, nostr.Timestamp(1000+i)))
		if err != nil {
			t.Fatal(err)
		}
		all.Add(rumor)
	}
	return paper{all}
}

// tripOf is a public order by a trade key, with nothing that shows who is behind it.
func tripOf(t testing.TB) market.TradeItem {
	t.Helper()
	order, err := market.DecodeOrder(orderBy(tradeKey, host, aTrade))
	if err != nil {
		t.Fatal(err)
	}
	group, ok := market.NewOrderGroup([]market.Order{order})
	if !ok {
		t.Fatal("no group")
	}
	closed := func(market.Order, market.ParticipantProof) (string, bool) { return "", false }
	return market.TradeItem{Group: group, Valid: true, Participants: group.Participants(closed)}
}

// bookingOf is a public order of a trade key at our own listing, with a proof of who is
// behind it; "" when it cannot be opened.
func bookingOf(t testing.TB, identity string) market.TradeItem {
	t.Helper()
	event := orderBy(tradeKey, me, aTrade)
	event.Tags = append(event.Tags, nostr.Tag{"p", me, "", "seller"}, nostr.Tag{"p", tradeKey, "", "buyer"},
		nostr.Tag{"participant_proof", "buyer", tradeKey, me, "nip44", "hash", "payload"})
	order, err := market.DecodeOrder(event)
	if err != nil {
		t.Fatal(err)
	}
	group, ok := market.NewOrderGroup([]market.Order{order})
	if !ok {
		t.Fatal("no group")
	}
	open := func(market.Order, market.ParticipantProof) (string, bool) { return identity, identity != "" }
	return market.TradeItem{Group: group, Valid: true, Participants: group.Participants(open)}
}

// The id of a trade is public once it is committed, and so are its keys.
func TestAddressInABooking(t *testing.T) {
	t.Parallel()
	theirs := written{from: guest, to: []string{me}, tag: aTrade, order: orderBy(tradeKey, me, aTrade)}
	rival := written{from: other, to: []string{me}, tag: aTrade, order: orderBy(pubkeyOf("f"), me, aTrade)}
	stranger := written{from: other, to: []string{me}, tag: aTrade}
	unsigned := orderBy(pubkeyOf("9"), me, aTrade)
	unsigned.Tags = append(unsigned.Tags, nostr.Tag{"participant_proof", "buyer", pubkeyOf("9"), me, "nip44", "hash", "payload"})
	about := threads.Query{TradeID: aTrade}
	for name, test := range map[string]struct {
		messages []written
		// behind is who the host knows behind the trade key.
		behind string
		query  threads.Query
		want   []string
		code   fault.Code
		path   string
	}{
		"a stranger's newer text":        {messages: []written{theirs, stranger}, behind: guest, query: about, want: []string{guest}},
		"before it is known who booked":  {messages: []written{theirs, stranger}, query: about, want: []string{guest}},
		"a rival":                        {messages: []written{theirs, rival}, behind: guest, query: about, want: []string{guest}},
		"a rival, not known who booked":  {messages: []written{theirs, rival}, query: about, code: fault.RecipientRequired},
		"strangers alone":                {messages: []written{stranger}, behind: guest, query: about, code: fault.RecipientRequired},
		"a stranger's thread is meant":   {messages: []written{stranger}, behind: guest, query: threads.Query{Anchor: market.ThreadAnchor([]string{me, other}, aTrade)}, want: []string{other}},
		"the trade key of a person":      {behind: guest, query: threads.Query{TradeID: aTrade, Pubkeys: []string{host, tradeKey, guest}}, want: []string{host, guest}},
		"the trade key of nobody known":  {query: threads.Query{Pubkeys: []string{host, tradeKey}}, code: fault.InvalidInput, path: "recipientPubkeys[1]"},
		"who has written is no key":      {messages: []written{{from: tradeKey, to: []string{me}}}, query: threads.Query{Pubkeys: []string{tradeKey}}, want: []string{tradeKey}},
		"an unsigned order says nothing": {messages: []written{{from: other, to: []string{me}, tag: aTrade, order: unsigned}}, query: threads.Query{Pubkeys: []string{pubkeyOf("9")}}, want: []string{pubkeyOf("9")}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			service := threads.New(threads.Config{
				Me: me, Inbox: threadsOf(t, test.messages...), Trades: ledger{trips: []market.TradeItem{bookingOf(t, test.behind)}},
			})
			to, err := service.Address(patient(t), threads.Addressee{Query: test.query})
			if test.code != "" {
				if coded := fault.From(err); coded == nil || coded.Code != test.code || coded.Path != test.path {
					t.Fatalf("%+v, %v", to, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, to.Recipients); diff != "" {
				t.Errorf("recipients (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAddress(t *testing.T) {
	t.Parallel()
	ours := written{from: me, to: []string{host}, tag: aTrade, order: orderBy(tradeKey, host, aTrade)}
	theirs := written{from: guest, to: []string{me}, tag: aTrade, order: orderBy(tradeKey, me, aTrade)}
	rival := written{from: other, to: []string{me}, tag: aTrade, order: orderBy(pubkeyOf("f"), me, aTrade)}
	hostile := written{from: other, to: []string{me}, tag: aTrade, order: orderBy(other, other, aTrade)}
	text := written{from: guest, to: []string{me}, tag: "summer"}
	wider := written{from: guest, to: []string{me, host}, tag: aTrade}
	pair := market.ThreadAnchor([]string{me, guest}, "summer")
	for name, test := range map[string]struct {
		messages []written
		trips    bool
		to       threads.Addressee
		want     []string
		tag      string
		code     fault.Code
	}{
		"nobody": {to: threads.Addressee{}, code: fault.RecipientRequired},
		"pubkeys keep their order, without me and repetition": {
			to:   threads.Addressee{Query: threads.Query{Pubkeys: []string{other, me, guest, other}, Conversation: "c"}},
			want: []string{other, guest}, tag: "c",
		},
		"the trade id goes before the conversation": {
			to:   threads.Addressee{Query: threads.Query{Pubkeys: []string{other}, Conversation: "c", TradeID: aTrade}},
			want: []string{other}, tag: aTrade,
		},
		"only me": {to: threads.Addressee{Query: threads.Query{Pubkeys: []string{me}}}, code: fault.RecipientRequired},
		"pubkeys go before a role": {
			messages: []written{ours},
			to:       threads.Addressee{Query: threads.Query{Pubkeys: []string{other}, TradeID: aTrade}, Role: "host"},
			want:     []string{other}, tag: aTrade,
		},
		"the tag of a thread found by its anchor": {
			messages: []written{text},
			to:       threads.Addressee{Query: threads.Query{Anchor: pair, Pubkeys: []string{other}}},
			want:     []string{other}, tag: "summer",
		},
		"no tag of a thread found otherwise": {
			messages: []written{text},
			to:       threads.Addressee{Query: threads.Query{Anchor: pubkeyOf("0"), Pubkeys: []string{other}}},
			want:     []string{other},
		},
		"all others of the thread": {
			messages: []written{wider},
			to:       threads.Addressee{Query: threads.Query{TradeID: aTrade}}, want: []string{host, guest}, tag: aTrade,
		},
		"an escrow needs a trade": {
			messages: []written{text},
			to:       threads.Addressee{Query: threads.Query{Conversation: "summer"}, Role: "Escrow"}, code: fault.TradeIDRequired,
		},
		"an escrow whatever the pubkeys": {
			to:   threads.Addressee{Query: threads.Query{TradeID: aTrade, Pubkeys: []string{other}}, Role: "escrow"},
			code: fault.EscrowThreadResolutionFailed,
		},
		"our own order names the host": {
			messages: []written{hostile, ours},
			to:       threads.Addressee{Query: threads.Query{TradeID: aTrade}, Role: "host"}, want: []string{host}, tag: aTrade,
		},
		"what others sent does not agree": {
			messages: []written{hostile, {from: host, to: []string{me}, tag: aTrade, order: orderBy(host, host, aTrade)}},
			to:       threads.Addressee{Query: threads.Query{TradeID: aTrade}, Role: "host"}, code: fault.RecipientRequired,
		},
		"the public order tells who is the host": {
			messages: []written{hostile}, trips: true,
			to: threads.Addressee{Query: threads.Query{TradeID: aTrade}, Role: "seller"}, want: []string{host}, tag: aTrade,
		},
		"the guest who wrote": {
			messages: []written{theirs},
			to:       threads.Addressee{Query: threads.Query{TradeID: aTrade}, Role: "guest"}, want: []string{guest}, tag: aTrade,
		},
		"two guests of one trade": {
			messages: []written{theirs, rival},
			to:       threads.Addressee{Query: threads.Query{TradeID: aTrade}, Role: "guest"}, code: fault.RecipientRequired,
		},
		"one of them by the anchor": {
			messages: []written{theirs, rival},
			to: threads.Addressee{
				Query: threads.Query{Anchor: market.ThreadAnchor([]string{me, guest}, aTrade)}, Role: "guest",
			},
			want: []string{guest}, tag: aTrade,
		},
		"the orders of a trade beside its wider thread": {
			messages: []written{theirs, {from: guest, to: []string{me, other}, tag: aTrade}},
			to: threads.Addressee{
				Query: threads.Query{Anchor: market.ThreadAnchor([]string{me, guest, other}, aTrade)}, Role: "guest",
			},
			want: []string{guest}, tag: aTrade,
		},
		"orders of another trade say nothing": {
			messages: []written{{from: guest, to: []string{me}, tag: aTrade, order: orderBy(tradeKey, me, otherTrade)}},
			to:       threads.Addressee{Query: threads.Query{TradeID: aTrade}, Role: "guest"}, code: fault.RecipientRequired,
		},
		"the guest is oneself": {
			messages: []written{ours},
			to:       threads.Addressee{Query: threads.Query{TradeID: aTrade}, Role: "guest"}, code: fault.RecipientRequired,
		},
		"a role in a conversation without orders": {
			messages: []written{text},
			to:       threads.Addressee{Query: threads.Query{Anchor: pair}, Role: "host"}, code: fault.RecipientRequired,
		},
		"whoever the sender names that nothing can be sent to": {
			messages: []written{{from: host, to: []string{me, "garbage"}, tag: "plan"}},
			to:       threads.Addressee{Query: threads.Query{Conversation: "plan"}}, want: []string{host}, tag: "plan",
		},
		"nobody's public key": {
			to: threads.Addressee{Query: threads.Query{Pubkeys: []string{strings.Repeat("f", 64)}}}, code: fault.InvalidInput,
		},
		"a thread with oneself": {
			messages: []written{{from: me, tag: "notes"}},
			to:       threads.Addressee{Query: threads.Query{Conversation: "notes"}}, code: fault.RecipientRequired,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			public := ledger{}
			if test.trips {
				public.trips = []market.TradeItem{tripOf(t)}
			}
			service := threads.New(threads.Config{Me: me, Inbox: threadsOf(t, test.messages...), Trades: public})
			to, err := service.Address(patient(t), test.to)
			if test.code != "" {
				if !fault.Is(err, test.code) {
					t.Fatalf("%+v, %v", to, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, to.Recipients); diff != "" {
				t.Errorf("recipients (-want +got):\n%s", diff)
			}
			if to.Thread.Tag != test.tag || to.Thread.Anchor != market.ThreadAnchor(append([]string{me}, test.want...), test.tag) {
				t.Errorf("the thread %q has participants %q", to.Thread.Tag, to.Thread.Participants)
			}
		})
	}
}

// A copy that is published when the time is over may arrive (Q7).
func TestSendInTime(t *testing.T) {
	t.Parallel()
	guest := newPerson(t, commonRelay)
	holding := make(chan struct{})
	client := &heldRelays{Client: guest.client, released: holding}
	slow := inbox.New(inbox.Config{Relays: client, Account: guest.local})
	defer slow.Close()
	defer close(holding)
	service := threads.New(threads.Config{Me: guest.public, Inbox: slow, Trades: ledger{}, Send: func(ctx context.Context, draft market.MessageDraft) (market.Rumor, error) {
		sent, err := slow.Send(ctx, draft)
		return sent.Rumor, err
	}})
	to, err := service.Address(patient(t), threads.Addressee{Query: threads.Query{Pubkeys: []string{guest.public, newPerson(t, commonRelay).public}}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = service.Send(patient(t), to.Thread, "Hello?", time.Second)
	coded := fault.From(err)
	if coded == nil || coded.Code != fault.UnexpectedError || errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("%v", err)
	}
	if client.reached.Load() && !strings.Contains(coded.Message, "unknown") {
		t.Errorf("a message under way: %v", coded)
	}
}

// heldRelays publish nothing until they are released.
type heldRelays struct {
	*relay.Client
	released chan struct{}
	reached  atomic.Bool
}

func (r *heldRelays) Publish(ctx context.Context, _ nostr.Event, _ relay.PublishOptions) ([]relay.Receipt, error) {
	r.reached.Store(true)
	select {
	case <-r.released:
	case <-ctx.Done():
	}
	return nil, errors.New("held")
}
