package market_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/market"
)

// longAfter is after all messages of these tests.
const longAfter = nostr.Timestamp(4_000_000_000)

// threadsOf are the guest's threads of these messages.
func threadsOf(t testing.TB, messages ...sent) *market.Threads {
	t.Helper()
	threads := market.NewThreads(messageGuest, ownsTradeKey)
	for _, message := range messages {
		if !threads.Add(message.rumor(t)) {
			t.Fatalf("%+v is there already", message)
		}
	}
	return threads
}

func only(t testing.TB, threads *market.Threads) *market.Thread {
	t.Helper()
	all := threads.All()
	if len(all) != 1 {
		t.Fatalf("%d threads", len(all))
	}
	return all[0]
}

func fromHost(at nostr.Timestamp, text string) sent {
	return sent{from: messageHost, at: at, text: text, tag: messageTrade, to: []string{messageGuest}}
}

func toHost(at nostr.Timestamp, text string) sent {
	return sent{from: messageGuest, at: at, text: text, tag: messageTrade, to: []string{messageHost}}
}

func offer(message sent, author string) sent {
	message.kind = market.KindStructuredMessage
	message.text = childOrder(author, messageTrade, message.at)
	return message
}

func selection(message sent, service string) sent {
	message.kind = market.KindStructuredMessage
	message.text = childSelection(service, readableService)
	return message
}

func receipt(from string, at nostr.Timestamp, until string) sent {
	message := sent{from: from, at: at, kind: market.KindSeenReceipt, tag: messageTrade, to: []string{messageGuest, messageHost}}
	if until != "" {
		message.tags = nostr.Tags{{"seen_until", until}}
	}
	return message
}

func textsOf(rumors []market.Rumor) (texts []string) {
	for _, rumor := range rumors {
		texts = append(texts, rumor.Event.Content)
	}
	return texts
}

func TestThread(t *testing.T) {
	t.Parallel()
	threads := threadsOf(t,
		fromHost(30, "third"), toHost(10, "first"), fromHost(20, "second"), fromHost(30, "fourth"),
		offer(toHost(40, ""), messageTradeKey), offer(fromHost(50, ""), messageTradeKey), offer(fromHost(5, ""), messageHost),
		sent{from: messageHost, at: 60, kind: 10017, tag: messageTrade, to: []string{messageGuest}},
		receipt(messageHost, 70, "99"),
		sent{from: messageHost, at: 80, kind: 7, text: "+", tag: " " + messageTrade, to: []string{messageGuest}},
	)
	thread := only(t, threads)
	both := []string{messageGuest, messageHost}
	if diff := cmp.Diff(both, thread.Participants) + cmp.Diff(both[1:], thread.Recipients()) + cmp.Diff(both[1:], thread.Counterparties); diff != "" {
		t.Error(diff)
	}
	if thread.Anchor != market.ThreadAnchor(both, messageTrade) || thread.Tag != messageTrade || thread.TradeID() != messageTrade {
		t.Errorf("anchor %s, tag %s, trade %s", thread.Anchor, thread.Tag, thread.TradeID())
	}
	if diff := cmp.Diff([]string{"first", "second", "third", "fourth"}, textsOf(thread.TextMessages())); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{messageHost[:8] + "-5", messageTradeKey[:8] + "-40"}, requestIDs(thread.OrderRequests())); diff != "" {
		t.Error(diff)
	}
	if len(thread.Events()) != 8 || len(threads.Inbox()) != 10 {
		t.Errorf("%d events, %d in the inbox", len(thread.Events()), len(threads.Inbox()))
	}
	// The texts and the offer of the host; neither the offer that does not fit nor own ones.
	if thread.Unread() != 4 || thread.LastActivity() != 40 {
		t.Errorf("unread %d, last activity %d", thread.Unread(), thread.LastActivity())
	}
}

func TestThreadWithoutReadableMessages(t *testing.T) {
	t.Parallel()
	foreign := sent{from: messageHost, at: 80, kind: 7, text: "+", tag: messageTrade, to: []string{messageGuest}}
	threads := threadsOf(t, foreign)
	if thread := only(t, threads); thread.LastActivity() != 0 || len(thread.Events()) != 0 || len(threads.Inbox()) != 1 {
		t.Errorf("of a foreign kind: %+v", thread)
	}
	threads.Add(receipt(messageHost, 20, "5").rumor(t))
	if thread := only(t, threads); thread.LastActivity() != 20 {
		t.Errorf("with a receipt: %d", thread.LastActivity())
	}
	threads.Add(selection(fromHost(30, ""), "s").rumor(t))
	if thread := only(t, threads); thread.LastActivity() != 30 || thread.Unread() != 0 || len(thread.Events()) != 1 {
		t.Errorf("with a selection: %+v", thread)
	}
	threads.Add(fromHost(10, "x").rumor(t))
	if thread := only(t, threads); thread.LastActivity() != 10 || thread.Unread() != 1 {
		t.Errorf("with a text: %+v", thread)
	}
}

