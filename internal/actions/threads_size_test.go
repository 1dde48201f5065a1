package actions

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/market"
	"hostr-daemon/internal/threads"
)

// written are an account's threads: one of its own, and so many of a stranger with a long
// message each.
func written(t *testing.T, me string, strangers int) *market.Threads {
	t.Helper()
	all := market.NewThreads(me, func(string, string) bool { return false })
	add := func(from, to, tag, text string, at nostr.Timestamp) {
		draft := market.MessageDraft{Kind: market.KindTextMessage, Content: text, Conversation: tag, Recipients: []string{to}}
		rumor, err := market.ReadRumor(draft.Event(from, at))
		if err != nil {
			t.Fatal(err)
		}
		all.Add(rumor)
	}
	host, stranger := fmt.Sprintf("%064x", 2), fmt.Sprintf("%064x", 3)
	long := strings.Repeat("\u2028<&>", 2500)
	for i := range strangers {
		add(stranger, me, fmt.Sprint(i), long, nostr.Timestamp(1000+i))
		if i == strangers/2 {
			add(me, host, "mine", "Hello.", 10)
		}
	}
	add(stranger, me, "ahead", long, 1<<52)
	return all
}

// However much strangers write, the answer stays small, and what matters is in it.
func TestUpdatesStaySmall(t *testing.T) {
	t.Parallel()
	me := fmt.Sprintf("%064x", 1)
	all := written(t, me, 400).All()
	budget := sizeBudget{left: 1 << 20}
	shown := fittingThreads(&budget, all, threads.People{}, me, 5000)
	text, err := json.Marshal(shown)
	if err != nil || len(text) > 1<<20 {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	byTag := map[string]UpdatesThread{}
	for _, thread := range shown {
		byTag[thread.Conversation] = thread
	}
	if len(byTag["mine"].TextMessages) != 1 || len(byTag["399"].TextMessages) != 1 || len(byTag["ahead"].TextMessages) != 0 || len(byTag["0"].TextMessages) != 0 {
		t.Errorf("%d threads, not the ones that matter", len(shown))
	}
	if warning := tooLarge(budget.cut); warning == nil || warning.Code != fault.PartialResult {
		t.Errorf("the warning is %v", warning)
	}
	inOrder := slices.IsSortedFunc(shown, func(a, b UpdatesThread) int {
		at := func(tag string) int {
			return slices.IndexFunc(all, func(thread *market.Thread) bool { return thread.Tag == tag })
		}
		return at(a.Conversation) - at(b.Conversation)
	})
	if !inOrder {
		t.Error("the threads are not in order of creation")
	}
	whole := sizeBudget{left: 1 << 30}
	if shown := fittingThreads(&whole, all, threads.People{}, me, 5000); len(shown) != len(all) || whole.cut || tooLarge(whole.cut) != nil {
		t.Errorf("%d of %d threads", len(shown), len(all))
	}
}

// A view has the newest messages that fit.
func TestThreadViewStaysSmall(t *testing.T) {
	t.Parallel()
	me, stranger := fmt.Sprintf("%064x", 1), fmt.Sprintf("%064x", 3)
	all := market.NewThreads(me, func(string, string) bool { return false })
	for i := range 300 {
		draft := market.MessageDraft{Kind: market.KindTextMessage, Content: strings.Repeat("x", 30_000), Recipients: []string{me}}
		rumor, err := market.ReadRumor(draft.Event(stranger, nostr.Timestamp(i+1)))
		if err != nil {
			t.Fatal(err)
		}
		all.Add(rumor)
	}
	view, warning := newThreadView(all.All()[0], threads.People{}, me, 1000)
	last := view.Messages[len(view.Messages)-1]
	if view.MessageCount != 300 || !view.HasMoreMessages || warning == nil || len(view.Messages) >= 300 || last.CreatedAt != "1970-01-01T00:05:00.000Z" {
		t.Errorf("%d of %d messages until %s, more %t, %v", len(view.Messages), view.MessageCount, last.CreatedAt, view.HasMoreMessages, warning)
	}
}
