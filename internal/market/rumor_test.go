package market_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/market"
)

func TestMessageDraft(t *testing.T) {
	t.Parallel()
	order := childOrder(messageTradeKey, messageTrade, 5)
	for name, test := range map[string]struct {
		draft market.MessageDraft
		want  nostr.Tags
	}{
		"text": {
			market.MessageDraft{
				Kind: market.KindTextMessage, Content: order, Conversation: "label",
				Extra: nostr.Tags{{"tradeId", "x"}}, Recipients: []string{"c", "me", "b", "c", ""},
			},
			nostr.Tags{{"conversation", "label"}, {"tradeId", "x"}, {"p", "b"}, {"p", "c"}},
		},
		"without conversation": {
			market.MessageDraft{Kind: market.KindTextMessage, Content: "x", Recipients: []string{"b"}}, nostr.Tags{{"p", "b"}},
		},
		"order": {
			market.MessageDraft{
				Kind: market.KindStructuredMessage, Content: order, Conversation: "t", Extra: nostr.Tags{{"x"}},
				Recipients: []string{"b"},
			},
			nostr.Tags{{"conversation", "t"}, {"x"}, {"alt", "Order Proposal"}, {"p", "b"}},
		},
		"selection": {
			market.MessageDraft{Kind: market.KindStructuredMessage, Content: childSelection("s", readableService)},
			nostr.Tags{{"alt", "Escrow Service Selected"}},
		},
		"alt of the caller": {
			market.MessageDraft{
				Kind: market.KindStructuredMessage, Content: order, Extra: nostr.Tags{{"alt", "mine"}}, Recipients: []string{"b"},
			},
			nostr.Tags{{"alt", "mine"}, {"p", "b"}},
		},
		"other child": {
			market.MessageDraft{Kind: market.KindStructuredMessage, Content: `{"kind":0,"created_at":1}`}, nostr.Tags{},
		},
		"no child": {market.MessageDraft{Kind: market.KindStructuredMessage, Content: `x`}, nostr.Tags{}},
	} {
		event := test.draft.Event("me", 1780000000)
		if diff := cmp.Diff(test.want, event.Tags); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if event.PubKey != "me" || event.CreatedAt != 1780000000 || event.Kind != test.draft.Kind ||
			event.Content != test.draft.Content || !event.CheckID() || event.Sig != "" {
			t.Errorf("%s: %v", name, event)
		}
	}
}

// TestDraftsOfVectors writes the vectors' messages by the account anew.
func TestDraftsOfVectors(t *testing.T) {
	t.Parallel()
	written := 0
	for _, vector := range readMessageVectors(t).GiftWraps {
		want := eventOf(t, vector.Rumor)
		if want.PubKey != messageGuest || want.Kind == market.KindSeenReceipt {
			continue
		}
		written++
		draft := market.MessageDraft{
			Kind: want.Kind, Content: want.Content, Conversation: market.ConversationTag(want.Tags), Recipients: []string{messageHost},
		}
		if diff := cmp.Diff(want, draft.Event(messageGuest, want.CreatedAt)); diff != "" {
			t.Errorf("%s: %s", vector.Name, diff)
		}
	}
	if written < 3 {
		t.Errorf("only %d messages were written", written)
	}
}

func TestNewOrderMessage(t *testing.T) {
	t.Parallel()
	order := eventOf(t, []byte(childOrder(messageHost, messageTrade, 5)))
	rumor, err := market.ReadRumor(market.NewOrderMessage(order, messageTrade, []string{messageGuest}).Event(messageHost, 7))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(order, rumor.Child); diff != "" || rumor.Order.TradeID != messageTrade {
		t.Errorf("%s, trade %s", diff, rumor.Order.TradeID)
	}
	want := nostr.Tags{{"conversation", messageTrade}, {"alt", "Order Proposal"}, {"p", messageGuest}}
	if diff := cmp.Diff(want, rumor.Event.Tags); diff != "" {
		t.Error(diff)
	}
}

// classOf names a class as the vectors do.
func classOf(rumor market.Rumor) string {
	switch {
	case rumor.Class == market.ClassJSON && rumor.Order != nil:
		return "json:order"
	case rumor.Class == market.ClassJSON && rumor.Selection != nil:
		return "json:selection"
	default:
		return string(rumor.Class)
	}
}

func TestReadRumorOfVectors(t *testing.T) {
	t.Parallel()
	for _, vector := range readMessageVectors(t).GiftWraps {
		if vector.Expect.Result != "accept" && vector.Name != "bad-json-child" {
			continue // The wrap is at fault, not the message.
		}
		event := eventOf(t, vector.Rumor)
		rumor, err := market.ReadRumor(event)
		if vector.Expect.Result != "accept" {
			if !errors.Is(err, market.ErrNotRumor) {
				t.Errorf("%s: %v", vector.Name, err)
			}
			continue
		}
		if err != nil || classOf(rumor) != vector.Expect.Class || rumor.Event.ID != vector.Expect.RumorID {
			t.Errorf("%s: %v as %s, id %s", vector.Name, err, classOf(rumor), rumor.Event.ID)
		}
	}
}