func TestThreadOfTypedOrders(t *testing.T) {
	t.Parallel()
	typed := func(at nostr.Timestamp, trade string) sent {
		return sent{
			from: messageHost, at: at, kind: market.KindOrder, text: `{"stage":"negotiate"}`, to: []string{messageGuest},
			tags: nostr.Tags{{"a", "30402:" + messageHost + ":cabin"}, {"d", trade}},
		}
	}
	thread := only(t, threadsOf(t, typed(20, "newest"), typed(10, "older")))
	if thread.TradeID() != "newest" || len(thread.OrderRequests()) != 0 || thread.Unread() != 0 || thread.Tag != "" {
		t.Errorf("%+v", thread)
	}
}

func TestThreadWithOneself(t *testing.T) {
	t.Parallel()
	threads := threadsOf(t, offer(sent{from: messageGuest, at: 5, tag: messageTrade}, messageTradeKey))
	thread := only(t, threads)
	if len(thread.Recipients()) != 0 || len(thread.OrderRequests()) != 1 || threads.OfTrade(messageTrade) != thread {
		t.Errorf("%+v", thread)
	}
}

// TestThreadOfOthers has a message addressed to others that was sent here all the same.
func TestThreadOfOthers(t *testing.T) {
	t.Parallel()
	thread := only(t, threadsOf(t, sent{from: messageOutsider, at: 5, text: "x", to: []string{messageHost}}))
	if !slices.Contains(thread.Participants, messageGuest) || len(thread.Recipients()) != 2 ||
		thread.Anchor != market.ThreadAnchor([]string{messageOutsider, messageHost}, "") {
		t.Errorf("%+v", thread)
	}
}

func TestDuplicates(t *testing.T) {
	t.Parallel()
	messages := []sent{fromHost(30, "x"), offer(toHost(40, ""), messageTradeKey), receipt(messageGuest, 5, "20")}
	threads := threadsOf(t, messages...)
	before := only(t, threads)
	for _, message := range messages {
		if threads.Add(message.rumor(t)) {
			t.Errorf("%+v was added again", message)
		}
	}
	if only(t, threads) != before || len(threads.Inbox()) != 3 {
		t.Error("a duplicate has an effect")
	}
}

func TestRepeatedChildren(t *testing.T) {
	t.Parallel()
	first, second := offer(toHost(10, ""), messageTradeKey), toHost(20, "")
	second.kind, second.text = first.kind, childOrder(messageTradeKey, messageTrade, 10)
	if got := only(t, threadsOf(t, first, second)).OrderRequests(); len(got) != 2 {
		t.Errorf("%d requests", len(got))
	}
}

func TestUnread(t *testing.T) {
	t.Parallel()
	threads := threadsOf(t, fromHost(10, "a"), fromHost(20, "b"), toHost(90, "mine"), offer(fromHost(95, ""), messageTradeKey))
	expect := func(step string, want int) {
		t.Helper()
		if got := threads.ByAnchor(market.ThreadAnchor([]string{messageGuest, messageHost}, messageTrade)).Unread(); got != want {
			t.Errorf("%s: %d unread, want %d", step, got, want)
		}
	}
	expect("before the history is there", 2)
	for _, ignored := range []sent{
		receipt(messageHost, 30, "99"), receipt(messageGuest, 31, ""), receipt(messageGuest, 32, "x"),
		receipt(messageGuest, 33, "1.5"), receipt(messageGuest, 34, "-7"),
	} {
		threads.Add(ignored.rumor(t))
	}
	expect("receipts that say nothing", 2)
	threads.Add(receipt(messageGuest, 35, "10").rumor(t))
	expect("a receipt", 1)
	threads.Add(receipt(messageGuest, 36, "5").rumor(t))
	expect("an older receipt", 1)
	threads.Live(longAfter)
	expect("live", 0)
	threads.Add(fromHost(20, "same second").rumor(t))
	expect("a message of the second that is seen", 0)
	threads.Add(fromHost(21, "new").rumor(t))
	threads.Add(toHost(100, "mine").rumor(t))
	expect("a new message", 1)
	threads.Live(longAfter)
	expect("live again", 1)
	threads.Add(receipt(messageGuest, 37, "21").rumor(t))
	expect("read elsewhere", 0)
	late := sent{from: messageEscrow, at: 1, text: "late", to: []string{messageGuest}}
	threads.Add(late.rumor(t))
	if thread := threads.All()[1]; thread.Unread() != 1 {
		t.Errorf("a later thread has %d unread", thread.Unread())
	}
}

