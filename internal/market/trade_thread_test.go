package market_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/market"
)

// bid is an order by a key for a listing of the owner, in a message of the trade.
func bid(from string, at nostr.Timestamp, author, owner string, to ...string) sent {
	return sent{
		from: from, at: at, kind: market.KindStructuredMessage, tag: messageTrade, to: to,
		text: market.EncodeEmbeddedEvent(&nostr.Event{
			ID: from[:8] + "/" + owner[:8], PubKey: author, CreatedAt: at, Kind: market.KindOrder,
			Tags: nostr.Tags{{"a", "30402:" + owner + ":cabin"}, {"d", messageTrade}}, Content: `{"stage":"negotiate"}`,
		}),
	}
}

func note(from string, at nostr.Timestamp, to ...string) sent {
	return sent{from: from, at: at, text: "x", tag: messageTrade, to: to}
}

// Whoever has seen a public order knows the trade id, and may write under it.
func TestThreadsOfTradeAmongStrangers(t *testing.T) {
	t.Parallel()
	const guest, host, escrow, outsider, tradeKey = messageGuest, messageHost, messageEscrow, messageOutsider, messageTradeKey
	all := []string{guest, host, escrow}
	offers := bid(guest, 10, tradeKey, host, host)
	answers := bid(host, 20, host, host, guest)
	for name, test := range map[string]struct {
		me       string
		messages []sent
		parties  []string
		// resolved and negotiates are who take part in the thread beside me; nil for none.
		resolved, negotiates []string
		requests             int
		ours, disputed       bool
	}{
		"a stranger's text": {
			me: host, messages: []sent{offers, note(outsider, 90, host)},
			resolved: []string{guest}, negotiates: []string{guest}, requests: 1,
		},
		"a stranger's text to a guest": {
			me: guest, messages: []sent{note(outsider, 90, guest), offers},
			resolved: []string{host}, negotiates: []string{host}, requests: 1, ours: true,
		},
		"a stranger's listing": {
			me: guest, messages: []sent{offers, bid(outsider, 90, outsider, outsider, guest)},
			resolved: []string{host}, negotiates: []string{host}, requests: 1, ours: true,
		},
		"a stranger's listing before the guest's own orders are read": {
			me: host, messages: []sent{bid(outsider, 90, outsider, outsider, host), offers},
			resolved: []string{guest}, negotiates: []string{guest}, requests: 1,
		},
		"a rival bid after an answer": {
			me: host, messages: []sent{offers, answers, bid(outsider, 90, outsider, host, host)},
			resolved: []string{guest}, negotiates: []string{guest}, requests: 2, ours: true,
		},
		"a rival bid": {
			me: host, messages: []sent{offers, bid(outsider, 90, outsider, host, host)},
			resolved: []string{outsider}, negotiates: []string{outsider}, requests: 1, disputed: true,
		},
		"a rival bid in a trade of known parties": {
			me: host, messages: []sent{offers, bid(outsider, 90, outsider, host, host)}, parties: all,
			resolved: []string{guest}, negotiates: []string{guest}, requests: 1,
		},
		"a rival's bid where the guest has written only": {
			me: host, messages: []sent{note(guest, 5, host), bid(outsider, 90, outsider, host, host)}, parties: all,
			resolved: []string{guest},
		},
		"the thread with the escrow competes": {
			me: host, messages: []sent{offers, answers, note(escrow, 50, host, guest), note(outsider, 90, host, guest)}, parties: all,
			resolved: []string{guest, escrow}, negotiates: []string{guest}, requests: 2, ours: true,
		},
		"parties that do not hold our own thread": {
			me: host, messages: []sent{offers, answers, note(outsider, 90, host)}, parties: []string{host, outsider},
			resolved: []string{guest}, negotiates: []string{guest}, requests: 2, ours: true,
		},
		"only strangers": {
			me: host, messages: []sent{note(outsider, 90, host)}, parties: all, resolved: []string{outsider},
		},
		"another listing in the thread": {
			me: host, messages: []sent{offers, bid(guest, 90, guest, guest, host)},
			resolved: []string{guest}, negotiates: []string{guest}, requests: 1,
		},
	} {
		controls := func(pubkey, tradeID string) bool { return test.me == guest && ownsTradeKey(pubkey, tradeID) }
		threads := market.NewThreads(test.me, controls)
		for _, message := range test.messages {
			threads.Add(message.rumor(t))
		}
		with := func(thread *market.Thread) []string {
			if thread == nil {
				return nil
			}
			return thread.Counterparties
		}
		if diff := cmp.Diff(slices.Sorted(slices.Values(test.resolved)), slices.Sorted(slices.Values(with(threads.Resolve("", messageTrade, nil, test.parties))))); diff != "" {
			t.Errorf("%s: resolved (-want +got):\n%s", name, diff)
		}
		got := threads.TradeThread(messageTrade, test.parties)
		if diff := cmp.Diff(test.negotiates, with(got.Thread)); diff != "" {
			t.Errorf("%s: negotiates (-want +got):\n%s", name, diff)
		}
		if len(got.Requests) != test.requests || got.Ours != test.ours || got.Disputed != test.disputed {
			t.Errorf("%s: %d requests, ours %v, disputed %v", name, len(got.Requests), got.Ours, got.Disputed)
		}
	}
}

func TestFollowingCreatedAt(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		others []nostr.Timestamp
		want   nostr.Timestamp
	}{
		{nil, 1000},
		{[]nostr.Timestamp{0, 999}, 1000},
		{[]nostr.Timestamp{1000, 998}, 1001},
		{[]nostr.Timestamp{1059}, 1060},
		{[]nostr.Timestamp{1060}, 1000},
		{[]nostr.Timestamp{1 << 62, 1010}, 1011},
	} {
		if got := market.FollowingCreatedAt(1000, test.others...); got != test.want {
			t.Errorf("after %v: %d, want %d", test.others, got, test.want)
		}
	}
}

// Senders choose neither who gets our answers nor what counts as the last word.
func TestRecipientsAndTurns(t *testing.T) {
	t.Parallel()
	named := []string{messageGuest, messageTradeKey, "garbage"}
	thread := only(t, threadsOf(t, note(messageHost, 10, named...)))
	if diff := cmp.Diff([]string{messageHost}, thread.Recipients()); diff != "" {
		t.Errorf("recipients (-want +got):\n%s", diff)
	}
	if want := market.ThreadAnchor(append(named, messageHost), messageTrade); thread.Anchor != want {
		t.Errorf("anchor %s, want %s", thread.Anchor, want)
	}
	own := bid(messageGuest, 20, messageTradeKey, messageHost, messageHost, messageOutsider)
	trade := threadsOf(t, own).TradeThread(messageTrade, nil)
	if diff := cmp.Diff([]string{messageHost}, trade.Recipients(messageGuest, messageHost)); diff != "" {
		t.Errorf("recipients in a trade (-want +got):\n%s", diff)
	}

	late := bid(messageHost, 1<<52, messageHost, messageHost, messageGuest)
	requests := only(t, threadsOf(t, bid(messageHost, 1000, messageHost, messageHost, messageGuest), late)).OrderRequests()
	ordered, ahead := market.ByTurn(requests, 1000)
	if ahead != 1 || ordered[0].Rumor.Event.CreatedAt != 1<<52 || ordered[1].Rumor.Event.CreatedAt != 1000 {
		t.Errorf("%d ahead of %v", ahead, ordered)
	}
	if _, ahead = market.ByTurn(requests, 1<<52); ahead != 0 {
		t.Errorf("%d ahead of their time", ahead)
	}
}