func TestReadRumor(t *testing.T) {
	t.Parallel()
	const child = market.KindStructuredMessage
	order := childOrder(messageTradeKey, messageTrade, 5)
	selection := childSelection("s", readableService)
	broken := strings.Replace(order, "negotiate", "unknown", 1)
	for name, test := range map[string]struct {
		kind    int
		content string
		want    string // "" = dropped
	}{
		"text":                            {14, "hello", "text"},
		"empty text":                      {14, "", "text"},
		"text that is some JSON":          {14, `{"a":1}`, "text"},
		"text that is a list":             {14, `[` + order + `]`, "text"},
		"text that is an unknown kind":    {14, `{"kind":1,"created_at":1}`, "text"},
		"text that is a broken order":     {14, broken, "text"},
		"text that is a broken selection": {14, childSelection("s", `{}`), "text"},
		"order in a text":                 {14, " \n" + order, "json:order"},
		"selection in a text":             {14, selection, "json:selection"},
		"order":                           {child, order, "json:order"},
		"selection":                       {child, selection, "json:selection"},
		"unknown keys, null sig, no id":   {child, `{"x":[],"kind":10017,"created_at":1,"sig":null,"tags":null}`, "json"},
		"order with a broken stage":       {child, broken, ""},
		"order without anchor":            {child, strings.Replace(order, `["a",`, `["b",`, 1), ""},
		"order with an unusable anchor":   {child, strings.Replace(order, `"30402:`, `"`, 1), "json:order"},
		"order with a broken date":        {child, strings.Replace(order, `{\"stage`, `{\"start\":\"x\",\"stage`, 1), ""},
		"order with a broken amount":      {child, strings.Replace(order, `{\"stage`, `{\"amount\":5,\"stage`, 1), ""},
		"order with a broken proof":       {child, strings.Replace(order, `{\"stage`, `{\"proof\":{},\"stage`, 1), ""},
		"order with a broken authority":   {child, strings.Replace(order, `{\"stage`, `{\"commitAuthorization\":{},\"stage`, 1), ""},
		"order whose content is none":     {child, `{"kind":32122,"created_at":1,"tags":[["a","x"]],"content":"x"}`, ""},
		"selection without trade":         {child, strings.Replace(selection, `["d",`, `["b",`, 1), ""},
		"selection of a broken service":   {child, childSelection("s", `{}`), ""},
		"selection without content":       {child, `{"kind":30302,"created_at":1,"tags":[["d","x"]]}`, ""},
		"selection of objects": {
			child, `{"kind":30302,"created_at":1,"tags":[["d","x"]],"content":"{\"service\":{},\"sellerMethods\":{}}"}`, "",
		},
		"selection of something else": {
			child, `{"kind":30302,"created_at":1,"tags":[["d","x"]],"content":"{\"service\":\"5\",\"sellerMethods\":\"{}\"}"}`, "",
		},
		"child without kind":      {child, `{"created_at":1}`, ""},
		"child without time":      {child, `{"kind":10017}`, ""},
		"child of a foreign kind": {child, `{"kind":1,"created_at":1}`, ""},
		"child that is text":      {child, `hello`, ""},
		"child that is empty":     {child, ``, ""},
		"two children":            {child, order + order, ""},
		"message in a message":    {child, `{"kind":14,"created_at":1}`, "json"},
		"receipt in a message":    {child, `{"kind":16,"created_at":1}`, "json"},
		"profile in a message":    {child, `{"kind":0,"created_at":1}`, "json"},
		"badge in a message":      {child, `{"kind":8,"created_at":1}`, "json"},
		"wrap in a message":       {child, `{"kind":1059,"created_at":1}`, ""},
		"receipt":                 {16, "", "seen"},
		"heartbeat":               {10017, "", "typed"},
		"transition":              {1326, "?", "typed"},
		"service":                 {30303, "?", "typed"},
		"broken order by itself":  {32122, "{}", ""},
		"broken selection itself": {30302, "{}", ""},
		"reaction":                {7, "+", "other"},
		"file":                    {15, "", "other"},
		"seal":                    {13, "", "other"},
	} {
		rumor, err := market.ReadRumor(sent{from: messageHost, kind: test.kind, text: test.content, at: 5}.event())
		if test.want == "" {
			if !errors.Is(err, market.ErrNotRumor) || rumor.Event != nil {
				t.Errorf("%s: %v, %v", name, err, rumor)
			}
			continue
		}
		if err != nil || classOf(rumor) != test.want || (rumor.Child != nil) != strings.HasPrefix(test.want, "json") {
			t.Errorf("%s: %v as %s", name, err, classOf(rumor))
		}
	}
	if _, err := market.ReadRumor(nil); !errors.Is(err, market.ErrNotRumor) {
		t.Errorf("of nothing: %v", err)
	}
}