func TestSnapshotsDoNotChange(t *testing.T) {
	t.Parallel()
	threads := threadsOf(t, fromHost(30, "b"), offer(toHost(40, ""), messageTradeKey))
	thread, inbox := only(t, threads), threads.Inbox()
	before := fmt.Sprint(rumorIDs(thread.Events()), rumorIDs(inbox), thread.Unread())
	threads.Add(fromHost(10, "a").rumor(t))
	threads.Add(fromHost(50, "c").rumor(t))
	threads.Live(longAfter)
	if after := fmt.Sprint(rumorIDs(thread.Events()), rumorIDs(inbox), thread.Unread()); after != before {
		t.Errorf("got %s, want %s", after, before)
	}
	if now := only(t, threads); now == thread || len(now.Events()) != 4 || now != only(t, threads) {
		t.Error("the thread does not follow, or is built anew without a change")
	}
}

func TestReassess(t *testing.T) {
	t.Parallel()
	controlled := false
	threads := market.NewThreads(messageGuest, func(string, string) bool { return controlled })
	foreign := offer(sent{from: messageOutsider, at: 5, tag: messageTrade, to: []string{messageGuest}}, messageTradeKey)
	threads.Add(foreign.rumor(t))
	if thread := only(t, threads); len(thread.OrderRequests()) != 1 || thread.Unread() != 1 {
		t.Errorf("%+v", thread)
	}
	controlled = true
	threads.Reassess()
	if thread := only(t, threads); len(thread.OrderRequests()) != 0 || thread.Unread() != 0 {
		t.Errorf("%+v", thread)
	}
}

func TestResolve(t *testing.T) {
	t.Parallel()
	threeParty := func(at nostr.Timestamp) sent {
		return sent{from: messageEscrow, at: at, text: "x", tag: messageTrade, to: []string{messageGuest, messageHost}}
	}
	outsider := sent{from: messageOutsider, at: 5, text: "x", tag: "label", to: []string{messageGuest}}
	untagged := sent{from: messageHost, at: 50, text: "x", to: []string{messageGuest}}
	threads := threadsOf(t, fromHost(20, "x"), threeParty(10), outsider, untagged)
	names := map[*market.Thread]string{nil: "none"}
	for i, name := range []string{"two", "three", "outsider", "untagged"} {
		names[threads.All()[i]] = name
	}
	untaggedAnchor := threads.All()[3].Anchor
	for name, test := range map[string]struct {
		anchor, tag string
		recipients  []string
		want        string
	}{
		"by anchor":                      {untaggedAnchor, messageTrade, []string{messageHost}, "untagged"},
		"unknown anchor falls through":   {"unknown", " " + messageTrade + " ", []string{messageHost}, "two"},
		"unknown anchor alone":           {"unknown", "", nil, "none"},
		"exactly these":                  {"", messageTrade, []string{messageEscrow, messageHost}, "three"},
		"the account among them":         {"", messageTrade, []string{messageHost, messageGuest}, "two"},
		"the only one with the tag":      {"", "label", nil, "outsider"},
		"also for other recipients":      {"", "label", []string{messageEscrow}, "outsider"},
		"several, one holds them":        {"", messageTrade, []string{messageEscrow}, "three"},
		"several, most recent":           {"", messageTrade, nil, "two"},
		"several, none holds them":       {"", messageTrade, []string{messageOutsider}, "two"},
		"recipients without tag":         {"", "", []string{messageHost}, "untagged"},
		"unknown recipients without tag": {"", "", []string{messageEscrow}, "none"},
		"unknown tag":                    {"", "unknown", []string{messageHost}, "none"},
		"nothing":                        {"", " ", nil, "none"},
	} {
		if got := names[threads.Resolve(test.anchor, test.tag, test.recipients, nil)]; got != test.want {
			t.Errorf("%s: got %q, want %s", name, got, test.want)
		}
	}
	threads.Add(threeParty(20).rumor(t))
	if got := threads.Resolve("", messageTrade, nil, nil); got != threads.All()[1] {
		t.Error("of two threads of equal activity the later created one is meant")
	}
}