func TestReadRumorOfTypedOrder(t *testing.T) {
	t.Parallel()
	event := eventOf(t, []byte(childOrder(messageHost, messageTrade, 5)))
	event.ID, event.Sig = "wrong", "also"
	rumor, err := market.ReadRumor(event)
	if err != nil || rumor.Class != market.ClassTyped || rumor.Order.TradeID != messageTrade || rumor.Child != nil {
		t.Fatalf("%v, %+v", err, rumor)
	}
	if !rumor.Event.CheckID() || rumor.Event.Sig != "" || event.ID != "wrong" || event.Sig != "also" {
		t.Errorf("id %s, sig %q of %s, %q", rumor.Event.ID, rumor.Event.Sig, event.ID, event.Sig)
	}
	if market.OrderChildFits(rumor, messageHost, ownsTradeKey) {
		t.Error("an order that is no child fits")
	}
}

func TestOrderChildFitsOfRumors(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		from, child string
		trade       string
		anchor      string
		want        bool
	}{
		"host's by the host":              {messageHost, messageHost, messageTrade, "", true},
		"trade key's by the host":         {messageHost, messageTradeKey, messageTrade, "", false},
		"stranger's by the host":          {messageHost, messageOutsider, messageTrade, "", false},
		"host's by a stranger":            {messageOutsider, messageHost, messageTrade, "", false},
		"stranger's by a stranger":        {messageOutsider, messageOutsider, messageTrade, "", true},
		"own trade key's by a stranger":   {messageOutsider, messageTradeKey, messageTrade, "", false},
		"that key's in another trade":     {messageOutsider, messageTradeKey, "other", "", true},
		"own identity's by a stranger":    {messageOutsider, messageGuest, messageTrade, "", false},
		"own trade key's by the account":  {messageGuest, messageTradeKey, messageTrade, "", true},
		"host's by the account":           {messageGuest, messageHost, messageTrade, "", true},
		"unusable anchor by the account":  {messageGuest, messageTradeKey, messageTrade, "30402:x", true},
		"unusable anchor by a stranger":   {messageOutsider, messageOutsider, messageTrade, "naddr1x", false},
		"anchor without identifier works": {messageHost, messageHost, messageTrade, "30402:" + messageHost + ":", true},
	} {
		child := childOrder(test.child, test.trade, 5)
		if test.anchor != "" {
			child = strings.Replace(child, "30402:"+messageHost+":cabin", test.anchor, 1)
		}
		rumor := sent{from: test.from, kind: market.KindStructuredMessage, text: child, tag: messageTrade}.rumor(t)
		if got := market.OrderChildFits(rumor, messageGuest, ownsTradeKey); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if market.OrderChildFits(sent{from: messageHost, text: "x"}.rumor(t), messageGuest, ownsTradeKey) {
		t.Error("a text fits")
	}
}

func FuzzReadRumor(f *testing.F) {
	f.Add(14, "hello", "conversation", "x")
	f.Add(1327, childOrder(messageTradeKey, messageTrade, 5), "p", messageGuest)
	f.Add(1327, childSelection("s", readableService), "seen_until", "-5")
	f.Add(16, "", "seen_until", "99999999999999999999")
	f.Add(1327, `{"kind":32122,"created_at":1e5,"tags":[[1,null,{}],5]}`, "d", "")
	f.Fuzz(func(t *testing.T, kind int, content, name, value string) {
		event := &nostr.Event{PubKey: messageHost, Kind: kind, Content: content, Tags: nostr.Tags{{name, value}}}
		rumor, err := market.ReadRumor(event)
		if err != nil {
			if !errors.Is(err, market.ErrNotRumor) {
				t.Fatal(err)
			}
			return
		}
		again, err := market.ReadRumor(rumor.Event)
		if err != nil || again.Class != rumor.Class || again.Event.ID != rumor.Event.ID {
			t.Fatalf("read again: %v, %s for %s", err, again.Class, rumor.Class)
		}
		threads := market.NewThreads(messageGuest, ownsTradeKey)
		threads.Add(rumor)
		threads.Live(longAfter)
		if all := threads.All(); len(all) != 1 || len(threads.Inbox()) != 1 || all[0].Unread() != 0 {
			t.Fatalf("%d threads", len(all))
		}
	})
}