func TestOfTrade(t *testing.T) {
	t.Parallel()
	threads := threadsOf(t)
	if threads.OfTrade(messageTrade) != nil || threads.OfTrade("") != nil {
		t.Error("a trade without messages has a thread")
	}
	expect := func(step string, position int) {
		t.Helper()
		if got := threads.OfTrade(messageTrade); got != threads.All()[position] {
			t.Errorf("%s: %v", step, got.Participants)
		}
	}
	threads.Add(fromHost(10, "x").rumor(t))
	threads.Add(sent{from: messageEscrow, at: 20, text: "x", tag: messageTrade, to: []string{messageGuest, messageHost}}.rumor(t))
	expect("no thread has orders", 1)
	threads.Add(offer(toHost(5, ""), messageTradeKey).rumor(t))
	expect("the first has an order", 0)
	intruder := sent{from: messageOutsider, at: 30, tag: messageTrade, to: []string{messageGuest}}
	threads.Add(offer(intruder, messageHost).rumor(t))
	expect("an order that does not fit", 0)
	threads.Add(sent{
		from: messageOutsider, at: 31, kind: market.KindStructuredMessage, tag: messageTrade, to: []string{messageGuest},
		text: childOrder(messageOutsider, "another", 6),
	}.rumor(t))
	expect("an order of another trade", 0)
	threads.Add(sent{from: messageHost, at: 40, text: "x", to: []string{messageGuest}}.rumor(t))
	if threads.OfTrade("") != nil {
		t.Error("a thread without tag is the thread of no trade")
	}
}

func TestEscrowSelections(t *testing.T) {
	t.Parallel()
	services := func(selections []market.SelectionMessage) (ids []string) {
		for _, message := range selections {
			ids = append(ids, message.Selection.EscrowService.Event.ID+"@"+strconv.Itoa(int(message.Rumor.Event.CreatedAt)))
		}
		return ids
	}
	threeParty := sent{from: messageHost, at: 25, tag: messageTrade, to: []string{messageGuest, messageEscrow}}
	intruder := sent{from: messageOutsider, at: 50, tag: messageTrade, to: []string{messageGuest}}
	untagged := sent{from: messageHost, at: 60, to: []string{messageGuest}}
	threads := threadsOf(t,
		offer(toHost(1, ""), messageTradeKey), selection(toHost(30, ""), "first"), selection(toHost(20, ""), "second"),
		selection(toHost(10, ""), "first"), selection(threeParty, "second"), selection(intruder, "first"),
		selection(untagged, "third"),
	)
	if diff := cmp.Diff([]string{"second@20", "first@30"}, services(threads.All()[0].EscrowSelections())); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"second@25", "first@30"}, services(threads.SelectionsOfTrade(messageTrade))); diff != "" {
		t.Error(diff)
	}
	if got := services(threads.All()[3].EscrowSelections()); got != nil {
		t.Errorf("without tag: %v", got)
	}
	if threads.SelectionsOfTrade("unknown") != nil {
		t.Error("an unknown trade has selections")
	}
}

func TestNewThread(t *testing.T) {
	t.Parallel()
	thread := market.NewThread(messageGuest, []string{messageHost, messageGuest, messageEscrow, messageHost}, " "+messageTrade+" ")
	if diff := cmp.Diff([]string{messageHost, messageEscrow}, thread.Recipients()); diff != "" {
		t.Error(diff)
	}
	if thread.Tag != messageTrade || thread.Anchor != market.ThreadAnchor(thread.Participants, messageTrade) ||
		thread.TradeID() != messageTrade || len(thread.Events()) != 0 || thread.LastActivity() != 0 {
		t.Errorf("%+v", thread)
	}
}

// manyMessages are messages of several threads at different times.
func manyMessages(t testing.TB, random *rand.Rand, count int) []market.Rumor {
	t.Helper()
	people := []string{messageGuest, messageHost, messageEscrow, messageOutsider}
	var rumors []market.Rumor
	for at := range count {
		message := sent{
			from: people[random.IntN(len(people))], at: nostr.Timestamp(1 + at), text: "text",
			tag: []string{"", messageTrade, "label"}[random.IntN(3)],
			to:  []string{messageGuest, people[random.IntN(len(people))]},
		}
		switch random.IntN(8) {
		case 0:
			message = offer(message, messageTradeKey)
		case 1:
			message = offer(message, messageHost)
		case 2:
			message = selection(message, []string{"a", "b"}[random.IntN(2)])
		case 3:
			message.kind, message.tags = market.KindSeenReceipt, nostr.Tags{{"seen_until", strconv.Itoa(random.IntN(count))}}
		case 4:
			message.kind = 7
		}
		rumors = append(rumors, message.rumor(t))
	}
	return rumors
}

// describe tells all about a thread except for its place among others.
func describe(thread *market.Thread) string {
	return fmt.Sprint(thread.Anchor, thread.Tag, thread.Participants, thread.Counterparties, rumorIDs(thread.Events()),
		rumorIDs(thread.TextMessages()), requestIDs(thread.OrderRequests()), len(thread.EscrowSelections()), thread.Unread(),
		thread.LastActivity(), thread.TradeID())
}

func describeAll(threads *market.Threads) []string {
	var texts []string
	for _, thread := range threads.All() {
		texts = append(texts, describe(thread))
	}
	slices.Sort(texts)
	return texts
}

// TestArrivalDoesNotMatter: messages of different times make the same threads in any
// order, with duplicates, and however often they are looked at in between.
func TestArrivalDoesNotMatter(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		random := rand.New(rand.NewPCG(seed, 1))
		rumors := manyMessages(t, random, 60)
		var want, wantLive []string
		for shuffle := range 4 {
			threads := market.NewThreads(messageGuest, ownsTradeKey)
			for _, rumor := range rumors {
				threads.Add(rumor)
				if shuffle > 0 {
					threads.Add(rumors[random.IntN(len(rumors))])
					describeAll(threads)
				}
			}
			got := describeAll(threads)
			threads.Live(longAfter)
			live := describeAll(threads)
			if shuffle == 0 {
				want, wantLive = got, live
			}
			if diff := cmp.Diff(want, got) + cmp.Diff(wantLive, live); diff != "" || len(threads.Inbox()) != len(rumors) {
				t.Fatalf("seed %d: %s", seed, diff)
			}
			for _, thread := range threads.All() {
				if thread.Unread() != 0 {
					t.Fatalf("seed %d: %d unread when live", seed, thread.Unread())
				}
			}
			random.Shuffle(len(rumors), func(i, j int) { rumors[i], rumors[j] = rumors[j], rumors[i] })
		}
	}
}

// TestEqualTimesKeepTheirArrival is the one place where arrival shows within a thread.
func TestEqualTimesKeepTheirArrival(t *testing.T) {
	t.Parallel()
	thread := only(t, threadsOf(t, fromHost(5, "z"), fromHost(5, "a"), fromHost(4, "y"), fromHost(5, "m")))
	if diff := cmp.Diff([]string{"y", "z", "a", "m"}, textsOf(thread.TextMessages())); diff != "" {
		t.Error(diff)
	}
}

// BenchmarkThreadsAdd takes 10,000 messages in, newest first, and looks at the threads
// at the end.
func BenchmarkThreadsAdd(b *testing.B) {
	for name, count := range map[string]int{"1000": 1000, "10000": 10000} {
		rumors := make([]market.Rumor, count)
		for i := range rumors {
			rumors[i] = fromHost(nostr.Timestamp(count-i), "text").rumor(b)
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				threads := market.NewThreads(messageGuest, ownsTradeKey)
				for _, rumor := range rumors {
					threads.Add(rumor)
				}
				if got := len(threads.All()[0].Events()); got != count {
					b.Fatalf("%d events", got)
				}
			}
		})
	}
}

// BenchmarkThreadAfterOneMore looks at a thread of 10,000 messages after each new one.
func BenchmarkThreadAfterOneMore(b *testing.B) {
	threads := market.NewThreads(messageGuest, ownsTradeKey)
	for i := range 10000 {
		threads.Add(fromHost(nostr.Timestamp(i), "text").rumor(b))
	}
	at := nostr.Timestamp(10000)
	b.ReportAllocs()
	for b.Loop() {
		at++
		threads.Add(fromHost(at, "text").rumor(b))
		if threads.All()[0].LastActivity() != at {
			b.Fatal("the message is missing")
		}
	}
}

// What is dated ahead does not make everything after it seen.
func TestLiveWithADateAhead(t *testing.T) {
	t.Parallel()
	threads := threadsOf(t, fromHost(10, "a"), fromHost(1<<52, "b"))
	threads.Live(20)
	threads.Add(fromHost(30, "c").rumor(t))
	if unread := only(t, threads).Unread(); unread != 2 {
		t.Errorf("%d unread, want the one ahead and the new one", unread)
	}
}
